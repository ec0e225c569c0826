"""Chooses the URLs of a batch: Nutch's generate, with an exact, global topN.

Rows that are due and that it does not choose are counted by reason.
"""

import dataclasses
from collections import Counter
from collections.abc import Mapping

import polars as pl

from ...web.base.clock import TOLERANCE_MS, Clock
from ...web.base.columns import falses, reason_if
from ...web.base.joined_options import joined_options
from ...web.base.options import option
from ...web.engine.pace import QueueOptions
from ...web.urls.schemes import SchemeOptions
from ..base.key_columns import domain_keys, host_keys
from ..components.rule_counts import JudgedRows, count_reasons
from ..components.schema import FETCH_DELAY, MAX_DELAY, StateRows
from ..components.vocabulary import STATUS_WORDS, statuses_of
from ..conditions import ExprOptions, wanted_rows
from ..expressions.compiler import columns_of
from ..fetch_engines import URLS_PER_ENGINE, EngineOptions
from ..schedules.schedule import DAY_MS, ScheduleOptions, due
from ..scoring.scoring import ScoringOptions
from ..scoring.scorings import OPIC, Scorings
from .threshold import rank

LEFT_OUT = "left_out/"
DUE = "due"
CHOSEN = "chosen"
# The reason of a row that nothing excludes: others have better scores, and the batch is full.
NOT_BEST = "not_best"
# Rows that LocateHosts drops of those that were chosen.
_LATE = "dropped/address_unknown"


@joined_options
class GenerateOptions(
    ScheduleOptions, ScoringOptions, QueueOptions, SchemeOptions, ExprOptions, EngineOptions
):
    """Options of choosing the URLs of a batch."""

    GROUP = "generate"

    top_n: int = option(
        50_000,
        "How many URLs a batch takes at most, the best by score.",
        nutch="generate -topN, crawl --size-fetchlist",
        minimum=1,
    )
    max_count: int = option(
        -1,
        "How many URLs a batch takes of one host (or domain) at most; 0 or -1: no limit.",
        nutch="generate.max.count",
        minimum=-1,
    )
    count_mode: str = option(
        "host", "What max_count counts.", choices=("host", "domain"), nutch="generate.count.mode"
    )
    max_count_expr: str = option(
        "",
        "An expression over the host table in place of max_count, such as "
        "'100 if gone > fetched else 1000'; 0 or less: no limit. max_count applies to hosts "
        "that are not in the host table. Settings of a host have priority.",
        nutch="generate.max.count.expr",
    )
    fetch_delay_expr: str = option(
        "",
        "An expression over the host table, in ms: the pause between two requests to a host, such "
        "as 'response_p95 * 10'. If it has no value or is 0, the usual pause applies. Settings "
        "of a host have priority.",
        nutch="generate.fetch.delay.expr",
    )
    min_score: float = option(0.0, "Take no URL with a lower score.", nutch="generate.min.score")
    max_distance: int = option(
        -1,
        "Take no URL that is more links away from the seeds; -1: no limit.",
        nutch="generate.max.distance",
        minimum=-1,
    )
    restrict_status: str = option(
        "",
        "Take only URLs of this status; fetched is db_fetched and db_notmodified.",
        choices=("", *STATUS_WORDS),
        nutch="generate.restrict.status",
    )
    generate_min_interval: int = option(
        -1,
        "Take no URL whose fetch_interval is longer than this; -1: no limit.",
        unit="s",
        nutch="generate.min.interval",
        minimum=-1,
    )
    filter: bool = option(
        False,
        "Leave out URLs that today's filters and scope refuse, as filterdb would drop them. They "
        "stay in the table.",
    )
    normalize: bool = option(
        False,
        "Leave out URLs that today's normalizers rewrite, as filterdb would move them. They stay "
        "in the table.",
    )
    add_days: float = option(
        0.0,
        "Choose as if it were this many days later. It brings each URL "
        "forward at most once per crawl.",
        unit="d",
        nutch="generate -adddays",
        minimum=0.0,
    )
    generate_mark_ttl: int = option(
        604_800,
        "How long an unfinished batch keeps its URLs from other batches.",
        unit="s",
        nutch="crawl.gen.delay",
        minimum=1,
    )
    num_fetchers: int = option(
        0,
        "How many partitions a batch has; hosts are divided among them. 0 is one; where this machine "
        f"runs several fetch_engines, it is one for each of them, if it gets {URLS_PER_ENGINE:,} URLs.",
        nutch="generate -numFetchers, freegen -numFetchers, crawl --num-slaves",
        minimum=0,
        maximum=4_096,
    )


