"""What a page of the web costs: large pages by TLS from many hosts that fail often, all phases, all kept.

``python benchmarks/chan.py [--small] [--full]``. The web of ``chan_web.py``: a certificate for each host, pages of
242 KB, a fifth of them failing. One request a host and minute. ``nutbeam crawl --rounds=1 --links=true --index=all``
generates, fetches, parses, updates, adds links to the link table and pages to the embedded index, and finds
duplicates. CPU is that of the command and its parse processes, less that of a crawl of one page, which is its
start; the servers are another process and do not count. A page is one that came and was parsed.

The public yardstick is a crawl of a billion pages in 25.5 hours on 192 cores for $462: 57 pages/s a core. It
kept the pages alone, without links, index and duplicates. Budget: 115 pages/s a core. ``--full`` takes four
times as many pages; ``--small`` takes no pause between requests.
"""

import collections
import contextlib
import pathlib
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator

import chan_web
import measure
import polars as pl

BUDGET, YARDSTICK = 115, 57  # pages/s a core
CORE_HOUR = 462 / (192 * 25.5)  # dollars, as the yardstick paid them
REQUESTS = 512


@contextlib.contextmanager
def web(folder: pathlib.Path) -> Iterator[list[str]]:
    """Serves the web in another process; yields the options by which a crawl reaches it."""
    command = [sys.executable, chan_web.__file__, str(folder)]
    with socket.socket() as closed, subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        closed.bind(("127.0.0.1", 0))  # it does not listen
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            yield [
                f"--connect_to=*.test:443:127.0.0.1:{port}",
                f"--connect_to=*.closed:443:127.0.0.1:{closed.getsockname()[1]}",
                f"--ca_file={folder / 'authority.pem'}",
            ]
        finally:
            process.kill()


def crawl(table: pathlib.Path, urls: list[str], *options: str) -> measure.Figures:
    """Crawls URLs in one round with all phases; returns what that took."""
    seeds = table.with_suffix(".txt")
    seeds.write_text("\n".join(urls))
    measure.command("inject", table, seeds, "--progress=false")
    return measure.command(
        *("crawl", table, "--rounds=1", "--scope=any", "--links=true", "--index=all"),
        *("--http_client=asyncio", f"--threads={REQUESTS}", "--top_n=10000000", "--progress=false"),
        *options,
    )


def outcomes(table: pathlib.Path) -> collections.Counter[str]:
    """Returns how many pages of the batch came, and why others did not."""
    pages = pl.scan_parquet(list(table.glob("batches/*/pages/*.parquet")))
    why = pl.coalesce(pl.col("http_code").cast(pl.String), "protocol_message", pl.lit("none"))
    counts = pages.group_by(why.alias("why")).len().collect()
    return collections.Counter(dict(counts.iter_rows()))


def main() -> None:
    """Prints the tables."""
    small = "--small" in sys.argv[1:]
    hosts, pages = (200, 2) if small else (8_000, 4) if "--full" in sys.argv[1:] else (4_000, 2)
    urls = [chan_web.url_of(host, page) for host in range(hosts) for page in range(pages)]
    with tempfile.TemporaryDirectory(prefix="chan-") as name:
        folder = pathlib.Path(name)
        with web(folder) as doors:
            start = crawl(folder / "tiny", [chan_web.url_of(2, 0)], *doors, "--server_delay=0")
            used = crawl(folder / "table", urls, *doors, f"--server_delay={0 if small else 60}")
        counts = outcomes(folder / "table")
        stored = sum(measure.files_of(str(folder / "table")).values())
    print(counts)
    came, cpu = counts["200"], used.cpu - start.cpu
    rate = came / cpu
    hours = 1e9 / rate / 3600
    rows = [
        ("pages asked for", len(urls)), ("pages that came", came),
        ("of those asked for", came / len(urls)),
        ("seconds", used.process), ("CPU s", used.cpu), ("CPU s of the start", start.cpu),
        ("CPU ms a page", cpu / came * 1e3), ("KB stored a page", stored / came / 1e3),
        ("peak memory, MB", used.peak / 2**20),
        ("pages/s a core", rate), ("of the budget", rate / BUDGET), ("of the yardstick", rate / YARDSTICK),
        ("a billion pages, core hours", hours), ("the same, $", hours * CORE_HOUR),
    ]  # fmt: skip
    title = f"one request a host and minute on {hosts:,} hosts; budget: {BUDGET} pages/s a core"
    measure.table(title, ("all phases", "figure"), rows)


if __name__ == "__main__":
    main()
