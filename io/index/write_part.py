"""Writes a part of an index: the pages of one file of documents, or deletes.

A part that is done leaves a receipt, created exclusively under its operation. So an operation that
is started again does not send a part twice.
"""

import dataclasses
import functools
import hashlib
import io
import json
import operator
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import polars as pl

from ...policy.components.index_schema import DEAD_LETTERS, INDEXED, index_component
from ...policy.components.schema import conform, empty, to_frame
from ...policy.indexing.index_changes import (
    WITHOUT_ROW,
    counts_of,
    decide_by_documents,
    forget_unsent_pages,
    journal_rows,
)
from ...policy.indexing.index_decision import ADD, DELETE, NOTHING, IndexDecisionOptions
from ...policy.indexing.index_filter import IndexFilter
from ...policy.indexing.index_filters import documents_of_pages
from ...policy.indexing.index_options import IndexFilterOptions
from ...policy.indexing.index_pages import DROPPED
from ...policy.routing.index_routes import IndexRoutes, mapped_fields
from ...policy.scoring.scorings import Scorings
from ...web.base.columns import filled
from ...web.base.errors import UserError
from ...web.base.safe_json import read_json
from ...web.urls.key_columns import from_keys
from ..batches.batches import live_file
from ..disk.record_checks import check_number
from ..disk.table_names import checked_name
from ..snapshots.commit import check_can_commit
from ..snapshots.operations import Operation
from ..storage.file_errors import first_line
from ..storage.files import LARGEST_BYTES, create_exclusive, read_if_there
from ..storage.parquet_files import collect, scan
from ..storage.places import Place
from ..tablets.file_lists import file_of_record, file_record
from ..tablets.resolve import write_bases
from ..tablets.written import Written
from ..writers.index_writer import REFUSED_DOCUMENTS, WriteResult
from .dead_letters import letter_keys
from .decided_candidates import keys_to_bytes
from .index_run import IndexRun
from .page_frames import Beside, page_frames
from .receipts import INTENT

_DELETES_AT_ONCE = 5_000
_NO_DOCUMENTS = pl.DataFrame(schema={"id": pl.String})


@dataclasses.dataclass(frozen=True)
class DocumentRules:
    """The filters, scorings and rules that turn pages into documents.

    Attributes:
        filters: The index filters, in order.
        filter_options: Their options.
        scorings: Scorings that compute the boost.
        rules: The rules of the decision.
        max_inlinks: How many inlinks of a page are read.
    """

    filters: tuple[IndexFilter, ...]
    filter_options: IndexFilterOptions
    scorings: Scorings
    rules: IndexDecisionOptions
    max_inlinks: int


@dataclasses.dataclass(frozen=True)
class PartDone:
    """What a part has done.

    Attributes:
        journal: Changed rows of the journal.
        written: Files, and counts.
    """

    journal: pl.DataFrame
    written: tuple[Written, ...]


def write_part(task: IndexRun, name: str, rows: pl.DataFrame, making: DocumentRules) -> PartDone:
    """Writes a part, or returns what an earlier attempt has done.

    Args:
        task: The run.
        name: Path of a file of documents, as in rows of the state, or ``deletes/NUMBER``.
        rows: Rows as in ``CANDIDATES``.
        making: How pages become documents.

    Raises:
        ConflictError: Another run of the index has committed in the meantime.
    """
    part = hashlib.sha256(name.encode()).hexdigest()[:16]
    receipt = task.receipts / f"{part}.receipt"
    known = read_if_there(receipt, LARGEST_BYTES)
    if known is None:
        # A rebuild of hours ends here, and not at its commit, when another run was faster.
        check_can_commit(task.operation, task.reads)
        # If this run never commits, the next one deletes what must not stay.
        create_exclusive(task.receipts / f"{part}{INTENT}", keys_to_bytes(rows.get_column("key")))
        done = _Part(task, part, rows.sort("key")).write(name, making)
        if create_exclusive(receipt, _to_bytes(done), durable=False):
            return done
        known = read_if_there(receipt, LARGEST_BYTES)  # that of another attempt, which was first
        if known is None:  # the operation has committed in the meantime
            return done
    return _from_bytes(receipt, known)


