"""Builds and reads shards: Parquet files, each with a small tantivy index and its keys.

The rows with the keys of the index come first, in key order. The rows after them hold the files of
the index, in pieces.
"""

import contextlib
import dataclasses
import gc
import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import tantivy

from ...policy.components.kinds import KINDS
from ...policy.components.schema import empty, to_frame
from ...web.base.errors import UserError
from ...web.base.safe_json import read_json
from ..storage.file_errors import repair_advice
from ..storage.files import new_name
from ..storage.parquet_files import ParquetWriter, row_groups
from ..storage.places import Folder, Place
from ..storage.processes import ScratchFull, full, scratch, writing_scratch
from ..tablets.file_lists import DataFile, close_file
from .document_terms import content_terms, title_part_terms, title_terms
from .page_vectors import VECTORS_FIELD, VectorMaker, VectorsFile, vector_maker
from .shard_documents import (
    TEXT_FIELDS,
    index_terms,
    register_analyzers,
    shard_format,
    shard_schema,
    tantivy_errors,
)

SHARDS = KINDS["shards"].schema
_PIECE_BYTES = 8 << 20
_ABOUT = "about.json"  # a file of a shard: what made it, and its order
_KEYS = ["key", "deletes"]


def pack_shard(
    root: Folder, component: str, keys: pl.DataFrame, folder: Path | None, order: int
) -> DataFile:
    """Writes a shard.

    Args:
        root: The table's folder.
        component: Component of the shard.
        keys: ``key``, each once, and ``deletes``.
        folder: Folder with the files of the tantivy index; None: the shard only deletes.
        order: Its place in time: of the shards that name a key, the largest order counts.

    Returns:
        The description of the file.
    """
    path = root / component / new_name()
    keys = keys.select(_KEYS).sort("key")
    with ParquetWriter(path, SHARDS) as writer:
        for rows in keys.iter_slices(131_072):
            writer.write(_rows(rows))
        maker = None if folder is None else vector_maker(folder)
        about = {"version": shard_format(), "order": order, **({"vectors": maker} if maker else {})}
        writer.write(_piece(_ABOUT, 0, json.dumps(about).encode()))
        for file in sorted(_files(folder)) if folder is not None else ():
            with writing_scratch(file), file.open("rb") as source:
                for number in range(max(1, -(-file.stat().st_size // _PIECE_BYTES))):
                    writer.write(_piece(file.name, number, source.read(_PIECE_BYTES)))
        names = keys.get_column("key")
        first, last = (names[0], names[-1]) if len(names) else (None, None)
        return close_file(root, writer, first=first, last=last, order=order)


def shard_keys(path: Place) -> pl.DataFrame:
    """Returns the keys that a shard names, in order: ``key`` and ``deletes``.

    Raises:
        UserError: The file is missing or damaged.
    """
    frames = [empty(SHARDS).select(_KEYS)]
    with _reading(path):
        for group in row_groups(path, SHARDS, _KEYS):
            rows = to_frame(group).filter(pl.col("key").is_not_null())
            if not len(rows):
                break  # pieces of files follow
            frames.append(rows)
    return pl.concat(frames)


def unpack_shard(path: Place, folder: Path, version: str = "") -> bool:
    """Writes the files of a shard into a folder.

    Args:
        path: The shard.
        folder: The folder.
        version: What the shard must have been made by; empty: this version.

    Returns:
        Whether it was; if not, nothing was written. True if the shard has no files.

    Raises:
        UserError: The file is missing or damaged.
    """
    with _reading(path):
        for group in row_groups(path, SHARDS, ["file", "piece", "data"]):
            for name, number, data in _values(group):
                if name is None:
                    continue
                if name == _ABOUT:
                    if read_json(data)["version"] != (version or shard_format()):
                        return False
                    continue
                if Path(name).name != name:
                    raise ValueError(f"its file {name!r} is in another folder")
                target = folder / name
                with writing_scratch(target), target.open("ab" if number else "wb") as file:
                    file.write(data)
    return True


def shard_version(path: Place) -> str:
    """Returns what made a shard: versions of tantivy and of the schema."""
    return str(_about(path).get("version", "unknown"))


def shard_vector_maker(path: Place) -> VectorMaker | None:
    """Returns what made the vectors of a shard; None if it has none."""
    vectors = _about(path).get("vectors")
    return None if vectors is None else VectorMaker(str(vectors[0]), int(vectors[1]))


def with_orders(root: Folder, files: Iterable[DataFile]) -> list[DataFile]:
    """Returns shards in order; if a list was rebuilt, their orders are read from the shards."""
    numbered = (
        file
        if file.order
        else dataclasses.replace(file, order=int(_about(root / file.path)["order"]))
        for file in files
    )
    return sorted(numbered, key=lambda file: (file.order, file.path))


def _about(path: Place) -> dict[str, Any]:
    with _reading(path):
        for group in row_groups(path, SHARDS, ["file", "data"]):
            for name, data in _values(group):
                if name == _ABOUT:
                    return dict(read_json(data))
    raise damaged_shard(path, "it does not say what made it")


def damaged_shard(path: Place, why: object) -> UserError:
    """Returns the error for a shard that cannot be read."""
    return UserError(f"shard of the index is damaged: {path}: {why}{repair_advice(path)}")


@contextlib.contextmanager
def _reading(path: Place) -> Iterator[None]:
    try:
        yield
    except (ValueError, KeyError, TypeError) as error:
        raise damaged_shard(path, error) from error


def _values(rows: pa.Table) -> Iterator[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in rows.columns), strict=True)


def _files(folder: Path) -> list[Path]:
    """Returns the files of a tantivy index; lock files and lists of its own files are left out."""
    return [path for path in folder.iterdir() if not path.name.startswith(".")]


def _rows(keys: pl.DataFrame) -> pa.Table:
    nulls = {
        name: pa.nulls(len(keys), SHARDS.field(name).type) for name in ("file", "piece", "data")
    }
    columns = {"key": keys["key"].to_arrow(), "deletes": keys["deletes"].to_arrow(), **nulls}
    return pa.table(columns).select(SHARDS.names).cast(SHARDS)


def _piece(name: str, number: int, data: bytes) -> pa.Table:
    row = {"key": [None], "deletes": [None], "file": [name], "piece": [number], "data": [data]}
    return pa.table(row, schema=SHARDS)


HEAP_BYTES = 50_000_000  # of tantivy, per thread
# Text that may wait to be indexed. tantivy itself bounds only the number of documents that wait.
WAITING_BYTES = 64_000_000
MOST_DOCUMENTS = 250_000  # of a shard


class ShardBuilder(contextlib.AbstractContextManager["ShardBuilder"]):
    """Builds one shard in a scratch folder.

    Attributes:
        documents: Number of documents so far.
    """

    def __init__(self, threads: int = 1) -> None:
        self.documents = 0
        self._threads = threads
        self._held: dict[str, None] = {}
        self._deleted: dict[str, None] = {}
        self._folder: Path | None = None
        self._writer: Any = None
        self._vectors: VectorsFile | None = None
        self._waiting = 0

    def __len__(self) -> int:
        return len(self._held) + len(self._deleted)

    def delete(self, keys: Iterable[str]) -> None:
        """Notes row keys of URLs that the shard deletes."""
        self._deleted.update(dict.fromkeys(keys))

    def add(self, rows: pl.DataFrame) -> None:
        """Adds documents.

        Args:
            rows: SEARCHED rows with ``key``, the row keys. Of rows with one id the last one stays.
        """
        with tantivy_errors(_unbuilt):
            writer, document = self._open(), tantivy.Document
            rows = index_terms(rows.unique("id", keep="last", maintain_order=True))
            for url, key in rows.select("id", "key").iter_rows():
                if key in self._held:
                    writer.delete_documents_by_term("id", url)
                self._held[key] = None
            if self._vectors is not None:
                self._vectors.add(rows["id"].to_list(), rows[VECTORS_FIELD].to_list())
            for row in rows.drop(VECTORS_FIELD).iter_rows(named=True):
                size = 3 * len(row["content"] or "") + len(row["document"])
                if self._waiting + size > WAITING_BYTES:
                    writer.commit()
                    self._waiting = 0
                self._waiting += size
                writer.add_document(_document(document(), row))
            self.documents += len(rows)

    def pack(self, root: Folder, component: str, order: int) -> DataFile:
        """Writes the shard into a table; the builder can be used no more."""
        folder = self.finish()
        named = {**dict.fromkeys(self._deleted, True), **dict.fromkeys(self._held, False)}
        keys = pl.DataFrame(
            list(named.items()), {"key": pl.String, "deletes": pl.Boolean}, orient="row"
        )
        return pack_shard(root, component, keys, folder, order)

    def finish(self) -> Path | None:
        """Returns the scratch folder with the index of tantivy; None if it has no documents."""
        if self._writer is not None:
            with tantivy_errors(_unbuilt):
                self._writer.commit()
                self._writer.wait_merging_threads()
                self._writer = None
            if self._vectors is not None:
                self._vectors.finish()
        return self._folder

    def close(self) -> None:
        """Removes the scratch folder."""
        if self._writer is not None:
            with contextlib.suppress(Exception):
                self._writer.rollback()
            self._writer = None
            gc.collect()  # threads of the writer end with it
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> Any:
        if self._writer is None:
            self._folder = Path(tempfile.mkdtemp(prefix="shard-", dir=scratch()))
            index = tantivy.Index(shard_schema(), path=str(self._folder))
            register_analyzers(index)
            self._vectors = VectorsFile(self._folder)
            self._writer = index.writer(HEAP_BYTES * self._threads, self._threads)
        return self._writer


def _document(document: Any, row: dict[str, Any]) -> Any:
    analyzer = row["analyzer"]
    for field, name in (("id", "id"), ("url", "url_words"), ("analyzer", "analyzer"), ("lang", "lang"),
                        ("folded", "folded"), ("title_words", "title"),
                        ("words", "title"), ("words", "content")):  # fmt: skip
        if row[name]:
            document.add_text(field, row[name])
    for name in ("site", "type"):
        for text in row[name] or ():
            document.add_text(name, text)
    title, content, anchors = (row[name] for name in TEXT_FIELDS)
    title_of, excess = title_terms(title or "", analyzer)
    for field, text, terms in (
        ("title", title, title_of),
        ("content", content, content_terms(content or "", analyzer)),
        *(("anchor", anchor, title_terms(anchor, analyzer)[0]) for anchor in anchors or ()),
    ):
        if text:
            document.add_text(field, terms)
            document.add_bytes(f"{field}_text", text.encode())
    if title:
        document.add_text("title", title_part_terms(title, analyzer))
        document.add_text("content", excess)
    if row["date"] is not None:
        document.add_integer("date", row["date"])
    document.add_float("weight", row["weight"])
    document.add_bytes("document", row["document"].encode())
    return document


def _unbuilt(reason: str) -> UserError:
    if "No space left" in reason or "os error 28" in reason:
        return ScratchFull(full(scratch()))
    return UserError(f"cannot build a shard of the index: {reason}")
