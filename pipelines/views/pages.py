"""pages: writes the newest text of each living URL, one record each, to a file or a table.

With ``--chunks`` a record is a piece of a text. With ``--since``, and always in tables, the records are
those of pages that are new, changed or gone since an older snapshot.

::

    state ─ rows by documents file ─ read that file, keep the newest documents ─▶ parts ─▶ one file
"""

import dataclasses
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
import polars as pl

from ...io.batches.batches import live_file
from ...io.snapshots.manifest import Manifest
from ...io.storage.files import write_bytes
from ...io.storage.local_place import LocalPlace
from ...io.tablets.checksums import verify_file, verify_tablets
from ...policy.chosen_text import TextOptions
from ...policy.chunking.chunk_options import ChunkOptions
from ...policy.chunking.chunk_rows import CHUNK_COLUMNS, CHUNKED_COLUMNS
from ...policy.chunking.embeddings import EmbeddingReport, embedding_reason
from ...policy.components.columns import Columns, join_columns
from ...policy.components.views import views
from ...policy.components.vocabulary import (
    CHANGE_COLUMNS,
    STATUS_WORDS,
    shown_schema,
    statuses_of,
)
from ...policy.page_rows import MarkdownOptions, PageChoice
from ...transforms.elements.chunks import Chunk, to_chunks
from ...transforms.for_each import ForEachDocument
from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError
from ...web.base.option_checks import check_setup
from ...web.base.options import option
from ...web.base.safe_json import json_object
from ...web.base.visible import visible
from ...web.base.wording import format_count
from ..base.command import TABLE, Invocation, configuration, gives_record
from ..launch.launch import LaunchOptions
from ..outputs.output_files import Output, output_of
from ..outputs.output_tables import CatalogOptions
from .changed_pages import ChangedItem, read_changed_pages
from .page_chunks import ChunkedPages, failure_line
from .reader import pages_of_file
from .reading_job import Reading, ReadItem
from .reading_pipeline import export_parts
from .rows_destination import check_destination, destination_of, shows_changes

ARGUMENTS = (TABLE,)
# Pages that are gone have no file of documents; their part comes last.
NO_DOCUMENT, LAST_PART = "", 99_999_999


@dataclass(frozen=True)
class Options(TextOptions, MarkdownOptions, LaunchOptions, ChunkOptions, CatalogOptions):
    """Options of pages, and of their chunks."""

    output: str = option(
        "-", "File to write: .jsonl, .csv or .parquet, the first two also with .gz at the end; or a table "
        "to append changes to: FILE.duckdb or iceberg:NAMESPACE.TABLE; - is standard output, as JSON "
        "lines. FILE.duckdb:TABLE names the table in the file.",
        short="o", takes="path",
    )  # fmt: skip
    columns: tuple[str, ...] = option(
        (),
        "Columns to write, such as url,title,text or url,markdown; the default is all but markdown, "
        "blocks, main, structured_data, headers, body, batch_id and key. With --chunks, columns of chunks: by default all.",
    )
    status: tuple[str, ...] = option(
        ("fetched", "unfetched"),
        "Statuses of the pages to write. By default pages that are alive: fetched (or not modified "
        "since), and those whose next fetch failed but is tried again.",
        choices=STATUS_WORDS,
    )  # fmt: skip
    since: str = option(
        "", "Only pages that are new, changed or gone since a snapshot: its number, or a date or time "
        "(UTC) such as 2026-11-01T12:30. Column change says which. In a table: since its last run.", takes="time",
    )  # fmt: skip
    new: str = option(
        "",
        "File that records the last run: write only pages that are new or changed since then, or "
        "all if the file does not exist. Then the run writes the file.",
        takes="path",
    )

    def __post_init__(self) -> None:
        check_destination(self)
        try:
            self.wanted_columns()
        except ValueError as error:
            raise ValueError(f"--{error}") from error
        if self.new and shows_changes(self):
            other = "--since" if self.since else f"--output {self.output}, which keeps its own note"
            raise ValueError(f"--new does not go with {other}: leave out --new")

    @property
    def things(self) -> str:
        """What a record is."""
        return "chunks" if self.chunks else "pages"

    def wanted_columns(self) -> Columns:
        """Returns the columns to write: of pages, or of chunks.

        Raises:
            ValueError: There is no such column; the message quotes it.
        """
        if not self.chunks:
            return join_columns(self._change_columns, views()["pages"].pick(self.columns))
        columns = CHUNK_COLUMNS.pick_named(*self.columns) if self.columns else CHUNK_COLUMNS
        return join_columns(self._change_columns, columns)

    @property
    def _change_columns(self) -> Columns:
        return CHANGE_COLUMNS if shows_changes(self) else Columns()

    def chunked_pages(self) -> ChunkedPages | None:
        """Returns how pages become chunks; None: they do not."""
        names = [field.name for field in dataclasses.fields(ChunkOptions)]
        own = ChunkOptions(**{name: getattr(self, name) for name in names})
        return (
            ChunkedPages(own, self.wanted_columns(), self.markdown_links) if self.chunks else None
        )

    def choice(self, batches: Iterable[str]) -> PageChoice:
        """Returns the wanted pages.

        Args:
            batches: Batches whose pages were written before.
        """
        of_chunks = join_columns(self._change_columns, CHUNKED_COLUMNS)
        return PageChoice(
            of_chunks if self.chunks else self.wanted_columns(),
            tuple(sorted({code for word in self.status for code in statuses_of(word)})),
            frozenset(batches),
            self.text_of,
            self.markdown_links,
        )

    def load_choice(self) -> dict[str, Any]:
        """Returns the options that must stay the same for all loads of a table, by name."""
        names = [field.name for field in dataclasses.fields(ChunkOptions) if self.chunks]
        values = {f"--{name}": getattr(self, name) for name in ("status", "text_of", *names)}
        return {name: list(v) if isinstance(v, tuple) else v for name, v in values.items()}


