"""solrdedup: deletes duplicates from an index, by what the index has stored.

``dedup`` marks duplicates in the table, and ``index`` deletes them. This command is for an index
that has documents of several tables, or of other programs: of documents with one URL it keeps the
newest, and of those with equal digests one. It holds id, URL and digest of all documents in memory.
The embedded index is in the table, so deletes there are a snapshot of their own. Its journal notes
that the writer no longer holds these pages, and which text each had. So the next runs of ``index``
do not bring a page back until it has a new text.
"""

import json
from collections import Counter
from collections.abc import Iterator
from operator import methodcaller

import polars as pl

from ...io.indexing.index_run import IndexRun, plan_run
from ...io.indexing.index_writer import IndexTarget, StoredIndex
from ...io.indexing.writer_kinds import open_writer
from ...io.snapshots.commit import CommitTerms, commit
from ...io.snapshots.operations import begin, new_id
from ...io.table.opening import open_table
from ...io.tablets.ranges import Range
from ...io.tablets.resolve import Resolution, Resolved, Resolver
from ...io.tablets.tablets import tablets
from ...io.tablets.written import Written
from ...policy.components.index_routes import WriterRule
from ...policy.components.index_schema import HELD, REFUSED
from ...policy.dedup.delete_duplicates import Keep, delete_duplicates
from ...policy.indexing.index_options import IndexWriterOptions
from ...transforms.indexing.index_setup import chosen_writers
from ...transforms.indexing.written_indexes import writer_places
from ...web.base.clock import now_ms
from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError
from ...web.base.options import option, shared_option
from ...web.indexing.stored_documents import STORED
from ...web.urls.row_keys import to_key
from ..base.command import DONE, TABLE, Invocation, configuration

ARGUMENTS = (TABLE,)
_KEEP = {
    "highest_score_newest": Keep.HIGHEST_SCORE_NEWEST,
    "highest_score": Keep.HIGHEST_SCORE,
    "shortest_url": Keep.SHORTEST_URL,
}


@dataclass(frozen=True)
class Options(IndexWriterOptions):
    """Options of solrdedup."""

    writer: str = shared_option(IndexWriterOptions, "writer", default="solr")
    keep: str = option(
        "highest_score_newest",
        "Which of the documents with equal digests stays: the one with the highest score (of equal "
        "scores the newest, as in Nutch 2), the one with the highest score, or the one with the "
        "shortest URL.",
        choices=tuple(_KEEP),
        group="index",
    )


def run(invocation: Invocation) -> int:
    options: Options = invocation.options
    with configuration():
        routes = chosen_writers(options)
    address, counts, keep = str(invocation.table), Counter[str](), _KEEP[options.keep]
    for rule in routes.writers:
        target = IndexTarget(
            options.index, rule.name, rule.parameters, open_table(address), now_ms(), ""
        )
        index = open_writer(rule, target)
        if not isinstance(index, StoredIndex):
            raise UsageError(f"solrdedup cannot read an index of kind {rule.kind!r}")
        if not index.component:
            counts.update(_dedup(index, keep))
            continue
        operation = begin(address, "solrdedup", f"{new_id()}.solrdedup")
        index_run = plan_run(operation, options.index, routes, cleans=True)
        counts.update(_dedup_in_table(index_run, rule, keep))
    if invocation.format == "json":
        print(json.dumps(counts))
    else:
        print(f"{counts['documents']:,} documents, {counts['deleted']:,} duplicates deleted")
        if changed := counts["newer"]:
            print(f"{changed:,} kept, since they changed in the meantime")
    return DONE


def _dedup(index: StoredIndex, keep: Keep) -> Counter[str]:
    documents, losers = _losers(index, keep)
    counts = Counter({"documents": documents, "deleted": 0})
    if len(losers):
        counts.update(index.remove(losers).counts)
    return counts


def _losers(index: StoredIndex, keep: Keep) -> tuple[int, pl.DataFrame]:
    """Returns the number of documents of an index, and the STORED rows of those to delete."""
    documents = pl.concat([pl.DataFrame(schema=STORED), *index.stored_documents()])
    if not index.component:  # a server has no order; shards have, and the first one seen stays
        documents = documents.sort("id")
    (losers,) = delete_duplicates([documents], now_ms(), keep)
    return len(documents), documents[losers]


def _dedup_in_table(index_run: IndexRun, rule: WriterRule, keep: Keep) -> Counter[str]:
    """Deletes duplicates of a writer whose files are in the table, in one commit.

    Raises:
        ConflictError: Another operation has written the index in the meantime.
    """
    writer = index_run.open_writer(rule)
    assert isinstance(writer, StoredIndex)
    with index_run.operation.reading():
        documents, losers = _losers(writer, keep)
        counts = Counter({"documents": documents, "deleted": len(losers)})
        if not len(losers):
            return counts
        done = writer.remove(losers)
        keys = pl.Series("key", [to_key(url) for url in losers.get_column("id")], pl.String)
        journal = _take_from_journal(index_run, rule.name, keys)
        shards = Written(index_run.component(writer.component), done.files, counts=counts)
        written = [shards, *journal, index_run.record(writer_places(index_run))]
    commit(index_run.operation, written, CommitTerms(reads=index_run.reads))
    return counts


def _take_from_journal(index_run: IndexRun, writer: str, keys: pl.Series) -> Iterator[Written]:
    """Yields files of the journal in which a writer does not hold some pages."""
    operation, name = index_run.operation, index_run.component("indexed")
    table, wanted = operation.table, methodcaller("filter", pl.col("key").is_in(keys.implode()))
    for tablet in tablets(operation.files(name)):
        key_rows = table.read(name, [tablet], ["key"], wanted)
        if len(key_rows):
            part, order = Range(None, None, tablet), operation.snapshot + 1
            how = Resolution(name, part, _resolver_without(writer, index_run.version), order=order)
            yield from table.resolve(how, key_rows)


def _resolver_without(writer: str, time: int) -> Resolver:
    """Returns the resolver that removes a writer from rows of a journal."""

    def resolve(rows: pl.DataFrame, changes: pl.DataFrame) -> Resolved:
        hit = pl.col("key").is_in(changes.get_column("key").implode())
        others = pl.col("writers").cast(pl.List(pl.String)).list.set_difference([writer])
        state = pl.when(others.list.len() > 0).then(HELD).otherwise(REFUSED)
        changed = rows.with_columns(
            pl.when(hit).then(value).otherwise(name).cast(rows.schema[name]).alias(name)
            for name, value in {"writers": others, "state": state, "time": pl.lit(time)}.items()
        )
        return Resolved(changed)

    return resolve
