"""Weighs the files of a table, and finds out how long each is needed."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

import polars as pl

from ...policy.components.kinds import kind_of
from ..snapshots.manifest import Manifest, components_of_snapshots, readable_manifests
from ..storage.places import Found
from ..table.web_table import WebTable
from ..tablets.file_lists import Component, below, load_files
from .retention import expiring_folders, own_files

# Columns of a frame of weighed files. ``what``: the component's name for users, or that of a folder
# of records. ``needed_until``: when the last snapshot that names the file was replaced, or the file
# was written if none does, ms; null: the newest snapshot needs it.
WEIGHED = pl.Schema({"what": pl.String, "bytes": pl.Int64, "needed_until": pl.Int64})
_RECORDS = "records"  # of snapshots and operations
_KEPT_FOREVER = "history"


def weigh_files(table: WebTable) -> pl.DataFrame:
    """Returns a row per file of a table; see ``WEIGHED``.

    Rows in Bigtable count as one file per component, with the size that the newest snapshot says.
    """
    # List files first: a file that is committed meanwhile is then not in the list.
    files = [file for name in (*expiring_folders(), "operations", _KEPT_FOREVER)
             for file in own_files(table, name)]  # fmt: skip
    manifests = [*readable_manifests(table)][::-1]
    named = _last_named(table, manifests)
    newest = manifests[-1].snapshot if manifests else 0
    replaced = _replaced_times(table.commit_times())
    rows = [_weigh(file, below(table, file.path), named, replaced, newest) for file in files]
    if manifests:
        rows += list(_rows_in_bigtable(table, manifests[-1].components))
    return pl.DataFrame(rows, WEIGHED, orient="row")


def _last_named(table: WebTable, manifests: Sequence[Manifest]) -> dict[str, int]:
    """Returns the number of the last snapshot that names each file."""
    lists: dict[str, tuple[Component, int]] = {}
    for manifest, component in components_of_snapshots(table, reversed(manifests), math.inf):
        lists.setdefault(component.list, (component, manifest.snapshot))
    named = {one.list: manifest.snapshot for manifest in manifests for one in manifest.closed_lists}
    for component, snapshot in lists.values():
        paths = [component.list, *(file.path for file in load_files(table, component))]
        for path in paths:
            named[path] = max(snapshot, named.get(path, 0))
    return named


def _replaced_times(commit_times: Sequence[tuple[int, float]]) -> dict[int, int]:
    """Returns when each snapshot was replaced, ms; the newest was not."""
    return {number: int(1000 * time) for (number, _), (_, time) in itertools.pairwise(commit_times)}


def _weigh(
    file: Found, name: str, named: Mapping[str, int], replaced: Mapping[int, int], newest: int
) -> tuple[str, int, int | None]:
    place = PurePosixPath(name)
    snapshot = named.get(name)
    if snapshot is None and place.parent.name in ("manifest", "made") and place.stem.isdigit():
        snapshot = int(place.stem)
    if snapshot == newest or place.parts[0] == _KEPT_FOREVER:
        return _shown(place), file.bytes, None
    written = int(1000 * file.changed)
    until = max(written, replaced.get(snapshot, 0)) if snapshot is not None else written
    return _shown(place), file.bytes, until


def _shown(place: PurePosixPath) -> str:
    """Returns the name of a file's component for users.

    >>> _shown(PurePosixPath("batches/1/pages/a.parquet")), _shown(PurePosixPath("manifest/7.json"))
    ('batch_pages', 'records')
    >>> _shown(PurePosixPath("exports/1/part"))
    'exports'
    """
    top = place.parts[0]
    if top in ("manifest", "operations", _KEPT_FOREVER):
        return _RECORDS
    if top in ("changes", "exports", "seeds"):
        return top
    component = str(place.parent)
    return kind_of(component).shown_as if place.parent.name != "leases" else _RECORDS


def _rows_in_bigtable(
    table: WebTable, components: Mapping[str, Component]
) -> Iterator[tuple[str, int, None]]:
    for name, component in components.items():
        if not table.in_files(name):
            yield kind_of(name).shown_as, component.totals[2], None
