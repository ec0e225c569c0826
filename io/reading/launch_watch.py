"""Watches from the launcher what other processes do for a launch: by the records in the table alone.

So it works on every runner, and on every kind of table.
"""

import contextlib
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ...web.base.clock import now_ms
from ...web.base.errors import UserError
from ..batches.attempts import FetchedSoFar, fetched_so_far
from ..snapshots.manifest import Manifest, load_manifest
from ..snapshots.operations import (
    OPERATIONS,
    Operation,
    find_commit,
    id_of,
    is_overtaken,
    operation_of_record,
)
from ..storage.files import list_files, read_bytes
from ..storage.places import Found, Place
from ..storage.processes import this_process
from ..table.opening import open_table


class LaunchedJob(NamedTuple):
    """A job of a launch, under way or ended.

    Attributes:
        job: Its name.
        elapsed: Seconds since it was pinned, or from then to its commit.
        urls: Number of URLs of its batch; None if it works on no batch, or makes one.
        fetched: What a fetch has so far.
        counts: What it has counted; None while it is under way.
    """

    job: str
    elapsed: float
    urls: int | None
    fetched: FetchedSoFar
    counts: Mapping[str, int] | None = None


class _Pinned(NamedTuple):
    """An operation, and when it was pinned, s."""

    operation: Operation
    time: float


class LaunchWatch:
    """Looks again and again for the jobs of a launch in which other processes work.

    Args:
        address: Address of the table.
        launched: Id of the launch, with which the ids of its operations begin.
    """

    def __init__(self, address: str, launched: str) -> None:
        self._table = open_table(address)
        self._prefix = f"{launched}."
        self._began = now_ms() / 1000
        self._seen = self._table.latest_snapshot()
        self._read = set[Place]()  # records of operations
        self._open = self._unfinished()
        self._has_begun = bool(self._open)

    @property
    def has_begun(self) -> bool:
        """Whether a job is under way or was seen; also one with workers in this process."""
        return self._has_begun

    def look(self) -> tuple[list[LaunchedJob], LaunchedJob | None]:
        """Returns the jobs that have ended since the look before, and the one that is under way.

        Raises:
            UserError: The table cannot be read.
        """
        manifests = list(self._new_manifests())
        for pinned in self._new_operations():
            self._has_begun = True
            self._open[pinned.operation.id] = pinned
        committed = [manifest for manifest in manifests if manifest.operation in self._open]
        jobs = [self._job(self._open.pop(one.operation), one, is_over=True) for one in committed]
        ended = [job for job in jobs if job is not None]
        newest = manifests[-1] if manifests else load_manifest(self._table, self._seen)
        open_ones = (one for one in self._open.values() if not is_overtaken(one[0], newest.batches))
        current = max(open_ones, key=lambda one: one.time, default=None)
        if current is None:
            return ended, None
        return ended, self._job(current, newest, is_over=False)

    def _new_manifests(self) -> Iterator[Manifest]:
        for number in self._table.snapshots():
            if number > self._seen:
                yield load_manifest(self._table, number)
                self._seen = number

    def _unfinished(self) -> dict[str, _Pinned]:
        """Returns the operation that an earlier attempt at the launch has left, if there is one."""
        earlier = sorted(self._new_operations(), key=lambda one: one.time)[-1:]
        return {
            one.operation.id: _Pinned(one.operation, self._began)
            for one in earlier
            if find_commit(one.operation) is None
        }

    def _new_operations(self) -> Iterator[_Pinned]:
        for file in list_files(self._table / OPERATIONS):
            if file.path not in self._read and self._is_of_launch(file):
                self._read.add(file.path)
                with contextlib.suppress(UserError):  # the job itself reports what is wrong
                    data = read_bytes(file.path)
                    yield _Pinned(
                        operation_of_record(file.path, data, str(self._table)), file.changed
                    )

    def _is_of_launch(self, file: Found) -> bool:
        name = file.path.name
        is_crawl = id_of(file.path).endswith(".crawl")  # its rounds have operations of their own
        return name.startswith(self._prefix) and name.endswith(".json") and not is_crawl

    def _job(self, pinned: _Pinned, manifest: Manifest, *, is_over: bool) -> LaunchedJob | None:
        """Returns a job as it is in a snapshot; None if its workers are in this process."""
        operation, began = pinned
        if operation.process == this_process():
            return None
        fetched = FetchedSoFar()
        if operation.job == "fetch" and operation.batch is not None:
            with contextlib.suppress(UserError):
                fetched = fetched_so_far(self._table.files, operation.batch)
        batch = manifest.batches.get(str(operation.batch))
        until = manifest.committed if is_over and manifest.committed else now_ms()
        return LaunchedJob(
            operation.job,
            max(0.0, until / 1000 - began),
            batch.urls if batch is not None else None,
            fetched,
            manifest.counts if is_over else None,
        )
