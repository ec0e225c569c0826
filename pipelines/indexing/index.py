"""index: adds the pages of the table to an index, and deletes pages that are gone from it.

::

    state rows that have changed ─┐
    journal of the index ─────────┴ decide ─ by file of documents ─ write ─▶ index
                                                                  └─ resolve ─▶ journal'

Texts stay where they are: small rows travel to the workers that read the documents.
"""

import functools
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import apache_beam as beam
import polars as pl

from ...io.indexing.index_candidates import (
    CandidateItem,
    candidates,
    outdated_letters,
    refused_pages,
    without_letters,
)
from ...io.indexing.index_run import IndexRun, plan_run
from ...io.snapshots.commit import CommitTerms, commit
from ...io.snapshots.manifest import Manifest
from ...io.snapshots.operations import Operation
from ...io.table.opening import open_table
from ...io.tablets.resolve import Resolver, resolving
from ...io.tablets.written import Written, check_whole
from ...policy.components.index_schema import (
    DELETE,
    INDEX_CANDIDATES,
    INDEXED,
    NOTHING,
    index_component,
)
from ...policy.indexing.candidate_decisions import (
    IndexRules,
    decide_candidates,
    divide_by_part,
)
from ...policy.indexing.index_decisions import counts_of
from ...policy.indexing.index_options import IndexTableOptions
from ...policy.indexing.writer_documents import refusals, refused_before
from ...transforms.apply_changes import RESOLVE, ApplyChanges, Target
from ...transforms.elements.chunks import Chunk, NamedRows, chunk_outputs, named_chunks
from ...transforms.for_each import ForEach, ForEachDocument
from ...transforms.indexing.embedded_pages import check_new_vectors, check_stored_vectors
from ...transforms.indexing.index_setup import chosen_writers, document_rules_of
from ...transforms.indexing.write_part import write_part
from ...transforms.indexing.written_indexes import (
    check_rebuild,
    delete_unsent,
    earlier_documents,
    finish_and_check_places,
    writer_places,
)
from ...transforms.operations import Begin, Finish
from ...transforms.tickets import Ticket, phase_of
from ...web.base.dataclass import dataclass
from ...web.base.errors import UserError
from ...web.base.options import option
from ...web.base.progress import PROGRESS
from ..base.command import TABLE, Invocation
from ..launch.job import run_job
from ..launch.job_options import CheckedIndexOptions, JobOptions

if TYPE_CHECKING:  # a crawl without an index does not load it
    from ...policy.indexing.index_documents import DocumentRules

ARGUMENTS = (TABLE,)
_COUNTS = "counts"
_WRITE = "Write"
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Options(CheckedIndexOptions, JobOptions):
    """Options of index."""

    batch: str = option(
        "", "Index only the pages of this batch. Without it, pages of all batches.", group="index"
    )
    full: bool = option(
        False,
        "Build the index again from the beginning. Without it, only what has changed since the last "
        "run is sent.",
        group="index",
    )
    retry_refused: bool = option(
        False,
        "Send refused documents once more, after you have corrected the cause.",
        group="index",
    )


def run(invocation: Invocation) -> int:
    return run_job(invocation, build, "index", after=check_refusals)


def check_refusals(address: str, manifest: Manifest, options: IndexTableOptions) -> None:
    """Warns of documents that writers of an index have refused, now or before.

    Raises:
        UserError: A writer has refused all that it got.
    """
    writer_refusals = sorted(refusals(manifest.counts), key=lambda refusal: refusal.every)
    for refusal in writer_refusals:
        if refusal.every:
            raise UserError(refusal.line)
        _LOG.warning("%s", refusal.line)
    if manifest.counts:
        return
    if number := refused_pages(open_table(address), manifest, options.index):
        _LOG.warning("%s", refused_before(number))


def build(
    tickets: beam.PCollection[Ticket], options: IndexTableOptions, job: str = "index"
) -> beam.PCollection[Ticket]:
    """Writes an index; returns the ticket for a next job.

    Args:
        tickets: One ticket.
        options: Options of the job.
        job: ``index``, or ``clean``, which only deletes.
    """
    operations = tickets | "Begin" >> Begin(job)
    decisions = operations | "Candidates" >> ForEach(
        functools.partial(_candidates, options=options), _decide, (options,), tuple[str, Chunk],
        outputs=(_COUNTS,), step="Candidates", reports=_COUNTS,
    )  # fmt: skip
    operation = beam.pvalue.AsSingleton(operations)
    parts = decisions["main"] | "Write" >> ForEachDocument(
        _write, (operation, options), tuple[str, Chunk], outputs=(_COUNTS,)
    )
    targets = {index_component(options.index, "indexed"): Target(INDEXED, journal_resolver)}
    journal = (operations, parts["main"]) | ApplyChanges(targets)
    return (operations, decisions[_COUNTS], parts[_COUNTS], journal) | Finish(
        functools.partial(_commit, options=options), whole=("Candidates", RESOLVE), repeats=True
    )


