"""extract: takes fields from the newest stored body of each living URL, by a file of rules; fetches nothing.

::

    state ─ rows by documents file ─ its bodies ─ child processes: fields of pages ─▶ parts ─▶ one file
"""

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

from ...io.batches.batches import live_file
from ...io.storage.files import read_bytes, write_bytes
from ...io.storage.places import Place
from ...io.tablets.checksums import verify_file
from ...policy.components.columns import Columns, join_columns
from ...policy.components.views import views
from ...policy.components.vocabulary import CHANGE_COLUMNS, shown_schema, statuses_of
from ...policy.extracting.extracted_rows import extracted_schema, plain_decimal
from ...policy.extracting.page_records import EXTRACTED_FROM
from ...policy.page_rows import PageChoice
from ...transforms.elements.chunks import Chunk
from ...transforms.for_each import ForEachDocument
from ...transforms.parsing import PoolOptions
from ...web.base.dataclass import dataclass
from ...web.base.option_checks import check_setup
from ...web.base.options import option, shared_option
from ...web.base.safe_json import json_object
from ...web.base.visible import visible
from ...web.base.wording import format_count
from ...web.extracting.extraction_rules import RuleSet
from ...web.extracting.rule_reader import read_extraction_file
from ...web.pages.parse_options import ParseOptions
from ..base.command import (
    DONE,
    RULES_FAILED,
    TABLE,
    Argument,
    Invocation,
    configuration,
    gives_record,
)
from ..launch.launch import LaunchOptions
from ..outputs.output_files import Output, write_parquet
from ..outputs.output_tables import CatalogOptions
from . import pages
from .changed_records import rows_without_records, with_changes
from .extracted_reader import extracted_tables
from .pages import LAST_PART, NO_DOCUMENT, rows_by_document
from .reader import pages_of_file
from .reading_job import Reading, ReadItem
from .reading_pipeline import export_parts
from .rows_destination import check_destination, destination_of, shows_changes
from .rule_reports import RulesReport, report_rules

ARGUMENTS = (TABLE, Argument("rules", "File of rules (toml); see the guide on extracting."))


@dataclass(frozen=True)
class Options(LaunchOptions, PoolOptions, CatalogOptions):
    """Options of extract."""

    GROUP = "extract"

    output: str = shared_option(pages.Options, "output")
    status: tuple[str, ...] = shared_option(pages.Options, "status")
    since: str = shared_option(pages.Options, "since")
    strict: bool = option(
        False,
        f"End with exit code {RULES_FAILED} if a rule finds nothing, or much less than in the run before.",
    )
    parser_timeout: float = shared_option(ParseOptions, "parser_timeout")

    def __post_init__(self) -> None:
        check_destination(self)

    def choice(self) -> PageChoice:
        """Returns the wanted pages, with what rules need of them."""
        statuses = sorted({code for word in self.status for code in statuses_of(word)})
        needed = views()["pages"].pick(EXTRACTED_FROM)
        return PageChoice(join_columns(self.change_columns, needed), tuple(statuses))

    @property
    def change_columns(self) -> Columns:
        """The columns of rows that say what became of their page; none if all pages are written."""
        return CHANGE_COLUMNS if shows_changes(self) else Columns()

    def schema(self, rules: RuleSet) -> pa.Schema:
        """Returns the columns of the rows of a set of rules."""
        return pa.schema([*shown_schema(self.change_columns), *extracted_schema(rules)])


def run(invocation: Invocation) -> int:
    address, options = str(invocation.table), invocation.options
    with configuration():
        check_setup(options)
        rules = read_extraction_file(invocation.arguments["rules"], "rules")
    loaded = {"--status": list(options.status), "rules": f"{rules.name} {rules.version}"}
    destination = destination_of(invocation, rules.name, loaded)

    def build(items: beam.PCollection[ReadItem], reading: Reading) -> None:
        (
            items
            | "Rows"
            >> beam.FlatMap(rows_by_document, options.choice()).with_output_types(tuple[str, Chunk])
            | "Extract" >> ForEachDocument(_write, (reading, rules, destination.output, options))
        )

    exported = export_parts(address, build, invocation.beam_args, options, destination.divide)
    with exported as (manifest, parts):
        counts = sum((_read_counts(part) for part in parts), Counter[str]())
        number = destination.bring(parts, options.schema(rules), manifest)
    only_changes = destination.since is not None
    report = report_rules(address, rules, counts, "extract", stored=False, some_pages=only_changes)
    _print(invocation, destination.place, number, report)
    return RULES_FAILED if options.strict and report.warnings else DONE


def _write(
    document: str,
    rows: pl.DataFrame,
    reading: Reading,
    rules: RuleSet,
    output: Output,
    options: Options,
) -> tuple[()]:
    schema = options.schema(rules)
    if document == NO_DOCUMENT:
        gone = rows_without_records(rows, schema)
        path = reading.part_file(LAST_PART, output.suffix)
        _write_part(path, [gone], schema, output)
        write_bytes(_counts_of(path), b"{}")
        return ()
    file = live_file(reading.table, reading.manifest(), document)
    if file is None:
        return ()  # compact has dropped the file
    with reading.reading():
        verify_file(reading.table, file)
        stored_pages = pages_of_file(reading, file, options.choice(), rows)
    counts = Counter[str]()
    path = reading.part_file(file.order, f"-{document.rpartition('/')[2]}{output.suffix}")
    tables = extracted_tables(stored_pages, rules, options, counts)
    if options.change_columns:
        tables = with_changes(tables, stored_pages, schema)
    _write_part(path, tables, schema, output)
    write_bytes(_counts_of(path), json.dumps(counts).encode())
    return ()


def _write_part(path: Place, tables: Iterable[pa.Table], schema: pa.Schema, output: Output) -> None:
    if output.suffix == ".parquet":
        write_parquet(path, tables, schema)
    else:
        output.write(path, (record for table in tables for record in _records(table)))


def _records(table: pa.Table) -> Iterator[dict[str, Any]]:
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


def _print(invocation: Invocation, place: str, rows: int, report: RulesReport) -> None:
    """Prints what the rules have found: the rows themselves may be on standard output."""
    for line in report.warning_lines if invocation.take_record is None else ():
        print(visible(f"nutbeam extract: {line}"), file=sys.stderr)
    if not place:
        return
    if not gives_record(invocation, {"rows": rows, "output": place, **report.record()}):
        print("\n".join(report.lines))
        print(f"{format_count(rows, 'rows')} in {place} (rules {report.version})")
