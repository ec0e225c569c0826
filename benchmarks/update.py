"""updatedb against the same join and grouping in DuckDB, and on tables of two sizes.

``python benchmarks/update.py [--small] [--sizes] [--unchanged] [--everything]``. A table of 5 million rows and a batch of
100,000 pages with 60 links each, which lead everywhere in it; a tenth of them to new URLs. DuckDB
adds up what the links bring, joins pages and rows, and writes those that change, in key order.

Budget: at most twice DuckDB's time, both as the work alone.

``--unchanged``: every second page answered 304, so its links are in an older document of one of 30
batches, which both read; they add no rows. ``--everything``: with the schedule ``rate`` and seven
scorings, which DuckDB does not compute. ``--sizes`` instead brings the same number of pages and links to a table of
2 million and to one of 20 million rows. Budget: at most 1.5 times the time and 1.5 times the bytes.
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
        SELECT unnest(outlinks).key AS key, score / len(outlinks) AS share, distance + 1 AS distance
            {is_older}
        FROM read_parquet({documents}, filename = true)
    ), sums AS (
        SELECT key, sum(share) AS gained, min(distance) AS nearest {all_older} FROM links GROUP BY key
    ), events AS (
        SELECT p.key, p.fetch_status, p.fetch_time, p.http_code, p.content_type, d.signature
        FROM read_parquet({pages}) p LEFT JOIN read_parquet({documents}) d USING (key)
    ), changes AS (
        SELECT * FROM sums FULL JOIN events USING (key)
    )
    SELECT s.* REPLACE (
        key AS key,
        coalesce(score, 0) + coalesce(gained, 0) AS score,
        least(s.distance, nearest) AS distance,
        coalesce(c.fetch_time + 2592000000, s.fetch_time, {now}) AS fetch_time,
        coalesce(c.fetch_time, last_fetch_time) AS last_fetch_time,
        coalesce(c.signature, s.signature) AS signature
    )
    FROM changes c LEFT JOIN read_parquet({state}) s USING (key)
    {known}
    ORDER BY key
) TO '{output}' (FORMAT parquet, COMPRESSION zstd)
"""


