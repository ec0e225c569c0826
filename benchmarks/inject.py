"""inject against polars: read, normalize with the same function, sort, write the same as Parquet.

``python benchmarks/inject.py [--small] [--full]``. A file of 2 million URLs (``--full``: 5 million) in no order, 25 a host,
goes into an empty table. The baseline is one process, too: polars reads the lines, our function
normalizes and filters them, polars drops what is there twice, sorts by key and writes the state's
columns. Budget: at most three times its time; under 2 GB.
"""

import pathlib
import tempfile

import measure
import tables

STEP = 500_000


def make(path: str, urls: int, hosts: int) -> None:
    """Writes a file of URLs, one a line, those of a host far from each other."""
    import numpy as np
    import polars as pl

    sizes = tables.host_sizes(urls, hosts)
    keys = pl.concat(
        tables.keys(sizes, start, min(start + STEP, urls)) for start in range(0, urls, STEP)
    )
    found = keys.str.replace(r"^com\.example\.(h\d+):http(.*)$", "http://$1.example.com$2")
    mixed = found.gather(np.random.default_rng(1).permutation(urls))
    pathlib.Path(path).write_text("\n".join(mixed.to_list()) + "\n")


def ours(tiny: str, seeds: str, table: str) -> int:
    """Injects into a new table, after a few URLs went into another one; returns its bytes."""
    measure.nutbeam("inject", f"{table}-tiny", tiny, "--progress=false")
    with measure.measured():
        measure.nutbeam("inject", table, seeds, "--progress=false")
    return sum(path.stat().st_size for path in pathlib.Path(table).glob("state/*.parquet"))


def theirs(tiny: str, seeds: str, output: str) -> int:
    """Makes the same rows; returns the bytes of the file."""
    _write(tiny, output)
    with measure.measured():
        _write(seeds, output)
    return pathlib.Path(output).stat().st_size


def _write(seeds: str, output: str) -> None:
    import polars as pl

    from nutbeam.pipelines.inject import InjectOptions
    from nutbeam.policy.components.schema import STATE, Status, conform, to_frame
    from nutbeam.web.rules.url_rules import UrlRules

    rules = UrlRules(InjectOptions())
    lines = pl.read_csv(
        seeds, has_header=False, separator="\n", quote_char=None, new_columns=["url"]
    )
    admitted = pl.concat(
        rules.admit(part.get_column("url"), "inject").select("key", "reason")
        for part in lines.iter_slices(STEP)
    )
    rows = (
        admitted.filter(pl.col("reason").is_null())
        .select("key")
        .unique("key")
        .sort("key")
        .with_columns(
            status=pl.lit(int(Status.DB_UNFETCHED), pl.UInt8),
            fetch_time=pl.lit(1_700_000_000_000),
            fetch_interval=pl.lit(2_592_000, pl.Int32),
            retries=pl.lit(0, pl.Int32),
            score=pl.lit(1.0, pl.Float32),
            distance=pl.lit(0, pl.Int32),
        )
    )
    whole = to_frame(conform(rows, STATE))
    whole.write_parquet(output, compression="zstd", compression_level=1, row_group_size=65_536)


def compare(folder: pathlib.Path, urls: int, hosts: int, repeats: int) -> None:
    """Times both."""
    seeds, tiny, output = (str(folder / name) for name in ("seeds.txt", "tiny.txt", "rows.parquet"))
    measure.fresh("inject", "make", seeds, urls, hosts)
    measure.fresh("inject", "make", tiny, 1_000, 10)
    found: dict[str, list[measure.Figures]] = {"ours": [], "polars": []}
    for at in range(repeats):
        found["ours"].append(measure.fresh("inject", "ours", tiny, seeds, str(folder / f"t{at}")))
        found["polars"].append(measure.fresh("inject", "theirs", tiny, seeds, output))
    rows = []
    for what, figure, scale in (("seconds", "work", 1), ("CPU s", "cpu", 1),
                                ("peak memory, MB", "peak", 2**20)):  # fmt: skip
        both = [measure.median(found[who], figure) / scale for who in ("ours", "polars")]
        rows.append((what, *both, both[0] / both[1]))
    both = [found[who][0].result / 1e6 for who in ("ours", "polars")]
    rows.append(("written, MB", *both, both[0] / both[1]))
    title = f"{urls:,} URLs into an empty table; median of {repeats}"
    measure.table(title, ("the work alone", "inject", "polars", "ratio"), rows)


def main() -> None:
    """Does what the command line says."""
    full = (5_000_000, 200_000, 3)
    sizes = measure.sized((200_000, 8_000, 1), (2_000_000, 80_000, 3), full)
    with tempfile.TemporaryDirectory(prefix="inject-") as name:
        compare(pathlib.Path(name), *sizes)


if __name__ == "__main__":
    main()
