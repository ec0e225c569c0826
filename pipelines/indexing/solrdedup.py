"""solrdedup: deletes duplicates from an index, by what the index has stored.

``dedup`` marks duplicates in the table, and ``index`` deletes them. This command is for an index
that has documents of several tables, or of other programs: of documents with one URL it keeps the
newest, and of those with equal digests one. It holds id, URL and digest of all documents in memory.
The embedded index is in the table, so deletes there are a snapshot of their own.
"""

import dataclasses
import functools
import json
from collections import Counter

import polars as pl

from ...io.indexing.index_writer import IndexTarget, StoredIndex
from ...io.indexing.writer_kinds import open_writer
from ...io.table.opening import open_table
from ...policy.dedup.delete_duplicates import Keep, delete_duplicates
from ...policy.indexing.index_table_options import IndexWriterOptions
from ...transforms.indexing.dedup_in_table import dedup_in_table
from ...transforms.indexing.index_making import chosen_writers
from ...web.base.clock import now_ms
from ...web.base.errors import UsageError
from ...web.base.options import option, shared_option
from ...web.indexing.stored_documents import STORED
from ..base.command import DONE, TABLE, Invocation, configuration

ARGUMENTS = (TABLE,)
_KEEP = {
    "highest_score_newest": Keep.HIGHEST_SCORE_NEWEST,
    "highest_score": Keep.HIGHEST_SCORE,
    "shortest_url": Keep.SHORTEST_URL,
}


@dataclasses.dataclass(frozen=True)
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
        if index.component:
            losers = functools.partial(_losers, keep=keep)
            counts.update(dedup_in_table(address, options.index, routes, rule, losers))
        else:
            counts += _dedup(index, keep)
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
