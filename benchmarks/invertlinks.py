"""invertlinks against a grouping in DuckDB, and into link tables of two sizes.

``python benchmarks/invertlinks.py [--small] [--sizes]``. 5 million links of 100,000 pages, of which
half lead to 1,000 hubs, are brought into a table without links. DuckDB groups the same links by
target and source, and writes them in order to one Parquet file.

Budget: at most twice DuckDB's time, both as the work alone.

``--sizes`` instead brings the same batch into a link table of 2 million links and into one of 20
million. Budget: at most 1.5 times the time.
"""

import pathlib
import sys
import tempfile

import measure
import tables

THREADS = 2
QUERY = """
COPY (
    WITH links AS (
        SELECT key AS source, score, fetch_time, unnest(outlinks) AS link
        FROM read_parquet({documents})
    )
    SELECT link.key || ' ' || source AS key, link.key AS target, source, max(link.anchor) AS anchor,
           max(link.rel) AS rel, max(score) AS score, min(fetch_time) AS first_seen,
           max(fetch_time) AS last_seen
    FROM links GROUP BY target, source ORDER BY key
) TO '{output}' (FORMAT parquet, COMPRESSION zstd)
"""


def make(table: str, rows: int, pages: int, links: int, known: int) -> None:
    """Writes a table with an updated batch, and with ``known`` links of other pages."""
    root = pathlib.Path(table)
    tables.make_table(root, rows, max(10, rows // 25))
    tables.add_batch(root, rows, max(10, rows // 25), pages, links)
    measure.nutbeam("updatedb", table, "--progress=false")
    if known:
        _fill(table, known)


def _fill(table: str, known: int) -> None:
    """Fills the link table with links that no page of the batch has."""
    import polars as pl

    from nutbeam.io.snapshots.commit import commit
    from nutbeam.io.snapshots.operations import begin
    from nutbeam.policy.components.link_rows import INLINKS, link_keys
    from nutbeam.policy.components.schema import conform, to_frame

    operation = begin(table, "fill", "bench.fill")
    frames = []
    for start in range(0, known, 1_000_000):
        number = pl.int_range(start, min(known, start + 1_000_000), eager=True)
        host = (number // 50).cast(pl.String).str.zfill(8)
        ends = pl.DataFrame(
            {"target": "com.h" + host + ":http/p" + (number % 7).cast(pl.String),
             "source": "org.s" + (number * 7919 % 1_000_003).cast(pl.String) + ":http/"}
        )  # fmt: skip
        frame = ends.with_columns(
            link_keys(ends["target"], ends["source"]), anchor=pl.lit("a link"),
            score=pl.lit(1.0, pl.Float32), first_seen=pl.lit(operation.now),
            last_seen=pl.lit(operation.now),
        )  # fmt: skip
        frames.append(to_frame(conform(frame.unique("key").sort("key"), INLINKS)))
    commit(operation, list(operation.table.load("links", frames)))


def ours(tiny: str, table: str) -> dict[str, int]:
    """Inverts the batch, after another one was inverted in a tiny table."""
    measure.nutbeam("invertlinks", tiny, "--progress=false")
    before = measure.files_of(table)
    with measure.measured():
        measure.nutbeam("invertlinks", table, "--progress=false")
    new = {path: size for path, size in measure.files_of(table).items() if path not in before}
    return {"written": sum(size for path, size in new.items() if "/links/" in path)}


def theirs(tiny: str, table: str, output: str) -> dict[str, int]:
    """Groups the same links with DuckDB, straight from the Parquet files to one."""
    return measure.duckdb(_query(tiny, output), _query(table, output), output, THREADS)


def _query(table: str, output: str) -> str:
    documents = sorted(map(str, pathlib.Path(table).glob("batches/*/documents/*.parquet")))
    return QUERY.format(documents=documents, output=output)


def _shown(title: str, heads: tuple[str, ...], pairs: list[list[measure.Figures]]) -> None:
    rows = []
    for what, figure, scale in (("seconds", "work", 1), ("CPU s", "cpu", 1),
                                ("peak memory, MB", "peak", 2**20)):  # fmt: skip
        both = [measure.median(figures, figure) / scale for figures in pairs]
        rows.append(
            (what, *both, both[1] / both[0] if heads[-2] != "DuckDB" else both[0] / both[1])
        )
    both = [figures[0].result["written"] / 1e6 for figures in pairs]
    rows.append(
        ("written, MB", *both, both[1] / both[0] if heads[-2] != "DuckDB" else both[0] / both[1])
    )
    measure.table(title, heads, rows)


def compare(folder: pathlib.Path, rows: int, pages: int, links: int, repeats: int) -> None:
    """Times both."""
    table, small, output = folder / "table", folder / "small", str(folder / "theirs.parquet")
    measure.fresh("invertlinks", "make", str(table), rows, pages, links, 0)
    measure.fresh("invertlinks", "make", str(small), 1_000, 10, 5, 0)
    found: list[list[measure.Figures]] = [[], []]
    for at in range(repeats):
        own = [str(tables.clone(one, folder / f"{one.name}-{at}")) for one in (small, table)]
        found[0].append(measure.fresh("invertlinks", "ours", *own))
        found[1].append(measure.fresh("invertlinks", "theirs", str(small), str(table), output))
    title = f"{pages * links:,} links of {pages:,} pages; median of {repeats}"
    _shown(title, ("the work alone", "invertlinks", "DuckDB", "ratio"), found)


def sizes(folder: pathlib.Path, smaller: int, pages: int, links: int, repeats: int) -> None:
    """Times the same batch into a link table and into one ten times as large."""
    small = folder / "small"
    measure.fresh("invertlinks", "make", str(small), 1_000, 10, 5, 0)
    found: dict[int, list[measure.Figures]] = {smaller: [], 10 * smaller: []}
    for known in found:
        measure.fresh("invertlinks", "make", str(folder / f"{known}"), 200_000, pages, links, known)
    for at in range(repeats):
        for known, figures in found.items():
            names = (small, folder / f"{known}")
            own = [str(tables.clone(one, folder / f"{one.name}-{known}-{at}")) for one in names]
            figures.append(measure.fresh("invertlinks", "ours", *own))
    title = f"the same {pages:,} pages of {links} links; median of {repeats}"
    heads = ("invertlinks", *(f"{known:,} links" for known in found), "ratio")
    _shown(title, heads, list(found.values()))


def main() -> None:
    """Does what the command line says."""
    small = "--small" in sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="invertlinks-") as name:
        if "--sizes" in sys.argv[1:]:
            sizes(
                pathlib.Path(name),
                *((100_000, 400, 50, 1) if small else (2_000_000, 10_000, 50, 3)),
            )
            return
        measure.need("duckdb")
        compare(
            pathlib.Path(name), *((50_000, 4_000, 50, 1) if small else (1_000_000, 100_000, 50, 3))
        )


if __name__ == "__main__":
    main()
