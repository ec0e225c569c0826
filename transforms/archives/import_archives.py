"""Imports archives: parts are read and written on the workers, then of each URL one page remains."""

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import apache_beam as beam
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from ...io.batches.batches import batch_component, write_file
from ...io.batches.page_writer import page_counts
from ...io.snapshots.operations import Operation
from ...io.storage.parquet_files import row_groups
from ...io.tablets.written import Written
from ...policy.archives.imported_captures import (
    DROPPED_CAPTURES,
    IMPORTED,
    REVISITING,
    SEARCHED_CAPTURES,
    choose_captures,
    find_sources,
    merge_sources,
    searched_pages,
    searched_revisits,
)
from ...policy.components.schema import PAGES, to_frame
from ..elements.chunk_flow import tagged_chunks
from ..elements.chunks import Chunk, to_chunks
from ..for_each import REPORTS, ForEach
from ..partition import grouped_by_hash
from ..wiring.display import Displayed
from .imported_parts import ImportPart, ImportRules, PagesFile, import_part
from .imported_revisits import resolve_revisits

IMPORT_PARTS = "Parts"
_CAPTURES, _DROPS, _FILES = "captures", "drops", "files"
# The first number of the writers of revisits: parts have smaller ones.
_REVISITS_FROM = 1 << 24


@dataclasses.dataclass
class ImportArchives(Displayed):
    """Makes the pages of a batch from records of archives.

    Input:  operations; an idle one has no parts.
    Output: ``Written``: files of pages, each URL in one of them; counts.

    Cost: bodies are written once, and read again only in files of which a newer capture replaces a
    row. A row of about 200 bytes for each capture crosses two shuffles.

    Attributes:
        divide: Yields the parts of an operation.
        rules: How records become pages.
        partitions: How many workers can share the choice of captures.
    """

    divide: Callable[[Operation], Iterable[ImportPart]]
    rules: ImportRules
    partitions: int = 1

    def expand(self, operations: beam.PCollection[Operation]) -> Any:
        read = operations | ForEach(
            self.divide, _import_part, (self.rules,), Any, outputs=(_CAPTURES, REPORTS),
            step=IMPORT_PARTS, reports=REPORTS, at_once=True,
        )  # fmt: skip
        captures = read[_CAPTURES]
        captures.element_type = Chunk
        choose = beam.FlatMap(_choose).with_output_types(Chunk)
        chosen = (
            captures
            | "ByKey" >> _Together("key", self.partitions)
            | "Choose" >> (choose.with_outputs(_DROPS, REPORTS, main="revisiting"))
        )
        revisiting = chosen.revisiting
        resolve = beam.FlatMap(
            _resolve, beam.pvalue.AsSingleton(operations), self.rules
        ).with_output_types(Any)
        merged = (revisiting, self._find_bodies(captures, revisiting)) | "Both" >> beam.Flatten()
        resolved = (
            merged
            | "ByUrl" >> _Together("key", self.partitions)
            | "Resolve" >> (resolve.with_outputs(_DROPS, REPORTS, main="main"))
        )
        pair = tuple[str, Any]
        drops = (chosen[_DROPS], resolved[_DROPS]) | "Drops" >> beam.Flatten()
        by_file = drops | "ByFile" >> beam.FlatMap(_by_file).with_output_types(pair)
        files = (read["main"], resolved["main"]) | "Files" >> beam.Flatten()
        named = files | "Named" >> beam.Map(_named).with_output_types(pair)
        settle = beam.FlatMap(_settle, beam.pvalue.AsSingleton(operations)).with_output_types(
            Written
        )
        settled = (
            {_FILES: named, _DROPS: by_file}
            | "WithDrops" >> beam.CoGroupByKey()
            | "Settle" >> settle
        )
        return (
            settled,
            read[REPORTS],
            chosen[REPORTS],
            resolved[REPORTS],
        ) | "Written" >> beam.Flatten()

    def _find_bodies(self, captures: Any, revisiting: Any) -> beam.PCollection[Chunk]:
        """Returns revisits with bodies of other URLs."""
        pages = captures | "Pages" >> beam.FlatMap(_searched, searched_pages).with_output_types(
            Chunk
        )
        revisits = revisiting | "Revisits" >> beam.FlatMap(
            _searched, searched_revisits
        ).with_output_types(Chunk)
        searched = (pages, revisits) | "Searched" >> beam.Flatten()
        find = beam.FlatMap(_find).with_output_types(Chunk)
        return searched | "ByMatch" >> _Together("match", self.partitions) | "Find" >> find


