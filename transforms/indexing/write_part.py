"""Writes a part of an index: the pages of one file of documents, or deletes.

Reads pages in frames, decides about them, and sends them to the writers; see ``run_receipts``.
"""

import functools
import operator
from collections import Counter
from collections.abc import Mapping

import polars as pl

from ...io.batches.batches import live_file
from ...io.indexing.index_page_frames import PageNeeds, page_frames
from ...io.indexing.index_run import IndexRun
from ...io.indexing.index_writer import NO_DOCUMENTS, REFUSED_DOCUMENTS, WriteResult
from ...io.indexing.run_receipts import PartDone
from ...io.tablets.resolve import write_bases
from ...io.tablets.written import Written
from ...policy.base.key_columns import from_keys
from ...policy.components.index_schema import (
    ADD,
    DEAD_LETTERS,
    DELETE,
    INDEXED,
    NOTHING,
    IndexPageFacts,
)
from ...policy.components.schema import empty
from ...policy.indexing.index_decisions import (
    WITHOUT_ROW,
    counts_of,
    forget_unsent_pages,
    journal_rows,
)
from ...policy.indexing.index_documents import DocumentRules
from ...policy.indexing.writer_documents import (
    decide_writer_documents,
    letters_of,
    mapped_fields,
    select_rows,
)
from ...web.base.columns import repeat_value
from .embedded_pages import EMBEDDED_KIND, PageEmbedder

_DELETES_AT_ONCE = 5_000


def write_part(
    index_run: IndexRun, name: str, rows: pl.DataFrame, rules: DocumentRules, embedding: str = ""
) -> PartDone:
    """Writes a part, or returns what an earlier attempt has done.

    Args:
        index_run: The run.
        name: Path of a file of documents, as in rows of the state, or ``deletes/NUMBER``.
        rows: Rows as in ``INDEX_CANDIDATES``.
        rules: How pages become documents.
        embedding: Plug-in that makes vectors of pages; empty: none.

    Raises:
        ConflictError: Another run of the index has committed in the meantime.
    """

    def work(part: str) -> PartDone:
        return _PartWriter(index_run, part, rows.sort("key"), embedding).write(name, rules)

    return index_run.receipts.do_part_once(name, rows.get_column("key"), work)