def make(table: str, rows: int, pages: int, links: int, unchanged: int = 0) -> None:
    """Writes a table and its batch; with ``unchanged``, half of its pages answered 304."""
    tables.make_table(pathlib.Path(table), rows, rows // 25)
    how = {"unchanged": bool(int(unchanged))}
    tables.add_batch(pathlib.Path(table), rows, rows // 25, int(pages), int(links), **how)


def ours(tiny: str, table: str, *words: str) -> dict[str, int]:
    """Brings the batch into the table, after another one was brought into a tiny table."""
    measure.nutbeam("updatedb", tiny, "--progress=false", *words)
    before = measure.files_of(table)
    with measure.measured():
        measure.nutbeam("updatedb", table, "--progress=false", *words)
    new = {path: size for path, size in measure.files_of(table).items() if path not in before}
    state = sum(size for path, size in new.items() if "/state/" in path)
    return {"written": sum(new.values()), "state": state}


def theirs(tiny: str, table: str, output: str) -> dict[str, int]:
    """Does the same with DuckDB, straight from the Parquet files to one."""
    return measure.duckdb(_query(tiny, output), _query(table, output), output, THREADS)


def _query(table: str, output: str) -> str:
    root = pathlib.Path(table)
    names = {
        name: sorted(map(str, root.glob(pattern)))
        for name, pattern in (
            ("state", "state/*.parquet"),
            ("pages", "batches/*/pages/*.parquet"),
            ("documents", "batches/*/documents/*.parquet"),
        )
    }
    unchanged = (root / "batches" / tables.OLDER[0]).exists()
    parts = {
        "is_older": ", contains(filename, '/batches/16') AS older",
        "all_older": ", bool_and(older) AS older",
        "known": "WHERE s.key IS NOT NULL OR NOT coalesce(c.older, false)",
    }
    chosen = {name: part if unchanged else "" for name, part in parts.items()}
    return QUERY.format(**names, **chosen, output=output, now=1_700_000_000_000)


def everything(folder: pathlib.Path) -> list[str]:
    """Returns the options that turn on a schedule that learns, and all scorings but opic_cash."""
    gold, boosts = folder / "gold.txt", folder / "boosts.txt"
    gold.write_text("org host http page news\n")
    boosts.write_text("2.0 /new/\n0.5 [?]\n")
    return ["--schedule", "rate", "--scoring", "depth,opic,link,orphan,similarity,metadata,urlboost",
            "--goldstandard_file", str(gold), "--url_boost_file", str(boosts),
            "--metadata_to_links", "topic", "--parsemeta_to_crawldb", "topic"]  # fmt: skip


def compare(
    folder: pathlib.Path, rows: int, pages: int, links: int, repeats: int, how: set[str]
) -> None:
    """Times both; ``how`` are the options of the command line."""
    unchanged = "--unchanged" in how
    words = everything(folder) if "--everything" in how else []
    table, small, output = folder / "table", folder / "small", str(folder / "theirs.parquet")
    measure.fresh("update", "make", str(table), rows, pages, links, int(unchanged))
    measure.fresh("update", "make", str(small), 1_000, 10, 5, int(unchanged))
    found: dict[str, list[measure.Figures]] = {"ours": [], "duckdb": []}
    for at in range(repeats):
        own = [str(tables.clone(one, folder / f"{one.name}-{at}")) for one in (small, table)]
        found["ours"].append(measure.fresh("update", "ours", *own, *words))
        found["duckdb"].append(measure.fresh("update", "theirs", str(small), str(table), output))
    rows_shown = []
    for what, figure, scale in (("seconds", "work", 1), ("CPU s", "cpu", 1),
                                ("peak memory, MB", "peak", 2**20)):  # fmt: skip
        both = [measure.median(found[who], figure) / scale for who in ("ours", "duckdb")]
        rows_shown.append((what, *both, both[0] / both[1]))
    both = [found["ours"][0].result["state"] / 1e6, found["duckdb"][0].result["written"] / 1e6]
    rows_shown.append(("rows written, MB", *both, both[0] / both[1]))
    title = f"{rows:,} rows, {pages:,} pages of {links} links; median of {repeats}"
    title += "; every second page answered 304" if unchanged else ""
    title += "; rate and seven scorings" if words else ""
    measure.table(title, ("the work alone", "updatedb", "DuckDB", "ratio"), rows_shown)


def sizes(folder: pathlib.Path, smaller: int, pages: int, links: int, repeats: int) -> None:
    """Times the same batch on a table and on one ten times as large."""
    small = folder / "small"
    measure.fresh("update", "make", str(small), 1_000, 10, 5)
    found: dict[int, list[measure.Figures]] = {smaller: [], 10 * smaller: []}
    for rows in found:
        measure.fresh("update", "make", str(folder / f"{rows}"), rows, pages, links)
    for at in range(repeats):
        for rows, figures in found.items():
            names = (folder / "small", folder / f"{rows}")
            own = [str(tables.clone(one, folder / f"{one.name}-{rows}-{at}")) for one in names]
            figures.append(measure.fresh("update", "ours", *own))
    rows_shown = []
    for what, figure, scale in (("seconds", "work", 1), ("CPU s", "cpu", 1),
                                ("peak memory, MB", "peak", 2**20)):  # fmt: skip
        both = [measure.median(figures, figure) / scale for figures in found.values()]
        rows_shown.append((what, *both, both[1] / both[0]))
    for what, name in (("written, MB", "written"), ("of them state, MB", "state")):
        both = [figures[0].result[name] / 1e6 for figures in found.values()]
        rows_shown.append((what, *both, both[1] / both[0]))
    title = f"the same {pages:,} pages of {links} links; median of {repeats}"
    heads = ("updatedb", *(f"{rows:,} rows" for rows in found), "ratio")
    measure.table(title, heads, rows_shown)


def main() -> None:
    """Does what the command line says."""
    with tempfile.TemporaryDirectory(prefix="update-") as name:
        if "--sizes" in sys.argv[1:]:
            chosen = measure.sized((100_000, 500, 60, 1), (2_000_000, 10_000, 60, 3))
            sizes(pathlib.Path(name), *chosen)
            return
        measure.need("duckdb")
        words = set(sys.argv[1:])
        full = (5_000_000, 100_000, 60, 3)
        usual = (2_000_000, 40_000, 60, 3) if words else full
        compare(pathlib.Path(name), *measure.sized((200_000, 4_000, 60, 1), usual, full), words)


if __name__ == "__main__":
    main()