@dataclasses.dataclass
class _Together(Displayed):
    """Brings rows with equal values of a column together."""

    column: str
    partitions: int

    def expand(self, chunks: beam.PCollection[Chunk]) -> beam.PCollection[tuple[int, Any]]:
        return grouped_by_hash(chunks, self.column, self.partitions)


def _import_part(part: ImportPart, rules: ImportRules) -> Iterator[Any]:
    for file, captures, counts in import_part(part, rules):
        if file is not None:
            yield file
        yield from tagged_chunks(_CAPTURES, captures, IMPORTED)
        yield beam.pvalue.TaggedOutput(REPORTS, Written(counts=dict(+counts)))


def _frame(grouped: tuple[int, Iterable[Chunk]]) -> pl.DataFrame:
    return pl.concat(map(to_frame, grouped[1]))


def _choose(grouped: tuple[int, Iterable[Chunk]]) -> Iterator[Any]:
    chosen = choose_captures(_frame(grouped))
    yield from to_chunks(chosen.revisiting, REVISITING)
    yield from tagged_chunks(_DROPS, chosen.dropped, DROPPED_CAPTURES)
    yield beam.pvalue.TaggedOutput(REPORTS, Written(counts=dict(chosen.counts)))


def _searched(chunk: Chunk, rows: Callable[[pl.DataFrame], pl.DataFrame]) -> Iterator[Chunk]:
    yield from to_chunks(rows(to_frame(chunk)), SEARCHED_CAPTURES)


def _find(grouped: tuple[int, Iterable[Chunk]]) -> Iterator[Chunk]:
    yield from to_chunks(find_sources(_frame(grouped)), REVISITING)


def _resolve(
    grouped: tuple[int, Iterable[Chunk]], operation: Operation, rules: ImportRules
) -> Iterator[Any]:
    revisiting = merge_sources(_frame(grouped))
    resolved = resolve_revisits(operation, _REVISITS_FROM + grouped[0], revisiting, rules)
    yield from resolved.files
    yield from tagged_chunks(_DROPS, resolved.dropped, DROPPED_CAPTURES)
    for written in (*resolved.listed, Written(counts=dict(resolved.counts))):
        yield beam.pvalue.TaggedOutput(REPORTS, written)


def _by_file(dropped: Chunk) -> Iterator[tuple[str, Any]]:
    for (file,), rows in to_frame(dropped).group_by("file"):
        yield str(file), rows.get_column("key").to_list()


def _named(file: PagesFile) -> tuple[str, Any]:
    return file.file.path, file


def _settle(grouped: tuple[str, Mapping[str, Iterable[Any]]], operation: Operation) -> Any:
    """Yields a file of pages; without the rows that newer captures replace, in a new file."""
    component = batch_component(str(operation.batch), "pages")
    dropped = [key for keys in grouped[1][_DROPS] for key in keys]
    for pages in grouped[1][_FILES]:
        file, counts = pages.file, Counter(pages.counts)
        if dropped:
            groups = list(_other_rows(operation, file.path, dropped))
            counts = Counter(page_counts(groups))
            if not groups:
                continue
            file = write_file(
                operation.table.files, str(operation.batch), "pages", groups,
                partition=file.partition, order=file.order,
            )  # fmt: skip
        yield Written(component, (file,), counts=dict(counts))


def _other_rows(operation: Operation, path: str, dropped: list[str]) -> Iterator[pa.Table]:
    keys = pa.array(dropped, pa.large_string())
    for group in row_groups(operation.table / path, PAGES):
        rows = group.filter(pc.invert(pc.is_in(group["key"], keys)))
        if len(rows):
            yield rows
