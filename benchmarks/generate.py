"""generate against the same query in DuckDB on the same files.

``python benchmarks/generate.py [--small] [--memory]``. A table of 10 million rows, of which 20 %
are due, on 200,000 hosts; the best 100,000 by score, with at most 100 a host and without limit.

Budget: at most twice DuckDB's time, measured alike: both as whole processes, and both as the work
alone, once each has run on a tiny table in its process. Peak memory under 1.5 GB.

``--memory`` instead compares the peak memory of generate, updatedb and compact on a table of 2 million
rows and on one of 20 million: within 20 %.
"""

import functools
import pathlib
import shutil
import sys
import tempfile
import time

import measure
import tables

THREADS = 2
LINKS = 60
MAX_FETCH_INTERVAL_MS = 7_776_000_000
QUERY = """
COPY (
    SELECT key, score
    FROM read_parquet({files})
    WHERE (fetch_time <= {now} OR fetch_time > {now} + {longest}) AND score >= 0
    {limit}
    ORDER BY score DESC
    LIMIT {top_n}
) TO '{output}' (FORMAT parquet, COMPRESSION zstd)
"""
LIMIT = """
    QUALIFY row_number() OVER (PARTITION BY split_part(key, ':', 1) ORDER BY score DESC) <= {}
"""


def ours(tiny: str, table: str, top_n: int, max_count: int) -> None:
    """Chooses a batch; with ``tiny``, only after one was chosen there."""
    options = (f"--top_n={top_n}", f"--max_count={max_count}", "--progress=false")
    if tiny:
        measure.nutbeam("generate", tiny, *options)
    with measure.measured():
        measure.nutbeam("generate", table, *options)


def theirs(tiny: str, table: str, top_n: int, max_count: int, output: str) -> None:
    """Does the same with DuckDB, straight from the Parquet files to one."""
    import duckdb

    connection = duckdb.connect(config={"threads": THREADS})
    if tiny:
        connection.execute(_query(tiny, top_n, max_count, output))
    with measure.measured():
        connection.execute(_query(table, top_n, max_count, output))


def update(table: str) -> None:
    """Brings the batch that waits into the table."""
    measure.nutbeam("updatedb", table, "--progress=false")


def add_runs(table: str) -> None:
    """Puts three runs on each tablet, of 5 % of its rows each."""
    tables.add_runs(pathlib.Path(table), 0.05, 3)


def compact(table: str) -> None:
    """Writes all tablets again."""
    measure.nutbeam("compact", table, "--full", "--progress=false")


def make(table: str, rows: int, hosts: int, tablet_rows: int | None, batch: int) -> None:
    """Writes a table, in a process of its own as all else here; ``batch`` is its pages, or 0."""
    tables.make_table(pathlib.Path(table), rows, hosts, tablet_rows)
    if batch:
        tables.add_batch(pathlib.Path(table), rows, hosts, batch, LINKS)


def _query(table: str, top_n: int, max_count: int, output: str) -> str:
    files = sorted(map(str, (pathlib.Path(table) / "state").glob("*.parquet")))
    limit = LIMIT.format(max_count) if max_count > 0 else ""
    now = int(time.time() * 1000)
    return QUERY.format(
        files=files, now=now, longest=MAX_FETCH_INTERVAL_MS, limit=limit, top_n=top_n, output=output
    )


def check(table: pathlib.Path, output: pathlib.Path) -> str:
    """Returns in words how far both have chosen the same; ends where they have not.

    Where scores are equal either row will do, so it is the scores that must agree,
    and all rows whose score is not that of the other's stand-in.
    """
    import polars as pl

    chosen = pl.read_parquet(list((table / "batches").rglob("fetchlist/*.parquet")))
    theirs = pl.read_parquet(output)
    scores = [frame.get_column("score").sort().to_list() for frame in (chosen, theirs)]
    if scores[0] != scores[1]:
        raise SystemExit(f"not the same choice: {len(chosen):,} and {len(theirs):,} rows")
    other = len(chosen.join(theirs, on="key", how="anti"))
    return f"{len(chosen):,} rows, the same scores, {other} other rows of equal score"


