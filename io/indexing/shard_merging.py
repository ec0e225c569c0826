"""Makes new shards of the documents that older ones store: merges shards, and purges them."""

import dataclasses
import json
from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl
import pyarrow as pa
import tantivy

from ...policy.components.schema import TEXT
from ...web.urls.row_keys import to_key
from ..storage.places import Folder
from ..table.edits import CountedEdit, Edit
from ..tablets.checksums import verify_file
from ..tablets.file_lists import DataFile
from ..tablets.written import Written
from .page_vectors import VECTORS_FIELD, PackedVectors
from .shard_documents import TEXT_FIELDS, restored_rows
from .shards import MOST_DOCUMENTS, ShardBuilder, shard_keys, with_orders
from .unpacked_index import open_shard, superseded_keys

MOST_SHARDS = 8  # that are small; more are merged
LARGE_BYTES = 512 << 20  # a shard of this size is merged only by ``compact --full``
_AT_ONCE = 500  # documents
_NONE = pl.Series([], dtype=pl.String)
# Texts of a document that a purge searches: field, position in its list, text.
_LEAF = pa.struct([("field", TEXT), ("at", pa.int32()), ("text", TEXT)])
_LEAVES = pa.schema([("key", TEXT), ("leaves", pa.list_(_LEAF))])


def plan_merges(files: Sequence[DataFile], *, full: bool = False) -> list[tuple[DataFile, ...]]:
    """Returns groups of shards to merge, each in order.

    Args:
        files: The live shards of an index.
        full: Whether to merge all of them.

    >>> shards = [DataFile(f"{n}", 1, 10, order=n) for n in range(9)]
    >>> [len(group) for group in plan_merges(shards)], plan_merges(shards[:8])
    ([9], [])
    """
    ordered = sorted(files, key=lambda file: (file.order, file.path))
    if full:
        return [tuple(ordered)] if len(ordered) > 1 else []
    groups: list[list[DataFile]] = [[]]
    for file in ordered:
        if file.bytes >= LARGE_BYTES:
            groups.append([])
        elif sum(one.bytes for one in groups[-1]) + file.bytes > LARGE_BYTES:
            groups.append([file])
        else:
            groups[-1].append(file)
    return [_newest(group) for group in groups if len(group) > MOST_SHARDS]


def _newest(group: Sequence[DataFile]) -> tuple[DataFile, ...]:
    """Returns the newest shards of a group; older ones stay if they are much larger than these."""
    size = 0
    for number, file in enumerate(reversed(group)):
        start = len(group) - number
        if start < MOST_SHARDS and number > 1 and file.bytes > 2 * size:
            return tuple(group[start:])
        size += file.bytes
    return tuple(group)


def merge_shards(
    root: Folder, component: str, group: Sequence[DataFile], shards: Sequence[DataFile]
) -> Written:
    """Merges shards; documents that a newer shard names, and deletes of nothing, are left out.

    Args:
        root: The table's folder.
        component: The shards' component.
        group: The shards to merge.
        shards: All live shards of the index.
    """
    for file in group:
        verify_file(root, file)
    keys = {file.path: shard_keys(root / file.path) for file in shards}
    superseded = superseded_keys([*keys.values()], [file.order for file in shards])
    superseded_by_path = dict(zip(keys, superseded, strict=True))
    order, merged_paths = max(file.order for file in group), {file.path for file in group}
    hides = {path: pl.col("key").is_in(superseded_by_path[path].implode()) for path in merged_paths}
    rows = pl.concat(
        [keys[path].with_columns(hides=hides[path] | pl.col("deletes")) for path in merged_paths]
    )
    older = [f.path for f in shards if f.path not in merged_paths and f.order < order]
    older_keys = pl.concat(
        [rows.select("key").clear(), *(keys[path].select("key") for path in older)]
    )
    # What the merged shards have held and no longer hold also hides what older shards hold.
    hidden_keys = (
        rows.filter("hides").select("key").unique()
        .join(older_keys, on="key", how="semi")
        .join(rows.filter(~pl.col("hides")), on="key", how="anti")
        .get_column("key")
    )  # fmt: skip
    documents = (
        document_rows
        for file in group
        for document_rows in stored_documents(root, file, superseded_by_path[file.path])
    )
    files = _build_shards(root, component, documents, hidden_keys, order)
    counts = {"shards/merged": len(group), "shards/written": len(files)}
    return Written(component, files, tuple(merged_paths), counts, tidies=True)


def _build_shards(
    root: Folder, component: str, documents: Iterator[pl.DataFrame], deleted: pl.Series, order: int
) -> tuple[DataFile, ...]:
    files, builder = [], ShardBuilder()
    try:
        builder.delete(deleted)
        for rows in documents:
            builder.add(rows)
            if builder.documents >= MOST_DOCUMENTS:
                files.append(builder.pack(root, component, order))
                builder.close()
                builder = ShardBuilder()
        if len(builder):
            files.append(builder.pack(root, component, order))
    finally:
        builder.close()
    return tuple(files)


