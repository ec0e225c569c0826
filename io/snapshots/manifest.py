"""Reads and writes manifests, the records of snapshots: ``TABLE/manifest/00000042.json``.

A manifest names one Parquet list of live files per component (``state``,
``hosts``, ``batches/ID/pages`` …), and the phase of each batch, or lists of these for old
batches. It is created exclusively: if two writers try, one succeeds and the other one notices it.
"""

import contextlib
import dataclasses
import functools
import json
import zlib
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any

from ...web.base.dataclass import dataclass
from ...web.base.errors import UserError
from ...web.base.mappings import SizeCache
from ...web.base.safe_json import json_object
from ..disk.record_checks import MANIFEST_CHECKS, WRITER, check_fields, check_format, this_version
from ..storage.file_errors import NoTable, SnapshotTooOld, first_line
from ..storage.places import Folder
from ..table.opening import open_table
from ..table.table_snapshots import TableSnapshots
from ..tablets.file_lists import Component, DataFile
from .closed_batches import (
    BatchList,
    ClosedBatches,
    Listed,
    batch_lists_of,
    close_batches,
    items_of,
    load_batch_list,
)
from .entries import Batch, Entries, entries_of_record, from_fields, record_of_entries

# Format 4: lists of closed batches, see closed_batches.py; without them a manifest has format 3, which
# older versions read. Format 3: two components have other names, see FORMER_NAMES. Format 2: a tablet
# may have runs on its base. Format 1 is the same without runs.
MANIFEST_FORMAT = 4
FORMAT_WITHOUT_LISTS = 3
# Manifests that this process has read or stored, by table, number, and version of the record or reader.
_MANIFESTS: SizeCache[Hashable, "Manifest"] = SizeCache(256)


@dataclass(frozen=True)
class Manifest:
    """One snapshot of a table.

    Attributes:
        snapshot: Its number; 0 is the table before its first commit.
        operation: Id of the operation that made it.
        job: Name of its job.
        batch: The batch that it worked on, or None.
        time: The time that counted as now for it, ms.
        counts: Counts of the operation, summed over committed files.
        components: Live files by component.
        batches: By batch id.
        restores: Number of the snapshot that a rollback restored, or None: the
            snapshots between it and this one are not in the lineage any more.
        lost: Numbers of snapshots whose manifests are missing or damaged; checks
            accept their loss.
        latest: The latest time that has counted as now for the table so far, ms. If it
            is later than now, a clock was ahead. 0 is unknown.
        earliest: The earliest such time, ms; 0 is unknown.
        right_since: Time since which the clock is right again, ms, while ``latest`` is in
            the future; None if the clock was not ahead, or was never right before.
        options: Options of its operation that were not the defaults: of generate those of
            choosing; of fetch, parse and update a record of those by which they made their results.
        rules: The rules for links of the newest job that had some, as far as they were not the
            defaults. Later snapshots carry them on.
        committed: When it was committed, ms; 0 is unknown.
    """

    snapshot: int = 0
    operation: str = ""
    job: str = ""
    batch: str | None = None
    time: int = 0
    counts: Mapping[str, int] = dataclasses.field(default_factory=dict)
    components: Mapping[str, Component] = dataclasses.field(default_factory=dict)
    batches: Mapping[str, Batch] = dataclasses.field(default_factory=dict)
    restores: int | None = None
    lost: tuple[int, ...] = ()
    latest: int = 0
    earliest: int = 0
    right_since: int | None = None
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    rules: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    committed: int = 0

    @property
    def latest_time(self) -> int:
        """The latest time that has counted as now, ms."""
        return max(self.latest, self.time)

    def content_of(self, component: str) -> str | None:
        """Returns what identifies the content of a component; None if it has no files."""
        files = self.components.get(component)
        return None if files is None else files.identity

    @property
    def closed_lists(self) -> tuple[BatchList, ...]:
        """The lists of closed batches that the stored manifest names."""
        return self.batches.closed.lists if isinstance(self.batches, Listed) else ()

    @property
    def unfinished(self) -> dict[str, Batch]:
        """The batches that are not updated yet, by id."""
        return {name: one for name, one in items_of(self.batches) if one.phase != "updated"}

    def open_batches(self, now: int) -> list[str]:
        """Returns the batches that are not updated yet and whose URLs may be in no other batch."""
        return sorted(n for n, batch in self.unfinished.items() if batch.blocks_until > now)

    def waiting_for(self, taker: str) -> list[str]:
        """Returns the updated batches that are not taken in yet, oldest first.

        Args:
            taker: One of the names of ``Batch.taken_in``.
        """
        waiting = [
            (batch.updated, batch.created, name)
            for name, batch in items_of(self.batches, lambda one: taker not in one.taken_in)
            if batch.phase == "updated" and taker not in batch.taken_in
        ]
        return [name for _, _, name in sorted(waiting)]

    def is_newest(self, batch: str) -> bool:
        """Returns whether no other batch was updated after a batch, as far as is known."""
        mine = (self.batches[batch].updated, self.batches[batch].created)
        others = items_of(self.batches, lambda one: (one.updated, one.created) >= mine)
        return all(
            (b.updated, b.created) < mine
            for name, b in others
            if name != batch and b.phase == "updated"
        )


