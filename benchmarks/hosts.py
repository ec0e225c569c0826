"""Memory of a fetch with 100,000 hosts in its partition, hostile ones among them.

``python benchmarks/hosts.py [--small]``. A batch of 100,000 pages on 100,000 hosts, which nginx on
loopback has under any name, and of 1,400 more on hosts of the simulated web that send bombs, endless
bodies and heads, a million links, and nonsense. ``nutbeam fetch`` gets them by 128 threads without a
delay; the same fetch of a tenth of the hosts stands beside it. Budget: under 600 MB.
"""

import pathlib
import sys
import tempfile

import measure

HOSTILE = ("gzip-bomb", "double-bomb", "brotli-bomb", "endless", "endless-headers", "million-links",
           "garbage")  # fmt: skip
THREADS = 128


def make(folder: str, name: str, hosts: int, hostile: int) -> None:
    """Makes a table with a batch of one page of each host, and some of each hostile one."""
    seeds = pathlib.Path(folder) / f"{name}.txt"
    urls = [f"http://h{number}.example.com/small.html" for number in range(hosts)]
    urls += [f"http://{bad}.hostile.example.com/{n}" for bad in HOSTILE for n in range(hostile)]
    seeds.write_text("\n".join(urls))
    table = pathlib.Path(folder) / name
    measure.nutbeam("inject", table, seeds, "--progress=false")
    measure.nutbeam("generate", table, f"--top_n={len(urls)}", "--progress=false")


def fetch(table: str, doors: list[str]) -> dict[str, int]:
    """Fetches the batch; returns how many pages came, by what became of them."""
    import polars as pl

    with measure.measured():
        measure.nutbeam(
            "fetch", table, f"--connect_to={','.join(doors)}", f"--threads={THREADS}",
            "--server_delay=0", "--http_time_limit=5", "--max_exceptions_per_host=-1",
            "--exceptions_delay=0", "--progress=false",
        )  # fmt: skip
    pages = pl.scan_parquet(list(pathlib.Path(table).glob("batches/*/pages/*.parquet")))
    counted = pages.group_by("protocol_status").len().collect()
    return {str(status): number for status, number in counted.iter_rows()}


def main() -> None:
    """Prints the table."""
    from nutbeam.web.simweb.server import SimWeb

    small = "--small" in sys.argv[1:]
    most, hostile = (2_000, 5) if small else (100_000, 200)
    helper = measure.docs_site_helper()
    found: dict[int, measure.Figures] = {}
    with (
        tempfile.TemporaryDirectory(prefix="hosts-") as folder,
        helper.DocsSite() as site,
        SimWeb(hosts=1, pages=1) as simulated,
    ):
        bad = simulated.connect_to[0].replace("*.example.com", "*.hostile.example.com")
        doors = [bad, f"*.example.com:80:127.0.0.1:{site.port}"]
        for hosts in (most // 10, most):
            name = f"table-{hosts}"
            measure.fresh("hosts", "make", folder, name, hosts, hostile)
            figures = measure.fresh("hosts", "fetch", str(pathlib.Path(folder) / name), doors)
            pages = sum(figures.result.values())
            if pages != hosts + len(HOSTILE) * hostile:
                raise SystemExit(f"not all pages of {hosts:,} hosts: {figures.result}")
            found[hosts] = figures
    rows = []
    for what, figure, scale in (("peak memory, MB", "peak", 2**20), ("seconds", "work", 1),
                                ("CPU s", "cpu", 1)):  # fmt: skip
        both = [getattr(figures, figure) / scale for figures in found.values()]
        rows.append((what, *both, both[1] / both[0]))
    title = f"one page of each host, {hostile} of each of {len(HOSTILE)} hostile ones, {THREADS} threads"
    measure.table(title, ("nutbeam fetch", *(f"{n:,} hosts" for n in found), "ratio"), rows)


if __name__ == "__main__":
    main()
