"""Writes the parts of an archive on the workers, and finds revisits before."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import apache_beam as beam
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from ...policy.archives.revisits import (
    CAPTURED,
    REVISITS,
    CapturedRows,
    confirmed_captures,
    revisits_of_payloads,
)
from ...policy.components.schema import conform, to_frame
from ...web.archives.page_records import EarlierCapture
from ..elements.chunks import Chunk, to_chunks
from ..for_each import Spread
from ..partition import grouped_by_hash
from ..wiring.display import Displayed
from .archive_part import ArchivePart
from .archive_parts import captured_chunks, write_archive_part, written_chunks

# An answer 304, and the capture that it confirms.
_CONFIRMED = pa.unify_schemas([CAPTURED, REVISITS])


@dataclasses.dataclass
class WriteArchive(Displayed):
    """Writes the parts of an archive.

    Input:  parts, each once.
    Output: the counts of each part.

    Cost: the bodies are read twice, and a row of about 200 bytes for each capture crosses a shuffle,
    with revisits of payloads two. Bodies are never shuffled.

    Attributes:
        folder: Address of the archive.
        revisits: Whether a payload that the archive has already makes a revisit.
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
        captured = self._captured(spread)
        by_url = captured | "ByUrl" >> _ByHash("url", self.partitions)
        confirmed = by_url | "Confirmed" >> beam.FlatMap(_find_confirmed).with_output_types(Chunk)
        revisits = confirmed
        if self.revisits:
            all_captures = (captured, confirmed) | "Captures" >> beam.Flatten()
            by_digest = all_captures | "ByDigest" >> _ByHash("digest", self.partitions)
            revisits = by_digest | "Revisits" >> beam.FlatMap(_revisits).with_output_types(Chunk)
        by_part = beam.FlatMap(_by_part).with_output_types(tuple[int, Chunk])
        return (
            {"parts": spread, "revisits": revisits | "ByPart" >> by_part}
            | "Meet" >> beam.CoGroupByKey()
            | "Write" >> beam.FlatMap(_write).with_output_types(dict[str, int])
        )

    def _captured(self, parts: Any) -> beam.PCollection[Chunk]:
        """Returns all captures of the parts, and those that the archive has already."""
        new = parts | "Captured" >> beam.FlatMap(_captured).with_output_types(Chunk)
        folder = parts.pipeline | "Folder" >> beam.Create([self.folder])
        old = folder | "Written" >> beam.FlatMap(written_chunks).with_output_types(Chunk)
        return (new, old) | "All" >> beam.Flatten()


@dataclasses.dataclass
class _ByHash(Displayed):
    """Brings captures with equal values of a column together; those without one are left out."""

    column: str
    partitions: int

    def expand(self, captured: Any) -> Any:
        # Nulls are equal in a shuffle: all answers 304 would be one partition.
        valued = captured | "Valued" >> beam.FlatMap(_valued, self.column).with_output_types(Chunk)
        return grouped_by_hash(valued, self.column, self.partitions)


def _numbered(part: ArchivePart) -> tuple[int, ArchivePart]:
    return part.number, part


def _captured(numbered: tuple[int, ArchivePart]) -> Iterator[Chunk]:
    yield from captured_chunks(numbered[1])


def _valued(chunk: Chunk, column: str) -> Iterator[Chunk]:
    """Yields the rows of a chunk that have a value in a column."""
    rows = chunk.filter(pc.is_valid(chunk[column]))
    if len(rows):
        yield rows


def _find_confirmed(grouped: tuple[int, Iterable[Chunk]]) -> Iterator[Chunk]:
    yield from to_chunks(confirmed_captures(_rows(grouped)), _CONFIRMED)


def _revisits(grouped: tuple[int, Iterable[Chunk]]) -> Iterator[Chunk]:
    yield from to_chunks(revisits_of_payloads(_rows(grouped)), REVISITS)


def _rows(grouped: tuple[int, Iterable[Chunk]]) -> CapturedRows:
    return pl.concat([to_frame(conform(chunk, CAPTURED)) for chunk in grouped[1]])


def _by_part(chunk: Chunk) -> Iterator[tuple[int, Chunk]]:
    for (part,), rows in to_frame(chunk).group_by("part", maintain_order=True):
        for own_chunk in to_chunks(rows, REVISITS):
            yield int(str(part)), own_chunk


def _write(grouped: tuple[int, Mapping[str, Iterable[Any]]]) -> Iterator[dict[str, int]]:
    _, by_name = grouped
    revisits = {
        (url, time): EarlierCapture(*earlier)
        for chunk in by_name["revisits"]
        for url, time, _, *earlier in to_frame(chunk).iter_rows()
    }
    for part in by_name["parts"]:
        yield write_archive_part(part, revisits)
