"""parse --reparse: parses the bodies of batches again; nothing is fetched.

::

    batch.pages, file by file ─ child processes ─▶ batch.documents', in place of those before
                                     └─ signatures ─ by tablet ─ rows with these bodies ─▶ state'
"""

import dataclasses
from collections.abc import Iterator
from typing import Any

import apache_beam as beam

from ...io.batches.batches import batch_component
from ...io.batches.documents import parse_file
from ...io.snapshots.manifest import Manifest
from ...io.snapshots.operations import Operation
from ...io.storage.parquet_files import collect, columns_with_values, scan
from ...io.tablets.file_lists import DataFile
from ...io.tablets.resolve import Resolver, resolving
from ...policy.batch_tools.reparsed_rows import (
    REPARSED,
    SIGNED_COLUMNS,
    apply_reparsed,
    reparsed_changes,
)
from ...policy.components.document_schema import DOCUMENTS
from ...policy.components.vocabulary import PARSED_PHASE, PHASES
from ...policy.parsing.documents import DocumentOptions
from ...policy.recorded_rules import recorded_rules
from ...transforms.apply_changes import RESOLVE, ApplyChanges, Target
from ...transforms.elements.chunks import Chunk, named_chunks
from ...transforms.for_each import ForEach
from ...transforms.operations import Begin, Commit
from ...transforms.parse_pages import PAGE_FILES
from ...transforms.parsing import ParsePagesOptions, parser_of
from ...transforms.tickets import Ticket, phase_of
from ...web.base.dataclass import dataclass
from ...web.base.errors import NothingToDo
from ...web.base.progress import PROGRESS
from ..launch.earlier_jobs import done_with

_WRITTEN = "written"


@dataclass(frozen=True)
class ParsedFile:
    """A file of pages that is parsed again, and the file of their documents so far, if any."""

    operation: Operation
    pages: DataFile
    documents: DataFile | None


def batches_to_reparse(manifest: Manifest, address: str, batch: str) -> list[str]:
    """Returns the batch, or all batches that have bodies, oldest first.

    Args:
        manifest: The newest snapshot.
        address: Address of the table, for messages.
        batch: Id of the batch; empty for all.

    Raises:
        UserError: There is no such batch, or it is not fetched.
        NothingToDo: No batch has bodies.
    """
    if batch:
        phase_of(manifest, batch, "fetched", "parse")
    ready = PHASES[PHASES.index("fetched") :]
    names = [
        name
        for name in sorted(manifest.batches)
        if (not batch or name == batch)
        and manifest.batches[name].phase in ready
        and batch_component(name, "pages") in manifest.components
    ]
    if not names:
        what = f"batch {batch!r}" if batch else f"no batch of table {address!r}"
        raise NothingToDo(f"nothing to do: {what} has {'no ' * bool(batch)}bodies")
    return names


def build(
    tickets: beam.PCollection[Ticket], options: ParsePagesOptions
) -> beam.PCollection[Ticket]:
    """Parses a batch again that was parsed or updated; the returned ticket is for the next job."""
    operations = tickets | "Begin" >> Begin("parse")
    parsed = operations | PAGE_FILES >> ForEach(
        _files, _parse, (options,), tuple[str, Chunk],
        outputs=(_WRITTEN,), step=PAGE_FILES, reports=_WRITTEN,
    )  # fmt: skip
    written = (operations, parsed["main"]) | ApplyChanges({"state": Target(REPARSED, _resolver)})
    return (operations, written, parsed[_WRITTEN]) | Commit(
        reads=("batches/{batch}/pages", "batches/{batch}/documents", "state", "blocklist"),
        whole=(PAGE_FILES, RESOLVE),
        options=done_with(PARSED_PHASE, options, DocumentOptions),
        rules=recorded_rules(options),
    )


def _files(operation: Operation) -> Iterator[ParsedFile]:
    pages, documents = (
        operation.files(batch_component(str(operation.batch), kind))
        for kind in ("pages", "documents")
    )
    PROGRESS.start("parse", total=sum(file.rows for file in pages))
    by_order = {(file.partition, file.order): file for file in documents}
    for file in pages:
        yield ParsedFile(operation, file, by_order.get((file.partition, file.order)))


def _parse(item: ParsedFile, options: ParsePagesOptions) -> Iterator[Any]:
    operation, earlier_file = item.operation, item.documents
    path = operation.table / item.pages.path
    if earlier_file is not None and not columns_with_values(path, {"body"}):
        PROGRESS.add(item.pages.rows)  # the texts came without bodies
        return
    parser = parser_of(operation, options, lambda done: PROGRESS.add(done.rows))
    written = parse_file(operation.table.files, str(operation.batch), item.pages, parser)
    (file,) = written.files
    if earlier_file is not None:
        file = dataclasses.replace(file, formerly=earlier_file.formerly or earlier_file.path)
        written = dataclasses.replace(written, files=(file,), replaced=(earlier_file.path,))
    yield beam.pvalue.TaggedOutput(_WRITTEN, written)
    rows = collect(scan([operation.table / file.path], DOCUMENTS).select(SIGNED_COLUMNS))
    changes = reparsed_changes(rows, file.path, _names(item.pages), _names(earlier_file))
    yield from named_chunks("state", changes, REPARSED)


def _names(file: DataFile | None) -> list[str]:
    """Returns the names under which rows may know a file."""
    return [] if file is None else list(filter(None, (file.path, file.formerly)))


def _resolver(_: Operation) -> Resolver:
    return resolving(apply_reparsed)
