"""Writes the parts of an archive on the workers, and finds revisits before."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import apache_beam as beam
import polars as pl
import pyarrow.compute as pc

from ...policy.archives.revisits import REVISITS, revisits_of_payloads, revisits_of_urls
from ...policy.components.schema import to_frame
from ...web.archives.page_records import EarlierCapture
from ..elements.chunks import Chunk, to_chunks
from ..for_each import Spread
from ..partition import grouped_by_hash
from ..wiring.display import Displayed
from .archive_parts import ArchivePart, captured_chunks, write_archive_part, written_chunks

# Captures with equal values of a column meet; the function finds those that are revisits.
_SEARCHES = {"url": revisits_of_urls, "digest": revisits_of_payloads}


@dataclasses.dataclass
class WriteArchive(Displayed):
    """Writes the parts of an archive.

    Input:  parts, each once.
    Output: the counts of each part.

    Cost: with revisits the bodies are read twice, and a row of about 200 bytes for each capture
    crosses two shuffles. Bodies are never shuffled.

    Attributes:
        folder: Address of the archive.
        revisits: Whether to look for revisits.
        partitions: How many workers can share the search for them.
    """

    folder: str
    revisits: bool
    partitions: int = 1

    def expand(self, parts: beam.PCollection[ArchivePart]) -> beam.PCollection[dict[str, int]]:
        numbered = tuple[int, Any]
        spread = (
            parts
            | "Number" >> beam.Map(_numbered).with_output_types(numbered)
            | "Spread" >> Spread()
        )
        together: dict[str, Any] = {"parts": spread}
        if self.revisits:
            captured = self._captured(spread)
            for column, find in _SEARCHES.items():
                together[column] = captured | f"By_{column}" >> _Found(
                    column, self.partitions, find
                )
        return (
            together
            | "Meet" >> beam.CoGroupByKey()
            | "Write" >> beam.FlatMap(_write).with_output_types(dict[str, int])
        )

    def _captured(self, parts: Any) -> beam.PCollection[Chunk]:
        """Returns all captures of the parts, and those that the archive has already."""
        new = parts | "Captured" >> beam.FlatMap(_captured).with_output_types(Chunk)
        folder = parts.pipeline | "Folder" >> beam.Create([self.folder])
        old = folder | "Written" >> beam.FlatMap(written_chunks).with_output_types(Chunk)
        return (new, old) | "Both" >> beam.Flatten()


@dataclasses.dataclass
class _Found(Displayed):
    """Finds revisits among captures: (number of the part, revisits)."""

    column: str
    partitions: int
    find: Callable[[pl.DataFrame], pl.DataFrame]

    def expand(self, captured: beam.PCollection[Chunk]) -> beam.PCollection[tuple[int, Chunk]]:
        step = beam.FlatMap(_find, self.find).with_output_types(tuple[int, Chunk])
        # Nulls are equal in a shuffle: all answers 304 would be one partition.
        valued = captured | "Valued" >> beam.FlatMap(_valued, self.column).with_output_types(Chunk)
        return grouped_by_hash(valued, self.column, self.partitions) | "Find" >> step


def _numbered(part: ArchivePart) -> tuple[int, ArchivePart]:
    return part.number, part


def _captured(numbered: tuple[int, ArchivePart]) -> Iterator[Chunk]:
    yield from captured_chunks(numbered[1])


def _valued(chunk: Chunk, column: str) -> Iterator[Chunk]:
    """Yields the rows of a chunk that have a value in a column."""
    rows = chunk.filter(pc.is_valid(chunk[column]))
    if len(rows):
        yield rows


def _find(
    grouped: tuple[int, Iterable[Chunk]], find: Callable[[pl.DataFrame], pl.DataFrame]
) -> Iterator[tuple[int, Chunk]]:
    revisits = find(pl.concat(map(to_frame, grouped[1])))
    for (part,), rows in revisits.group_by("part", maintain_order=True):
        for chunk in to_chunks(rows, REVISITS):
            yield int(str(part)), chunk


def _write(grouped: tuple[int, Mapping[str, Iterable[Any]]]) -> Iterator[dict[str, int]]:
    _, by_name = grouped
    revisits = {
        (url, time): EarlierCapture(*earlier)
        for name in _SEARCHES
        for chunk in by_name.get(name, ())
        for url, time, _, *earlier in to_frame(chunk).iter_rows()
    }
    for part in by_name["parts"]:
        yield write_archive_part(part, revisits)
