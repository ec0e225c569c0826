"""Writes batches of rows that come from other batches."""

import dataclasses
from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import polars as pl
import pyarrow as pa

from ...policy.components.batch_rows import BatchRows
from ...policy.components.kinds import KINDS
from ...policy.components.schema import conform
from ..snapshots.entries import Batch
from ..snapshots.operations import Operation
from ..tablets.file_lists import DataFile
from ..tablets.written import Written
from .batches import batch_component, page_order, write_file

# Size of the row groups that one parse process gets at a time.
_GROUP_BYTES = 4 << 20
# Nothing fetches the URLs of such a batch elsewhere meanwhile, as with those of generate.
_BLOCKS_MS = 7 * 86_400_000
_NO_FILES: Mapping[str, DataFile] = MappingProxyType({})


class BatchWriter:
    """Writes one batch, file by file.

    Args:
        operation: The operation that makes it.
        batch: Its id.
        kinds: The kinds of files to write: of ``fetchlist``, ``pages`` and ``documents``.
    """

    def __init__(self, operation: Operation, batch: str, kinds: Collection[str]) -> None:
        self._operation, self.batch, self._kinds = operation, batch, kinds
        self._files: dict[str, list[DataFile]] = {kind: [] for kind in kinds}
        self._number = 0

    def add(self, rows: BatchRows, formerly: Mapping[str, DataFile] = _NO_FILES) -> None:
        """Writes rows: a file of each kind, whose documents belong to its pages.

        Args:
            rows: The rows.
            formerly: The files that had them in a batch of the same id, by kind: rows of the
                state know the new files by their names.
        """
        order = page_order(self._operation.now, self._number)
        if "fetchlist" in self._kinds and len(rows.listed):
            self._write("fetchlist", rows.listed.sort("key"), self._number, None)
        if "pages" in self._kinds and len(rows.pages):
            self._write("pages", rows.pages, order, formerly.get("pages"))
            if "documents" in self._kinds:
                self._write("documents", rows.documents, order, formerly.get("documents"))
        self._number += 1

    def _write(self, kind: str, rows: pl.DataFrame, order: int, formerly: DataFile | None) -> None:
        table = conform(rows, KINDS[kind].schema)
        groups = page_groups(table) if len(table) else iter([table])
        root = self._operation.table.files
        file = write_file(root, self.batch, kind, groups, order=order)
        if formerly is not None:
            file = dataclasses.replace(file, formerly=formerly.formerly or formerly.path)
        self._files[kind].append(file)

    def written(self) -> Iterator[Written]:
        """Yields what was written, for the commit."""
        for kind, files in self._files.items():
            yield Written(batch_component(self.batch, kind), tuple(files))

    @property
    def urls(self) -> int:
        """Number of URLs: of the fetch list, or of the pages."""
        rows = {kind: sum(f.rows for f in files) for kind, files in self._files.items()}
        return max(rows.get("fetchlist", 0), rows.get("pages", 0))


def new_record(
    operation: Operation, kinds: Collection[str], urls: int, partitions: int = 1
) -> Batch:
    """Returns the record of a batch with files of some kinds, which was not updated here."""
    phases = {"fetchlist": "generated", "pages": "fetched", "documents": "parsed"}
    phase = [phases[kind] for kind in phases if kind in kinds][-1]
    return Batch(phase, operation.now, partitions, urls, operation.now + _BLOCKS_MS)


def page_groups(table: pa.Table) -> Iterator[Any]:
    """Yields rows in row groups, each the work of a parse process."""
    rows = max(1, len(table) * _GROUP_BYTES // max(1, table.nbytes))
    for start in range(0, len(table), rows):
        yield table.slice(start, rows)