def eligible_rows(
    state: pl.LazyFrame, clock: Clock, options: GenerateOptions, scorings: Scorings = OPIC
) -> pl.LazyFrame:
    """Returns the rows that are due and that no option excludes.

    Args:
        state: STATE rows.
        clock: The time.
        options: Options that exclude rows.
        scorings: The scorings; see ``admissible_rows``.
    """
    return admissible_rows(state.filter(chosen_at(clock, options)), options, scorings, clock.now)


def chosen_at(clock: Clock, options: GenerateOptions) -> pl.Expr:
    """Returns a condition: a row is due, or ``add_days`` brings it forward.

    A row that was fetched since the run began is not brought forward: otherwise each round of a
    crawl would fetch it again.
    """
    if not options.add_days:
        return due(clock, options)
    forward = due(advance_clock(clock, options), options)
    if clock.began is None:
        return due(clock, options) | forward
    # A time of the future is that of a wrong clock.
    of_this_run = pl.col("last_fetch_time").is_between(clock.began, clock.now + TOLERANCE_MS)
    return due(clock, options) | (~of_this_run.fill_null(False) & forward)


def admissible_rows(
    rows: pl.LazyFrame, options: GenerateOptions, scorings: Scorings = OPIC, now: int = 0
) -> pl.LazyFrame:
    """Returns the rows that no option excludes, whether they are due or not.

    Args:
        rows: STATE rows.
        options: Options that exclude rows.
        scorings: The scorings. If the sort value is not the score, ``drop_low_scores`` applies the
            limit of the score.
        now: The time that counts as now, ms.
    """
    reasons = list(exclusions(options, now).values())
    if scorings.sorts_by_score:
        reasons.append(~_good("score", options))
    return rows.filter(~pl.any_horizontal(reasons).fill_null(False)) if reasons else rows


def exclusions(options: GenerateOptions, now: int = 0) -> dict[str, pl.Expr]:
    """Returns by reason the conditions of rows that an option excludes by their own columns.

    The limit of the score is not among them: the sort value may not be a column.
    """
    conditions = {}
    if options.restrict_status:
        conditions["status"] = ~pl.col("status").is_in(statuses_of(options.restrict_status))
    if options.max_distance >= 0:
        conditions["too_far"] = pl.col("distance").fill_null(0) > options.max_distance
    if options.generate_min_interval >= 0:
        conditions["long_interval"] = pl.col("fetch_interval") > options.generate_min_interval
    if (wanted := wanted_rows(options.expr, now=now)) is not None:
        conditions["expr"] = ~wanted.expr
    return conditions


def needed_columns(options: GenerateOptions) -> tuple[str, ...]:
    """Returns the columns that ``exclusions`` needs."""
    return columns_of(exclusions(options).values())


def reasons_of(
    rows: StateRows, options: GenerateOptions, scorings: Scorings, now: int
) -> pl.Series:
    """Returns the reason why an option excludes each row, or null; the first one counts.

    Args:
        rows: Rows of the state with ``needed_columns``, and ``sort_value`` or ``score``.
        options: Options that exclude rows.
        scorings: The scorings.
        now: The time that counts as now, ms.
    """
    value = "score" if scorings.sorts_by_score else "sort_value"
    conditions = exclusions(options, now) | {"low_score": ~_good(value, options)}
    reasons = [reason_if(condition, name) for name, condition in conditions.items()]
    return rows.select(pl.coalesce(reasons).alias("reason")).to_series()


