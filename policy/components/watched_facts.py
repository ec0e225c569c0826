"""The facts on which the state of a table depends, as someone sees it who watches a crawl."""

import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

from ...web.base.dataclass import dataclass
from .heartbeat import Heartbeat


class WatchedCommand(NamedTuple):
    """A command of which there is a heartbeat.

    Attributes:
        heartbeat: The heartbeat.
        written: When it was written, ms by the store's clock.
        dead: Whether its process has certainly ended.
        silent: Whether there was no sign of life for too long.
    """

    heartbeat: Heartbeat
    written: int
    dead: bool
    silent: bool


class WatchedOperation(NamedTuple):
    """An operation that has begun and has not committed.

    Attributes:
        id: Its id.
        job: Name of its job.
        batch: The batch that it works on or makes, or None.
        began: When it began, UTC ms.
        host: Name of the machine of its process; empty if unknown.
        pid: Id of its process; 0 if unknown.
        alive: Whether its process lives; None if that is unknown.
        requested: When its fetch has last shown that it may send requests, ms; 0: never.
        fetched: How many pages its fetch has.
        received: How many bytes these are.
    """

    id: str
    job: str
    batch: str | None
    began: int
    host: str
    pid: int
    alive: bool | None
    requested: int = 0
    fetched: int = 0
    received: int = 0


class WatchedBatch(NamedTuple):
    """A batch that is not updated yet.

    Attributes:
        id: Its id.
        phase: Its phase.
        created: When it was generated, UTC ms.
        urls: Number of its URLs.
    """

    id: str
    phase: str
    created: int
    urls: int


class UrlCounts(NamedTuple):
    """How many URLs a table has.

    Attributes:
        snapshot: Number of the snapshot.
        time: When they were counted, UTC ms: due is what was due then.
        total: Number of all.
        by_status: By the name of the status; None if they were not counted.
        due: By when they are due, see ``WHEN_DUE``; None if they were not counted.
    """

    snapshot: int
    time: int
    total: int
    by_status: Mapping[str, int] | None = None
    due: Mapping[str, int] | None = None


@dataclass(frozen=True)
class WatchedFacts:
    """What a table and its heartbeats say at one moment.

    Attributes:
        table: Address of the table.
        now: The time, UTC ms.
        snapshot: Number of the newest snapshot; 0 if there is none.
        committed: When it was committed, UTC ms by the store's clock; 0 if there is none.
        job: The job that made it.
        operation: The operation that made it.
        job_counts: What this job has counted.
        commands: Commands with a heartbeat, the newest first.
        operations: Operations without a commit, the newest first.
        begun: When the newest operation of all has begun, ms; 0 if there is none.
        batches: Batches that are not updated yet, the oldest first.
        urls: How many URLs there are; None if they cannot be read.
        stop_file: Place of the file that ends a crawl; empty if there is none.
        hold_written: When a purge has last said that others must wait, ms; 0 if none does.
        disk_low: Why the disk of the table has too little room; empty if it has enough.
        damages: What cannot be read, a line each.
    """

    table: str
    now: int
    snapshot: int = 0
    committed: int = 0
    job: str = ""
    operation: str = ""
    job_counts: Mapping[str, int] = dataclasses.field(default_factory=dict)
    commands: tuple[WatchedCommand, ...] = ()
    operations: tuple[WatchedOperation, ...] = ()
    begun: int = 0
    batches: tuple[WatchedBatch, ...] = ()
    urls: UrlCounts | None = None
    stop_file: str = ""
    hold_written: int = 0
    disk_low: str = ""
    damages: tuple[str, ...] = ()
