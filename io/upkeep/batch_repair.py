"""Checks the lists of closed batches of a snapshot, and makes the entries of lost ones again.

The lists of files of a component have its name and the id of the batch in theirs, so the entries of
components come back as they were. Of the record of a batch only the phase is certain.
"""

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from ...web.base.errors import UserError
from ..batches.batches import batch_component
from ..snapshots.closed_batches import (
    BatchList,
    ClosedBatches,
    Listed,
    items_of,
    load_batch_list,
)
from ..snapshots.entries import Batch, Entries, batch_of_component
from ..snapshots.manifest import Manifest, readable_manifests
from ..storage.files import crc32_of, list_files
from ..storage.places import Folder
from ..table.table_snapshots import TableSnapshots
from ..tablets.file_lists import Component, below, load_files, totals
from .fsck import Problem, bare_message


def check_batch_lists(table: Folder, manifest: Manifest) -> list[Problem]:
    """Finds lists of closed batches of a snapshot that are missing or damaged."""
    lost = lost_batch_lists(table, manifest)
    return [
        Problem("manifest", one.list, bare_message(error, table / one.list))
        for one, error in lost.items()
    ]


def lost_batch_lists(table: Folder, manifest: Manifest) -> dict[BatchList, UserError]:
    """Returns the lists of closed batches that cannot be read, with the reasons."""
    lost = {}
    for one in manifest.closed_lists:
        try:
            load_batch_list(table, one)
        except UserError as error:
            lost[one] = error
    return lost


def with_rebuilt_batches(table: TableSnapshots, manifest: Manifest) -> Manifest:
    """Returns a snapshot whose entries can all be read: those of lost lists are made again."""
    lost = [*lost_batch_lists(table, manifest)]
    if not lost:
        return manifest
    closed = ClosedBatches(table, tuple(one for one in manifest.closed_lists if one not in lost))
    own = Entries(dict(items_of(manifest.batches)), dict(items_of(manifest.components)))
    intact = {*own.batches, *Listed("batches", {}, closed)}
    components = {
        name: files
        for name, files in _newest_lists(table, lost).items()
        if batch_of_component(name) not in intact
    }
    names = {name for one in components if (name := batch_of_component(one))}
    records = _records_elsewhere(table, frozenset(names))
    rebuilt = {name: records.get(name) or _record_of(name, lost, components) for name in names}
    return dataclasses.replace(
        manifest,
        batches=Listed("batches", own.batches | rebuilt, closed),
        components=Listed("components", own.components | components, closed),
    )


def _newest_lists(table: Folder, lost: list[BatchList]) -> dict[str, Component]:
    """Returns the newest intact list of files of each component of batches of some lists."""
    components: dict[str, Component] = {}
    for file in sorted(list_files(table / "manifest" / "lists"), key=lambda file: file.changed):
        words = PurePosixPath(file.path.name).stem.rpartition("-")[0].split(".")
        if len(words) != 3 or words[0] != "batches":
            continue
        name = batch_component(words[1], words[2])
        if any(one.first <= words[1] <= one.last for one in lost):
            with contextlib.suppress(UserError):
                path = below(table, file.path)
                files = load_files(table, Component(path, 0, 0, 0))
                components[name] = Component(path, *totals(files), crc32=crc32_of(file.path))
    return {name: one for name, one in components.items() if one.files}


def _records_elsewhere(table: TableSnapshots, names: frozenset[str]) -> Mapping[str, Batch]:
    """Returns the records of batches in manifests of other snapshots, the newest ones."""
    records: dict[str, Batch] = {}
    for manifest in readable_manifests(table):
        for name, batch in items_of(manifest.batches):
            if name in names and batch.phase == "updated":
                records.setdefault(name, batch)
    return records


def _record_of(name: str, lost: list[BatchList], components: Mapping[str, Component]) -> Batch:
    one = next(one for one in lost if one.first <= name <= one.last)
    seconds = name.partition("-")[0]
    created = min(int(seconds) * 1000, one.created) if seconds.isdigit() else one.created
    urls = max(_rows_of(name, components), default=0)
    return Batch("updated", created, 1, urls, 0, taken_in=frozenset(one.taken_in))


def _rows_of(batch: str, components: Mapping[str, Component]) -> Iterator[int]:
    return (files.rows for name, files in components.items() if batch_of_component(name) == batch)