def drop_low_scores(rows: StateRows, options: GenerateOptions, scorings: Scorings) -> StateRows:
    """Adds ``sort_value`` where it is not the score, and drops rows where it is too low.

    Args:
        rows: Rows of the state with ``key``, ``score``, ``distance`` and the scorings'
            ``sort_columns``.
        options: The limit.
        scorings: The scorings.
    """
    if scorings.sorts_by_score:
        return rows
    return scorings.sort_value(rows).filter(_good("sort_value", options))


def _good(name: str, options: GenerateOptions) -> pl.Expr:
    # In polars NaN is larger than every number, but such a page must not be the best.
    good = (pl.col(name) >= options.min_score) & pl.col(name).is_not_nan()
    return good.fill_null(False)


def advance_clock(clock: Clock, options: GenerateOptions) -> Clock:
    """Returns the time for which rows are chosen; an option moves it into the future."""
    return clock._replace(now=clock.now + int(options.add_days * DAY_MS))


def add_delays(rows: StateRows) -> tuple[StateRows, dict[str, int]]:
    """Adds the ``delay`` (s) that the metadata of rows says; returns (rows, counts).

    A value that is not a delay is counted as ``bad_values``; then the usual delay applies. Rows
    without the column have no metadata.

    >>> rows = pl.DataFrame({"metadata": [{FETCH_DELAY: "2.5"}, {FETCH_DELAY: "soon"}, {}, None]},
    ...                     schema={"metadata": pl.Map(pl.String, pl.String)})
    >>> add_delays(rows)[0]["delay"].to_list(), add_delays(rows)[1]
    ([2.5, None, None, None], {'bad_values': 1})
    """
    if "metadata" not in rows.columns:
        return rows.with_columns(delay=pl.lit(None, pl.Float64)), {}
    texts = rows.get_column("metadata").map.get(FETCH_DELAY)
    delay = texts.cast(pl.Float64, strict=False)
    good = delay.is_between(0.0, MAX_DELAY)  # NaN is above every number
    bad = int((texts.is_not_null() & ~good.fill_null(False)).sum())
    rows = rows.with_columns(delay=delay.set(~good.fill_null(False), None))
    return rows, {"bad_values": bad} if bad else {}


def add_ranks(rows: StateRows, options: GenerateOptions) -> StateRows:
    """Adds ``rank``; with a limit per host or domain, also ``group``, its reversed name."""
    value = "sort_value" if "sort_value" in rows.columns else "score"
    rows = rows.with_columns(rank(rows.get_column(value), rows.get_column("key")))
    if options.max_count <= 0:
        return rows
    return rows.with_columns(groups(rows.get_column("key"), options.count_mode).alias("group"))


def groups(keys: pl.Series, mode: str) -> pl.Series:
    """Returns the reversed host of each row key, or its reversed registered domain."""
    hosts = host_keys(keys)
    return hosts if mode == "host" else domain_keys(hosts)


def queue_names(
    batch: str, keys: pl.Series, mode: str, addresses: pl.Series | None = None
) -> pl.Series:
    """Returns the text whose hash is the slot of each row key; a queue is in one slot.

    Args:
        batch: Id of the batch, so that hosts are in other partitions in each batch.
        keys: Row keys.
        mode: The queue mode: ``host``, ``domain`` or ``ip``.
        addresses: Addresses of the hosts; null or empty for a queue by name.

    >>> queue_names("b1", pl.Series(["com.foo.www:http/"]), "domain").to_list()
    ['b1/com.foo']
    >>> keys = pl.Series(["com.foo:http/", "com.bar:http/"])
    >>> queue_names("b1", keys, "ip", pl.Series(["1.2.3.4", None])).to_list()
    ['b1/1.2.3.4', 'b1/com.bar']
    """
    names = groups(keys, "domain" if mode == "domain" else "host")
    if addresses is not None:
        names = names.zip_with(addresses.fill_null("") == "", addresses.cast(pl.String))
    return f"{batch}/" + names