def load_manifest(table: TableSnapshots, snapshot: int, pinned: Hashable = None) -> Manifest:
    """Reads one snapshot's manifest.

    Args:
        table: The table.
        snapshot: Number of the snapshot.
        pinned: The ``Pinned`` operation or export that reads this snapshot, if one does.

    Raises:
        UserError: The manifest is missing or damaged, or its format is newer.
    """
    return Manifest() if snapshot == 0 else read_once(table, snapshot, pinned)


def read_once(
    table: TableSnapshots, snapshot: int, reader: Hashable, *, listed: bool = False
) -> Manifest:
    """Reads a manifest; a unique reader asks once in each process whether it has changed.

    Args:
        table: The table.
        snapshot: Number of the snapshot.
        reader: As ``pinned`` of ``load_manifest``.
        listed: Whether the snapshots were listed just now, so that a listing knows the version.
    """
    once = (table, snapshot, reader) if getattr(reader, "is_unique", False) else None
    manifest = None if once is None else _MANIFESTS.get(once)
    if manifest is not None:
        return manifest
    try:
        manifest = _read_current(table, snapshot, None if listed else reader)
    except UserError:
        check_kept(table, snapshot)
        raise
    if once is not None:
        _MANIFESTS.put(once, manifest)
    return manifest


def readable_manifests(table: TableSnapshots) -> Iterator[Manifest]:
    """Yields the snapshots whose manifests can be read, newest first."""
    for number in reversed(table.snapshots()):
        with contextlib.suppress(UserError):
            yield load_manifest(table, number)


def components_of_snapshots(
    table: Folder, manifests: Iterable[Manifest], whole_from: float = 0
) -> Iterator[tuple[Manifest, Component]]:
    """Yields the entries of components of snapshots; those of a list of closed batches once.

    Args:
        table: The table.
        manifests: The snapshots, the newest first.
        whole_from: Number of a snapshot. Damaged lists that only snapshots before it name are left out.

    Raises:
        UserError: A list of closed batches is missing or damaged.
    """
    seen = set[BatchList]()
    for manifest in manifests:
        yield from ((manifest, one) for _, one in items_of(manifest.components))
        for one in (one for one in manifest.closed_lists if one not in seen):
            try:
                listed = load_batch_list(table, one).components.values()
            except UserError:
                if manifest.snapshot >= whole_from:
                    raise
                continue
            yield from ((manifest, component) for component in listed)
        seen.update(manifest.closed_lists)


def names_that_differ(one: Manifest, other: Manifest) -> tuple[set[str], set[str]]:
    """Returns (components, batches) whose entries may differ in two snapshots: all but those in lists of both."""
    lists = {*one.closed_lists} ^ {*other.closed_lists}
    components = {n for m in (one, other) for n, _ in items_of(m.components, lists.__contains__)}
    batches = {n for m in (one, other) for n, _ in items_of(m.batches, lists.__contains__)}
    return components, batches


def check_kept(table: TableSnapshots, snapshot: int) -> None:
    """Checks that a pinned snapshot still exists.

    Raises:
        SnapshotTooOld: The snapshot was deleted.
    """
    numbers = table.snapshots() if snapshot else []
    # The oldest ones are deleted first: one that is missing between others was not deleted so.
    if snapshot and numbers and snapshot < numbers[0]:
        raise SnapshotTooOld(
            f"snapshot too old: {snapshot} of table {table} was deleted by compact "
            "(--snapshot_retention): run it again"
        )


def _read_current(table: TableSnapshots, snapshot: int, reader: Hashable) -> Manifest:
    version = table.record_version(snapshot, reader)
    manifest = _MANIFESTS.get((table, snapshot, version)) if version else None
    if manifest is None:
        manifest = _read(table, snapshot)
        _note(table, version, manifest)
    return manifest


