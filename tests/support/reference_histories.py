"""Random histories of a table: update_state and the reference side by side, update after update."""

import dataclasses
import random
from collections.abc import Iterator
from typing import NamedTuple

from reference_adapter import Updated, run_product, run_reference
from reference_schedules import DAY_S, Adaptive, Limits, Row
from reference_update import (
    DAY_MS,
    DUPLICATE,
    FAILED_TO_PARSE,
    FETCHED,
    IS_GONE,
    KNOWN,
    NOT_CHANGED,
    ORPHAN,
    RETRY,
    SUCCESS,
    TO_PERM,
    TO_TEMP,
    UNCHANGED,
    UNFETCHED,
    Rules,
)

START = 1_750_000_000_000
PROTOCOL_STATUSES = {SUCCESS: 1, RETRY: 16, TO_TEMP: 13, TO_PERM: 12, IS_GONE: 14, NOT_CHANGED: 21}
TWO_YEARS_MS = 730 * DAY_MS
LIMITS = (
    Limits(),
    Limits(fetch_interval=3600, max_fetch_interval=10 * DAY_S, retry_max=1),
    Limits(fetch_interval=7 * DAY_S, max_fetch_interval=20 * DAY_S, retry_max=5),
)


@dataclasses.dataclass(frozen=True)
class Web:
    """What can happen to the pages of a history.

    Attributes:
        returning: Pages that are not in an index may answer with the content they had before.
        too_long: Intervals of some seeds are longer than the longest one.
        orphans: Pages without links become gone, and later orphans.
        gap_days: Longest time between two updates.
        adaptive: The schedule is adaptive, and some seeds have an interval for good.
        redirects: Redirects lead to some pages.
    """

    pages: int = 60
    gap_days: float = 12.0
    returning: bool = False
    too_long: bool = False
    orphans: bool = False
    adaptive: bool = False
    redirects: bool = False


class Step(NamedTuple):
    """One update of a history.

    Attributes:
        before: Rows of the product before.
        fetched: The event of each URL that counts.
        links: Sum of the scores that links brought, by key.
    """

    now: int
    rules: Rules
    before: dict[str, Row]
    fetched: dict[str, Row]
    links: dict[str, float]
    product: Updated
    reference: Updated


