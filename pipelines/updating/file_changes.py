"""The work of updatedb on the files of a batch: reads facts, decides changes, yields them in chunks."""

from collections.abc import Iterator
from typing import Any, TypeAlias

import apache_beam as beam
import polars as pl

from ...io.rows.small_components import forgets_pending, pending_changes
from ...io.snapshots.operations import Operation
from ...io.storage.parquet_files import collect, scan
from ...io.tablets.file_lists import DataFile
from ...io.tablets.written import Written
from ...io.updating.page_facts import (
    PageFiles,
    read_page_facts,
    read_redirect_answers,
    read_table_facts,
    read_unchanged_facts,
)
from ...policy.components.blocklist import drop_blocked_hosts
from ...policy.components.schema import HOSTS
from ...policy.updating.page_changes import (
    PageChanges,
    decide_page_changes,
    decide_unchanged_pages,
)
from ...policy.updating.redirects import begin_chains, follow_chains, keys_to_read
from ...policy.updating.update_rules import UpdateRules, UpdateTableOptions
from ...transforms.elements.chunks import NamedRows, chunk_outputs, split_by_hash, to_chunks
from ...transforms.wiring.phase_logs import logs_of
from ...transforms.wiring.plugin_groups import scorings_of
from ...web.base.dataclass import dataclass
from ...web.base.progress import PROGRESS

COUNTS_TAG, UNCHANGED_TAG = "counts", "unchanged"
FILES_STEP = "Files"
# Pages per part of the work on pages that answered 304. Each part reads an older file of documents at
# most once.
UNCHANGED_ROWS = 20_000


@dataclass(frozen=True)
class FindingsFile:
    """A file of findings about hosts."""

    operation: Operation
    file: DataFile


@dataclass(frozen=True)
class PendingCounts:
    """The differences in numbers of URLs that are not in the host table yet."""

    operation: Operation


BatchItem = PageFiles | FindingsFile | PendingCounts
PageOutput: TypeAlias = NamedRows | beam.pvalue.TaggedOutput


def changes_of_item(item: BatchItem, options: UpdateTableOptions) -> Iterator[Any]:
    """Yields the changes that an item brings: pairs of a component and a chunk, and tagged counts."""
    rules = UpdateRules(options, scorings_of(options))
    if isinstance(item, PageFiles):
        yield from changes_of_pages(item, rules)
        PROGRESS.add(item.pages.rows)
    else:
        yield from chunk_outputs(_rows_of_hosts(item, rules))


def changes_of_pages(files: PageFiles, rules: UpdateRules) -> Iterator[Any]:
    """Yields the changes that a file of pages brings, as ``changes_of_item`` does."""
    return chunk_outputs(_rows_of_pages(files, rules))


def _rows_of_pages(files: PageFiles, rules: UpdateRules) -> Iterator[PageOutput]:
    """Yields the changes that a file of pages brings, in frames: reads facts, decides."""
    facts = read_page_facts(files, rules.needs)
    chains = begin_chains(facts)
    while chains.next_keys:
        answer_rows = read_redirect_answers(files.operation, keys_to_read(chains, facts))
        chains = follow_chains(chains, answer_rows, facts, rules)
    decided = decide_page_changes(facts, rules, chains.unrepresented)
    # Each row that is worked on elsewhere is a part of this step's work.
    report = Written(counts=decided.counts, due={FILES_STEP: len(decided.unchanged_rows)})
    yield beam.pvalue.TaggedOutput(COUNTS_TAG, report)
    yield from _rows_of_changes(decided.changes, rules)
    yield NamedRows("hosts", decided.host_rows, HOSTS)
    for chunk in to_chunks(decided.unchanged_rows):
        parts = split_by_hash(chunk, "document", files.unchanged_parts)
        yield from (beam.pvalue.TaggedOutput(UNCHANGED_TAG, part) for part in parts)


def _rows_of_changes(changes: PageChanges, rules: UpdateRules) -> Iterator[PageOutput]:
    yield NamedRows("state", changes.events, rules.event_schema)
    yield NamedRows("state", changes.links)
    yield NamedRows("state", changes.inherited)


def _rows_of_hosts(item: FindingsFile | PendingCounts, rules: UpdateRules) -> Iterator[PageOutput]:
    blocklist = read_table_facts(item.operation, rules.needs).blocklist
    if isinstance(item, FindingsFile):
        host_rows = collect(scan([item.operation.table / item.file.path], HOSTS))
    else:
        yield beam.pvalue.TaggedOutput(COUNTS_TAG, forgets_pending(item.operation))
        host_rows = pending_changes(item.operation)
    yield NamedRows("hosts", drop_blocked_hosts(host_rows, blocklist), HOSTS)


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
    yield from chunk_outputs(_rows_of_changes(changes, rules))
