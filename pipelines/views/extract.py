"""extract: takes fields from the newest stored body of each living URL, by a file of rules; fetches nothing.

::

    state ─ rows by documents file ─ its bodies ─ child processes: fields of pages ─▶ parts ─▶ one file
"""

import dataclasses
import datetime
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

import apache_beam as beam
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from ...io.batches.batches import live_file
from ...io.storage.files import creating, read_bytes, write_bytes
from ...io.storage.places import Place
from ...io.tablets.checksums import verify_file
from ...policy.components.views import views
from ...policy.components.vocabulary import statuses_of
from ...policy.extracting.extracted_rows import EXTRACTED_FROM, extracted_schema, plain_decimal
from ...policy.page_rows import PageChoice
from ...transforms.elements.chunks import Chunk
from ...transforms.extract_pages import ExtractDocuments
from ...transforms.parse_pages import PoolOptions
from ...web.base.option_checks import check_setup
from ...web.base.options import option, shared_option
from ...web.base.safe_json import json_object
from ...web.base.visible import visible
from ...web.base.wording import format_count, time_of
from ...web.extracting.extraction_rules import RuleSet
from ...web.extracting.rule_reader import read_extraction_file
from ...web.pages.parse_options import ParseOptions
from ..base.command import DONE, TABLE, Argument, Invocation, configuration
from ..launch.launch import LaunchOptions
from ..outputs.output_files import Output, output_of
from . import pages
from .extracted_reader import extracted_tables
from .pages import rows_by_document
from .reader import pages_of_file
from .reading_job import Reading, ReadItem, export_parts
from .rule_reports import RulesReport, report_rules

ARGUMENTS = (TABLE, Argument("rules", "File of rules (toml); see the guide on extracting."))
ENDINGS_OF_ROWS = (".parquet", ".jsonl", ".jsonl.gz", ".csv", ".csv.gz")
# A rule that suddenly finds nothing, with --strict.
RULES_FAILED = 5
_PAGES_AT_ONCE = 256


@dataclasses.dataclass(frozen=True)
class Options(LaunchOptions, PoolOptions):
    """Options of extract."""

    GROUP = "extract"

    output: str = option(
        "-", "File to write: .parquet, .jsonl or .csv, the last two also with .gz at the end. "
        "- is standard output, as JSON lines.",
        short="o",
    )  # fmt: skip
    status: tuple[str, ...] = shared_option(pages.Options, "status")
    since: str = shared_option(pages.Options, "since")
    strict: bool = option(
        False,
        f"End with exit code {RULES_FAILED} if a rule finds nothing, or much less than in the run before.",
    )
    parser_timeout: float = shared_option(ParseOptions, "parser_timeout")

    def __post_init__(self) -> None:
        if self.output != "-" and not self.output.endswith(ENDINGS_OF_ROWS):
            raise ValueError(
                f"--output must end in {', '.join(ENDINGS_OF_ROWS)}, got {self.output!r}"
            )
        if self.since:
            try:
                time_of(self.since)
            except ValueError as error:
                raise ValueError(f"--since {error}") from error

    def choice(self) -> PageChoice:
        """Returns the wanted pages, with what rules need of them."""
        statuses = sorted({code for word in self.status for code in statuses_of(word)})
        return PageChoice(views()["pages"].pick(EXTRACTED_FROM), tuple(statuses))


def run(invocation: Invocation) -> int:
    address, options = str(invocation.table), invocation.options
    with configuration():
        check_setup(options)
        rules = read_extraction_file(invocation.arguments["rules"], "rules")
    output = output_of(options.output, "--output")
    schema = extracted_schema(rules)

    def build(items: beam.PCollection[ReadItem], reading: Reading) -> None:
        (
            items
            | "Rows"
            >> beam.FlatMap(rows_by_document, options.choice()).with_output_types(tuple[str, Chunk])
            | "Extract" >> ExtractDocuments(_write, (reading, rules, output, options))
        )

    with export_parts(address, build, invocation.beam_args, options) as (_, parts):
        counts = sum((_read_counts(part) for part in parts), Counter[str]())
        number = output.join(parts, schema.names, schema)
    report = report_rules(address, rules, counts, "extract", stored=False)
    _print(invocation, output, number, report)
    return RULES_FAILED if options.strict and report.warnings else DONE


def _write(
    document: str,
    rows: pl.DataFrame,
    reading: Reading,
    rules: RuleSet,
    output: Output,
    options: Options,
) -> tuple[()]:
    file = live_file(reading.table, reading.manifest(), document)
    if file is None:
        return ()  # compact has dropped the file
    with reading.reading():
        verify_file(reading.table, file)
        stored_pages = pages_of_file(reading, file, options.choice(), rows)
    counts = Counter[str]()
    path = reading.part_file(file.order, f"-{document.rpartition('/')[2]}{output.suffix}")
    _write_rows(path, extracted_tables(stored_pages, rules, options, counts), rules, output)
    write_bytes(_counts_of(path), json.dumps(counts).encode())
    return ()


def _write_rows(path: Place, tables: Iterable[pa.Table], rules: RuleSet, output: Output) -> None:
    if output.suffix != ".parquet":
        output.write(path, (record for table in tables for record in _records(table, rules)))
        return
    schema = extracted_schema(rules)
    with creating(path) as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for table in tables:
            writer.write_table(table)


def _records(table: pa.Table, rules: RuleSet) -> Iterator[dict[str, Any]]:
    """Yields rows for JSON lines and CSV."""
    for row in table.to_pylist():
        yield {name: _plain(value) for name, value in row.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, datetime.datetime):
        return value.isoformat().replace("+00:00", "Z")
    return plain_decimal(value) if isinstance(value, Decimal) else value


def _counts_of(part: Place) -> Place:
    return part.with_name(f".{part.name}.json")


def _read_counts(part: Place) -> Counter[str]:
    return Counter(json_object(read_bytes(_counts_of(part))))


def _print(invocation: Invocation, output: Output, rows: int, report: RulesReport) -> None:
    """Prints what the rules have found: the rows themselves may be on standard output."""
    for line in report.warning_lines:
        print(visible(f"nutbeam extract: {line}"), file=sys.stderr)
    if not output.path:
        return
    if invocation.format == "json":
        print(json.dumps({"rows": rows, "output": str(output.path), **report.record()}))
        return
    print("\n".join(report.lines))
    print(f"{format_count(rows, 'rows')} in {output.path} (rules {report.version})")
