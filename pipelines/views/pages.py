"""pages: writes the newest text of each living URL, one record each, as JSON lines, CSV or Parquet.

::

    state ─ rows by documents file ─ read that file, keep the newest documents ─▶ parts ─▶ one file
"""

import dataclasses
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import apache_beam as beam
import polars as pl

from ...io.batches.batches import live_file
from ...io.snapshots.manifest import Manifest
from ...io.storage.files import write_bytes
from ...io.storage.local_place import LocalPlace
from ...io.tablets.checksums import verify_file, verify_tablets
from ...policy.chosen_text import TextOptions
from ...policy.components.vocabulary import STATUS_WORDS, shown_schema, statuses_of
from ...policy.page_rows import PageChoice, page_columns
from ...transforms.elements.chunks import Chunk, to_chunks
from ...transforms.for_each import ForEachDocument
from ...web.base.errors import UsageError
from ...web.base.options import option
from ...web.base.safe_json import json_object
from ...web.base.wording import time_of
from ..base.command import TABLE, Invocation
from ..launch.launch import LaunchOptions
from .reader import pages_of_file
from .reading_job import Output, Reading, ReadItem, export_parts, output_of

ARGUMENTS = (TABLE,)
ENDINGS = (".jsonl", ".jsonl.gz", ".csv", ".csv.gz", ".parquet")


@dataclasses.dataclass(frozen=True)
class Options(TextOptions, LaunchOptions):
    """Options of pages."""

    output: str = option(
        "-", "File to write: .jsonl, .csv or .parquet, the first two also with .gz at the end. "
        "- is standard output, as JSON lines.",
        short="o",
    )  # fmt: skip
    columns: tuple[str, ...] = option(
        (),
        "Columns to write, such as url,title,text or url,markdown; the default is all but markdown, "
        "blocks, main, headers, body, batch_id and key.",
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
            page_columns(self.columns)
        except ValueError as error:
            raise ValueError(f"--{error}") from error
        if self.since:
            try:
                time_of(self.since)
            except ValueError as error:
                raise ValueError(f"--since {error}") from error

    def choice(self, batches: Iterable[str]) -> PageChoice:
        """Returns the wanted pages.

        Args:
            batches: Batches whose pages were written before.
        """
        return PageChoice(
            page_columns(self.columns),
            tuple(sorted({code for word in self.status for code in statuses_of(word)})),
            time_of(self.since) if self.since else None,
            frozenset(batches),
            self.text_of,
        )


def run(invocation: Invocation) -> int:
    address, options = str(invocation.table), invocation.options
    output = output_of(options.output, "--output")
    batches_file = output_of(options.new, "--new").path if options.new else None
    choice = options.choice(read_batches(batches_file) if batches_file else ())
    schema = shown_schema(choice.columns)

    def build(items: beam.PCollection[ReadItem], reading: Reading) -> None:
        (
            items
            | "Rows" >> beam.FlatMap(_rows_by_document, choice).with_output_types(tuple[str, Chunk])
            | "Write" >> ForEachDocument(_write, (reading, choice, output))
        )

    with export_parts(address, build, invocation.beam_args, options) as (manifest, parts):
        number = output.join(parts, schema.names, schema)
    if batches_file:
        write_batches(batches_file, manifest)
    if output.path:
        record = {"pages": number, "output": str(output.path)}
        text = f"{number:,} page{'s' * (number != 1)} in {output.path}"
        print(json.dumps(record) if invocation.format == "json" else text)
    return 0


def _rows_by_document(item: ReadItem, choice: PageChoice) -> Iterator[tuple[str, Chunk]]:
    assert item.tablet is not None
    with item.reading.reading():
        table = item.reading.table
        verify_tablets(table, item.tablet)  # damaged rows are not exported
        rows = table.read("state", [item.tablet], choice.state_columns, choice.in_state)
    for (document,), group in rows.group_by("document", maintain_order=True):
        for chunk in to_chunks(group):
            yield str(document), chunk


def _write(
    document: str, rows: pl.DataFrame, reading: Reading, choice: PageChoice, output: Output
) -> tuple[()]:
    file = live_file(reading.table, reading.manifest(), document)
    if file is None:
        return ()  # compact has dropped the file: there is no text to show
    path = reading.part_file(file.order, f"-{Path(document).stem}{output.suffix}")
    with reading.reading():
        verify_file(reading.table, file)
        pages = pages_of_file(reading, file, choice, rows)
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
