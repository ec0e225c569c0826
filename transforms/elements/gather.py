"""Joins small chunks of one key before a shuffle."""

import dataclasses
from collections import defaultdict
from collections.abc import Hashable, Iterator
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import WindowedValue

from ..wiring.display import Displayed
from .chunks import Chunk, rechunk

GATHERED_BYTES = 64 << 20
# A chunk of this size is not worth joining.
_LARGE = 1 << 20
_GLOBAL = GlobalWindow()


@dataclasses.dataclass
class GroupChunks(Displayed):
    """Groups chunks by key, and joins small chunks of a key before the shuffle.

    Chunks that are divided by many key ranges have many small parts. In one process, parts of less
    than 64 KB would stay in memory (wiring/spill.py); on a cluster each has its own overhead.

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