def stored_documents(
    root: Folder, file: DataFile, gone: pl.Series = _NONE
) -> Iterator[pl.DataFrame]:
    """Yields the documents of a shard as SEARCHED rows with their ``key``, without some."""
    with open_shard(root, file, gone) as opened:
        if opened is None:
            return
        searcher, vectors = opened
        matches = searcher.search(tantivy.Query.all_query(), max(1, searcher.num_docs), count=False)
        places = [place for _, place in matches.hits]
        for start in range(0, len(places), _AT_ONCE):
            stored = [
                _stored_fields(searcher.doc(place), vectors)
                for place in places[start : start + _AT_ONCE]
            ]
            yield _with_keys(restored_rows(stored))


def visible_documents(root: Folder, files: Sequence[DataFile]) -> Iterator[pl.DataFrame]:
    """Yields ``id`` and ``document`` (JSON) of the documents that searches find in shards."""
    ordered = with_orders(root, files)
    keys = [shard_keys(root / file.path) for file in ordered]
    gone = superseded_keys(keys, [file.order for file in ordered])
    for file, without in zip(ordered, gone, strict=True):
        for rows in stored_documents(root, file, without):
            yield rows.select("id", "document")


def _stored_fields(document: Any, vectors: PackedVectors | None) -> dict[str, Any]:
    texts = {
        name: [text.decode() for text in document.get_all(f"{name}_text")] for name in TEXT_FIELDS
    }
    one = {name: texts[name][0] for name in TEXT_FIELDS[:2] if texts[name]}
    stored_document = document.get_first("document").decode()
    fields = {**one, "anchor": texts["anchor"] or None, "document": stored_document}
    if vectors is not None:
        fields[VECTORS_FIELD] = vectors.of(json.loads(stored_document)["id"])
    return fields


def edit_shard(root: Folder, component: str, file: DataFile, edit: Edit) -> Iterator[Written]:
    """Writes a new shard with what an edit leaves of one, if it changes something.

    It is written even if nothing is left, so that its list names the file that it replaces. Other
    documents keep their texts.
    """
    (file,) = with_orders(root, [file])
    keys = shard_keys(root / file.path)
    nothing = pa.nulls(len(keys), _LEAVES.field("leaves").type)
    table = pa.table([keys["key"].to_arrow().cast(TEXT), nothing], schema=_LEAVES)
    remaining_rows, removed, _ = edit(table, component)
    deleted = keys.filter("deletes").join(
        pl.DataFrame({"key": remaining_rows["key"].to_pylist()}, {"key": pl.String}),
        on="key",
        how="semi",
    )
    # To read the documents costs much less than to index them again.
    if not removed and not any(
        _edit_documents(rows, component, edit)[1] for rows in stored_documents(root, file)
    ):
        return
    counted = CountedEdit(edit, component)
    counted.rows = removed
    with ShardBuilder() as builder:
        builder.delete(deleted.get_column("key"))
        for rows in stored_documents(root, file):
            rows, removed_texts = _edit_documents(rows, component, edit)
            counted.mentions += removed_texts
            builder.add(rows)
        shard = builder.pack(root, component, file.order)
    shard = dataclasses.replace(shard, formerly=file.formerly or file.path)
    yield Written(component, (shard,), (file.path,), counted.counts())


def _edit_documents(rows: pl.DataFrame, component: str, edit: Edit) -> tuple[pl.DataFrame, int]:
    """Returns documents as an edit leaves them, and the number of removed texts."""
    parsed = {key: json.loads(text) for key, text in rows.select("key", "document").iter_rows()}
    table = pa.table(
        {"key": list(parsed), "leaves": [_leaves(fields) for fields in parsed.values()]},
        schema=_LEAVES,
    )
    remaining_rows, removed, mentions = edit(table, component)
    if not removed and not mentions:
        return rows, 0
    remaining_leaves = dict(
        zip(remaining_rows["key"].to_pylist(), remaining_rows["leaves"].to_pylist(), strict=True)
    )
    stored = []
    for row in rows.to_dicts():
        if row["key"] in remaining_leaves:
            fields = _with_leaves(parsed[row["key"]], remaining_leaves[row["key"]])
            stored.append({**row, "document": json.dumps(fields, ensure_ascii=False)})
    return _with_keys(restored_rows(stored)), mentions


def _with_keys(rows: pl.DataFrame) -> pl.DataFrame:
    keys = [to_key(url) for url in rows.get_column("id")]
    return rows.with_columns(pl.Series("key", keys, pl.String))


def _leaves(fields: dict[str, Any]) -> list[dict[str, Any]]:
    leaves = []
    for name, value in fields.items():
        if name == "id":
            continue  # it is the key
        for at, text in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(text, str):
                leaves.append({"field": name, "at": at, "text": text})
    return leaves


def _with_leaves(fields: dict[str, Any], leaves: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns fields with only those texts that are left."""
    remaining = {(leaf["field"], leaf["at"]) for leaf in leaves}
    edited: dict[str, Any] = {}
    for name, value in fields.items():
        if name == "id":
            edited[name] = value
        elif isinstance(value, list):
            items = [
                v for at, v in enumerate(value) if not isinstance(v, str) or (name, at) in remaining
            ]
            edited |= {name: items} if items else {}
        elif not isinstance(value, str) or (name, 0) in remaining:
            edited[name] = value
    return edited
