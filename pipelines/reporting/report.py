"""report: shows a crawl on one HTML page: state, rounds, speed, hosts, reasons, pages."""

import sys
from pathlib import Path

from ...io.table.opening import open_table
from ...policy.reporting.crawl_figures import CrawlFigures
from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError
from ...web.base.options import option
from ...web.base.wording import format_count
from ..base.command import TABLE, Invocation, gives_record
from ..outputs.output_files import output_of
from .charts import check_charts
from .read_figures import read_crawl_figures
from .report_page import report_page

ARGUMENTS = (TABLE,)
_ENDINGS = (".html", ".htm")


@dataclass(frozen=True)
class Options:
    """Options of report."""

    output: str = option(
        "-", "File to write: .html; - is standard output.", short="o",
    )  # fmt: skip
    snapshot: int = option(
        0, "Number of the snapshot to show, as in nutbeam history; 0 is the newest.", minimum=0
    )
    compare: str = option(
        "",
        "What to show beside it: the address of another table, or the number of a snapshot of this one.",
    )

    def __post_init__(self) -> None:
        if self.output != "-" and Path(self.output).suffix not in _ENDINGS:
            raise ValueError(f"--output must end in .html, got {self.output!r}")


def run(invocation: Invocation) -> int:
    address, options = str(invocation.table), invocation.options
    check_charts()
    if options.output == "-" and invocation.take_record is not None:
        raise UsageError("output must name a file: a call prints no page")
    output = output_of(options.output, "--output", ".html")
    other_address = _other_address(address, options.compare)
    figures = read_crawl_figures(address, options.snapshot or None)
    other = None if other_address is None else read_crawl_figures(*other_address)
    page = report_page(figures, other).encode("utf-8", "replace")
    with output.open_file() as file:
        file.write(page)
    _print_result(invocation, figures, page)
    return 0


def _other_address(address: str, compare: str) -> tuple[str, int | None] | None:
    """Returns (address, snapshot or None) of what a table is compared with; None without it."""
    if not compare:
        return None
    if compare.isdecimal():
        return address, int(compare)
    open_table(compare)  # an address that cannot be fails before any work
    return compare, None


def _print_result(invocation: Invocation, figures: CrawlFigures, page: bytes) -> None:
    output = invocation.options.output
    if output == "-":
        return
    record = {"output": output, "snapshot": figures.snapshot, "urls": figures.urls, "bytes": len(page),
              "notes": list(figures.notes)}  # fmt: skip
    if not gives_record(invocation, record):
        print(f"report on {format_count(figures.urls, 'URLs')} in {output}, {len(page):,} bytes")
        for note in figures.notes:
            print(f"nutbeam report: {note}", file=sys.stderr)
