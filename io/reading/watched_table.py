"""Reads what runs on a table now: from heartbeats, operations, leases and the newest manifest.

It writes nothing, and reads a few small files.
"""

import contextlib
import dataclasses
from collections.abc import Iterable, Iterator

from ...policy.components.watched_facts import (
    WatchedBatch,
    WatchedCommand,
    WatchedFacts,
    WatchedOperation,
)
from ...web.base.clock import now_ms
from ...web.base.errors import Unavailable, UserError
from ..batches.attempts import FetchedSoFar, fetched_so_far
from ..batches.batches import batch_component
from ..disk.record_checks import NewerFormat
from ..snapshots.heartbeats import seen_heartbeats
from ..snapshots.hold import HOLD
from ..snapshots.lineage import commit_times
from ..snapshots.manifest import Manifest, load_manifest
from ..snapshots.operations import (
    LOST,
    OPERATIONS,
    Operation,
    is_overtaken,
    operation_of_record,
)
from ..snapshots.rounds import stop_file
from ..storage.files import list_files, read_bytes
from ..storage.least_free import low_message, table_room
from ..storage.places import Found
from ..storage.processes import is_dead, may_be_seen
from ..table.opening import open_table
from ..table.web_table import WebTable

# Operations are looked at for a day, as in retention, and no more than these.
_DAY_S, _MOST_OPERATIONS = 86_400.0, 20


def read_watched(address: str, least_free: int) -> tuple[WatchedFacts, Manifest]:
    """Returns what a table says of itself now, without numbers of URLs; and its newest manifest.

    A manifest or record that is damaged is a damage in the facts.

    Args:
        address: Address of the table.
        least_free: How much of its disk must stay free, see ``LeastFreeOptions``.

    Raises:
        Unavailable: The store does not answer.
        UserError: The table cannot be read.
    """
    table, now, damages = open_table(address), now_ms(), list[str]()
    number, manifest = table.latest_snapshot(), Manifest()
    try:
        manifest = load_manifest(table, number)
    except (Unavailable, NewerFormat):
        raise
    except UserError as error:
        damages.append(str(error))
    records = list(list_files(table / OPERATIONS))
    facts = WatchedFacts(
        address,
        now,
        number,
        int(commit_times(table, [manifest]).get(number, 0.0) * 1000),
        manifest.job,
        manifest.operation,
        dict(manifest.counts),
        tuple(_commands(table, now, damages)),
        tuple(_operations(table, manifest, records, now)),
        _begun(records),
        tuple(_batches(manifest)),
        stop_file=str(stop_file(table) or ""),
        hold_written=_hold_written(table, records),
        disk_low=_disk_low(address, table, least_free),
    )
    return dataclasses.replace(facts, damages=tuple(damages)), manifest


def _disk_low(address: str, table: WebTable, least_free: int) -> str:
    room = table_room(table.files, least_free)
    is_low = room is not None and (room.is_low or not room.free)
    return low_message(address, room) if room is not None and is_low else ""


def _commands(table: WebTable, now: int, damages: list[str]) -> Iterator[WatchedCommand]:
    for seen in seen_heartbeats(table):
        if isinstance(seen, NewerFormat):
            raise seen
        if isinstance(seen, UserError):
            damages.append(str(seen))
        else:
            yield WatchedCommand(*seen, silent=seen.is_silent(now))


def _operations(
    table: WebTable, manifest: Manifest, records: Iterable[Found], now: int
) -> Iterator[WatchedOperation]:
    """Yields the operations of a day that have work to do and have not committed."""
    files = {record.path: record for record in records}
    recent = [
        record
        for path, record in files.items()
        if path.suffix == ".json" and not path.name.startswith(".")
        if record.changed > now / 1000 - _DAY_S and path.with_suffix(LOST) not in files
    ]
    pins = list[tuple[Operation, Found]]()
    for record in sorted(recent, key=lambda one: one.changed, reverse=True)[:_MOST_OPERATIONS]:
        with contextlib.suppress(UserError):  # fsck reports a damaged record
            pins.append((operation_of_record(record.path, read_bytes(record.path)), record))
    committed = _committed_operations(table, min((p.snapshot for p, _ in pins), default=0))
    for pinned, record in pins:
        is_over = pinned.id in committed or is_overtaken(pinned, manifest.batches)
        if pinned.job != "crawl" and not is_over:
            yield _watched(table, pinned, record)


def _committed_operations(table: WebTable, since: int) -> set[str]:
    """Returns the ids of the operations that have made the snapshots after ``since``."""
    operations = set()
    for number in table.snapshots():
        if number > since:
            with contextlib.suppress(UserError):  # it is damaged
                operations.add(load_manifest(table, number).operation)
    return operations


def _watched(table: WebTable, pinned: Operation, record: Found) -> WatchedOperation:
    process = pinned.process or {}
    dead = bool(process) and is_dead(process)
    requested, fetched = 0, FetchedSoFar()
    if pinned.batch is not None and pinned.job == "fetch":
        folder = table / batch_component(pinned.batch, "leases")
        beats = [file.changed for file in list_files(folder) if file.path.suffix == ".beat"]
        requested = int(max(beats, default=0.0) * 1000)
        fetched = fetched_so_far(table.files, pinned.batch)
    return WatchedOperation(
        pinned.id,
        pinned.job,
        pinned.batch,
        int(record.changed * 1000),
        str(process.get("host", ""))[:100],
        int(process.get("pid", 0)),
        False if dead else True if may_be_seen(process) else None,
        requested,
        *fetched,
    )


def _begun(records: Iterable[Found]) -> int:
    begun = (one.changed for one in records if one.path.suffix == ".json")
    return int(max(begun, default=0.0) * 1000)


def _batches(manifest: Manifest) -> Iterator[WatchedBatch]:
    waiting = ((b.created, name, b) for name, b in manifest.unfinished.items())
    for created, name, batch in sorted(waiting, key=lambda one: one[:2]):
        yield WatchedBatch(name, batch.phase, created, batch.urls)


def _hold_written(table: WebTable, records: Iterable[Found]) -> int:
    holds = [record.changed for record in records if record.path == table / HOLD]
    return int(max(holds, default=0.0) * 1000)