class _Part:
    """A part that is being written."""

    def __init__(self, task: IndexRun, part: str, rows: pl.DataFrame) -> None:
        self._task, self._rows = task, rows
        self._writers = task.writers(part)
        self._results: dict[str, list[WriteResult]] = {name: [] for name in self._writers}
        self._counts: Counter[str] = Counter()
        # Rows that were sent, and for each writer whether it got them.
        self._sent: list[tuple[pl.DataFrame, dict[str, pl.Series]]] = []

    def write(self, name: str, making: DocumentRules) -> PartDone:
        if name.startswith("deletes/"):
            self._counts.update(counts_of(self._rows))
            self._delete(self._rows)
        else:
            self._add(name, making)
        for kind, writer in self._writers.items():
            self._results[kind].append(writer.close())
        return self._done()

    def _add(self, name: str, making: DocumentRules) -> None:
        table, operation = self._task.operation.table, self._task.operation
        file = live_file(table, operation.manifest(), name)
        if file is None:  # compact has dropped it
            self._skip(self._rows)
            return
        columns = frozenset(c for step in making.filters for c in step.reads)
        beside = Beside(columns, making.max_inlinks)
        seen = [self._rows.get_column("key").clear()]
        for pages, rows in page_frames(operation, file, self._rows, beside, self._counts):
            seen.append(rows.get_column("key"))
            self._add_pages(pages, rows, making)
        self._skip(self._rows.filter(~pl.col("key").is_in(pl.concat(seen).implode())))

    def _skip(self, rows: pl.DataFrame) -> None:
        """Leaves out pages whose document the table does not have any more."""
        missing = rows.with_columns(action=pl.lit(NOTHING), reason=pl.lit("skipped_no_document"))
        self._counts.update(counts_of(missing))
        if self._task.full:
            self._delete(forget_unsent_pages(missing).filter(pl.col("action") == DELETE))

    def _add_pages(self, pages: pl.DataFrame, rows: pl.DataFrame, making: DocumentRules) -> None:
        documents = documents_of_pages(
            pages, making.filters, making.filter_options, making.scorings
        )
        from_texts = pl.DataFrame(
            [
                pages.get_column("directives"),
                pages.get_column("parse_status"),
                documents.get_column(DROPPED).alias("dropped_by"),
            ]
        )
        decided = decide_by_documents(rows, from_texts, making.rules)
        if self._task.full:
            decided = forget_unsent_pages(decided)
        self._counts.update(counts_of(decided))
        added = decided.get_column("action") == ADD
        self._delete(decided.filter(pl.col("action") == DELETE))
        self._send(_those(decided, added), _those(documents, added))

    def _send(self, decided: pl.DataFrame, documents: pl.DataFrame) -> None:
        if not len(decided):
            return
        routes: IndexRoutes = self._task.routes
        shares, before = routes.shares(documents), decided.get_column("writers")
        ids = documents.get_column("id")
        for rule in routes.writers:
            share = shares[rule.name]
            # A document that another writer gets now.
            moved = ~share & before.list.contains(rule.name) & (not self._task.full)
            mine = mapped_fields(_those(documents, share), rule.mapping)
            if len(mine) or moved.any():
                self._write(rule.name, _with_values(mine), ids.filter(moved))
        if nobody := int((~_any_of(shares, len(decided))).sum()):
            self._counts["skipped_no_route"] += nobody
        self._sent.append((decided.with_columns(id=ids), shares))

    def _delete(self, decided: pl.DataFrame) -> None:
        if not len(decided):
            return
        ids, holders = from_keys(decided.get_column("key")), decided.get_column("writers")
        unlisted = decided.get_column("reason").is_in(WITHOUT_ROW)
        for name in self._writers:
            held = holders.list.contains(name)
            if self._writers[name].component:  # in the table, a purge or a lost commit undid it
                held &= ~unlisted
            for some in ids.filter(held).to_frame().iter_slices(_DELETES_AT_ONCE):
                self._write(name, _NO_DOCUMENTS, some.to_series())
        kept = decided.filter(~unlisted)
        rows = kept.with_columns(id=ids.filter(~unlisted))
        self._sent.append((rows, dict.fromkeys(self._writers, _any_of({}, len(kept)))))

    def _write(self, name: str, documents: pl.DataFrame, deletes: pl.Series) -> None:
        self._results[name].append(self._writers[name].write(documents, deletes))

    def _done(self) -> PartDone:
        version, task = self._task.version, self._task
        journal, written, letters = [empty(INDEXED)], [], [empty(DEAD_LETTERS)]
        refused = {name: _refused(results) for name, results in self._results.items()}
        for rows, shares in self._sent:
            ids = rows.get_column("id")
            taken = {
                name: share & ~ids.is_in(refused[name].get_column("id").implode())
                for name, share in shares.items()
            }
            journal.append(journal_rows(rows, self._holders(rows, shares, taken), version))
            letters += [_letters(rows, refused[name], name, version) for name in shares]
            sent = rows.get_column("action") == ADD
            if number := int((sent & _any_of(taken, len(rows))).sum()):
                self._counts["indexed"] += number
        for name, results in self._results.items():
            component = self._writers[name].component
            files = tuple(file for result in results for file in result.files)
            if files:
                written.append(Written(task.component(component), files))
            self._count(name, results)
        if len(dead := pl.concat(letters)):
            component, root = task.component("dead_letters"), task.operation.table.files
            files = write_bases(root, component, [dead.sort("key")])
            written.append(Written(component, files))
        written.append(Written(counts={k: n for k, n in self._counts.items() if n}))
        return PartDone(pl.concat(journal), tuple(written))

    def _holders(
        self, rows: pl.DataFrame, shares: dict[str, pl.Series], taken: dict[str, pl.Series]
    ) -> dict[str, pl.Series]:
        """Returns for each writer which rows it holds: also those whose new text it refused.

        Then its index shows the text before, until a later run replaces or deletes it.
        """
        if self._task.full:
            return taken
        before = rows.get_column("writers")
        return {
            name: of | (shares[name] & before.list.contains(name)) for name, of in taken.items()
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


def _those(rows: pl.DataFrame, chosen: pl.Series) -> pl.DataFrame:
    """Returns the chosen rows; if these are all, without a copy of large texts."""
    return rows if chosen.all() else rows.filter(chosen)


def _any_of(chosen: Mapping[str, pl.Series], number: int) -> pl.Series:
    """Returns for each of some rows whether any writer has chosen it."""
    return functools.reduce(operator.or_, chosen.values(), filled(False, number, pl.Boolean))


def _with_values(documents: pl.DataFrame) -> pl.DataFrame:
    """Returns documents without the fields that none of them has."""
    there = [name for name in documents.columns if documents[name].null_count() < len(documents)]
    return documents.select(there)


def _refused(results: list[WriteResult]) -> pl.DataFrame:
    parts = [
        result.refused.select(REFUSED_DOCUMENTS.names()).cast(REFUSED_DOCUMENTS)
        for result in results
    ]
    return pl.concat([pl.DataFrame(schema=REFUSED_DOCUMENTS), *parts])


def _letters(rows: pl.DataFrame, refused: pl.DataFrame, writer: str, time: int) -> pl.DataFrame:
    found = refused.unique("id", keep="last").join(rows.select("id", "key"), on="id", how="inner")
    found = found.with_columns(writer=pl.lit(writer), time=pl.lit(time))
    return to_frame(conform(found.select(DEAD_LETTERS.names), DEAD_LETTERS))


def outdated_letters(task: IndexRun, journal: pl.DataFrame) -> list[str]:
    """Returns the keys of a part's pages that have dead letters of earlier runs.

    What writers think of these pages now, the journal and new dead letters say.
    """
    known = frozenset() if task.full else _letter_keys(task.operation, task.index)
    return [key for key in journal.get_column("key") if key in known] if known else []


@functools.lru_cache(maxsize=4)
def _letter_keys(operation: Operation, index: str) -> frozenset[str]:
    return letter_keys(operation.table, operation.files(index_component(index, "dead_letters")))


def without_letters(task: IndexRun, keys: Collection[str]) -> Iterator[Written]:
    """Yields the files of dead letters that are written again without those of some pages."""
    component, root = task.component("dead_letters"), task.operation.table.files
    gone = pl.Series("key", sorted(keys), dtype=pl.String)
    for file in task.files("dead_letters") if len(gone) else ():
        rows = collect(scan([task.operation.table / file.path], DEAD_LETTERS))
        kept = rows.join(gone.to_frame(), on="key", how="anti", maintain_order="left")
        if len(kept) < len(rows):
            files = write_bases(root, component, [kept]) if len(kept) else ()
            yield Written(component, files, (file.path,))


def _to_bytes(done: PartDone) -> bytes:
    """Returns a receipt: a line of JSON, and the rows of the journal in Arrow's format."""
    head = json.dumps([*map(_record, done.written)]).encode()
    rows = io.BytesIO()
    done.journal.write_ipc(rows)
    return head + b"\n" + rows.getvalue()


def _record(part: Written) -> dict[str, Any]:
    return {**vars(part), "files": [*map(file_record, part.files)]}


def _from_bytes(receipt: Place, data: bytes) -> PartDone:
    """Returns what a part has done, from its receipt.

    Raises:
        UserError: The receipt is damaged.
    """
    head, _, rows = data.partition(b"\n")
    try:
        journal = pl.read_ipc(io.BytesIO(rows)).select(INDEXED.names)
        return PartDone(journal, tuple(map(_written, read_json(head))))
    except (
        *(ValueError, TypeError, KeyError, OSError),
        *(pl.exceptions.PolarsError, pl.exceptions.PanicException),
    ) as error:
        raise UserError(f"receipt is damaged: {receipt}: {first_line(error)[:200]}") from error


def _written(part: Mapping[str, Any]) -> Written:
    files, counts = tuple(map(file_of_record, part["files"])), dict(part["counts"])
    for number in counts.values():
        check_number(number)
    component = part["component"]  # empty: it only has counts
    return Written(component and checked_name(component), files, counts=counts)