def _note(table: TableSnapshots, version: Hashable, manifest: Manifest) -> None:
    """Notes a manifest, so that this process does not read it again while its version is the same."""
    if version:
        _MANIFESTS.put((table, manifest.snapshot, version), manifest)


def _read(table: TableSnapshots, snapshot: int) -> Manifest:
    data, label = table.record(snapshot), table.record_label(snapshot)
    try:
        record = json_object(data)
        check_format(record, MANIFEST_FORMAT, label)
        if record.pop("digest", None) not in (None, _digest(json.dumps(record))):
            raise ValueError("its digest is of another content")
        manifest = _from_record(table, record)
        if manifest.snapshot != snapshot:
            raise ValueError(f"it is snapshot {manifest.snapshot!r}")
        return manifest
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(
            f"manifest is damaged: {label}: {first_line(error)[:200]}: run nutbeam fsck {table}"
        ) from error


def store_manifest(
    table: TableSnapshots,
    manifest: Manifest,
    changes: Mapping[str, Iterable[DataFile]] | None = None,
) -> bool:
    """Commits a snapshot.

    Args:
        table: The table.
        manifest: The snapshot.
        changes: Files of changes, by component; see ``TableSnapshots.store``.

    Returns:
        False if another commit has taken its number.
    """
    own, lists = close_batches(table, manifest.batches, manifest.components)
    version = MANIFEST_FORMAT if lists else FORMAT_WITHOUT_LISTS
    record: dict[str, Any] = {"format": version, WRITER: this_version()} | vars(manifest)
    record |= record_of_entries(*own)
    if lists:
        record["closed"] = [vars(one) for one in lists]
    text = json.dumps(record)
    # A flipped bit may leave valid JSON.
    data = f'{text[:-1]}, "digest": "{_digest(text)}"}}'.encode()
    if not table.store(manifest.snapshot, data, changes or {}):
        return False
    _note(table, table.stored_version(manifest.snapshot), _as_read(table, manifest, own, lists))
    return True


def _as_read(
    table: TableSnapshots, manifest: Manifest, own: Entries, lists: tuple[BatchList, ...]
) -> Manifest:
    """Returns a manifest as it would be read from its record."""
    options, rules = json.loads(json.dumps((manifest.options, manifest.rules)))
    own_fields = {**own._asdict(), "options": options, "rules": rules}
    return _with_lists(table, dataclasses.replace(manifest, **own_fields), lists)


def newest_manifest(address: str) -> Manifest:
    """Returns the newest snapshot of a table.

    Raises:
        NoTable: There is no table at the address.
    """
    table = open_table(address)
    manifest = load_manifest(table, table.latest_snapshot())
    if manifest.snapshot == 0:
        raise NoTable(table.why_empty())
    return manifest


def check_newest(table: TableSnapshots, snapshot: int) -> None:
    """Checks that the newest existing manifest is the newest that was ever made.

    Raises:
        UserError: The manifest of the next snapshot is missing.
    """
    # The second test is for a commit that another process has just made.
    if snapshot + 1 in table.made_snapshots() and table.latest_snapshot() == snapshot:
        label = table.record_label(snapshot + 1)
        raise UserError(f"manifest is missing: {label}: run nutbeam fsck {table}")


def _digest(text: str) -> str:
    return f"{zlib.crc32(text.encode()):08x}"


def _from_record(table: TableSnapshots, record: dict[str, Any]) -> Manifest:
    own, lists = entries_of_record(record), batch_lists_of(record.pop("closed", ()))
    fields = record | own._asdict() | {"lost": tuple(record.get("lost") or ())}
    manifest: Manifest = from_fields(Manifest, fields)
    check_fields(manifest, MANIFEST_CHECKS)
    if manifest.restores is not None and manifest.restores >= manifest.snapshot:
        raise ValueError(f"it restores snapshot {manifest.restores}")
    return _with_lists(table, manifest, lists)


def _with_lists(
    table: TableSnapshots, manifest: Manifest, lists: tuple[BatchList, ...]
) -> Manifest:
    """Returns a manifest that has its own entries and those of its lists."""
    if not lists:
        return manifest
    explain = functools.partial(check_kept, table, manifest.snapshot)
    closed = ClosedBatches(table, lists, explain)
    return dataclasses.replace(
        manifest,
        batches=Listed("batches", manifest.batches, closed),
        components=Listed("components", manifest.components, closed),
    )
