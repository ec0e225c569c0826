"""Shards of an index for tests: written by the writer itself, and committed."""

import polars as pl

from nutbeam.io.indexing.index_writer import IndexTarget
from nutbeam.io.indexing.tantivy_writer import TantivyWriter
from nutbeam.io.indexing.unpacked_index import unpack_index
from nutbeam.io.snapshots.commit import commit
from nutbeam.io.snapshots.operations import begin
from nutbeam.io.tablets.written import Written
from nutbeam.pipelines.searching.index_search import ShardSearch
from nutbeam.policy.components.index_schema import index_component
from nutbeam.policy.searching.search_query import parse_search


def page(address, title="", text="", **fields):
    return {"id": address, "title": title or None, "content": text, "lang": "en", **fields}


def write_shards(root, pages, deletes=(), version=1, index="main", at_once=1_000):
    """Writes documents and deletes as one part of an operation does; returns the files."""
    writer = TantivyWriter(IndexTarget(index, "main", {}, root, version, f"op-{version}"))
    rows = pl.DataFrame(pages, infer_schema_length=None) if pages else pl.DataFrame({"id": []})
    rows = rows.with_columns(pl.col("id").cast(pl.String))
    gone = pl.Series(list(deletes), dtype=pl.String)
    files = []
    for start in range(0, max(1, len(rows)), at_once):
        files += writer.write(rows[start : start + at_once], gone if not start else gone[:0]).files
    return [*files, *writer.close().files]


def commit_shards(table, files, operation, index="main", replaced=()):
    """Commits shards as a job does; returns the manifest."""
    done = begin(str(table), "index", f"{operation}.index")
    return commit(done, [Written(index_component(index, "shards"), tuple(files), tuple(replaced))])


def searched(root, files, cache):
    return ShardSearch(unpack_index(root, files, cache))


def urls(search, query, top_n=10):
    return [hit.url for hit in search.search(parse_search(query), top_n).hits]


def held(search):
    """Returns all documents: title by URL."""
    every = search.search(parse_search("lang:en"), 10_000) if search.documents else None
    return {hit.url: hit.title for hit in every.hits} if every else {}
