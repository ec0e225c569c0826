"""Files of a batch: the URLs that one generate chose, and the results of each phase.

A batch is a folder ``batches/ID`` with files of six kinds: ``fetchlist``,
``pages``, ``host_findings`` (about hosts), ``documents``, ``outcome``, and ``removed`` (URLs that
the table has dropped meanwhile). Results of the batch do not bring removed URLs back: neither its
pages, nor the links that it has found by the rules of that time.
"""

import contextlib
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import polars as pl
import pyarrow as pa

from ...policy.components.document_schema import DOCUMENTS
from ...policy.components.kinds import KINDS, folders_of
from ...policy.components.page_facts import unique_documents
from ...policy.components.schema import FETCHLIST, FetchListRows, empty, to_frame
from ..snapshots.manifest import Manifest
from ..snapshots.operations import Operation
from ..storage.file_errors import MissingFile
from ..storage.files import LARGEST_BYTES, crc32_of, creating, names, new_name, read_bytes, size_of
from ..storage.parquet_files import ParquetWriter, collect, row_groups, scan
from ..storage.places import Folder, Place
from ..tablets.file_lists import DataFile, below, close_file, load_files
from ..tablets.written import Written

_PLAIN = ("body", "wire")  # columns whose values rarely repeat
_FILES_OF_ATTEMPT = 100_000
_AT = "_row"
_REMOVED = "removed"


def batch_component(batch: str, kind: str) -> str:
    """Returns the name of a component of a batch, which is also its folder."""
    return f"batches/{batch}/{kind}"


def write_file(
    root: Folder,
    batch: str,
    kind: str,
    tables: Iterable[pa.Table | pl.DataFrame],
    *,
    partition: int = 0,
    order: int = 0,
    name: str | None = None,
) -> DataFile:
    """Writes one file of a batch and describes it.

    Args:
        root: The table's folder.
        batch: Id of the batch.
        kind: One of the six kinds.
        tables: Rows; each table is a row group.
        partition: Number of the partition that wrote it.
        order: Position of the file among those of the partition.
        name: File name; None makes a new one.
    """
    path = root / batch_component(batch, kind) / (name or new_name())
    bounds: list[str] = []
    with ParquetWriter(path, KINDS[kind].schema, _PLAIN) as writer:
        for table in tables:
            writer.write(table)
            bounds.extend(key for key in key_range(table) if key is not None)
        first, last = min(bounds, default=None), max(bounds, default=None)
        return close_file(root, writer, first=first, last=last, partition=partition, order=order)


def key_range(rows: pa.Table | pl.DataFrame) -> tuple[str | None, str | None]:
    """Returns the smallest and the largest key of rows; (None, None) if there are no rows."""
    frame = rows if isinstance(rows, pl.DataFrame) else to_frame(rows.select(["key"]))
    return frame.select(first=pl.col("key").min(), last=pl.col("key").max()).row(0)


def batch_files(root: Folder, manifest: Manifest, batch: str, kind: str) -> list[DataFile]:
    """Returns the files of one kind of a batch."""
    return load_files(root, manifest.components.get(batch_component(batch, kind)))


def live_file(root: Folder, manifest: Manifest, path: str) -> DataFile | None:
    """Returns the file of a batch that a row refers to by its path.

    If another file has replaced it since then, that file is returned. Returns None if the
    file was dropped, or if its batch is no longer kept.
    """
    component = path.rpartition("/")[0]
    for file in load_files(root, manifest.components.get(component)):
        if path in (file.path, file.formerly):
            return file
    return None


def keys_left_out(root: Folder, manifest: Manifest, rows: pl.DataFrame) -> pl.Series:
    """Returns the keys of rows that name a file which is gone, or whose rewritten form lacks them.

    Args:
        root: The table's folder.
        manifest: The newest snapshot of the table.
        rows: ``key``, ``page`` and ``document``, perhaps of another table.
    """
    left_out = [pl.Series("key", [], dtype=pl.String)]
    for name in ("page", "document"):
        for (path,), group in rows.drop_nulls(name).group_by(name):
            file = live_file(root, manifest, str(path))
            if file is None:
                left_out.append(group.get_column("key"))
            elif file.formerly is not None:
                keys = collect(scan([root / file.path], KINDS[f"{name}s"].schema).select("key"))
                left_out.append(group.join(keys, on="key", how="anti").get_column("key"))
    return pl.concat(left_out)


def read_fetch_list(
    root: Folder, paths: Iterable[str], keys: pl.Series, columns: Sequence[str]
) -> FetchListRows:
    """Returns the rows of some keys in files of a fetch list, with some columns."""
    rows = scan([root / path for path in paths], FETCHLIST).select(columns)
    return collect(rows.filter(pl.col("key").is_in(keys.implode())))


def named_rows(
    root: Folder, manifest: Manifest, rows: pl.DataFrame, name: str
) -> Iterator[tuple[str, pl.LazyFrame]]:
    """Yields (path, rows) of the files that rows name; files that are gone are left out.

    Args:
        root: The table's folder.
        manifest: The snapshot of the rows, or a later one: files know under which name they began.
        rows: ``key``, and a path in the table.
        name: The column of the path: ``document`` or ``page``.
    """
    for path, place, is_named in _named_files(root, manifest, rows, name):
        yield path, scan([place], KINDS[f"{name}s"].schema).filter(is_named)