def spans_tablets(
    names: pl.Series, mode: str, last_before: str | None, first_after: str | None
) -> pl.Series:
    """Returns a mask of the groups that may have rows in the tablet before or after.

    Args:
        names: Reversed hosts or domains.
        mode: ``host`` or ``domain``.
        last_before: Largest key of the tablet before, or None.
        first_after: Smallest key of the tablet after, or None.

    >>> spans_tablets(pl.Series(["com.a", "com.b"]), "host", "com.a:http/x", None).to_list()
    [True, False]
    """
    low = names + ("." if mode == "domain" else ":")
    high = names + ":\x7f"
    reaches_back = falses(len(names)) if last_before is None else low <= last_before
    reaches_on = falses(len(names)) if first_after is None else high >= first_after
    return reaches_back | reaches_on


@dataclasses.dataclass
class Remaining:
    """Rows that may be chosen, and why others are not.

    Attributes:
        rows: Rows of the state that remain.
        counts: ``due``, the number of rows at first; ``left_out/REASON`` of the others.
    """

    rows: pl.DataFrame
    counts: Counter[str]

    def __post_init__(self) -> None:
        self.counts[DUE] += len(self.rows)

    @property
    def keys(self) -> pl.Series:
        """The row keys of the rows that remain."""
        return self.rows.get_column("key")

    def drop(self, dropped: pl.Series, reason: str = "") -> None:
        """Drops rows and counts them.

        Args:
            dropped: Which rows; without ``reason``, the reason of each row to drop, or null.
            reason: The reason.

        >>> left = Remaining(pl.DataFrame({"key": ["a", "b", "c"]}), Counter())
        >>> left.drop(pl.Series([True, False, None]), "status")
        >>> left.drop(pl.Series([None, "expr"]))
        >>> left.keys.to_list(), dict(left.counts)
        (['b'], {'due': 3, 'left_out/status': 1, 'left_out/expr': 1})
        """
        if reason:
            dropped = pl.select(reason_if(dropped, reason).alias("reason")).to_series()
        if dropped.null_count() == len(dropped):
            return
        self.counts.update(count_reasons(dropped.alias("reason").to_frame(), LEFT_OUT))
        self.rows = self.rows.filter(dropped.is_null())


def refused_today(
    keys: pl.Series, judged: JudgedRows, *, filter: bool, normalize: bool
) -> pl.Series:
    """Returns the reason why today's rules leave out each row, or null.

    Args:
        keys: Row keys.
        judged: What the rules say of them: ``key`` of the normalized URL, or ``reason``.
        filter: Whether URLs that the rules refuse are left out.
        normalize: Whether URLs that the rules rewrite are left out.

    >>> judged = pl.DataFrame({"key": ["a", "b", None], "reason": [None, None, "filtered"]})
    >>> keys = pl.Series(["a", "c", "d"])
    >>> refused_today(keys, judged, filter=True, normalize=True).to_list()
    [None, 'normalized', 'filtered']
    """
    moves = (judged.get_column("key") != keys).fill_null(False)
    reasons = [judged.get_column("reason")] if filter else []
    if normalize:
        reasons.append(pl.select(reason_if(moves, "normalized")).to_series())
    return pl.select(pl.coalesce(reasons).alias("reason")).to_series()


def tally_choices(counts: Mapping[str, int]) -> dict[str, int]:
    """Returns the counts of a generate: URLs that are due, chosen, and left out, by reason.

    Rows with a reason of their own are counted. The remaining rows had too low a score for this
    batch: nobody counts them, because a tablet that is read later has only the better ones.

    >>> tally_choices({"due": 9, "chosen": 5, "left_out/in_batch": 1, "left_out/max_count": 0})
    {'due': 9, 'chosen': 5, 'left_out/in_batch': 1, 'left_out/not_best': 3}
    >>> tally_choices({"due": 0})
    {}
    """
    nonzero = {name: number for name, number in counts.items() if number}
    gone = sum(number for name, number in nonzero.items() if name.startswith(LEFT_OUT))
    rest = nonzero.get(DUE, 0) - nonzero.get(CHOSEN, 0) - nonzero.get(_LATE, 0) - gone
    return nonzero | ({f"{LEFT_OUT}{NOT_BEST}": rest} if rest > 0 else {})
