"""Unpacks the shards of an index: one tantivy index in a local folder, without superseded rows.

The segments of all shards are listed in one index, so that one search ranks all of them by the same
statistics. A document that a newer shard names is deleted in the unpacked index; shards do not change.
"""

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import tantivy

from ...web.base.errors import UsageError, UserError
from ...web.urls.row_keys import from_key, to_key
from ..storage.file_errors import errors_as
from ..storage.place_addresses import one_spelling
from ..storage.places import Folder, Place
from ..storage.processes import scratch
from ..tablets.checksums import verify_file
from ..tablets.file_lists import DataFile
from .page_vectors import PackedVectors, leave_out_pages, read_vectors
from .shard_documents import (
    TEXT_FIELDS,
    former_format,
    open_index,
    restored_rows,
    shard_format,
    shard_schema,
    tantivy_errors,
)
from .shards import (
    ShardBuilder,
    damaged_shard,
    shard_keys,
    shard_version,
    unpack_shard,
    with_orders,
)

_META = "meta.json"
_SHARDS = "shards.json"  # of an unpacked index: the record of each shard in it, by its name
_SIZES = "sizes.json"  # of an unpacked index: the size of each file
_HEAP_BYTES = 15_000_000
_AT_ONCE = 500  # documents


def table_cache(address: str, base: str = "") -> Path:
    """Returns the folder for the unpacked indexes of a table, below ``base``.

    Args:
        address: Address of the table, in any way of writing it.
        base: A folder; empty: ``nutbeam`` in XDG_CACHE_HOME, or in ``~/.cache``.
    """
    above = base or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    try:
        folder = Path(above).expanduser() / ("" if base else "nutbeam")
    except RuntimeError as error:
        raise UsageError("there is no home folder: set XDG_CACHE_HOME") from error
    return folder / "indexes" / _digest(one_spelling(address))


def index_cache(table: Path, index: str, blocklist: str | None) -> Path:
    """Returns the folder of one unpacked index; removes indexes that were unpacked before a purge.

    Args:
        table: The folder of ``table_cache``.
        index: Name of the index.
        blocklist: Identifies the content of the blocklist; each purge changes it.
    """
    purges = _digest(blocklist or "")
    remove_unpacked(table, purges)
    return table / purges / index


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def unpack_index(root: Folder, files: Sequence[DataFile], cache: Path) -> Path:
    """Returns the folder with some shards as one index; makes it, unless it is there.

    What else was unpacked in the cache is removed, so that it has nothing that was purged.

    Args:
        root: The table's folder.
        files: The live shards of an index.
        cache: Folder for the index, unpacked, on this machine.

    Raises:
        UserError: A shard is damaged, or of another version; one line says what to do.
    """
    ordered = with_orders(root, files)
    state = [shard_format(), *(f"{file.order} {file.path}" for file in ordered)]
    unpacked = cache / hashlib.sha256("\n".join(state).encode()).hexdigest()[:24]
    if not is_whole(unpacked):
        shutil.rmtree(unpacked, ignore_errors=True)
        with errors_as(f"cannot write {str(cache)!r}, where the index is unpacked"):
            cache.mkdir(parents=True, exist_ok=True)
            making = Path(tempfile.mkdtemp(prefix=f"making-{os.getpid()}-", dir=cache))
            try:
                _unpack_into(root, ordered, making, _known_shards(cache))
                with contextlib.suppress(OSError):  # another process has made it
                    making.rename(unpacked)
            finally:
                shutil.rmtree(making, ignore_errors=True)
    remove_unpacked(cache, unpacked.name)
    return unpacked


def remove_unpacked(cache: Path, but: str = "") -> None:
    """Removes unpacked indexes, and what killed processes have left."""
    with contextlib.suppress(OSError):
        for path in cache.iterdir():
            _, _, maker = path.name.partition("making-")
            if path.name != but and not (maker and _lives(maker.partition("-")[0])):
                shutil.rmtree(path, ignore_errors=True)


def forget_unpacked(address: str) -> None:
    """Removes all unpacked indexes of a table from the usual cache of this machine, as after a purge.

    Those in other folders are removed by ``index_cache``, and are not used until then.
    """
    with contextlib.suppress(UsageError):
        shutil.rmtree(table_cache(address), ignore_errors=True)


def superseded_keys(shards: Sequence[pl.DataFrame], orders: Sequence[int]) -> list[pl.Series]:
    """Returns the keys that each shard holds and a newer one names.

    Args:
        shards: ``key`` and ``deletes`` of each shard.
        orders: The order of each; the largest that names a key counts.

    >>> held = pl.lit(False).alias("deletes")
    >>> frames = [pl.DataFrame({"key": keys}).with_columns(held) for keys in (["a", "b"], ["b"])]
    >>> [keys.to_list() for keys in superseded_keys(frames, [1, 2])]
    [['b'], []]
    """
    columns = [
        keys.select("key", order=pl.lit(order, pl.Int64))
        for keys, order in zip(shards, orders, strict=True)
    ]
    if not columns:
        return []
    newest = pl.concat(columns).group_by("key").agg(newest=pl.col("order").max())
    return [
        keys.filter(~pl.col("deletes"))
        .join(newest.filter(pl.col("newest") > order), on="key", how="semi")
        .get_column("key")
        for keys, order in zip(shards, orders, strict=True)
    ]


