"""solrdedup: deletes duplicates from an index, by what the index has stored.

``dedup`` marks duplicates in the table, and ``index`` deletes them. This command is for an index
that has documents of several tables, or of other programs: of documents with one URL it keeps the
newest, and of those with equal digests one. It holds id, URL and digest of all documents in memory.
"""

import dataclasses
import json
from collections import Counter

import polars as pl

from ...io.index.index_writer import IndexTarget, open_writer
from ...io.index.stored_index import StoredIndex
from ...io.table.opening import open_table
from ...policy.dedup.delete_duplicates import Keep, delete_duplicates
from ...policy.indexing.index_writer_options import IndexWriterOptions, routes_of
from ...policy.search_servers.stored_documents import STORED
from ...web.base.clock import now_ms
from ...web.base.errors import UsageError
from ...web.base.options import also, option
from ..command_line.command import DONE, NOTHING_TO_DO, TABLE, Invocation, configuration

ARGUMENTS = (TABLE,)
_KEEP = {
    "highest_score_newest": Keep.HIGHEST_SCORE_NEWEST,
    "highest_score": Keep.HIGHEST_SCORE,
    "shortest_url": Keep.SHORTEST_URL,
}


@dataclasses.dataclass(frozen=True)
class Options(IndexWriterOptions):
    """Options of solrdedup."""

    writer: str = also(IndexWriterOptions, "writer", default="solr")
    keep: str = option(
        "highest_score_newest",
        "Which of the documents with equal digests stays: that of the highest score, and then the "
        "newest, as in Nutch 2; that of the highest score; or that of the shortest URL.",
        choices=tuple(_KEEP),
        group="index",
    )


def run(invocation: Invocation) -> int:
    options: Options = invocation.options
    with configuration():
        rules = routes_of(options).writers
    root, counts = open_table(str(invocation.table)), Counter[str]()
    for rule in rules:
        target = IndexTarget(options.index, rule.name, rule.parameters, root, now_ms(), "")
        index = open_writer(rule, target)
        if not isinstance(index, StoredIndex):
            raise UsageError(f"solrdedup cannot read an index of kind {rule.kind!r}")
        counts += _dedup(index, _KEEP[options.keep])
    if invocation.format == "json":
        print(json.dumps(counts))
    else:
        print(f"{counts['documents']:,} documents, {counts['deleted']:,} duplicates deleted")
        if changed := counts["newer"]:
            print(f"{changed:,} kept, since they changed in the meantime")
    return DONE if counts["deleted"] else NOTHING_TO_DO


def _dedup(index: StoredIndex, keep: Keep) -> Counter[str]:
    documents = pl.concat([pl.DataFrame(schema=STORED), *index.stored()]).sort("id")
    (losers,) = delete_duplicates([documents], now_ms(), keep)
    counts = Counter({"documents": len(documents), "deleted": 0})
    if len(losers):
        counts.update(index.remove(documents[losers]).counts)
    return counts