def history(seed: int, web: Web) -> Iterator[Step]:
    """Runs two simulated years."""
    numbers = random.Random(seed)
    limits = LIMITS[seed % len(LIMITS)]
    days = (30, 40) if web.orphans else None
    adaptive = Adaptive() if web.adaptive else None
    rules = Rules(limits, True, numbers.random() < 0.5, adaptive, days)
    keys = [f"com.example.h{at % 7}:http/{at:05}" for at in range(web.pages)]
    rows = {key: _seed(numbers, key, limits, web) for key in keys[: web.pages // 3]}
    product = reference = Updated(rows, {})
    now = START
    while now < START + TWO_YEARS_MS:
        now += numbers.randrange(DAY_MS // 24, round(web.gap_days * DAY_MS))
        _mark(numbers, product.rows, reference.rows)
        fetched = _fetches(numbers, reference.rows, now, web)
        links = _links(numbers, keys, (1, 2, 5) if web.orphans else (None, 1, 2, 5))
        links += _redirects(numbers, keys) if web.redirects else []
        changes = [*fetched.values(), *_ignored(numbers, reference.rows, fetched), *links]
        numbers.shuffle(changes)
        before = product.rows
        product = run_product(before.values(), changes, now, rules)
        reference = run_reference(reference.rows.values(), changes, now, rules)
        sums = {key: sum(c["inlink_score"] for c in links if c["key"] == key) for key in keys}
        yield Step(now, rules, before, fetched, sums, product, reference)


def _seed(numbers: random.Random, key: str, limits: Limits, web: Web) -> Row:
    longest = limits.max_fetch_interval
    intervals = [limits.fetch_interval, 3600, longest, longest * 2 // 3, 1]
    if web.too_long:
        intervals += [longest + 1, 5 * longest]
    row = dict.fromkeys(KNOWN) | {"key": key, "status": UNFETCHED, "fetch_time": START}
    row |= {"retries": 0, "score": 1.0, "distance": 0, "metadata": {"seed": key[-5:]}}
    row |= {"fetch_interval": numbers.choice(intervals)}
    if web.adaptive and numbers.random() < 0.3:
        row["fixed_interval"] = numbers.choice((1, 7200, longest, 2 * longest))
    return row


def _mark(numbers: random.Random, *tables: dict[str, Row]) -> None:
    """Does what other jobs do between two updates: duplicates, orphans."""
    for key, row in tables[0].items():
        if row["status"] in (FETCHED, UNCHANGED) and numbers.random() < 0.02:
            status = numbers.choice((DUPLICATE, ORPHAN))
            winner = "com.example.h0:http/00000" if status == DUPLICATE else None
            for table in tables:
                table[key] = table[key] | {"status": status, "duplicate_of": winner}


def _fetches(numbers: random.Random, rows: dict[str, Row], now: int, web: Web) -> dict[str, Row]:
    """Returns an event for most of the URLs that are due, and now and then for another."""
    events = {}
    for key, row in rows.items():
        if numbers.random() < (0.9 if row["fetch_time"] <= now else 0.01):
            at = max(now - numbers.randrange(1, 7_200_000), row["last_fetch_time"] or 0)
            events[key] = _answer(numbers, row, web) | {"key": key, "order": 2, "fetch_time": at}
    return events


def _answer(numbers: random.Random, row: Row, web: Web) -> Row:
    status = numbers.choices(
        (SUCCESS, RETRY, TO_TEMP, TO_PERM, IS_GONE, NOT_CHANGED), (10, 3, 1, 1, 2, 3)
    )[0]
    strange = row["status"] not in (FETCHED, UNCHANGED) and not web.returning
    if status == NOT_CHANGED and (strange or not row["etag"]):
        status = SUCCESS
    mark = numbers.randrange(10**6)
    event = {"fetch_status": status, "protocol_status": PROTOCOL_STATUSES[status], "http_code": 200 + status,
             "protocol_message": str(mark), "response_ms": mark % 500}  # fmt: skip
    if status == RETRY and numbers.random() < 0.3:
        event["retry_after"] = numbers.choice((0, 60, 86_400, 10**7))
    return event | _body(numbers, row, mark, strange) if status == SUCCESS else event


def _body(numbers: random.Random, row: Row, mark: int, strange: bool) -> Row:
    signatures = [b"a", b"b", b"c", None, *[row["signature"]] * 3]
    others = [signature for signature in signatures if signature != row["signature"]]
    signature = numbers.choice(others if strange else signatures)
    failed = numbers.random() < 0.1 and signature is not None
    parsed = None if signature is None else FAILED_TO_PARSE if failed else 1
    return {"signature": signature, "parse_status": parsed, "etag": numbers.choice((None, f"{mark}")),
            "content_type": "text/html", "last_modified": None, "batch_id": f"b{mark}",
            "page": f"p{mark}", "document": f"d{mark}" if parsed else None}  # fmt: skip


def _ignored(numbers: random.Random, rows: dict[str, Row], fetched: dict[str, Row]) -> list[Row]:
    """Returns events that must change nothing: repeats in a batch, and results that come late."""
    repeats = [event | {"order": 3, "fetch_status": IS_GONE} for event in fetched.values()]
    late = [
        {"key": key, "order": 1, "fetch_status": IS_GONE, "fetch_time": row["last_fetch_time"] - 1}
        for key, row in rows.items()
        if row["last_fetch_time"] and key not in fetched
    ]
    return [event for event in [*repeats, *late] if numbers.random() < 0.05]


def _links(numbers: random.Random, keys: list[str], distances: tuple[int | None, ...]) -> list[Row]:
    """Returns links to known and to new URLs; their scores have no rounding errors."""
    return [
        {"key": numbers.choice(keys), "order": order, "inlink_score": numbers.randrange(64) / 64,
         "inlink_distance": numbers.choice(distances)}
        for order in range(numbers.randrange(12))
    ]  # fmt: skip


def _redirects(numbers: random.Random, keys: list[str]) -> list[Row]:
    """Returns what redirects bring to known and to new URLs: no score, their interval, a better URL.

    For some pages another URL stands no more.
    """
    given = [
        {"key": numbers.choice(keys), "order": 100 + order, "inlink_score": 0.0, "inlink_distance": 1,
         "fetch_interval": numbers.choice((3600, 10 * DAY_S)), "metadata": {"from": str(order)},
         "repr_url": numbers.choice((None, "http://example.com/", "http://www.example.com/"))}
        for order in range(numbers.randrange(4))
    ]  # fmt: skip
    ended = [
        {"key": numbers.choice(keys), "order": 90 + order, "inlink_score": 0.0,
         "inlink_distance": 1, "repr_url": ""}
        for order in range(numbers.randrange(3))
    ]  # fmt: skip
    return given + ended
