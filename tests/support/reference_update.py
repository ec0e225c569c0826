"""updatedb for one URL: the reference, in plain Python on dicts.

It is written from the specification of Nutch's updatedb and its corrections, and
not from policy/. A row is a dict with columns of STATE, a change one with columns of CHANGES.

Where the specification leaves a choice:

- Of several events of one URL the first by ``order`` counts; in a batch the others are repeats.
- An event that is older than the last fetch of the row is ignored, one of the same ms counts.
- A body that was not parsed has no signature, so the next one has nothing to be equal to; a page
  that is db_parse_failed loses its signature for the same reason. Such a page has answered, so its
  retries are 0.
- Pages that an index may have deleted are never "not modified" when they return: gone, redirected
  and duplicate ones, and likewise orphans, pages that failed to parse, and those whose last fetch
  failed (db_unfetched): before it they may have been any of these.
- The target of a redirect has the distance of its source; so that of a seed is no orphan.
- A schedule of a plug-in gets the interval of 0.9 of the maximum in place of one over it, but for a
  URL with a fixed interval.
- An interval over the maximum: only a 304 forces a fetch, which is due at the time of the 304; a
  redirect and a body that was not parsed are treated as a parsed body.
- Orphans are judged after an event with which no link came; ages are whole days, and seeds are no
  orphans. A link revives an orphan, and a page that is gone only for want of links (its server
  has it, or redirects): it is db_unfetched, and its date stays. No other status is changed by links.
- Of several redirects to a new URL the first by ``order`` hands on its interval and metadata; and
  the first to any URL says which URL stands for it, even if another one stands no more.
- A page that is gone remembers since which fetch; an older row was gone at its last fetch.
- A part of a page is a body without headers and without a status of its own. It counts only while
  the URL was never fetched itself: the page's event comes first in a batch, and any event of the URL
  itself, even a failure, ends what parts may say.
- A failure counts, unless the try before it failed, too, within a day, and its server had asked for
  less than a day. Each such early try waits at least twice as long as the one before, up to a day.
- Wrong clocks are not in the reference: times are assumed to be possible.
"""

import dataclasses
import struct
from collections.abc import Mapping
from typing import Any

from reference_dates import Bounds, keep_within, last_modified_of_server
from reference_lively import lively
from reference_rate_schedule import Rate, rate_schedule
from reference_schedules import (
    DAY_S,
    MODIFIED,
    NOTMODIFIED,
    UNKNOWN,
    Adaptive,
    Limits,
    Row,
    adaptive_schedule,
    default_schedule,
    gone_schedule,
    host_of,
    interval_of,
    modified_time_of,
    retry_due,
    rounded,
)

DAY_MS = DAY_S * 1000
(UNFETCHED, FETCHED, GONE, REDIR_TEMP, REDIR_PERM, UNCHANGED, DUPLICATE, ORPHAN,
 PARSE_FAILED) = range(1, 10)  # fmt: skip
SUCCESS, RETRY, TO_TEMP, TO_PERM, IS_GONE, NOT_CHANGED = range(33, 39)
FAILED_TO_PARSE = 2
STILL_THERE = (1, 12, 13, 21)  # protocol status: success, moved for good or for now, not modified

OF_EVENT = ("protocol_status", "protocol_message", "http_code", "response_ms")
OF_BODY = ("content_type", "etag", "last_modified", "signature", "parse_status", "batch_id",
           "document", "page", "usage")  # fmt: skip
HANDED_ON = ("fetch_interval", "fixed_interval", "metadata")
SAID = (*HANDED_ON, "repr_url")
# The columns of STATE that this reference knows.
KNOWN = ("key", "status", "fetch_time", "fetch_interval", "retries", "last_fetch_time",
         "modified_time", "score", "distance", "fixed_interval", "last_inlink_day", "metadata",
         "gone_since", "repr_url", "duplicate_of", "change_shape", "change_days", *OF_EVENT,
         *OF_BODY)  # fmt: skip

# Of the reference alone: whether the last event of a row was that of a part of a page.
OF_PART = "of_part"


