"""Looks at a table from outside: what runs, what has ended, how many URLs it has; changes nothing."""

import dataclasses
import math
import time
from collections.abc import Iterable
from typing import Any, NamedTuple

from ...io.disk.record_checks import NewerFormat
from ...io.reading.watched_table import read_watched
from ...io.snapshots.manifest import Manifest
from ...io.snapshots.pinned import Snapshot
from ...io.storage.file_errors import NoTable, PurgedMeanwhile, SnapshotTooOld
from ...io.table.opening import open_table
from ...io.tablets.tablets import tablets
from ...policy.components.heartbeat import FailedRequest
from ...policy.components.vocabulary import iso
from ...policy.components.watched_facts import UrlCounts, WatchedFacts
from ...policy.figures import WHEN_DUE, counts_by_status, merge, summary
from ...policy.watching.table_health import NEXT_JOBS, RunningWork, TableHealth, judge_table
from ...web.base.errors import Unavailable, UserError

# Counting URLs takes at most this fraction of the time of a watch.
_COUNT_SHARE = 100
_COUNTED_COLUMNS = ("status", "fetch_time")


class WatchedTable(NamedTuple):
    """What was seen of a table at one moment, and its newest manifest."""

    facts: WatchedFacts
    health: TableHealth
    manifest: Manifest


class TableWatch:
    """Looks at a table again and again; counts its URLs only when there is a new snapshot.

    Args:
        address: Address of the table.
        stale_after_s: See ``judge_table``.
        most_counted: Most URLs that are counted by status.
        least_free: How much of the table's disk must stay free, see ``LeastFreeOptions``.

    Attributes:
        address: Address of the table.
    """

    def __init__(
        self, address: str, stale_after_s: float, most_counted: int, least_free: int = -1
    ) -> None:
        self.address, self._stale_after_s = address, stale_after_s
        self._most_counted, self._least_free = most_counted, least_free
        self._urls: UrlCounts | None = None
        self._count_due = -math.inf

    def look(self) -> WatchedTable:
        """Returns what the table says now.

        Raises:
            NoTable: There is no table, and nothing has begun to make one.
            UserError: The table cannot be read.
        """
        facts, manifest = read_watched(self.address, self._least_free)
        if not (facts.snapshot or facts.commands or facts.operations):
            raise NoTable(open_table(self.address).why_empty())
        try:
            facts = dataclasses.replace(facts, urls=self._count(manifest, facts.now))
        except (Unavailable, NewerFormat, SnapshotTooOld, PurgedMeanwhile):
            raise
        except UserError as error:  # a file of the state is damaged or gone
            facts = dataclasses.replace(facts, damages=(*facts.damages, str(error)))
        return WatchedTable(facts, judge_table(facts, self._stale_after_s), manifest)

    def _count(self, manifest: Manifest, now: int) -> UrlCounts | None:
        known = self._urls
        if not manifest.snapshot:
            return None
        if known and (known.snapshot == manifest.snapshot or time.monotonic() < self._count_due):
            return known
        began = time.monotonic()
        self._urls = count_watched_urls(self.address, manifest, now, self._most_counted)
        ended = time.monotonic()
        self._count_due = ended + _COUNT_SHARE * (ended - began)
        return self._urls


def count_watched_urls(address: str, manifest: Manifest, now: int, most: int) -> UrlCounts:
    """Returns how many URLs a snapshot has; by status only if there are not too many.

    Args:
        address: Address of the table.
        manifest: The snapshot.
        now: The time, ms.
        most: Most URLs that are counted by status.

    Raises:
        UserError: A file is damaged or missing.
    """
    snapshot = Snapshot(address, manifest.snapshot)
    state_tablets = tablets(snapshot.files("state"))
    total = sum(tablet.rows for tablet in state_tablets)
    if total > most:
        return UrlCounts(manifest.snapshot, now, total)
    with snapshot.reading():
        parts = [
            counts_by_status(rows, now)
            for tablet in state_tablets
            for rows in snapshot.table.read_in_frames("state", tablet, _COUNTED_COLUMNS)
        ]
    counts = summary(merge(parts))
    due = {name: counts.get("due", {}).get(name, 0) for name in WHEN_DUE}
    return UrlCounts(manifest.snapshot, now, counts["total_urls"], counts["status"], due)


def watched_record(watched: WatchedTable) -> dict[str, Any]:
    """Returns what was seen as a record; docs/guides/watching.md describes it."""
    facts, health, _ = watched
    urls, last = facts.urls, health.last
    return {
        "table": facts.table,
        "time": iso(facts.now),
        "state": health.state,
        "exit_code": health.exit_code,
        "problems": list(health.problems),
        "running": [_running_record(work) for work in health.running],
        "last": None
        if last is None
        else last._asdict()
        | {"ended": iso(last.ended), "failures": _failure_records(last.failures)},
        "snapshot": {
            "number": facts.snapshot,
            "committed": iso(facts.committed) if facts.committed else None,
            "age_seconds": _age_s(facts),
            "job": facts.job,
            "counts": dict(facts.job_counts),
        },
        "urls": None if urls is None else urls._asdict() | {"time": iso(urls.time)},
        "batches": [
            batch._asdict()
            | {
                "created": iso(batch.created),
                "waits_for": NEXT_JOBS.get(batch.phase),
                "under_way": any(work.batch == batch.id for work in health.running),
            }
            for batch in facts.batches
        ],
    }


def _running_record(work: RunningWork) -> dict[str, Any]:
    phase = None
    if work.phase is not None:
        phase = vars(work.phase) | {
            "counts": dict(work.phase.counts),
            "slowest": [host._asdict() for host in work.phase.slowest],
        }
    failures = _failure_records(work.failures)
    return vars(work) | {"began": iso(work.began), "phase": phase, "failures": failures}


def _failure_records(failures: Iterable[FailedRequest]) -> list[dict[str, Any]]:
    return [one._asdict() | {"time": iso(one.time)} for one in failures]


def _age_s(facts: WatchedFacts) -> float | None:
    return max(0, facts.now - facts.committed) / 1000 if facts.committed else None
