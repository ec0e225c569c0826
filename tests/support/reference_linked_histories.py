"""Histories that begin with what a fetch brought: pages and texts with links, and scores from them."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import polars as pl
import reference_linking
from file_changes import Earlier, changes_of, update_state
from frames import frame_of
from reference_adapter import Updated, options_of
from reference_histories import LIMITS, START, TWO_YEARS_MS, Web, random_answer
from reference_linking import Chain, Visit
from reference_schedules import DAY_S, Row
from reference_update import DAY_MS, KNOWN, UNFETCHED, Rules

from nutbeam.policy.components.document_schema import DOCUMENTS
from nutbeam.policy.components.host_rows import Seeds
from nutbeam.policy.components.page_facts import (
    COLUMNS_OF_PAGES,
    DOCUMENT_COLUMNS,
    EARLIER_COLUMNS,
    BatchOrigin,
)
from nutbeam.policy.components.schema import FETCHLIST, PAGES, STATE
from nutbeam.policy.links import LinkOptions
from nutbeam.policy.scoring.scoring import ScoringOptions
from nutbeam.policy.scoring.scorings import Scorings, chosen_scorings

WEB = Web(returning=True, too_long=True)
ORPHAN_DAYS = (30, 40)
HOSTS, PAGES_OF_WEB = 5, 150
WORDS = ("red", "Red", "apple", "Äpfel", "the", "2026", "under_score", "x-y")


class Step(NamedTuple):
    """One update of a history: the rows before, what was fetched, and the rows after."""

    before: dict[str, Row]
    visits: dict[str, Visit]
    product: Updated
    reference: Updated


def history(seed: int, chain: Chain, folder: Path) -> Iterator[Step]:
    """Runs two simulated years; the seed also chooses the limits. The folder gets the scorings' files."""
    scorings = scorings_of(chain, folder)
    numbers = random.Random(seed)
    limits = LIMITS[seed % len(LIMITS)]
    rules = Rules(limits, orphan_days=ORPHAN_DAYS if "orphan" in chain.names else None)
    keys = [f"com.example.h{at % HOSTS}:http/{at:05}" for at in range(PAGES_OF_WEB)]
    rows = {key: _seed(numbers, key, limits.fetch_interval) for key in keys[:8]}
    product = reference = Updated(rows, {})
    texts, now = dict[tuple[str, str], list[str]](), START
    while now < START + TWO_YEARS_MS:
        now += numbers.randrange(DAY_MS // 24, 24 * DAY_MS)
        if "opic_cash" not in chain.names:  # their cash would be lost
            removed = {key for key in reference.rows if numbers.random() < 0.02}
            product, reference = (_without(updated, removed) for updated in (product, reference))
        before = reference.rows
        visits = _visits(numbers, before, keys, texts, now)
        product = _product(product.rows, visits, texts, now, rules, chain, scorings)
        reference = reference_linking.update(before, visits, now, rules, chain)
        yield Step(before, visits, product, reference)


def _without(updated: Updated, keys: set[str]) -> Updated:
    """Returns the rows that filterdb leaves."""
    return Updated({key: row for key, row in updated.rows.items() if key not in keys}, {})


def _seed(numbers: random.Random, key: str, interval: int) -> Row:
    row = dict.fromkeys(KNOWN) | {
        "key": key,
        "status": UNFETCHED,
        "fetch_time": START,
        "retries": 0,
    }
    row |= {"score": 1.0, "cash": 1.0, "distance": 0, "fetch_interval": interval}
    row |= {"max_depth": numbers.choice((None, None, 2, 3))}
    return row | {
        "metadata": numbers.choice((None, {"topic": key[-5:], "lang": "de"}, {"other": "x"}))
    }


def _visits(
    numbers: random.Random, rows: dict[str, Row], keys: list[str],
    texts: dict[tuple[str, str], list[str]], now: int,
) -> dict[str, Visit]:  # fmt: skip
    """Returns what became of most of the pages that are due, and remembers the links of new texts."""
    visits = {}
    file = f"d{now}"
    for key, row in rows.items():
        if row["fetch_time"] > now or numbers.random() < 0.1:
            continue
        fetched = max(now - numbers.randrange(1, 7_200_000), row["last_fetch_time"] or 0)
        visit = random_answer(numbers, row, fetched, WEB) | {"key": key, "order": 1}
        visit |= {"fetch_time": fetched, "batch_id": "b", "page": f"pages/{now}"}
        visit["document"] = file if visit.get("document") else None
        visit["targets"] = texts.get((key, row["document"]), [])
        if visit["document"]:
            others = [other for other in keys if other != key]
            visit["targets"] = numbers.choices(others, k=numbers.choice((0, 1, 2, 7)))
            words = numbers.choices(WORDS, k=numbers.choice((0, 1, 3, 20)))
            if visit["parse_status"] == 1:
                visit["text"] = numbers.choice((" ", ", ", "\n")).join(words)
                visit["said"] = numbers.choice(
                    (None, {"topic": f"{now}"}, {"stamp": key, "x": "y"})
                )
            else:
                visit["targets"] = []
            texts[key, file] = visit["targets"]
        visits[key] = visit
    return visits


def _product(
    rows: dict[str, Row], visits: dict[str, Visit], texts: dict[tuple[str, str], list[str]],
    now: int, rules: Rules, chain: Chain, scorings: Scorings,
) -> Updated:  # fmt: skip
    fetched = {key: rows[key] for key in sorted(visits)}
    frame = frame_of(STATE, *(_to_frame(rows[key]) for key in sorted(rows)))
    pages = [_only(PAGES, visits[key]) | _of_row(row) for key, row in fetched.items()]
    parsed = [
        _only(DOCUMENTS, visits[key])
        | _of_row(row)
        | {"outlinks": _outlinks(visits[key]["targets"])}
        | {"metadata": list((visits[key].get("said") or {}).items()) or None}
        for key, row in fetched.items()
        if visits[key]["document"]
    ]
    kept = [
        {"key": key, "outlinks": _outlinks(visits[key]["targets"])}
        for key, row in fetched.items()
        if visits[key]["fetch_status"] == reference_linking.NOT_CHANGED
        and (key, row["document"]) in texts
    ]
    listed = [_only(FETCHLIST, _to_frame(row)) for row in fetched.values()]
    changes, _ = changes_of(
        frame_of(PAGES, *pages).select(COLUMNS_OF_PAGES),
        frame_of(DOCUMENTS, *parsed).select(*{*DOCUMENT_COLUMNS, *scorings.document_columns}),
        BatchOrigin(now, "b", f"d{now}"),
        Seeds(),
        LinkOptions(
            internal_link_factor=chain.factors.internal, external_link_factor=chain.factors.external
        ),
        scorings,
        Earlier(
            frame_of(FETCHLIST, *listed),
            frame_of(DOCUMENTS, *kept).select(EARLIER_COLUMNS),
            state_rows=frame.select("key", *scorings.row_columns),
        ),
    )
    after = update_state(frame, changes, now, options_of(rules), scorings=scorings)
    return Updated(_by_key(after.rows), _by_key(after.outcome))


def _by_key(frame: pl.DataFrame) -> dict[str, Row]:
    return {row["key"]: row for row in frame.iter_rows(named=True)}


def scorings_of(chain: Chain, folder: Path) -> Scorings:
    """Returns the product's scorings, and writes their files into a folder."""
    files = {
        "goldstandard_file": chain.gold,
        "stopword_file": "\n".join(chain.stop),
        "url_boost_file": "\n".join(f"{factor} {pattern}" for factor, pattern in chain.boosts),
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    given = {name: str(folder / name) for name, text in files.items() if text}
    gone, orphan = (days * DAY_S for days in ORPHAN_DAYS)
    pattern, limit = chain.override or ("", 10)
    options = ScoringOptions(
        depth_override_pattern=pattern, depth_max_override=limit, scoring=chain.names, depth_max=chain.depth_max, metadata_to_links=chain.handed_on,
        mark_gone_after=gone, mark_orphan_after=orphan, parsemeta_to_crawldb=chain.kept,
        url_boost_of="new", **given,
    )  # fmt: skip
    return chosen_scorings(options)


def _outlinks(targets: list[str]) -> list[Row] | None:
    return [{"key": target} for target in targets] or None


def _of_row(row: Row) -> Row:
    return {"score": row["score"], "distance": row["distance"]}


def _only(schema, row: Row) -> Row:
    return {name: value for name, value in row.items() if name in schema.names}


def _to_frame(row: Row) -> Row:
    known = _only(STATE, row)
    metadata = known.get("metadata")
    return known | {"metadata": list(metadata.items()) if metadata else None}
