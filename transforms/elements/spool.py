"""Keeps fetched pages in a folder, so that a retry does not request them again."""

import secrets
from collections.abc import Iterator

import polars as pl
import pyarrow as pa
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from ...policy.components.schema import to_frame
from .chunks import Chunk, from_ipc, to_ipc


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