def _named_files(
    root: Folder, manifest: Manifest, rows: pl.DataFrame, name: str
) -> Iterator[tuple[str, Place, pl.Expr]]:
    """Yields (path, where the file is now, condition of the rows that name it); opens no file."""
    for (path,), group in rows.drop_nulls(name).group_by(name, maintain_order=True):
        file = live_file(root, manifest, str(path))
        if file is not None:
            is_named = pl.col("key").is_in(group.get_column("key").implode())
            yield str(path), root / file.path, is_named


def named_documents(
    root: Folder, manifest: Manifest, rows: pl.DataFrame, columns: Sequence[str]
) -> pl.DataFrame:
    """Returns the documents that rows name, one per key; those that are gone are left out.

    Args:
        root, manifest: See ``named_rows``.
        rows: ``key`` and ``document``, a path in the table.
        columns: The columns to read.
    """
    read, frames = list(dict.fromkeys((*columns, "part_of"))), []
    for _, place, is_named in _named_files(root, manifest, rows, "document"):
        with contextlib.suppress(MissingFile):  # to scan a file opens it
            frames.append(collect(scan([place], DOCUMENTS).filter(is_named).select(read)))
    unique_rows = (unique_documents(rows).select(columns) for rows in frames)
    return pl.concat([empty(DOCUMENTS).select(columns), *unique_rows])


def documents_with_keys(
    root: Folder, file: DataFile, keys: pl.Series, columns: Sequence[str]
) -> Iterator[pa.Table]:
    """Yields the documents with some keys, each once, in pieces; memory holds one.

    They are not frames: polars would copy the texts of a large document again and again.

    Args:
        root: The table's folder.
        file: A file of documents.
        keys: Row keys; of several documents of a key, that of the page itself counts.
        columns: The columns to read.
    """
    path = root / file.path
    heads = collect(scan([path], DOCUMENTS).select("key", "part_of")).with_row_index(_AT)
    chosen = unique_documents(heads).filter(pl.col("key").is_in(keys.implode())).get_column(_AT)
    start = 0
    for group in row_groups(path, DOCUMENTS, columns):
        # A row group may be empty, so it need not have a last row.
        here = chosen.filter((chosen >= start) & (chosen < start + len(group))) - start
        start += len(group)
        if len(here):
            yield group if len(here) == len(group) else group.take(here.sort().to_arrow())


def page_order(started: int, sequence: int) -> int:
    """Returns the position of a pages file in its batch: earlier attempts first.

    Args:
        started: When the attempt began, ms.
        sequence: Number of the file within the attempt.
    """
    return started * _FILES_OF_ATTEMPT + sequence


def page_started(order: int) -> int:
    """Returns the start of the attempt that wrote a pages file, ms; see ``page_order``."""
    return order // _FILES_OF_ATTEMPT


def page_name(partition: int, started: int, attempt: str, sequence: int) -> str:
    """Returns the name of a pages file; ``adopted_pages`` reads it.

    Args:
        partition: Number of the partition.
        started: When the attempt began, ms.
        attempt: Id of the attempt; no hyphens.
        sequence: Number of the file within the attempt.
    """
    return f"p{partition:05d}-{started:013d}-{attempt}-{sequence:05d}.parquet"


def adopted_pages(
    root: Folder, batch: str, partition: int, blocked: Callable[[pl.Series], pl.Series]
) -> list[DataFile]:
    """Returns the files of pages that earlier attempts at a partition have written.

    Each key is in only one of the files. A file is rewritten if it has keys on the
    blocklist, or keys that an earlier file has, too: a superseded attempt may have
    written it late. The new file is without these keys. For the order see ``page_order``.

    Args:
        root: The table's folder.
        batch: Id of the batch.
        partition: Number of the partition.
        blocked: Function that returns the keys that are on the blocklist.
    """
    files: list[DataFile] = []
    seen: set[str] = set()
    for path in _of_partition(root / batch_component(batch, "pages"), partition):
        keys = _keys_of(path, "pages")
        new = [key for key in keys.filter(~blocked(keys)) if key not in seen]
        if new or not len(keys):
            whole = path if len(new) == len(keys) else _write_rest(path, new)
            # Two attempts may have begun in the same millisecond.
            _, started, _, sequence = whole.stem.split("-")
            order = page_order(int(started), int(sequence))
            while any(file.order == order for file in files):
                order += 1
            new_keys = pl.Series(new, dtype=pl.String)
            files.append(describe_file(root, whole, new_keys, partition=partition, order=order))
        seen.update(new)
    return files


