"""Random histories of a table: update_state and the reference side by side, update after update."""

import dataclasses
import email.utils
import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from reference_adapter import Updated, run_product, run_reference
from reference_rate_schedule import Rate
from reference_schedules import DAY_S, Adaptive, Limits, Row, read_hosts, read_mimes
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
    was_fetched,
)

START = 1_750_000_000_000
PROTOCOL_STATUSES = {SUCCESS: 1, RETRY: 16, TO_TEMP: 13, TO_PERM: 12, IS_GONE: 14, NOT_CHANGED: 21}
TWO_YEARS_MS = 730 * DAY_MS
LIMITS = (
    Limits(),
    Limits(fetch_interval=3600, max_fetch_interval=10 * DAY_S, retry_max=1),
    Limits(fetch_interval=7 * DAY_S, max_fetch_interval=20 * DAY_S, retry_max=5),
)
# Bounds of hosts in a file of the adaptive schedules, in s: they suit all limits.
HOST_INTERVALS = """# host, shortest and longest interval
h0.example.com 3600 86400
h1.example.com default 172800

h2.example.com 259200 0
h3.example.com 43200 43200
other.example.com 60 60
"""
MIME_RATES = """# type, inc_rate, dec_rate
text/html\t0.2\t0.1
application/pdf\t1.5\t0.9
Application/XHTML+XML\t0\t0
image/gif\t0.1\t1
"""
CONTENT_TYPES = (None, "text/html", "Text/HTML; charset=utf-8", "application/pdf ;v=1",
                 "application/xhtml+xml", "image/gif", "image/png")  # fmt: skip
# Bounds from settings of hosts; one is above all longest intervals, and one below the usual shortest.
HOST_SETTINGS = {"h0.example.com": (2 * DAY_S, None), "h3.example.com": (None, DAY_S),
                 "h4.example.com": (DAY_S, 5 * DAY_S), "h5.example.com": (400 * DAY_S, None),
                 "h6.example.com": (10, 20)}  # fmt: skip
# Settings of the adaptive schedules; the file of intervals by host suits all of them.
ADAPTIVES = (
    Adaptive(),
    Adaptive(inc_rate=1.0, dec_rate=0.5, sync_delta=False),
    Adaptive(inc_rate=0.05, dec_rate=0.9, sync_delta_rate=0.9, min_interval=30),
)
# How long before a fetch a server says that a page has changed, in ms; some cannot be right.
AGES_MS = (0, 59_000, 61_000, 3_600_000, DAY_MS, 9 * DAY_MS, 400 * DAY_MS, -240_000, -900_000)
TEXTS_OF_DATES = ("yesterday", "", "Thu, 01 Jan 1970 00:00:00 GMT", "Mon, 14 Nov 1994 12:13:20 GMT",
                  "Sun Nov  6 08:49:37 2022", "Sunday, 06-Nov-22 08:49:37 GMT")  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Web:
    """What can happen to the pages of a history.

    Attributes:
        returning: Pages that are not in an index may answer with the content they had before.
        too_long: Intervals of some seeds are longer than the longest one, and some of the seeds were
            fetched when that was allowed.
        orphans: Pages without links become gone, and later orphans.
        gap_days: Longest time between two updates.
        redirects: Redirects lead to some pages.
        parts: Some pages have parts with URLs of their own, and the parts are documents.
        schedule: ``default``, ``adaptive``, ``mime_adaptive``, ``rate``, or ``lively``: that of the
            plug-in. With another one than the default some seeds have an interval for good.
        others: Schedules that the operator changes to, and back, with other settings each time.
        host_file: An adaptive schedule has a file of intervals by host.
        host_settings: Settings of some hosts bound their intervals.
        budget: Fetches a day for the schedule rate; 0: as many as in the usual interval.
    """

    pages: int = 60
    gap_days: float = 12.0
    returning: bool = False
    too_long: bool = False
    orphans: bool = False
    redirects: bool = False
    parts: bool = False
    schedule: str = "default"
    others: tuple[str, ...] = ()
    host_file: bool = False
    host_settings: bool = False
    budget: float = 0.0


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


