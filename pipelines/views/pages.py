"""pages: writes the newest text of each living URL, one record each, as JSON lines, CSV or Parquet.

With ``--chunks`` a record is a piece of a text.

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
from ...policy.components.columns import Columns
from ...policy.components.views import views
from ...policy.components.vocabulary import STATUS_WORDS, shown_schema, statuses_of
from ...policy.page_rows import MarkdownOptions, PageChoice
from ...transforms.elements.chunks import Chunk, to_chunks
from ...transforms.for_each import ForEachDocument
from ...web.base.errors import UsageError
from ...web.base.option_checks import check_setup
from ...web.base.options import option
from ...web.base.safe_json import json_object
from ...web.base.visible import visible
from ...web.base.wording import format_count, time_of
from ..base.command import TABLE, Invocation, configuration
from ..launch.launch import LaunchOptions
from .page_chunks import ChunkedPages, failure_line
from .reader import pages_of_file
from .reading_job import Output, Reading, ReadItem, export_parts, output_of

ARGUMENTS = (TABLE,)
ENDINGS = (".jsonl", ".jsonl.gz", ".csv", ".csv.gz", ".parquet")


@dataclasses.dataclass(frozen=True)
class Options(TextOptions, MarkdownOptions, LaunchOptions, ChunkOptions):
    """Options of pages, and of their chunks."""

    output: str = option(
        "-", "File to write: .jsonl, .csv or .parquet, the first two also with .gz at the end. "
        "- is standard output, as JSON lines.",
        short="o",
    )  # fmt: skip
    columns: tuple[str, ...] = option(
        (),
        "Columns to write, such as url,title,text or url,markdown; the default is all but markdown, "
        "blocks, main, headers, body, batch_id and key. With --chunks, columns of chunks: by default all.",
    )
    status: tuple[str, ...] = option(
        ("fetched", "unfetched"),
        "Statuses of the pages to write. By default pages that are alive: fetched (or not modified "
        "since), and those whose next fetch failed but is tried again.",
        choices=STATUS_WORDS,
    )  # fmt: skip
    since: str = option(
        "", "Only pages whose text was fetched at this date or time (UTC) or later, such as "
        "2026-11-01 or 2026-11-01T12:30.",
    )  # fmt: skip
    new: str = option(
        "",
        "File that records the last run: write only pages that are new or changed since then, or "
        "all if the file does not exist. Then the run writes the file.",
    )

    def __post_init__(self) -> None:
        if self.output != "-" and not self.output.endswith(ENDINGS):
            raise ValueError(f"--output must end in {', '.join(ENDINGS)}, got {self.output!r}")
        try:
            self.wanted_columns()
        except ValueError as error:
            raise ValueError(f"--{error}") from error
        if self.since:
            try:
                time_of(self.since)
            except ValueError as error:
                raise ValueError(f"--since {error}") from error

    def wanted_columns(self) -> Columns:
        """Returns the columns to write: of pages, or of chunks.

        Raises:
            ValueError: There is no such column; the message quotes it.
        """
        if not self.chunks:
            return views()["pages"].pick(self.columns)
        return CHUNK_COLUMNS.pick_named(*self.columns) if self.columns else CHUNK_COLUMNS

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
        return PageChoice(
            CHUNKED_COLUMNS if self.chunks else self.wanted_columns(),
            tuple(sorted({code for word in self.status for code in statuses_of(word)})),
            time_of(self.since) if self.since else None,
            frozenset(batches),
            self.text_of,
            self.markdown_links,
        )


def run(invocation: Invocation) -> int:
    address, options = str(invocation.table), invocation.options
    with configuration():
        check_setup(options)
    output = output_of(options.output, "--output")
    batches_file = output_of(options.new, "--new").path if options.new else None
    choice = options.choice(read_batches(batches_file) if batches_file else ())
    chunked = options.chunked_pages()

    def build(items: beam.PCollection[ReadItem], reading: Reading) -> None:
        (
            items
            | "Rows" >> beam.FlatMap(rows_by_document, choice).with_output_types(tuple[str, Chunk])
            | "Write" >> ForEachDocument(_write, (reading, choice, output, chunked))
        )

    with export_parts(address, build, invocation.beam_args, options) as (manifest, parts):
        report = chunked.read_report(parts) if chunked else EmbeddingReport()
        schema = chunked.schema(report) if chunked else shown_schema(choice.columns)
        number = output.join(parts, schema.names, schema)
    if batches_file:
        write_batches(batches_file, manifest)
    if line := failure_line(options, report):
        print(visible(f"nutbeam pages: {line}"), file=sys.stderr)
    if output.path:
        things = "chunks" if chunked else "pages"
        record: dict[str, Any] = {things: number, "output": str(output.path)}
        if report.failed:
            record["failed"] = {embedding_reason(options.embedding): report.failed}
        text = f"{format_count(number, things)} in {output.path}"
        print(json.dumps(record) if invocation.format == "json" else text)
    return 0


def rows_by_document(item: ReadItem, choice: PageChoice) -> Iterator[tuple[str, Chunk]]:
    """Yields the rows of the state of a tablet, with the name of the file that has their documents."""
    assert item.tablet is not None
    with item.reading.reading():
        table = item.reading.table
        verify_tablets(table, item.tablet)  # damaged rows are not exported
        rows = table.read("state", [item.tablet], choice.state_columns, choice.in_state)
    for (document,), group in rows.group_by("document", maintain_order=True):
        for chunk in to_chunks(group):
            yield str(document), chunk


def _write(
    document: str,
    rows: pl.DataFrame,
    reading: Reading,
    choice: PageChoice,
    output: Output,
    chunked: ChunkedPages | None,
) -> tuple[()]:
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
