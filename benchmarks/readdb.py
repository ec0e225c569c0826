"""readdb: the figures of 5 million rows, and one URL, against the same queries in DuckDB.

``python benchmarks/readdb.py [--small]``. Both in one process, the work alone, once each has run on
a tiny table. Budget: the figures in at most 1 s of work beside the start, one URL in 0.5 s.

``--bigtable``: the figures of tables in Bigtable's emulator, of two sizes. Budget: at most 10 µs of
CPU time of the client a row, in memory that does not grow with the table.
"""

import functools
import pathlib
import sys
import tempfile

import bigtable
import measure
import tables

QUANTILES = "[0.01,0.05,0.1,0.2,0.25,0.3,0.4,0.5,0.6,0.7,0.75,0.8,0.9,0.95,0.99]"
FIGURES = f"""
    SELECT status, retries, count(*), min(fetch_time), max(fetch_time), avg(fetch_interval)
    FROM rows GROUP BY ALL;
    SELECT min(score), avg(score), max(score), approx_quantile(score, {QUANTILES}) FROM rows
"""
BUDGETS = {"figures": 1.0, "one URL": 0.5}
CPU_BUDGET = 10  # µs a row, in Bigtable


def ours(tiny: str, table: str, what: str) -> None:
    """Shows the figures of a table, or a URL; first those of a tiny one."""
    words = {"figures": (), "one URL": ("http://www.host7.example.com/7",)}[what]
    for number, place in enumerate((tiny, table)):
        if number == 0:
            _shown(place, words)
            continue
        with measure.measured():
            _shown(place, words)


def _shown(table: str, words: tuple[str, ...]) -> None:
    from nutbeam.pipelines.command_line.cli import main

    main(["readdb", table, *words, "--progress=false"])  # 1: it has no such URL


def theirs(tiny: str, table: str, what: str) -> None:
    """Does the same in DuckDB."""
    import duckdb

    connection = duckdb.connect(config={"threads": 2})
    query = FIGURES if what == "figures" else "SELECT * FROM rows WHERE key = 'com.example.x:http/'"
    for number, place in enumerate((tiny, table)):
        files = sorted(map(str, (pathlib.Path(place) / "state").glob("*.parquet")))
        connection.execute(f"CREATE OR REPLACE VIEW rows AS SELECT * FROM read_parquet({files})")
        if number == 0:
            connection.execute(query).fetchall()
            continue
        with measure.measured():
            connection.execute(query).fetchall()


def make(table: str, rows: int, hosts: int) -> None:
    """Writes a table, in a process of its own."""
    tables.make_table(pathlib.Path(table), rows, hosts, None)


def main(small: bool) -> None:
    rows, repeats = (200_000, 2) if small else (5_000_000, 5)
    with tempfile.TemporaryDirectory() as folder:
        table, tiny = f"{folder}/table", f"{folder}/tiny"
        measure.fresh("readdb", "make", table, rows, rows // 50)
        measure.fresh("readdb", "make", tiny, 1_000, 10)
        shown = []
        for what, budget in BUDGETS.items():
            runs = {
                name: functools.partial(measure.fresh, "readdb", name, tiny, table, what)
                for name in ("ours", "theirs")
            }
            found = measure.interleaved(runs, repeats)
            took = [measure.median(found[name], "work") for name in ("ours", "theirs")]
            shown.append((what, *took, took[0] / took[1], budget))
        heads = ("seconds of work", "readdb", "DuckDB", "ratio", "budget")
        measure.table(f"{rows:,} rows; median of {repeats}", heads, shown)


def in_bigtable(small: bool) -> None:
    """Shows what the figures of tables in Bigtable cost."""
    sizes, repeats = ((20_000,), 1) if small else ((100_000, 400_000), 3)
    with (
        tempfile.TemporaryDirectory(prefix="readdb-") as folder,
        bigtable.emulator() as emulator,
    ):
        addresses = {}
        for rows in (1_000, *sizes):
            table = f"{folder}/{rows}"
            addresses[rows] = emulator.make(pathlib.Path(f"{folder}/files-{rows}"))
            measure.fresh("readdb", "make", table, rows, max(10, rows // 50))
            measure.command("copy", table, addresses[rows])
        runs = {
            rows: functools.partial(
                measure.fresh, "readdb", "ours", addresses[1_000], addresses[rows], "figures"
            )
            for rows in sizes
        }
        found = measure.interleaved(runs, repeats)
    shown = [
        (f"{rows:,}", measure.median(found[rows], "work"),
         measure.median(found[rows], "cpu") / rows * 1e6, CPU_BUDGET,
         measure.median(found[rows], "peak") / 2**20)
        for rows in sizes
    ]  # fmt: skip
    heads = ("rows", "seconds of work", "CPU µs a row", "budget", "peak memory, MB")
    measure.table(f"readdb of tables in Bigtable's emulator; median of {repeats}", heads, shown)


if __name__ == "__main__":
    (in_bigtable if "--bigtable" in sys.argv else main)("--small" in sys.argv)