@dataclasses.dataclass(frozen=True)
class Rules:
    """Options of update.

    Attributes:
        adaptive: Settings of an adaptive schedule.
        rate: Settings of the schedule rate.
        plugin: Whether the schedule is that of the plug-in ``lively_schedule``. If it is none of the
            three, it is the default.
        pages: Number of rows of the table, for schedules.
        hosts: Shortest and longest interval of some hosts, from their settings.
        orphan_days: Days without a link until a page is gone, and until it is an orphan;
            None: orphans are not judged.
    """

    limits: Limits = dataclasses.field(default_factory=Limits)
    additions_allowed: bool = True
    delete_failed_parse: bool = False
    adaptive: Adaptive | None = None
    rate: Rate | None = None
    plugin: bool = False
    pages: int = 0
    hosts: Mapping[str, Bounds] = dataclasses.field(default_factory=dict)
    orphan_days: tuple[int, int] | None = None

    def bounds(self, key: str) -> Bounds:
        """Returns the bounds of the intervals of a page from the settings of its host."""
        return self.hosts.get(host_of(key), (None, None))


def update_url(
    old: Row | None, changes: list[Row], now: int, rules: Rules
) -> tuple[Row | None, Row | None]:
    """Applies what a batch says of a URL; returns (its row, its outcome if it was tried)."""
    changes = sorted(changes, key=lambda change: change["order"])
    links = [change for change in changes if change.get("fetch_status") is None]
    events = [change for change in changes if change.get("fetch_status") is not None]
    events.sort(key=_is_part)
    if events and old and ((old["last_fetch_time"] or 0) > events[0]["fetch_time"]
                           or (_is_part(events[0]) and was_fetched(old))):  # fmt: skip
        events = []
    if old is None and not (rules.additions_allowed and changes):
        return None, None
    row = dict(old) if old else _new_row(changes[0]["key"], links, now, rules)
    _add_links(row, links, now)
    _show_as(row, links)
    if links and rules.orphan_days:
        revive_orphan(row)
    since = gone_since(row)
    if events:
        _resolve(row, old, events[0], rules)
    if events and not links:
        judge_orphan(row, now, rules.orphan_days)
    if events and since is None:
        since = events[0]["fetch_time"]
    if events or row["status"] != GONE:
        row["gone_since"] = since if row["status"] == GONE else None
    return row, _outcome(row, old, events[0]) if events else None


def _is_part(event: Row) -> bool:
    return bool(event.get("part"))


def was_fetched(row: Row) -> bool:
    """Returns whether an URL was fetched itself, not only as part of other pages."""
    return row["last_fetch_time"] is not None and not row.get(OF_PART)


def gone_since(row: Row) -> int | None:
    """Returns since when a page is gone; of an old row that does not say it, its last fetch.

    >>> gone_since({"status": GONE, "gone_since": None, "last_fetch_time": 5})
    5
    """
    if row["status"] != GONE:
        return None
    since = row.get("gone_since")
    return row["last_fetch_time"] if since is None else since


def _new_row(key: str, links: list[Row], now: int, rules: Rules) -> Row:
    row: dict[str, Any] = dict.fromkeys(KNOWN)
    row |= {"key": key, "status": UNFETCHED, "fetch_time": now, "retries": 0, "score": 0.0}
    row["fetch_interval"] = rules.limits.fetch_interval
    redirects = [link for link in _told(links) if link.get("fetch_interval") is not None]
    return row | {name: redirects[0].get(name) for name in HANDED_ON} if redirects else row


def _add_links(row: Row, links: list[Row], now: int) -> None:
    if not links:
        return
    row["last_inlink_day"] = now // DAY_MS
    row["score"] = single((row["score"] or 0.0) + sum(link["inlink_score"] for link in links))
    distances = [row["distance"], *(link["inlink_distance"] for link in links)]
    row["distance"] = min((d for d in distances if d is not None), default=None)


def _show_as(row: Row, links: list[Row]) -> None:
    """Sets the URL that stands for a page, as the redirect that counts says; empty if none does now."""
    told = _told(links)
    if told and told[0].get("repr_url") is not None:
        row["repr_url"] = told[0]["repr_url"] or None