class _PartWriter:
    """Writes a part: each page is read, decided and sent once."""

    def __init__(self, index_run: IndexRun, part: str, rows: pl.DataFrame, embedding: str) -> None:
        self._index_run, self._rows = index_run, rows
        self._writers = index_run.writers(part)
        self._results: dict[str, list[WriteResult]] = {name: [] for name in self._writers}
        self._counts: Counter[str] = Counter()
        self._embedder = PageEmbedder(index_run, embedding) if embedding else None
        # Rows that were sent, and for each writer whether it got them.
        self._sent: list[tuple[pl.DataFrame, dict[str, pl.Series]]] = []

    def write(self, name: str, rules: DocumentRules) -> PartDone:
        if name.startswith("deletes/"):
            self._counts.update(counts_of(self._rows))
            self._delete(self._rows)
        else:
            self._add(name, rules)
        for kind, writer in self._writers.items():
            self._results[kind].append(writer.close())
        if self._embedder is not None:
            self._embedder.count_failures(self._counts)
        return self._part_done()

    def _add(self, name: str, rules: DocumentRules) -> None:
        table, operation = self._index_run.operation.table, self._index_run.operation
        file = live_file(table, operation.manifest(), name)
        if file is None:  # compact has dropped it
            self._skip(self._rows)
            return
        blocks = self._embedder is not None
        needs = PageNeeds(rules.columns, rules.options.max_inlinks, blocks)
        seen = [self._rows.get_column("key").clear()]
        for facts in page_frames(operation, file, self._rows, needs, self._counts):
            seen.append(facts.candidate_rows.get_column("key"))
            self._add_pages(facts, rules)
        self._skip(self._rows.filter(~pl.col("key").is_in(pl.concat(seen).implode())))

    def _skip(self, rows: pl.DataFrame) -> None:
        """Leaves out pages whose document the table does not have any more."""
        missing = rows.with_columns(action=pl.lit(NOTHING), reason=pl.lit("skipped_no_document"))
        self._counts.update(counts_of(missing))
        if self._index_run.full:
            self._delete(forget_unsent_pages(missing).filter(pl.col("action") == DELETE))

    def _add_pages(self, facts: IndexPageFacts, rules: DocumentRules) -> None:
        decided, documents, shares = decide_writer_documents(facts, rules, self._index_run.routes)
        if self._index_run.full:
            decided = forget_unsent_pages(decided)
        self._counts.update(counts_of(decided))
        self._delete(decided.filter(pl.col("action") == DELETE))
        if len(documents):
            is_added = decided.get_column("action") == ADD
            vectors = None
            if self._embedder is not None:
                vectors = self._embedder.embed_pages(select_rows(facts.pages, is_added), rules)
            self._send(select_rows(decided, is_added), documents, shares, vectors)

    def _send(
        self,
        decided: pl.DataFrame,
        documents: pl.DataFrame,
        shares: dict[str, pl.Series],
        vectors: pl.Series | None,
    ) -> None:
        ids, earlier_writers = documents.get_column("id"), decided.get_column("writers")
        for rule in self._index_run.routes.writers:
            share = shares[rule.name]
            # A document that another writer gets now.
            moved = ~share & earlier_writers.list.contains(rule.name) & (not self._index_run.full)
            writer_documents = mapped_fields(select_rows(documents, share), rule.mapping)
            if vectors is not None and rule.kind == EMBEDDED_KIND:
                writer_documents = writer_documents.with_columns(vectors.filter(share))
            if len(writer_documents) or moved.any():
                self._write(rule.name, writer_documents, ids.filter(moved))
        if nobody := int((~_any_of(shares, len(decided))).sum()):
            self._counts["skipped_no_route"] += nobody
        self._sent.append((decided.with_columns(id=ids), shares))

    def _delete(self, decided: pl.DataFrame) -> None:
        if not len(decided):
            return
        ids, holders = from_keys(decided.get_column("key")), decided.get_column("writers")
        unlisted = decided.get_column("reason").is_in(WITHOUT_ROW)
        for name in self._writers:
            held_pages = holders.list.contains(name)
            if self._writers[name].component:  # in the table, a purge or a lost commit undid it
                held_pages &= ~unlisted
            for deleted_ids in ids.filter(held_pages).to_frame().iter_slices(_DELETES_AT_ONCE):
                self._write(name, NO_DOCUMENTS, deleted_ids.to_series())
        listed_rows = decided.filter(~unlisted)
        rows = listed_rows.with_columns(id=ids.filter(~unlisted))
        self._sent.append((rows, dict.fromkeys(self._writers, _any_of({}, len(listed_rows)))))

    def _write(self, name: str, documents: pl.DataFrame, deletes: pl.Series) -> None:
        self._results[name].append(self._writers[name].write(documents, deletes))

    def _part_done(self) -> PartDone:
        version, index_run = self._index_run.version, self._index_run
        journal, written, letters = [empty(INDEXED)], [], [empty(DEAD_LETTERS)]
        refused = {name: _refused_documents(results) for name, results in self._results.items()}
        for rows, shares in self._sent:
            ids = rows.get_column("id")
            accepted = {
                name: share & ~ids.is_in(refused[name].get_column("id").implode())
                for name, share in shares.items()
            }
            journal.append(journal_rows(rows, self._holders(rows, shares, accepted), version))
            letters += [letters_of(rows, refused[name], name, version) for name in shares]
            is_added = rows.get_column("action") == ADD
            if number := int((is_added & _any_of(accepted, len(rows))).sum()):
                self._counts["indexed"] += number
        for name, results in self._results.items():
            component = self._writers[name].component
            files = tuple(file for result in results for file in result.files)
            if files:
                written.append(Written(index_run.component(component), files))
            self._count(name, results)
        if len(dead := pl.concat(letters)):
            component, root = index_run.component("dead_letters"), index_run.operation.table.files
            files = write_bases(root, component, [dead.sort("key")])
            written.append(Written(component, files))
        written.append(Written(counts={k: n for k, n in self._counts.items() if n}))
        return PartDone(pl.concat(journal), tuple(written))

    def _holders(
        self, rows: pl.DataFrame, shares: dict[str, pl.Series], accepted: dict[str, pl.Series]
    ) -> dict[str, pl.Series]:
        """Returns for each writer which rows it holds: also those whose new text it refused.

        Then its index shows the text before, until a later run replaces or deletes it.
        """
        if self._index_run.full:
            return accepted
        earlier_writers = rows.get_column("writers")
        return {
            name: of | (shares[name] & earlier_writers.list.contains(name))
            for name, of in accepted.items()
        }

    def _count(self, name: str, results: list[WriteResult]) -> None:
        """Counts what writers report: by writer, if there are several."""
        several = len(self._writers) > 1
        for result in results:
            for reason, number in result.counts.items():
                if several:
                    self._counts[f"{name}/{reason}"] += number
                elif reason not in ("added", "deleted"):  # these are counted as pages
                    self._counts[reason] += number


def _any_of(chosen: Mapping[str, pl.Series], number: int) -> pl.Series:
    """Returns for each of some rows whether any writer has chosen it."""
    return functools.reduce(operator.or_, chosen.values(), repeat_value(False, number, pl.Boolean))


def _refused_documents(results: list[WriteResult]) -> pl.DataFrame:
    parts = [
        result.refused.select(REFUSED_DOCUMENTS.names()).cast(REFUSED_DOCUMENTS)
        for result in results
    ]
    return pl.concat([pl.DataFrame(schema=REFUSED_DOCUMENTS), *parts])
