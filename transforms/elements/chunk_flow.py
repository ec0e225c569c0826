"""Chunks in a pipeline: outputs of steps, grouping, and their files in a spool."""

import dataclasses
import secrets
from collections import defaultdict
from collections.abc import Hashable, Iterator
from typing import Any

import apache_beam as beam
import polars as pl
import pyarrow as pa
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import WindowedValue

from ...policy.components.schema import to_frame
from ..wiring.chunk_coder import from_ipc, to_ipc
from ..wiring.display import Displayed
from .chunks import Chunk, rechunk, to_chunks


def tagged_chunks(
    tag: str, frame: pl.DataFrame, schema: pa.Schema | None = None
) -> Iterator[beam.pvalue.TaggedOutput]:
    """Yields the chunks of a frame for the output with a tag."""
    for chunk in to_chunks(frame, schema):
        yield beam.pvalue.TaggedOutput(tag, chunk)


def join_outputs(
    ungrouped: beam.PCollection[Any], grouped: beam.PCollection[Any], label: str
) -> beam.PCollection[Chunk]:
    """Joins a tagged output from before a shuffle with one from after it.

    Beam changes the trigger at a shuffle: what was counted is not counted again. The joined collection has
    the trigger of ``grouped``; by ``Flatten`` alone it would have that of the first, with a warning.
    """
    for chunks in (ungrouped, grouped):
        chunks.element_type = Chunk  # Beam does not know it of tagged outputs
    if ungrouped.windowing != grouped.windowing:
        ungrouped |= f"{label}AsGrouped" >> _WindowedAs(grouped.windowing)
    return (ungrouped, grouped) | label >> beam.Flatten()


class _PassOn(beam.DoFn):
    def process(self, element: Any) -> Iterator[Any]:
        yield element


class _WindowedAs(beam.ParDo):
    """Passes elements on in their windows, with the trigger of another collection."""

    def __init__(self, windowing: Any) -> None:
        super().__init__(_PassOn())  # type: ignore[no-untyped-call]
        self._windowing = windowing

    def get_windowing(self, inputs: Any) -> Any:
        return self._windowing

    def infer_output_type(self, input_type: Any) -> Any:
        return input_type


GATHERED_BYTES = 64 << 20
# A chunk of this size is not worth joining.
_LARGE = 1 << 20
_GLOBAL = GlobalWindow()


@dataclasses.dataclass
class GroupChunks(Displayed):
    """Groups chunks by key, and joins small chunks of a key before the shuffle.

    Chunks that are divided by many key ranges have many small parts. In one process, parts of less
    than 64 KB would stay in memory (wiring/in_process.py); on a cluster each has its own overhead.

    Input:  pairs of a key and a chunk, in the global window.
    Output: pairs of a key and its chunks, in no particular order.

    Cost: one shuffle. A worker holds ``GATHERED_BYTES`` before it.
    """

    def expand(self, pairs: beam.PCollection[Any]) -> beam.PCollection[Any]:
        gathered = beam.ParDo(_Gather(GATHERED_BYTES)).with_output_types(pairs.element_type)
        return pairs | "Gather" >> gathered | "Group" >> beam.GroupByKey()


class _Gather(beam.DoFn):
    """Joins the chunks of each key in a bundle."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes

    def start_bundle(self) -> None:
        self._parts: dict[Hashable, list[Chunk]] = defaultdict(list)
        self._bytes = 0

    def process(self, element: tuple[Any, Chunk]) -> Iterator[tuple[Any, Chunk]]:
        key, chunk = element
        if chunk.nbytes >= _LARGE:
            yield element
            return
        self._parts[key].append(chunk)
        self._bytes += chunk.nbytes
        if self._bytes >= self._most:
            yield from self._join_parts()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        for element in self._join_parts():
            yield WindowedValue(element, _GLOBAL.max_timestamp(), (_GLOBAL,))

    def _join_parts(self) -> Iterator[tuple[Any, Chunk]]:
        parts = self._parts
        self.start_bundle()
        for key, chunks in parts.items():
            for chunk in rechunk(pa.concat_tables(chunks)):
                yield key, chunk


class Spool:
    """The saved pages of all attempts at one partition, on any file system of Beam.

    Args:
        folder: Folder of this run; all workers must reach it.
        number: Number of the partition.
        partitions: Number of partitions.
    """

    def __init__(self, folder: str, number: int, partitions: int) -> None:
        self._folder = FileSystems.join(folder, f"{number:05d}-of-{partitions:05d}")
        self._attempt = secrets.token_hex(8)
        self._files = 0

    def saved_rows(self, urls: pl.Series) -> Iterator[Chunk]:
        """Yields the saved rows of the given URLs, each URL once, in chunks."""
        missing = urls.unique()
        (match,) = FileSystems.match([FileSystems.join(self._folder, "*.arrow")])
        for file in sorted(match.metadata_list, key=lambda file: str(file.path)):
            if missing.is_empty():
                return
            chunk = _read(file.path)
            there = to_frame(chunk.select(["url"])).get_column("url")
            take = there.is_in(missing.implode()) & there.is_first_distinct()
            missing = missing.filter(~missing.is_in(there.implode()))
            if take.any():
                yield chunk.filter(pa.array(take.to_list(), pa.bool_()))

    def keep(self, chunk: Chunk) -> None:
        """Writes a chunk, so that it survives the end of the worker."""
        path = FileSystems.join(self._folder, f"{self._attempt}-{self._files:05d}.arrow")
        # The file gets its name when it is complete.
        with FileSystems.create(
            f"{path}.part", compression_type=CompressionTypes.UNCOMPRESSED
        ) as file:
            file.write(memoryview(to_ipc(chunk)))
        FileSystems.rename([f"{path}.part"], [path])
        self._files += 1


def _read(path: str) -> Chunk:
    with FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED) as file:
        return from_ipc(file.read())