def _told(links: list[Row]) -> list[Row]:
    """Returns what redirects say; what counts most comes first, whatever the order of the fetch."""
    told = [link for link in links if any(link.get(name) is not None for name in SAID)]
    urls = [link.get("repr_url") for link in told]
    order = [(2 if url == "" else 1 if url is None else 0, url or "") for url in urls]
    return [told[at] for at in sorted(range(len(told)), key=order.__getitem__)]


def _resolve(row: Row, old: Row | None, event: Row, rules: Rules) -> None:
    """Applies an event: Nutch's transition table."""
    waits = waits_after_failure(row, event)
    row |= {name: event.get(name) for name in OF_EVENT}
    row |= {"last_fetch_time": event["fetch_time"], "duplicate_of": None, OF_PART: _is_part(event)}
    row["fetch_interval"] = interval_of(row, rules.limits)
    row["retries"] = row["retries"] or 0
    status = event["fetch_status"]
    if status == SUCCESS:
        _succeed(row, old, event, rules)
    elif status == RETRY:
        _retry(row, waits, event, rules)
    elif status == IS_GONE:
        row["status"] = GONE
        _go(row, event, rules)
    elif status == NOT_CHANGED:
        row["status"] = _unchanged(old)
        _schedule(row, old, event, NOTMODIFIED, rules)
    else:
        row["status"] = {TO_TEMP: REDIR_TEMP, TO_PERM: REDIR_PERM}[status]
        _schedule(row, old, event, UNKNOWN, rules)


def waits_after_failure(row: Row, event: Row) -> tuple[int, int] | None:
    """Returns the wait that was set after a failure, and how long it was, ms; None: it did not fail.

    >>> failed = {"status": UNFETCHED, "retries": 1, "last_fetch_time": 5, "fetch_time": 7}
    >>> waits_after_failure(failed, {"fetch_time": 9})
    (2, 4)
    """
    last = row["last_fetch_time"]
    if row["status"] != UNFETCHED or not row["retries"] or last is None:
        return None
    return row["fetch_time"] - last, event["fetch_time"] - last


def _unchanged(old: Row | None) -> int:
    return UNCHANGED if old and old["status"] in (FETCHED, UNCHANGED) else FETCHED


def _succeed(row: Row, old: Row | None, event: Row, rules: Rules) -> None:
    before, after = row["signature"], event["signature"]
    change = UNKNOWN if None in (before, after) else MODIFIED if before != after else NOTMODIFIED
    kept = {name: row.get(name) for name in ("document", "usage")}
    row |= {name: event.get(name) for name in OF_BODY}
    if event.get("document") is None:  # a body without a text leaves the text before
        row |= kept
    modified = modified_time_of(row["modified_time"], event["fetch_time"], change)
    if rules.delete_failed_parse and event.get("parse_status") == FAILED_TO_PARSE:
        row |= {"status": PARSE_FAILED, "signature": None, "retries": 0}
        _go(row, event, rules)
        row["modified_time"] = modified
    else:
        row["status"] = _unchanged(old) if change == NOTMODIFIED else FETCHED
        _schedule(row, old, event, change, rules)


def _schedule(row: Row, old: Row | None, event: Row, change: str, rules: Rules) -> None:
    """Sets the next date of a page that answered, and since when its content is there."""
    limits, fetched = rules.limits, event["fetch_time"]
    adaptive, longest = rules.adaptive, limits.max_fetch_interval
    old = old or {}
    has_body = event["fetch_status"] == SUCCESS
    said = last_modified_of_server(old, event) if has_body and (adaptive or rules.rate) else None
    modified = row["modified_time"]
    if has_body:
        modified = modified_time_of(modified, said or fetched, change)
    too_long = row["fetch_interval"] > longest and not adaptive and not rules.rate
    if rules.plugin and row["fixed_interval"]:
        too_long = False
    if too_long:
        row["fetch_interval"] = limits.shortened_interval
    if rules.plugin:
        lively(row, old, event, change, rules.pages, limits)
        modified = row["modified_time"]
    else:
        row |= _dates(row | {"last_modified_of_server": said}, old, event, change, rules)
    row |= {"retries": 0, "modified_time": modified}
    keep_within(row, fetched, rules.bounds(row["key"]), longest)
    if too_long and event["fetch_status"] == NOT_CHANGED:
        force_fetch(row, fetched)


