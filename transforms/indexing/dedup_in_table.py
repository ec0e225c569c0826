"""Deletes duplicates from an index whose files are in the table, in one commit.

The journal notes that the writer no longer holds these pages, and which text each had. So the next
runs of ``index`` do not bring a page back until it has a new text.
"""

from collections.abc import Callable, Iterator
from operator import methodcaller

import polars as pl

from ...io.indexing.index_run import IndexRun, plan_run
from ...io.indexing.index_writer import StoredIndex
from ...io.indexing.writer_kinds import open_writer
from ...io.snapshots.commit import CommitTerms, commit
from ...io.snapshots.operations import begin, new_id
from ...io.tablets.ranges import Range
from ...io.tablets.resolve import Resolution, Resolved, Resolver
from ...io.tablets.tablets import tablets
from ...io.tablets.written import Written
from ...policy.components.index_routes import IndexRoutes, WriterRule
from ...policy.components.index_schema import HELD, REFUSED
from ...web.urls.row_keys import to_key
from .writer_places import places


def dedup_in_table(
    address: str,
    index: str,
    routes: IndexRoutes,
    rule: WriterRule,
    losers: Callable[[StoredIndex], tuple[int, pl.DataFrame]],
) -> dict[str, int]:
    """Deletes duplicates of one writer; returns ``documents`` and ``deleted``.

    Args:
        address: Address of the table.
        index: Name of the index.
        routes: All its writers.
        rule: The writer, whose files are in the table.
        losers: Returns the number of documents of an index, and those to delete.

    Raises:
        ConflictError: Another operation has written the index in the meantime.
        UserError: Other writers have written the index.
    """
    operation = begin(address, "solrdedup", f"{new_id()}.solrdedup")
    task = plan_run(operation, index, routes, cleans=True)
    writer = open_writer(rule, task.target(rule))
    assert isinstance(writer, StoredIndex)
    with operation.reading():
        documents, lost = losers(writer)
        counts = {"documents": documents, "deleted": len(lost)}
        if not len(lost):
            return counts
        done = writer.remove(lost)
        keys = pl.Series("key", [to_key(url) for url in lost.get_column("id")], pl.String)
        journal = list(_journal(task, rule.name, keys))
    shards = Written(task.component(writer.component), done.files, counts=counts)
    reads = frozenset({*map(task.component, ("indexed", "index_runs")), "blocklist"})
    commit(operation, [shards, *journal, task.record(places(task))], CommitTerms(reads=reads))
    return counts


def _journal(task: IndexRun, writer: str, keys: pl.Series) -> Iterator[Written]:
    operation, name = task.operation, task.component("indexed")
    table, wanted = operation.table, methodcaller("filter", pl.col("key").is_in(keys.implode()))
    for tablet in tablets(operation.files(name)):
        found = table.read(name, [tablet], ["key"], wanted)
        if len(found):
            part, order = Range(None, None, tablet), operation.snapshot + 1
            how = Resolution(name, part, _without(writer, task.version), order=order)
            yield from table.resolve(how, found)


def _without(writer: str, time: int) -> Resolver:
    """Returns the resolver that removes a writer from rows of a journal."""

    def resolve(rows: pl.DataFrame, changes: pl.DataFrame) -> Resolved:
        hit = pl.col("key").is_in(changes.get_column("key").implode())
        left = pl.col("writers").cast(pl.List(pl.String)).list.set_difference([writer])
        state = pl.when(left.list.len() > 0).then(HELD).otherwise(REFUSED)
        changed = rows.with_columns(
            pl.when(hit).then(value).otherwise(name).cast(rows.schema[name]).alias(name)
            for name, value in {"writers": left, "state": state, "time": pl.lit(time)}.items()
        )
        return Resolved(changed)

    return resolve
