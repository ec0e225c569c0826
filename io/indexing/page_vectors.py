"""Vectors of the pages of a shard, in files beside those of tantivy.

A shard with vectors has two files more: ``NAME.f32``, a unit vector per chunk of a page, as 32-bit
floats, and ``NAME.vectors``, JSON: the embedding, the numbers of a vector, and the URL of each page
with its number of chunks, in the order of the vectors. An unpacked index may have ``NAME.gone``, the
places of the pages that a newer shard names.
"""

import json
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...web.base.errors import UserError
from ...web.base.safe_json import json_object

Vectors = NDArray[np.float32]  # a row per chunk
VECTORS_FIELD = "page_vectors"  # of documents: what ``pack_vectors`` returns
_FLOATS, _ABOUT, _GONE = ".f32", ".vectors", ".gone"


class VectorMaker(NamedTuple):
    """What has made vectors.

    Attributes:
        embedding: Name of the plug-in.
        dimension: Numbers of a vector.
    """

    embedding: str
    dimension: int


def unit_vectors(vectors: Vectors) -> Vectors:
    """Returns vectors with the length 1, so that products are cosines; those of zeros stay.

    >>> unit_vectors(np.array([[3.0, 4.0], [0.0, 0.0]], np.float32)).round(2).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    large = np.abs(vectors).max(axis=1, keepdims=True)
    scaled = vectors / np.where(large > 0, large, 1)  # squares of large numbers are infinite
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    return np.asarray(scaled / np.where(lengths > 0, lengths, 1), np.float32)


def pack_vectors(embedding: str, vectors: Vectors) -> bytes:
    """Returns the vectors of a page as one value: what made them, and their numbers."""
    head = json.dumps(VectorMaker(embedding, vectors.shape[1]))
    return head.encode() + b"\n" + unit_vectors(vectors).astype("<f4").tobytes()


class VectorsFile:
    """Writes the vectors of a shard as its pages come; memory holds only URLs.

    Args:
        folder: Folder of the shard's files.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / secrets.token_hex(8)
        self._maker: VectorMaker | None = None
        self._pages: list[tuple[str, int]] = []
        self._places: dict[str, int] = {}

    def add(self, urls: Sequence[str], packed: Sequence[bytes | None]) -> None:
        """Adds pages; of a page that comes again, the new vectors count, also if it has none.

        Raises:
            UserError: They are of another embedding than the first, or have another length.
        """
        values = list[bytes]()
        for url, one in zip(urls, packed, strict=True):
            if url in self._places:
                place = self._places.pop(url)
                self._pages[place] = ("", self._pages[place][1])
            if one is None:
                continue
            head, _, numbers = one.partition(b"\n")
            maker = VectorMaker(*json.loads(head))
            self._maker = self._maker or maker
            if maker != self._maker:
                raise UserError(differing_vectors(self._maker, maker))
            self._places[url] = len(self._pages)
            self._pages.append((url, len(numbers) // (4 * maker.dimension)))
            values.append(numbers)
        if values:
            with self._path.with_suffix(_FLOATS).open("ab") as file:
                file.writelines(values)

    def finish(self) -> None:
        """Writes what the vectors are of, if there are any."""
        if self._maker is not None:
            about = {**self._maker._asdict(), "pages": self._pages}
            self._path.with_suffix(_ABOUT).write_text(json.dumps(about))


def differing_vectors(one: VectorMaker, other: VectorMaker) -> str:
    """Returns the line about vectors that cannot be compared."""
    texts = (
        f"{maker.dimension:,} numbers by embedding {maker.embedding!r}" for maker in (one, other)
    )
    return f"the index has vectors of {' and '.join(texts)}: run nutbeam index with --full"


class ShardVectors(NamedTuple):
    """Vectors of the pages of one shard.

    Attributes:
        maker: What made them.
        urls: URL of each page; empty: the page does not count.
        counts: Number of vectors of each page, at least 1.
        matrix: The vectors, mapped into memory.
    """

    maker: VectorMaker
    urls: tuple[str, ...]
    counts: NDArray[np.int64]
    matrix: Vectors


class PackedVectors:
    """The vectors of pages by URL; they are read when they are asked for."""

    def __init__(self, vectors: ShardVectors) -> None:
        ends = np.cumsum(vectors.counts)
        starts = ends - vectors.counts
        spans = zip(starts.tolist(), ends.tolist(), strict=True)
        self._vectors = vectors
        self._spans = dict(zip(vectors.urls, spans, strict=True))

    def of(self, url: str) -> bytes | None:
        """Returns the vectors of a page; None if it has none."""
        if not url or url not in self._spans:
            return None
        start, end = self._spans[url]
        return pack_vectors(self._vectors.maker.embedding, self._vectors.matrix[start:end])


def vector_maker(folder: Path) -> VectorMaker | None:
    """Returns what made the vectors in a folder of one shard; None if there are none."""
    for path in folder.glob(f"*{_ABOUT}"):
        about = json_object(path.read_bytes())
        return VectorMaker(str(about["embedding"]), int(about["dimension"]))
    return None


def read_vectors(folder: Path) -> Iterator[ShardVectors]:
    """Yields the vectors of the shards in a folder.

    Raises:
        ValueError: A file is damaged.
    """
    for path in sorted(folder.glob(f"*{_ABOUT}")):
        about: dict[str, Any] = json_object(path.read_bytes())
        maker = VectorMaker(str(about["embedding"]), int(about["dimension"]))
        counts = np.array([count for _, count in about["pages"]], np.int64)
        urls = [str(url) for url, _ in about["pages"]]
        gone = path.with_suffix(_GONE)
        for place in json.loads(gone.read_bytes()) if gone.exists() else ():
            urls[place] = ""
        shape = (int(counts.sum()), maker.dimension)
        matrix = np.memmap(path.with_suffix(_FLOATS), "<f4", "r", shape=shape)
        yield ShardVectors(maker, tuple(urls), counts, matrix)


def leave_out_pages(folder: Path, urls: pl.Series) -> None:
    """Notes that pages of the shard in a folder do not count any more."""
    for path in folder.glob(f"*{_ABOUT}"):
        gone = set(urls)
        pages = json_object(path.read_bytes())["pages"]
        places = [place for place, (url, _) in enumerate(pages) if url in gone]
        path.with_suffix(_GONE).write_text(json.dumps(places))