def _dates(row: Row, old: Row, event: Row, change: str, rules: Rules) -> Row:
    """Returns the columns that a built-in schedule sets."""
    limits, fetched, given = rules.limits, event["fetch_time"], {}
    if rules.rate:
        seconds, due, known = rate_schedule(rules.rate, limits, rules.pages, old, event, change)
        names = ("change_shape", "change_days")
        given = {name: single(number) for name, number in zip(names, known, strict=True)}
    elif rules.adaptive:
        row["content_type"] = event.get("content_type") or old.get("content_type")
        seconds, due = adaptive_schedule(rules.adaptive, limits)(row, fetched, change)
    else:
        seconds, due = default_schedule(limits)(row, fetched, change)
    return {"fetch_interval": rounded(seconds), "fetch_time": due} | given


def force_fetch(row: Row, due: int) -> None:
    """Makes a page due; nothing is left by which its server could answer 304 (forceRefetch).

    The signature stays, unlike in Nutch: the next body may be the same.
    """
    row |= {"status": UNFETCHED, "fetch_time": due, "retries": 0, "modified_time": 0}
    row |= {"etag": None, "last_modified": None}


def _go(row: Row, event: Row, rules: Rules) -> None:
    fetched, limits = event["fetch_time"], rules.limits
    interval, due = gone_schedule(row, fetched, limits)
    row |= {"fetch_interval": interval, "fetch_time": due}
    longest = limits.max_fetch_interval
    keep_within(row, fetched, rules.bounds(row["key"]), longest, gone=True)


def _retry(row: Row, waits: tuple[int, int] | None, event: Row, rules: Rules) -> None:
    early = waits is not None and max(waits) < DAY_MS and row["retries"] < rules.limits.retry_max
    if not early:
        row["retries"] = min(row["retries"] + 1, 2**31 - 1)
    if early or row["retries"] < rules.limits.retry_max:
        row["status"] = UNFETCHED
        row["fetch_time"] = due = retry_due(event["fetch_time"], event.get("retry_after"))
        if early and event.get("retry_after") is not None:
            row["fetch_time"] = max(due, event["fetch_time"] + min(2 * max(waits), DAY_MS))
    else:
        row["status"] = GONE
        _go(row, event, rules)


def judge_orphan(row: Row, now: int, orphan_days: tuple[int, int] | None) -> None:
    """Sets the status of a page that was linked once, and that no page links to any more.

    >>> row = {"status": FETCHED, "last_inlink_day": 0, "distance": 1}
    >>> for day in (30, 31, 40, 41):
    ...     judge_orphan(row, day * DAY_MS, (30, 40))
    ...     print(day, row["status"])
    30 2
    31 3
    40 3
    41 8
    """
    if orphan_days is None or row["last_inlink_day"] is None or row["distance"] == 0:
        return
    age = now // DAY_MS - row["last_inlink_day"]
    gone, orphan = orphan_days
    if age > gone:
        row["status"] = ORPHAN if age > orphan else GONE


def revive_orphan(row: Row) -> None:
    """Makes a page that is linked again unfetched, if it had only lost its links.

    >>> row = {"status": GONE, "protocol_status": 1}
    >>> revive_orphan(row)
    >>> row["status"] == UNFETCHED
    True
    """
    if row["status"] == ORPHAN or (row["status"] == GONE and row["protocol_status"] in STILL_THERE):
        row["status"] = UNFETCHED


def _outcome(row: Row, old: Row | None, event: Row) -> Row:
    """Returns what index and links must know of a URL that was tried."""
    outcome = {name: row[name] for name in ("key", "status", "score", "signature")}
    outcome["fetch_status"] = event["fetch_status"]
    outcome["old_status"] = old["status"] if old else None
    outcome["old_document"] = old["document"] if old else None
    outcome["old_signature"] = old["signature"] if old else None
    outcome["repr_url"] = row.get("repr_url")
    parsed = event["fetch_status"] == SUCCESS and event.get("document") is not None
    has_text = parsed or event["fetch_status"] == NOT_CHANGED
    outcome["document"] = row["document"] if has_text else None
    return outcome


def single(number: float) -> float:
    """Returns the number as a float of 32 bits keeps it."""
    return struct.unpack("f", struct.pack("f", number))[0]
