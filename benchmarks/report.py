"""report: the page of a table of 10 million rows, against bare scans of its files in DuckDB.

``python benchmarks/report.py [--small]``. Both in one process, the work alone, once each has run on a tiny
table. DuckDB counts the rows by the columns of the report's figures, and sums what the report has of each
host. Budget: 10 s beside the start, and a page of at most 2 MB.
"""

import functools
import pathlib
import sys
import tempfile

import measure
import tables

BUDGET, LARGEST = 10.0, 2 << 20
HOST = "substr(key, 1, instr(key, ':') - 1)"
QUERIES = (
    *(
        f"SELECT {column}, count(*) FROM rows GROUP BY 1"
        for column in ("status", "http_code", "content_type", "distance", "fetch_time // 86400000",
                       "last_fetch_time // 86400000", "protocol_status")
    ),
    f"""SELECT {HOST}, count(*) AS n, avg(response_ms), count(*) FILTER (status = 3) FROM rows
        GROUP BY 1 ORDER BY n DESC LIMIT 20""",
    "SELECT key, score FROM rows ORDER BY score DESC LIMIT 20",
)  # fmt: skip


def ours(tiny: str, table: str) -> int:
    """Writes the page of a table, first that of a tiny one; returns its size, bytes."""
    page = pathlib.Path(table).with_suffix(".html")
    for number, place in enumerate((tiny, table)):
        if number == 0:
            measure.nutbeam("report", place, "-o", page)
            continue
        with measure.measured():
            measure.nutbeam("report", place, "-o", page)
    return page.stat().st_size


def theirs(tiny: str, table: str) -> None:
    """Runs the queries in DuckDB."""
    import duckdb

    connection = duckdb.connect(config={"threads": 2})
    for number, place in enumerate((tiny, table)):
        files = sorted(map(str, (pathlib.Path(place) / "state").glob("*.parquet")))
        connection.execute(f"CREATE OR REPLACE VIEW rows AS SELECT * FROM read_parquet({files})")
        if number == 0:
            _run_queries(connection)
            continue
        with measure.measured():
            _run_queries(connection)


def _run_queries(connection: object) -> None:
    for query in QUERIES:
        connection.execute(query).fetchall()  # type: ignore[attr-defined]


def make(table: str, rows: int, hosts: int) -> None:
    """Writes a table, in a process of its own."""
    tables.make_table(pathlib.Path(table), rows, hosts, None)


def main(small: bool) -> None:
    rows, repeats = (200_000, 2) if small else (10_000_000, 3)
    with tempfile.TemporaryDirectory() as folder:
        table, tiny = f"{folder}/table", f"{folder}/tiny"
        measure.fresh("report", "make", table, rows, rows // 50)
        measure.fresh("report", "make", tiny, 1_000, 10)
        runs = {
            name: functools.partial(measure.fresh, "report", name, tiny, table)
            for name in ("ours", "theirs")
        }
        found = measure.interleaved(runs, repeats)
    work = [measure.median(found[name], "work") for name in ("ours", "theirs")]
    cpu = [measure.median(found[name], "cpu") for name in ("ours", "theirs")]
    size = found["ours"][0].result
    heads = ("seconds", "report", "DuckDB", "ratio", "budget")
    shown = [
        ("of work", *work, work[0] / work[1], BUDGET),
        ("of CPU time", *cpu, cpu[0] / cpu[1], ""),
    ]
    measure.table(f"{rows:,} rows; median of {repeats}; a page of {size:,} bytes", heads, shown)
    if size > LARGEST:
        raise SystemExit(f"the page has {size:,} bytes, more than {LARGEST:,}")


if __name__ == "__main__":
    main("--small" in sys.argv)