class RuledRun(NamedTuple):
    """A run, and its rules.

    Attributes:
        index_run: The run.
        candidate_rules: What it does with pages that may have changed their place in the index.
        document_rules: What turns pages into documents.
    """

    index_run: IndexRun
    candidate_rules: IndexRules
    document_rules: "DocumentRules"


# Each process reads the history and the files of rules once, not for each part.
@functools.lru_cache(maxsize=4)
def _ruled_run(operation: Operation, options: IndexTableOptions) -> RuledRun:
    """Returns the run of an operation; each part of the work calls this."""
    index_run = plan_run(
        operation, options.index, chosen_writers(options), full=getattr(options, "full", False),
        batch=getattr(options, "batch", ""), cleans=operation.job == "clean",
        retries_refused=getattr(options, "retry_refused", False),
    )  # fmt: skip
    candidate_rules = IndexRules(
        options, index_run.full, index_run.cleans, index_run.batch, tuple(index_run.outside)
    )
    return RuledRun(index_run, candidate_rules, document_rules_of(options))


def _candidates(operation: Operation, options: IndexTableOptions) -> Iterator[CandidateItem]:
    index_run = _ruled_run(operation, options).index_run
    if index_run.batch:
        phase_of(operation.manifest(), index_run.batch, "updated", operation.job)
    check_stored_vectors(index_run, options.embedding)
    finish_and_check_places(index_run)
    index_run.receipts.note_ended()
    for writer in index_run.writers().values():
        writer.prepare()
    check_rebuild(index_run)  # after prepare, which adds fields to schemas that can be changed
    items = list(candidates(index_run))
    PROGRESS.start(operation.job, total=len(items), unit="tablets")
    yield from items


def _decide(item: CandidateItem, options: IndexTableOptions) -> Iterator[Any]:
    """Yields decisions about the pages of an item: pairs of a part's name and a chunk, and counts."""
    yield from chunk_outputs(_decide_parts(item, _ruled_run(item.operation, options)))
    PROGRESS.add()


def _decide_parts(
    item: CandidateItem, ruled_run: RuledRun
) -> Iterator[NamedRows | beam.pvalue.TaggedOutput]:
    deletes, rules = 0, ruled_run.candidate_rules
    facts_of_pages = item.read_facts(ruled_run.index_run)
    decisions = (rows for facts in facts_of_pages for rows in decide_candidates(facts, rules))
    for decided in decisions:
        # Pages that are not sent are counted here, others where they are written.
        counts = counts_of(decided.filter(pl.col("action") == NOTHING))
        rows = 0
        for name, part_rows in divide_by_part(item.number, decided, deletes):
            rows += len(part_rows)
            yield NamedRows(name, part_rows, INDEX_CANDIDATES)
        deletes += int((decided.get_column("action") == DELETE).sum())
        yield beam.pvalue.TaggedOutput(_COUNTS, Written(counts=counts, due={_WRITE: rows}))


def _write(
    name: str, rows: pl.DataFrame, operation: Operation, options: IndexTableOptions
) -> Iterator[Any]:
    with operation.reading():
        index_run, _, document_rules = _ruled_run(operation, options)
        # Of two rows of a page, that counts which knows all writers that may hold it.
        rows = rows.sort(pl.col("writers").list.len(), descending=True, maintain_order=True)
        once = rows.unique("key", keep="first", maintain_order=True)
        part_done = write_part(index_run, name, once, document_rules, options.embedding)
        outdated_letter_keys = outdated_letters(index_run, part_done.journal)
    yield from named_chunks(index_run.journal, part_done.journal, INDEXED)
    for written in (*part_done.written, Written(done={_WRITE: len(rows)}), *outdated_letter_keys):
        yield beam.pvalue.TaggedOutput(_COUNTS, written)


def journal_resolver(_: Operation) -> Resolver:
    """Returns the resolver that applies changes to the journal; it runs on a worker."""
    return resolving(_replace_rows)


def _replace_rows(rows: pl.DataFrame, changes: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, int]]:
    changes = changes.unique("key", keep="last").select(rows.columns)
    unchanged_rows = rows.join(changes.select("key"), on="key", how="anti")
    return pl.concat([unchanged_rows, changes]).sort("key"), {}


def _commit(
    operation: Operation, written: list[Written], outdated: list[str], options: IndexTableOptions
) -> Manifest:
    index_run = _ruled_run(operation, options).index_run
    if not operation.idle:
        check_whole(operation.job, [Written(due={_WRITE: 0}), *written], (_WRITE,))
        if options.embedding:
            check_new_vectors(index_run, written)
        letters = without_letters(index_run, set(outdated))
        written = [
            *written,
            index_run.record(writer_places(index_run)),
            *index_run.replaced_files(),
            *letters,
        ]
    earlier = earlier_documents(index_run)
    manifest = commit(operation, written, CommitTerms(reads=index_run.reads))
    for writer in index_run.writers().values():
        writer.finish()
    delete_unsent(index_run, manifest, earlier)
    # A run that only deletes has sent no text again.
    index_run.receipts.forget(
        corrects=not index_run.cleans, resends_all=index_run.full or not index_run.outside
    )
    return manifest