def run(invocation: Invocation) -> int:
    address, options = str(invocation.table), invocation.options
    with configuration():
        check_setup(options)
    destination = destination_of(invocation, options.things, options.load_choice())
    batches_file = output_of(options.new, "--new").path if options.new else None
    choice = options.choice(read_batches(batches_file) if batches_file else ())
    chunked = options.chunked_pages()

    def build(items: beam.PCollection[ReadItem], reading: Reading) -> None:
        (
            items
            | "Rows" >> beam.FlatMap(rows_by_document, choice).with_output_types(tuple[str, Chunk])
            | "Write" >> ForEachDocument(_write, (reading, choice, destination.output, chunked))
        )

    exported = export_parts(address, build, invocation.beam_args, options, destination.divide)
    with exported as (manifest, parts):
        report = chunked.read_report(parts) if chunked else EmbeddingReport()
        schema = chunked.schema(report) if chunked else shown_schema(choice.columns)
        number = destination.bring(parts, schema, manifest)
    if batches_file:
        write_batches(batches_file, manifest)
    line = failure_line(options, report)
    if line and invocation.take_record is None:
        print(visible(f"nutbeam pages: {line}"), file=sys.stderr)
    if destination.place:
        _print_result(invocation, number, destination.place, report)
    return 0


def _print_result(invocation: Invocation, number: int, place: str, report: EmbeddingReport) -> None:
    options = invocation.options
    record: dict[str, Any] = {options.things: number, "output": place}
    if report.failed:
        record["failed"] = {embedding_reason(options.embedding): report.failed}
    if not gives_record(invocation, record):
        print(f"{format_count(number, options.things)} in {place}")


def rows_by_document(item: ReadItem, choice: PageChoice) -> Iterator[tuple[str, Chunk]]:
    """Yields the rows of the state of a tablet, with the name of the file that has their documents.

    Rows of pages that are gone have none: its name is ``NO_DOCUMENT``.
    """
    assert item.tablet is not None
    with item.reading.reading():
        for rows in _rows_of_pages(item, choice):
            for (document,), group in rows.group_by("document", maintain_order=True):
                for chunk in to_chunks(group):
                    yield str(document or NO_DOCUMENT), chunk


def _rows_of_pages(item: ReadItem, choice: PageChoice) -> Iterator[pl.DataFrame]:
    assert item.tablet is not None
    if isinstance(item, ChangedItem):
        yield from read_changed_pages(item, choice)
        return
    table = item.reading.table
    verify_tablets(table, item.tablet)  # damaged rows are not exported
    yield table.read("state", [item.tablet], choice.state_columns, choice.in_state)


def _write(
    document: str,
    rows: pl.DataFrame,
    reading: Reading,
    choice: PageChoice,
    output: Output,
    chunked: ChunkedPages | None,
) -> tuple[()]:
    if document == NO_DOCUMENT:
        path = reading.part_file(LAST_PART, output.suffix)
        if chunked:
            chunked.write_gone(path, rows, output)
        else:
            output.write_frames(path, [rows], choice.columns)
        return ()
    file = live_file(reading.table, reading.manifest(), document)
    if file is None:
        return ()  # compact has dropped the file: there is no text to show
    path = reading.part_file(file.order, f"-{Path(document).stem}{output.suffix}")
    with reading.reading():
        verify_file(reading.table, file)
        pages = pages_of_file(reading, file, choice, rows)
    if chunked:
        chunked.write(path, pages, output)
    else:
        output.write_frames(path, [pages], choice.columns)
    return ()


def read_batches(path: Path) -> list[str]:
    """Returns the batches in a note; none if there is no file.

    Raises:
        UsageError: The file is no note, or it cannot be read.
    """
    try:
        batches = json_object(path.read_bytes())["batches"]
        if not isinstance(batches, list) or not all(isinstance(name, str) for name in batches):
            raise ValueError("batches must be a list of names")
    except FileNotFoundError:
        return []
    except (ValueError, KeyError) as error:
        raise UsageError(
            f"--new {str(path)!r} was not written by nutbeam pages --new: "
            "name another file, or remove it to write all pages again"
        ) from error
    except OSError as error:
        raise UsageError(
            f"cannot read --new {str(path)!r}: {str(error.strerror).lower()}"
        ) from error
    return batches


def write_batches(path: Path, manifest: Manifest) -> None:
    """Writes the note about a snapshot whose pages are written."""
    applied = [name for name, batch in manifest.batches.items() if batch.phase == "updated"]
    note = {"snapshot": manifest.snapshot, "batches": sorted(applied)}
    write_bytes(LocalPlace(path), f"{json.dumps(note)}\n".encode())
