"""Adds seeds to the rows of the state: Nutch's inject. New rows, also of sitemaps."""

from typing import NamedTuple

import polars as pl

from ..web.base.dataclass import dataclass
from ..web.base.options import option
from .components.schema import STATE, SeedRows, StateRows, Status, conform_frame
from .schedules.schedule import ScheduleOptions
from .scoring.metadata import overlay_maps
from .scoring.scoring import ScoringOptions
from .scoring.scorings import OPIC, Scorings


@dataclass(frozen=True)
class SeedOptions(ScheduleOptions, ScoringOptions):
    """Options of the scores of seeds, and of URLs that are already in the table."""

    GROUP = "inject"

    injected_score: float = option(1.0, "Score of a seed.", nutch="db.score.injected", minimum=0.0)
    overwrite_known: bool = option(
        False,
        "Replace the row of a known URL that is injected again.",
        nutch="db.injector.overwrite, inject -overwrite",
    )
    update_known: bool = option(
        False,
        "If a known URL is injected again, update the score, interval and metadata that its line "
        "sets.",
        nutch="db.injector.update, inject -update",
    )

    filter_normalize_all: bool = option(
        False,
        "Also filter and normalize the URLs of the table, by the rules for seeds. Refused URLs are "
        "dropped, and seeds are optional. filterdb also applies the rules for links.",
        nutch="inject -filterNormalizeAll",
    )

    def __post_init__(self) -> None:
        if self.overwrite_known and self.update_known:
            raise ValueError(
                "--overwrite_known True and --update_known True contradict each other: give one"
            )


class SeedRules(NamedTuple):
    """How seeds become rows.

    Attributes:
        now: Due time of new URLs, ms.
        options: Options for known URLs.
        scorings: The scorings.
    """

    now: int
    options: SeedOptions
    scorings: Scorings = OPIC


def inject_seeds(
    state_rows: StateRows, seeds: SeedRows, rules: SeedRules
) -> tuple[StateRows, dict[str, int]]:
    """Adds seeds to the rows of a range of keys.

    If several seeds have the same URL, the last one counts. A known URL becomes a seed: its
    distance is 0. The rest of its row stays, unless an option changes it.

    Args:
        state_rows: STATE rows in key order.
        seeds: SEEDS rows for keys in the same range.
        rules: How seeds become rows.

    Returns:
        (STATE rows in key order, counts).
    """
    now, options, scorings = rules
    last = _last_lines(seeds)
    is_known = last.get_column("key").is_in(state_rows.get_column("key").implode())
    repeated = last.filter(is_known)
    fresh = last if options.overwrite_known else last.filter(~is_known)
    created = fresh.with_columns(distance=pl.lit(0)).pipe(
        new_rows, options, now, options.injected_score
    )
    created = scorings.injected(created)
    overwritten = options.overwrite_known and len(repeated)
    old_rows = state_rows.join(repeated, on="key", how="anti") if overwritten else state_rows
    if len(repeated):
        is_seed = pl.col("key").is_in(repeated.get_column("key").implode())
        seen = old_rows.filter(is_seed)
        if options.update_known:
            seen = scorings.renewed(_renew(seen, repeated))
        seen = seen.with_columns(distance=pl.lit(0, pl.Int32))
        old_rows = pl.concat([old_rows.filter(~is_seed), seen])
    merged = pl.concat([old_rows, created]).sort("key") if len(old_rows) else created
    counts = {"injected": len(last), "known": len(repeated), "added": len(last) - len(repeated)}
    counts["duplicate_lines"] = len(seeds) - len(last)
    return merged, {name: number for name, number in counts.items() if number}


def _last_lines(seeds: SeedRows) -> pl.DataFrame:
    """Returns the last line of each URL, in key order; without ``order``."""
    values = seeds.drop("key", "order")
    if any(column.null_count() < len(column) for column in values):
        last = seeds.sort("order", maintain_order=True).unique("key", keep="last")
        return last.sort("key").drop("order")
    # Most lists have URLs alone: a column alone is sorted in less than half the time.
    keys = seeds.get_column("key").sort()
    urls = keys.filter((keys != keys.shift()).fill_null(True)).to_frame()
    return pl.concat([seeds.drop("order").clear(), urls], how="diagonal")


def new_rows(urls: SeedRows, options: ScheduleOptions, now: int, score: float) -> StateRows:
    """Returns STATE rows of URLs that are due at once.

    Args:
        urls: ``key``, ``score``, ``fetch_interval`` (both may be null), and other columns of the state.
        options: The usual interval.
        now: The time that counts as now, ms.
        score: The usual score.
    """
    frame = urls.with_columns(
        status=pl.lit(int(Status.DB_UNFETCHED), pl.UInt8),
        fetch_time=pl.lit(now),
        fetch_interval=pl.col("fetch_interval").fill_null(options.fetch_interval),
        retries=pl.lit(0),
        score=pl.col("score").fill_null(score),
    )
    return conform_frame(frame, STATE)


def _renew(rows: StateRows, seeds: SeedRows) -> StateRows:
    seed_columns = seeds.rename(lambda name: name if name == "key" else f"seed.{name}")
    renewed = rows.join(seed_columns, on="key", how="left", maintain_order="left").with_columns(
        # What a line sets counts, also if it equals the default (in Nutch it does not).
        score=pl.coalesce("seed.score", "score"),
        fetch_interval=pl.coalesce("seed.fetch_interval", "fetch_interval"),
        fixed_interval=pl.coalesce("seed.fixed_interval", "fixed_interval"),
    )
    metadata = overlay_maps(renewed.get_column("metadata"), renewed.get_column("seed.metadata"))
    return renewed.with_columns(metadata).select(rows.columns)