def compare(folder: pathlib.Path, rows: int, hosts: int, top_n: int, repeats: int) -> None:
    """Times both with and without a limit per host."""
    table, small = folder / "table", folder / "small"
    measure.fresh("generate", "make", str(table), rows, hosts, None, 0)
    measure.fresh("generate", "make", str(small), 1_000, 10, None, 0)
    print(f"{rows:,} rows, {hosts:,} hosts, the best {top_n:,}; median of {repeats}")
    for max_count in (100, -1):
        found = _times(folder, table, small, top_n, max_count, repeats)
        output = str(folder / "theirs.parquet")
        same = check(folder / "warm-0", pathlib.Path(output))
        limit = f"at most {max_count} a host" if max_count > 0 else "no limit per host"
        rows_shown = []
        for what, name in (("the work alone", "warm"), ("the whole process", "cold")):
            figure = "work" if name == "warm" else "process"
            ours_took = measure.median(found[f"ours {name}"], figure)
            theirs_took = measure.median(found[f"duckdb {name}"], figure)
            rows_shown.append((what, ours_took, theirs_took, ours_took / theirs_took))
        peaks = [measure.median(found[f"{who} cold"], "peak") / 2**20 for who in ("ours", "duckdb")]
        rows_shown.append(("peak memory, MB", *peaks, peaks[0] / peaks[1]))
        heads = (f"{limit}: seconds", "generate", "DuckDB", "ratio")
        measure.table(same, heads, rows_shown)
        _remove(folder)


def _times(
    folder: pathlib.Path,
    table: pathlib.Path,
    small: pathlib.Path,
    top_n: int,
    limit: int,
    repeats: int,
) -> dict[str, list[measure.Figures]]:
    output = str(folder / "theirs.parquet")
    numbers = {"warm": iter(range(repeats)), "cold": iter(range(repeats))}

    def our(kind: str) -> measure.Figures:
        # A batch that is open keeps its URLs: each run has a table of its own.
        at = next(numbers[kind])
        own = tables.clone(table, folder / f"{kind}-{at}")
        tiny = tables.clone(small, folder / f"tiny-{at}") if kind == "warm" else ""
        return measure.fresh("generate", "ours", str(tiny), str(own), top_n, limit)

    def base(kind: str) -> measure.Figures:
        tiny = str(small) if kind == "warm" else ""
        return measure.fresh("generate", "theirs", tiny, str(table), top_n, limit, output)

    runs = {
        f"{who} {kind}": functools.partial(run, kind)
        for who, run in (("ours", our), ("duckdb", base))
        for kind in ("warm", "cold")
    }
    return measure.interleaved(runs, repeats)


def _remove(folder: pathlib.Path) -> None:
    for kind in ("warm", "cold", "tiny"):
        for path in folder.glob(f"{kind}-*"):
            shutil.rmtree(path)


def memory(folder: pathlib.Path, rows: int, top_n: int, pages: int) -> None:
    """Compares peaks on a table and on one ten times as large."""
    peaks: dict[str, list[float]] = {}
    for number in (rows, 10 * rows):
        table = folder / f"rows-{number}"
        measure.fresh("generate", "make", str(table), number, number // 25, None, pages)

        def own(kind: str, of: pathlib.Path = table) -> str:
            return str(tables.clone(of, folder / f"{of.name}-{kind}"))

        runs = {
            "generate": ("ours", "", own("best"), top_n, -1),
            "generate, 100 a host": ("ours", "", own("hosts"), top_n, 100),
            "updatedb": ("update", own("update")),
            "compact": ("compact", own("compact")),
        }
        for name, (function, *args) in runs.items():
            if name == "compact":
                measure.fresh("generate", "add_runs", *args)
            peak = measure.fresh("generate", function, *args).peak / 2**20
            peaks.setdefault(name, []).append(peak)
            shutil.rmtree(args[-1] if function in ("update", "compact") else args[1])
    rows_shown = [(name, *each, each[1] / each[0]) for name, each in peaks.items()]
    heads = ("peak memory, MB", f"{rows:,} rows", f"{10 * rows:,} rows", "ratio")
    title = f"top_n {top_n:,}, a batch of {pages:,} pages with {LINKS} links each, compact --full"
    measure.table(title, heads, rows_shown)


def main() -> None:
    """Does what the command line says."""
    with tempfile.TemporaryDirectory(prefix="generate-") as name:
        if "--memory" in sys.argv[1:]:
            usual = (1_000_000, 100_000, 10_000)
            sizes = measure.sized((100_000, 10_000, 500), usual, (2_000_000, *usual[1:]))
            memory(pathlib.Path(name), *sizes)
            return
        measure.need("duckdb")
        sizes = measure.sized((200_000, 8_000, 4_000, 2), (10_000_000, 200_000, 100_000, 3))
        compare(pathlib.Path(name), *sizes)


if __name__ == "__main__":
    main()