def history(seed: int, web: Web, folder: Path | None = None) -> Iterator[Step]:
    """Runs two simulated years.

    Args:
        seed: Of the random numbers; it also chooses the limits.
        web: What can happen.
        folder: For files of the schedule, if it has any.
    """
    numbers = random.Random(seed)
    limits = LIMITS[seed % len(LIMITS)]
    rules = _rules(numbers, limits, numbers.random() < 0.5, web, folder)
    keys = [_key(at) for at in range(web.pages)]
    rows = {key: _seed(numbers, key, limits, web) for key in keys[: web.pages // 3]}
    product = reference = Updated(rows, {})
    now = START
    while now < START + TWO_YEARS_MS:
        hour = (
            DAY_MS // 24
        )  # some updates are so soon that pages were fetched at the time of before
        soon = numbers.random() < 0.1
        now += numbers.randrange(*(1, 60_000) if soon else (hour, round(web.gap_days * DAY_MS)))
        _mark(numbers, product.rows, reference.rows)
        fetched = _fetches(numbers, reference.rows, now, web)
        parts = []
        if web.parts:
            keys += [_key(len(keys) + at) for at in range(4)]
            parts = _parts(numbers, keys, reference.rows, now)
        links = _links(numbers, keys, (1, 2, 5) if web.orphans else (None, 1, 2, 5))
        links += _redirects(numbers, keys) if web.redirects else []
        events = fetched | _parts_that_count(parts, reference.rows, fetched)
        ignored = _ignored(numbers, reference.rows, events)
        changes = [*fetched.values(), *ignored, *links, *parts]
        numbers.shuffle(changes)
        before = product.rows
        if web.others and numbers.random() < 0.2:
            changed = dataclasses.replace(web, schedule=numbers.choice((web.schedule, *web.others)))
            rules = _rules(numbers, limits, rules.delete_failed_parse, changed, folder)
        rules = dataclasses.replace(rules, pages=len(reference.rows))
        product = run_product(before.values(), changes, now, rules)
        reference = run_reference(reference.rows.values(), changes, now, rules)
        sums = {key: sum(c["inlink_score"] for c in links if c["key"] == key) for key in keys}
        yield Step(now, rules, before, events, sums, product, reference)


def _key(number: int) -> str:
    return f"com.example.h{number % 7}:http/{number:05}"


def _rules(
    numbers: random.Random,
    limits: Limits,
    delete_failed_parse: bool,
    web: Web,
    folder: Path | None,
) -> Rules:
    adaptive = numbers.choice(ADAPTIVES) if "adaptive" in web.schedule else None
    return Rules(
        limits,
        delete_failed_parse=delete_failed_parse,
        adaptive=_with_files(adaptive, limits, web, folder) if adaptive else None,
        rate=Rate(web.budget) if web.schedule == "rate" else None,
        plugin=web.schedule == "lively",
        hosts=HOST_SETTINGS if web.host_settings else {},
        orphan_days=(30, 40) if web.orphans else None,
    )


def _with_files(settings: Adaptive, limits: Limits, web: Web, folder: Path | None) -> Adaptive:
    """Returns the settings of an adaptive schedule with its files, after writing them."""
    if web.host_file:
        hosts = read_hosts(HOST_INTERVALS.splitlines(), settings, limits)
        settings = _with_file(settings, folder, "host_intervals", HOST_INTERVALS, hosts=hosts)
    if web.schedule == "mime_adaptive":
        mimes = read_mimes(MIME_RATES.splitlines())
        settings = _with_file(settings, folder, "mime_rates", MIME_RATES, mimes=mimes)
    return settings


def _with_file(
    settings: Adaptive, folder: Path | None, name: str, text: str, **read: Row
) -> Adaptive:
    assert folder is not None, f"{name} is a file"
    (folder / name).write_text(text)
    files = {**settings.files, name: str(folder / name)}
    return dataclasses.replace(settings, files=files, **read)


def _seed(numbers: random.Random, key: str, limits: Limits, web: Web) -> Row:
    longest = limits.max_fetch_interval
    intervals = [limits.fetch_interval, 3600, longest, longest * 2 // 3, 1]
    if web.too_long:
        intervals += [longest + 1, 5 * longest]
    row = dict.fromkeys(KNOWN) | {"key": key, "status": UNFETCHED, "fetch_time": START}
    row |= {"retries": 0, "score": 1.0, "distance": 0, "metadata": {"seed": key[-5:]}}
    row |= {"fetch_interval": numbers.choice(intervals)}
    if {web.schedule, *web.others} != {"default"} and numbers.random() < 0.4:
        row["fixed_interval"] = numbers.choice((1, 7200, longest, 2 * longest, 2 * longest))
    if numbers.random() < 0.7:  # a sitemap has said when it was changed
        ages = (0, DAY_MS, 30 * DAY_MS, 90 * DAY_MS, START, START - 9)
        row["modified_time"] = START - numbers.choice(ages)
    if web.too_long and numbers.random() < 0.5:
        row["fetch_interval"] = numbers.choice((longest + 1, 5 * longest))
        row |= {"status": FETCHED, "last_fetch_time": START - DAY_MS, "protocol_status": 1,
                "etag": "e0", "signature": b"a", "parse_status": 1, "document": "d0"}  # fmt: skip
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
        if numbers.random() < (0.9 if row["fetch_time"] <= now else 0.03):
            at = max(now - numbers.randrange(1, 7_200_000), row["last_fetch_time"] or 0)
            events[key] = random_answer(numbers, row, at, web) | {
                "key": key,
                "order": 2,
                "fetch_time": at,
            }
    return events


def random_answer(numbers: random.Random, row: Row, at: int, web: Web) -> Row:
    status = numbers.choices(
        (SUCCESS, RETRY, TO_TEMP, TO_PERM, IS_GONE, NOT_CHANGED), (10, 3, 1, 1, 2, 6)
    )[0]
    strange = row["status"] not in (FETCHED, UNCHANGED) and not web.returning
    if status == NOT_CHANGED and (strange or not row["etag"]):
        status = SUCCESS
    mark = numbers.randrange(10**6)
    event = {"fetch_status": status, "protocol_status": PROTOCOL_STATUSES[status], "http_code": 200 + status,
             "protocol_message": str(mark), "response_ms": mark % 500}  # fmt: skip
    if status == RETRY and numbers.random() < 0.3:
        event["retry_after"] = numbers.choice((0, 60, 3_600, 86_399, 86_400, 10**7))
    if status in (SUCCESS, NOT_CHANGED):
        event |= {
            "content_type": numbers.choice(CONTENT_TYPES),
            "last_modified": _date(numbers, at),
        }
    return event | _body(numbers, row, mark, strange) if status == SUCCESS else event


def _date(numbers: random.Random, at: int) -> str | None:
    """Returns what a server says that it has changed a page at; None: nothing."""
    chance = numbers.random()
    if chance < 0.4:
        return None
    if chance < 0.5:
        return numbers.choice(TEXTS_OF_DATES)
    when = at - numbers.choice((*AGES_MS, numbers.randrange(30 * DAY_MS)))
    return email.utils.formatdate(when // 1000, usegmt=True)


def _body(numbers: random.Random, row: Row, mark: int, strange: bool) -> Row:
    signatures = [b"a", b"b", b"c", None, *[row["signature"]] * 3]
    others = [signature for signature in signatures if signature != row["signature"]]
    signature = numbers.choice(others if strange else signatures)
    failed = numbers.random() < 0.1 and signature is not None
    parsed = None if signature is None else FAILED_TO_PARSE if failed else 1
    return {"signature": signature, "parse_status": parsed, "etag": numbers.choice((None, f"{mark}")),
            "batch_id": f"b{mark}", "page": f"p{mark}", "document": f"d{mark}" if parsed else None}  # fmt: skip


def _parts(numbers: random.Random, keys: list[str], rows: dict[str, Row], now: int) -> list[Row]:
    """Returns the events of parts of pages, some of them repeated, each with a link without score."""
    found: list[Row] = []
    for order in range(-numbers.randrange(16), 0):  # before the page, which counts nevertheless
        # Often one of the last items of a feed, which has each for a while.
        key = numbers.choice(keys[-12:] if numbers.random() < 0.7 else keys)
        row = rows.get(key, dict.fromkeys(KNOWN))
        mark = numbers.randrange(10**6)
        found += [
            {"key": key, "order": order, "part": True, "fetch_status": SUCCESS, "protocol_status": 1,
             "fetch_time": max(now - numbers.randrange(1, 7_200_000), row["last_fetch_time"] or 0),
             "content_type": "application/rss+xml", "batch_id": f"b{mark}", "document": f"d{mark}",
             "signature": numbers.choice((b"a", b"b", row["signature"] or b"c")),
             "parse_status": numbers.choice((1, 1, 1, FAILED_TO_PARSE))},
            {"key": key, "order": order, "inlink_score": 0.0, "inlink_distance": 3},
        ]  # fmt: skip
    return found


def _parts_that_count(
    parts: list[Row], rows: dict[str, Row], fetched: dict[str, Row]
) -> dict[str, Row]:
    """Returns the first part of each URL that was not fetched itself, neither now nor before."""
    events = sorted((part for part in parts if part.get("part")), key=lambda part: -part["order"])
    return {
        event["key"]: event
        for event in events
        if event["key"] not in fetched
        and not (event["key"] in rows and was_fetched(rows[event["key"]]))
    }


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
