"""Reads which pages of an index have dead letters: a writer has refused their documents."""

from collections.abc import Iterable

from ...policy.components.index_schema import DEAD_LETTERS, index_component
from ..snapshots.manifest import Manifest
from ..storage.parquet_files import collect, scan
from ..table.web_table import WebTable
from ..tablets.file_lists import DataFile, load_files


def letter_keys(table: WebTable, files: Iterable[DataFile]) -> frozenset[str]:
    """Returns the row keys of the pages in files of dead letters."""
    paths = [table / file.path for file in files]
    if not paths:
        return frozenset()
    return frozenset(collect(scan(paths, DEAD_LETTERS).select("key")).get_column("key"))


def refused_pages(table: WebTable, manifest: Manifest, index: str) -> int:
    """Returns how many pages of an index have dead letters in a snapshot."""
    component = manifest.components.get(index_component(index, "dead_letters"))
    return len(letter_keys(table, load_files(table, component)))
