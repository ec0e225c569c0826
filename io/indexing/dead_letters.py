"""Dead letters of an index: pages whose documents a writer has refused."""

import functools
from collections.abc import Collection, Iterable, Iterator

import polars as pl

from ...policy.components.index_schema import DEAD_LETTERS, index_component
from ..snapshots.manifest import Manifest
from ..snapshots.operations import Operation
from ..storage.parquet_files import collect, scan
from ..storage.places import Folder
from ..tablets.file_lists import DataFile, load_files
from ..tablets.resolve import write_bases
from ..tablets.written import Written
from .index_run import IndexRun


def letter_keys(table: Folder, files: Iterable[DataFile]) -> frozenset[str]:
    """Returns the row keys of the pages in files of dead letters."""
    paths = [table / file.path for file in files]
    if not paths:
        return frozenset()
    return frozenset(collect(scan(paths, DEAD_LETTERS).select("key")).get_column("key"))


def refused_pages(table: Folder, manifest: Manifest, index: str) -> int:
    """Returns how many pages of an index have dead letters in a snapshot."""
    component = manifest.components.get(index_component(index, "dead_letters"))
    return len(letter_keys(table, load_files(table, component)))


def outdated_letters(task: IndexRun, journal: pl.DataFrame) -> list[str]:
    """Returns the keys of a part's pages that have dead letters of earlier runs.

    The journal and the new dead letters record these pages again.
    """
    refused_keys = frozenset() if task.full else _letter_keys(task.operation, task.index)
    return [key for key in journal.get_column("key") if key in refused_keys] if refused_keys else []


@functools.lru_cache(maxsize=4)
def _letter_keys(operation: Operation, index: str) -> frozenset[str]:
    return letter_keys(operation.table, operation.files(index_component(index, "dead_letters")))


def without_letters(task: IndexRun, keys: Collection[str]) -> Iterator[Written]:
    """Yields the files of dead letters that are written again without those of some pages."""
    component, root = task.component("dead_letters"), task.operation.table.files
    gone = pl.Series("key", sorted(keys), dtype=pl.String)
    for file in task.files("dead_letters") if len(gone) else ():
        rows = collect(scan([task.operation.table / file.path], DEAD_LETTERS))
        remaining_rows = rows.join(gone.to_frame(), on="key", how="anti", maintain_order="left")
        if len(remaining_rows) < len(rows):
            files = write_bases(root, component, [remaining_rows]) if len(remaining_rows) else ()
            yield Written(component, files, (file.path,))
