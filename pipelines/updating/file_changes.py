"""The work of updatedb on the files of a batch: reads facts, decides changes, yields them in chunks."""

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any

import apache_beam as beam
import polars as pl
import pyarrow as pa

from ...io.batches.batches import batch_component
from ...io.rows.blocklist import read_blocklist
from ...io.rows.hosts import forgets_pending, pending_changes
from ...io.snapshots.operations import Operation
from ...io.storage.parquet_files import collect, scan
from ...io.tablets.file_lists import DataFile
from ...io.tablets.written import Written
from ...io.updating.page_facts import (
    FilePair,
    read_page_facts,
    read_redirect_answers,
    read_unchanged_facts,
)
from ...policy.components.blocklist import drop_blocked_hosts
from ...policy.components.page_facts import PageFacts
from ...policy.components.schema import CHANGES, HOSTS
from ...policy.updating.page_changes import (
    PageChanges,
    decide_page_changes,
    decide_unchanged_pages,
)
from ...policy.updating.representatives import begin_chains, follow_chains, keys_to_read
from ...policy.updating.update_rules import UpdateRules, UpdateTableOptions
from ...transforms.elements.chunks import Chunk, named_chunks, to_chunks
from ...transforms.partition import split_by_hash
from ...transforms.wiring.phase_logs import logs_of
from ...transforms.wiring.plugin_groups import scorings_of
from ...web.base.progress import PROGRESS

COUNTS_TAG, UNCHANGED_TAG = "counts", "unchanged"
FILES_STEP = "Files"
# Pages per part of the work on pages that answered 304. Each part reads an older file of documents at
# most once.
_UNCHANGED_ROWS = 20_000


@dataclasses.dataclass(frozen=True)
class FindingsFile:
    """A file of findings about hosts."""

    operation: Operation
    file: DataFile


@dataclasses.dataclass(frozen=True)
class PendingCounts:
    """The differences in numbers of URLs that are not in the host table yet."""

    operation: Operation


BatchItem = FilePair | FindingsFile | PendingCounts


def changes_of_item(item: BatchItem, options: UpdateTableOptions) -> Iterator[Any]:
    """Yields the changes that an item brings: pairs of a component and a chunk, and tagged counts."""
    if isinstance(item, FilePair):
        yield from _changes_of_pages(item, options)
        return
    if isinstance(item, FindingsFile):
        host_rows = collect(scan([item.operation.table / item.file.path], HOSTS))
    else:
        yield beam.pvalue.TaggedOutput(COUNTS_TAG, forgets_pending(item.operation))
        host_rows = pending_changes(item.operation)
    host_rows = drop_blocked_hosts(host_rows, read_blocklist(item.operation))
    yield from named_chunks("hosts", host_rows, HOSTS)


def _changes_of_pages(files: FilePair, options: UpdateTableOptions) -> Iterator[Any]:
    rules, number_of_parts = UpdateRules(options, scorings_of(options)), _parts(files.operation)
    facts = read_page_facts(files, rules.needs)
    unrepresented = _find_unrepresented(files.operation, facts, rules)
    decided = decide_page_changes(facts, rules, unrepresented)
    PROGRESS.add(files.pages.rows)
    for chunk in to_chunks(decided.unchanged_rows):
        parts = split_by_hash(chunk, "document", number_of_parts)
        yield from (beam.pvalue.TaggedOutput(UNCHANGED_TAG, part) for part in parts)
    # Each row that is worked on elsewhere is a part of this step's work.
    report = Written(counts=decided.counts, due={FILES_STEP: len(decided.unchanged_rows)})
    yield beam.pvalue.TaggedOutput(COUNTS_TAG, report)
    yield from _state_chunks(decided.changes, rules)
    yield from named_chunks("hosts", decided.host_rows, HOSTS)


def changes_of_unchanged_pages(
    number: int, rows: pl.DataFrame, operation: Operation, options: UpdateTableOptions
) -> Iterator[Any]:
    """Yields the changes that pages bring that answered 304; see ``changes_of_item``."""
    rules = UpdateRules(options, scorings_of(options))
    with logs_of(operation), operation.reading():
        facts = read_unchanged_facts(operation, rows, number, rules.needs)
    changes, counts = decide_unchanged_pages(facts, rules)
    report = Written(counts=counts, done={FILES_STEP: len(rows)})
    yield beam.pvalue.TaggedOutput(COUNTS_TAG, report)
    yield from _state_chunks(changes, rules)


def _find_unrepresented(
    operation: Operation, facts: PageFacts, rules: UpdateRules
) -> frozenset[str]:
    """Returns the keys of pages that no other URL represents any more."""
    chains = begin_chains(facts)
    while chains.next_keys:
        answer_rows = read_redirect_answers(operation, keys_to_read(chains, facts))
        chains = follow_chains(chains, answer_rows, facts, rules)
    return chains.unrepresented


def _state_chunks(changes: PageChanges, rules: UpdateRules) -> Iterator[tuple[str, Chunk]]:
    own = (column.field for column in rules.scorings.own)
    schemas = (pa.schema([*CHANGES, *own]), None, None)
    for rows, schema in zip(changes, schemas, strict=True):
        yield from named_chunks("state", rows, schema)


@functools.lru_cache(maxsize=2)
def _parts(operation: Operation) -> int:
    """Returns among how many parts of the work the pages that answered 304 are divided."""
    files = operation.files(batch_component(str(operation.batch), "pages"))
    return -(-sum(file.rows for file in files) // _UNCHANGED_ROWS)
