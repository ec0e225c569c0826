"""A table of many rows for real: how it is made, what generate and an update of 100,000 pages cost.

``python benchmarks/scale.py rows [--rows=100000000] [--pages=100000] [--folder=DIR] [--small]``. Rows are made in key
order and written by the product's own tablet writer, as an update would leave them. The same is done
with a tenth of the rows. The figures end with what each of them takes per row, for estimates.

Budget: generate at most 60 s and 1 GB at 100 million rows; the update at most 1.5 times the time that it
takes on a tenth of the rows.
"""

import pathlib
import shutil
import sys
import tempfile
from collections.abc import Sequence

import measure
import tables

TOP_N = 100_000
PAGES, LINKS = 100_000, 60
MOST_SECONDS, MOST_BYTES, MOST_RATIO = 60, 1e9, 1.5


def make(table: str, rows: int) -> dict[str, int]:
    """Writes a table; returns the bytes of its files, and their number."""
    tables.make_table(pathlib.Path(table), rows, rows // 25)
    sizes = measure.files_of(table)
    return {"bytes": sum(sizes.values()), "files": len(sizes)}


def add_batch(table: str, rows: int, pages: int) -> None:
    """Adds a parsed batch, whose links lead everywhere in the table."""
    tables.add_batch(pathlib.Path(table), rows, rows // 25, pages, LINKS)


def _option(name: str, default: str) -> str:
    words = [word for word in sys.argv[1:] if word.startswith(f"--{name}=")]
    return words[-1].partition("=")[2] if words else default


def measure_size(folder: pathlib.Path, rows: int, pages: int) -> dict[str, measure.Figures]:
    """Makes a table and measures the jobs on it; its files are removed after them."""
    table, tiny = folder / f"rows-{rows}", folder / f"tiny-{rows}"
    figures = {"make": measure.fresh("scale_rows", "make", str(table), rows)}
    copy = tables.clone(table, folder / f"generate-{rows}")
    figures["generate"] = measure.fresh("generate", "ours", "", str(copy), TOP_N, -1)
    shutil.rmtree(copy)
    measure.fresh("scale_rows", "add_batch", str(table), rows, pages)
    measure.fresh("update", "make", str(tiny), 1_000, 10, 5)
    figures["update"] = measure.fresh("update", "ours", str(tiny), str(table))
    shutil.rmtree(table)
    shutil.rmtree(tiny)
    return figures


def show(sizes: Sequence[int], figures: Sequence[dict[str, measure.Figures]], pages: int) -> None:
    """Prints the figures of two tables, and whether the bars are met."""
    making = [figure["make"] for figure in figures]
    heads = ("", *(f"{rows:,} rows" for rows in sizes), "ratio", "ns or bytes a further row")
    further = sizes[1] - sizes[0]
    shown: list[tuple[object, ...]] = []

    def line(what: str, values: list[float], scale: float = 1e9) -> None:
        more = (values[1] - values[0]) * scale / further
        shown.append((what, *values, values[1] / values[0], more))

    line("made: seconds", [one.work for one in making])
    line("made: CPU s", [one.cpu for one in making])
    line("made: MB on disk", [one.result["bytes"] / 1e6 for one in making], 1e6)
    line("made: peak memory, MB", [one.peak / 1e6 for one in making], 1e6)
    for job in ("generate", "update"):
        used = [figure[job] for figure in figures]
        line(f"{job}: seconds", [one.work for one in used])
        line(f"{job}: CPU s", [one.cpu for one in used])
        line(f"{job}: peak memory, MB", [one.peak / 1e6 for one in used], 1e6)
    line("update: written, MB", [one["update"].result["written"] / 1e6 for one in figures], 1e6)
    measure.table(f"the best {TOP_N:,}; {pages:,} pages of {LINKS} links", heads, shown)
    generate, ratio = figures[1]["generate"], figures[1]["update"].work / figures[0]["update"].work
    for what, value, bar in (
        ("generate, seconds", generate.work, MOST_SECONDS),
        ("generate, GB", generate.peak / 1e9, MOST_BYTES / 1e9),
        ("update, ratio", ratio, MOST_RATIO),
    ):
        print(f"  {what}: {value:.2f}, at most {bar:g}: {'held' if value <= bar else 'MISSED'}")


def main() -> None:
    """Prints the block."""
    small = "--small" in sys.argv[1:]
    rows = int(_option("rows", "200000" if small else "100000000"))
    pages = int(_option("pages", "2000" if small else str(PAGES)))
    sizes = (rows // 10, rows)
    with tempfile.TemporaryDirectory(
        prefix="scale-rows-", dir=_option("folder", "") or None
    ) as name:
        show(sizes, [measure_size(pathlib.Path(name), size, pages) for size in sizes], pages)