def adopted_findings(
    root: Folder, batch: str, partition: int, blocked: Callable[[pl.Series], pl.Series]
) -> list[DataFile]:
    """Returns the files of host findings that earlier attempts at a partition have written.

    Each file has all findings of its attempt so far, so only the last file of an
    attempt counts. ``page_name`` makes the file names.

    Args:
        root: The table's folder.
        batch: Id of the batch.
        partition: Number of the partition.
        blocked: Function that returns the hosts that are on the blocklist; a file with
            such a host is left out.
    """
    folders = [root / name for name in folders_of(batch_component(batch, "host_findings"))]
    there = names(folders[0].parent)  # one request, whichever of the folders there are
    paths = [
        path
        for folder in folders
        if folder.name in there
        for path in _of_partition(folder, partition)
    ]
    last = {path.stem.rpartition("-")[0]: path for path in paths}
    keys_by_path = ((path, _keys_of(path, "host_findings")) for path in last.values())
    return [
        describe_file(root, path, keys, partition=partition)
        for path, keys in keys_by_path
        if len(keys) and not blocked(keys).any()
    ]


def _keys_of(path: Place, kind: str) -> pl.Series:
    return collect(scan([path], KINDS[kind].schema).select("key")).get_column("key")


def describe_file(root: Folder, path: Place, keys: pl.Series, **facts: Any) -> DataFile:
    """Returns the description of a Parquet file with some keys; ``facts`` are more fields of it.

    Raises:
        UserError: The file cannot be read.
    """
    first, last, size = *key_range(keys.alias("key").to_frame()), size_of(path) or 0
    return DataFile(below(root, path), len(keys), size, first, last, crc32=crc32_of(path), **facts)


def _of_partition(folder: Place, partition: int) -> list[Place]:
    start = f"p{partition:05d}-"
    file_names = (name for name in names(folder) if name.startswith(start))
    return [folder / name for name in file_names if name.endswith(".parquet")]


def _write_rest(path: Place, keys: list[str]) -> Place:
    """Copies the rows of some keys of a pages file to a new one."""
    import pyarrow.compute as pc  # late: it takes as long as pyarrow itself

    partition, started, _, sequence = path.stem.split("-")
    rest = path.with_name(
        "-".join((partition, started, secrets.token_hex(4), sequence)) + path.suffix
    )
    wanted = pa.array(keys, pa.string())
    with ParquetWriter(rest, KINDS["pages"].schema, _PLAIN) as writer:
        for group in row_groups(path, KINDS["pages"].schema):
            rows = group.filter(pc.is_in(group["key"], wanted))
            if len(rows):
                writer.write(rows)
    return rest


def claimed_keys(
    root: Folder, manifest: Manifest, batches: Sequence[str], low: str | None, high: str | None
) -> pl.Series:
    """Returns the keys in [low, high] of URLs that are in unfinished batches (the generate mark).

    Args:
        root: The table's folder.
        manifest: The snapshot.
        batches: Ids of the batches.
        low: Smallest key of interest; None is no limit.
        high: Largest key of interest; None is no limit.
    """
    files = [f for batch in batches for f in batch_files(root, manifest, batch, "fetchlist")]
    return _keys_between(root, files, "fetchlist", low or "", high)


def _keys_between(
    root: Folder, files: Iterable[DataFile], kind: str, low: str, high: str | None
) -> pl.Series:
    """Returns the keys in [low, high] in files of a kind; None is no limit."""
    paths = [
        root / file.path
        for file in files
        if (high is None or (file.first or "") <= high) and (file.last is None or file.last >= low)
    ]
    if not paths:
        return pl.Series("key", [], dtype=pl.String)
    keys = scan(paths, KINDS[kind].schema).select("key").filter(pl.col("key") >= low)
    if high is not None:
        keys = keys.filter(pl.col("key") <= high)
    return collect(keys).get_column("key")


def put_aside(root: Folder, batch: str, rows: pl.DataFrame) -> str:
    """Writes rows for a later step of the same job; returns the path below the table.

    Such files are in no manifest. A crash of the machine may lose them.
    """
    path = root / batch_component(batch, "aside") / new_name(".arrow")
    with creating(path) as file:
        rows.write_ipc(file)
    return below(root, path)


def take_up(root: Folder, path: str) -> pl.DataFrame:
    """Reads the rows that ``put_aside`` wrote."""
    return pl.read_ipc(read_bytes(root / path, LARGEST_BYTES))


def remove_aside(root: Folder, batch: str) -> None:
    """Removes all files that ``put_aside`` wrote for a batch."""
    (root / batch_component(batch, "aside")).remove_tree()


def note_removed(operation: Operation, keys: pl.Series) -> Iterator[Written]:
    """Writes the keys of removed rows, in order, for each batch that is not updated yet."""
    if not len(keys):
        return
    for name in operation.manifest().unfinished:
        file = write_file(operation.table.files, name, _REMOVED, [keys.alias("key").to_frame()])
        yield Written(batch_component(name, _REMOVED), (file,))


def read_removed_keys(operation: Operation, near: pl.Series) -> pl.Series:
    """Returns the keys that were removed since the batch of an update was generated.

    Args:
        operation: The update.
        near: Keys; only removed ones from the smallest to the largest of them are read.
    """
    low, high = str(near.min() or ""), str(near.max() or "")
    files = operation.files(batch_component(str(operation.batch), _REMOVED))
    return _keys_between(operation.table.files, files, _REMOVED, low, high)