def _unpack_into(
    root: Folder, ordered: Sequence[DataFile], folder: Path, unpacked_shards: Mapping[str, Path]
) -> None:
    """Fills a folder with the segments of shards."""
    keys = [shard_keys(root / file.path) for file in ordered]
    gone = superseded_keys(keys, [file.order for file in ordered])
    records: dict[str, Any] = {}
    segments: list[Any] = []
    meta: dict[str, Any] | None = None
    for number, file in enumerate(ordered):
        part = folder / f"part-{number}"
        part.mkdir()
        _fill_part(root, file, part, unpacked_shards)
        if not (part / _META).exists():
            continue  # the shard only deletes
        records[file.path] = {
            "meta": json.loads((part / _META).read_bytes()),
            "files": sorted(path.name for path in part.iterdir()),
        }
        _delete(root / file.path, part, gone[number])
        meta = json.loads((part / _META).read_bytes())
        segments += meta["segments"]
        for path in part.iterdir():
            if not path.name.startswith(".") and path.name != _META:
                path.rename(folder / path.name)
        shutil.rmtree(part)
    if meta is None:
        tantivy.Index(shard_schema(), path=str(folder))
    else:
        (folder / _META).write_text(json.dumps({**meta, "segments": segments}))
    (folder / _SHARDS).write_text(json.dumps(records))
    sizes = {p.name: p.stat().st_size for p in folder.iterdir() if not p.name.startswith(".")}
    (folder / _SIZES).write_text(json.dumps(sizes))


def is_whole(unpacked: Path) -> bool:
    """Returns whether an unpacked index is there, and no file of it is missing or cut off."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sizes = json.loads((unpacked / _SIZES).read_bytes())
        return all((unpacked / name).stat().st_size == size for name, size in sizes.items())
    return False


@contextlib.contextmanager
def open_shard(root: Folder, file: DataFile, gone: pl.Series) -> Iterator[Any]:
    """Opens the documents of a shard, without some, in a scratch folder.

    Args:
        root: The table's folder.
        file: The shard.
        gone: Keys of documents to leave out.

    Yields:
        A searcher, and the vectors of pages, None if there are none; None if the shard has no
        documents.
    """
    folder = Path(tempfile.mkdtemp(prefix="open-shard-", dir=scratch()))
    try:
        _fill_part(root, file, folder, {})
        if not (folder / _META).exists():
            yield None
            return
        _delete(root / file.path, folder, gone)
        with tantivy_errors(lambda reason: damaged_shard(root / file.path, reason)):
            searcher = open_index(folder).searcher()
        vectors = next(read_vectors(folder), None)
        yield searcher, None if vectors is None else PackedVectors(vectors)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _fill_part(
    root: Folder, file: DataFile, part: Path, unpacked_shards: Mapping[str, Path]
) -> None:
    """Puts the files of a shard into a folder, from an older unpacked index if one has them."""
    if file.path in unpacked_shards:
        with contextlib.suppress(OSError, ValueError, KeyError):
            record = json.loads((unpacked_shards[file.path] / _SHARDS).read_bytes())[file.path]
            for name in record["files"]:
                if name != _META:
                    os.link(unpacked_shards[file.path] / name, part / name)
            (part / _META).write_text(json.dumps(record["meta"]))
            return
    for path in part.iterdir():
        path.unlink()
    verify_file(root, file)
    if unpack_shard(root / file.path, part) or _convert_former_shard(root / file.path, part):
        return
    raise UserError(
        f"shard {root / file.path} was made by {shard_version(root / file.path)}, this is "
        f"{shard_format()}: run nutbeam index with --full"
    )


def _convert_former_shard(path: Place, part: Path) -> bool:
    """Indexes the documents of a shard of the former format into a folder.

    Returns:
        Whether the shard has this format.
    """
    with (
        tempfile.TemporaryDirectory(prefix="former-shard-", dir=scratch()) as former,
        ShardBuilder() as builder,
        tantivy_errors(lambda reason: damaged_shard(path, reason)),
    ):
        if not unpack_shard(path, Path(former), former_format()):
            return False
        searcher = tantivy.Index.open(former).searcher()
        hits = searcher.search(tantivy.Query.all_query(), max(1, searcher.num_docs)).hits
        for start in range(0, len(hits), _AT_ONCE):
            stored = [searcher.doc(place).to_dict() for _, place in hits[start : start + _AT_ONCE]]
            rows = restored_rows(map(_former_fields, stored))
            keys = pl.Series("key", map(to_key, rows.get_column("id")), dtype=pl.String)
            builder.add(rows.with_columns(keys))
        folder = builder.finish()
        for file in folder.iterdir() if folder is not None else ():
            if not file.name.startswith("."):
                shutil.move(file, part / file.name)
    return True


def _former_fields(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Returns stored fields of a document; a text is in the field of its language."""
    texts = {name.rpartition("_")[0]: values for name, values in stored.items()}
    one = {name: texts[name][0] for name in TEXT_FIELDS[:2] if name in texts}
    return {**one, "anchor": texts.get("anchor"), "document": bytes(stored["document"][0]).decode()}


def _delete(shard: Place, folder: Path, keys: pl.Series) -> None:
    """Deletes documents of a tantivy index that is not in use."""
    if not len(keys):
        return
    leave_out_pages(folder, pl.Series(map(from_key, keys), dtype=pl.String))
    with tantivy_errors(lambda reason: damaged_shard(shard, reason)):
        writer = open_index(folder).writer(_HEAP_BYTES, 1)
        for key in keys:
            writer.delete_documents_by_term("id", from_key(key))
        writer.commit()
        writer.wait_merging_threads()


def _known_shards(cache: Path) -> dict[str, Path]:
    """Returns the unpacked indexes in a cache that have a shard, by its name."""
    folders: dict[str, Path] = {}
    for path in cache.glob(f"*/{_SHARDS}"):
        with contextlib.suppress(OSError, ValueError):
            if is_whole(path.parent):
                folders |= dict.fromkeys(json.loads(path.read_bytes()), path.parent)
    return folders


def _lives(process: str) -> bool:
    return process.isdigit() and Path(f"/proc/{process}").exists()
