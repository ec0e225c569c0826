"""What a page of the web costs: large pages by TLS from many hosts that fail often, all phases, all kept.

``python benchmarks/chan.py [--small] [--full]``. The web of ``chan_web.py``: a certificate for each host, pages of
242 KB, a fifth of them failing. One request a host and minute. ``nutbeam crawl --rounds=1 --links=true --index=all``
generates, fetches, parses, updates, adds links to the link table and pages to the embedded index, and finds
duplicates. CPU is that of the command and its parse processes, less that of a crawl of one page, which is its
start; the servers are another process and do not count. A page is one that came and was parsed.

The baseline is one process that does the least: aiohttp fetches the same pages without pause and robots.txt,
lexbor parses them and takes text and links, and zstd compresses them; nothing is kept.

The public yardstick is a crawl of a billion pages in 25.5 hours on 192 cores for $462: 57 pages/s a core.
Budget: 115. ``--full`` takes sixteen times as many pages; ``--small`` takes no pause between requests.
"""

import asyncio
import collections
import contextlib
import pathlib
import socket
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import chan_web
import measure
import polars as pl

BUDGET, YARDSTICK = 115, 57  # pages/s a core
CORE_HOUR = 462 / (192 * 25.5)  # dollars, as the yardstick paid them
REQUESTS, BARE_REQUESTS, BARE_TIMEOUT_S = 128, 64, 10


@contextlib.contextmanager
def web(folder: pathlib.Path) -> Iterator[tuple[int, int]]:
    """Serves the web in another process; yields its port, and one that refuses connections."""
    command = [sys.executable, chan_web.__file__, str(folder)]
    with socket.socket() as closed, subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        closed.bind(("127.0.0.1", 0))  # it does not listen
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline()), closed.getsockname()[1]
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


def bare(port: int, authority: str, urls: list[str]) -> int:
    """Fetches pages with aiohttp, takes text and links with lexbor, compresses; returns how many came."""
    import aiohttp
    import zstandard
    from aiohttp.abc import AbstractResolver
    from selectolax.lexbor import LexborHTMLParser

    class Here(AbstractResolver):
        async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[Any]:
            address = {"host": "127.0.0.1", "port": port, "family": socket.AF_INET}
            return [{"hostname": host, **address, "proto": 0, "flags": 0}]

        async def close(self) -> None:
            """It holds nothing."""

    compressor = zstandard.ZstdCompressor(level=1)
    came, left = 0, iter(urls)

    async def work(session: aiohttp.ClientSession) -> None:
        nonlocal came
        for url in left:
            with contextlib.suppress(aiohttp.ClientError, TimeoutError):
                async with session.get(url.replace(".test/", f".test:{port}/")) as response:
                    body = await response.read()
                    if response.status == 200:
                        tree = LexborHTMLParser(body)
                        tree.text()
                        [node.attributes.get("href") for node in tree.css("a")]
                        came += len(compressor.compress(body)) > 0

    async def all_of_them() -> None:
        context = ssl.create_default_context(cafile=authority)
        connector = aiohttp.TCPConnector(ssl=context, resolver=Here(), force_close=True)
        timeout = aiohttp.ClientTimeout(BARE_TIMEOUT_S)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
            await asyncio.gather(*(work(session) for _ in range(BARE_REQUESTS)))

    with measure.measured():
        asyncio.run(all_of_them())
    return came


def outcomes(table: pathlib.Path) -> collections.Counter[str]:
    """Returns how many pages of the batch came, and why others did not."""
    pages = pl.scan_parquet(list(table.glob("batches/*/pages/*.parquet")))
    why = pl.coalesce(pl.col("http_code").cast(pl.String), "protocol_message", pl.lit("none"))
    counts = pages.group_by(why.alias("why")).len().sort("len", descending=True).collect()
    return collections.Counter(dict(counts.iter_rows()))


def main() -> None:
    """Prints the tables."""
    hosts, pages, delay = measure.sized((100, 2, 0), (1_000, 2, 60), (8_000, 4, 60))
    urls = [chan_web.url_of(host, page) for host in range(hosts) for page in range(pages)]
    with tempfile.TemporaryDirectory(prefix="chan-") as name:
        folder = pathlib.Path(name)
        authority = str(folder / "authority.pem")
        with web(folder) as (port, closed):
            doors = [f"--connect_to=*.test:443:127.0.0.1:{port}",
                     f"--connect_to=*.closed:443:127.0.0.1:{closed}", f"--ca_file={authority}"]  # fmt: skip
            start = crawl(folder / "tiny", [chan_web.url_of(2, 0)], *doors, "--server_delay=0")
            used = crawl(folder / "table", urls, *doors, f"--server_delay={delay}")
            some = [url for url in urls if ".test/" in url]
            least = measure.fresh("chan", "bare", port, authority, some)
        counts = outcomes(folder / "table")
        stored = sum(measure.files_of(str(folder / "table")).values())
    show(counts, len(urls), start, used, stored)
    rate, bare_rate = counts["200"] / (used.cpu - start.cpu), least.result / least.cpu
    rows = [("beside the least", rate, bare_rate, rate / bare_rate),
            ("beside the budget", rate, BUDGET, rate / BUDGET),
            ("beside the public yardstick", rate, YARDSTICK, rate / YARDSTICK)]  # fmt: skip
    title = f"{hosts:,} hosts, {pages} pages each, {delay} s between requests; budget: {BUDGET}"
    measure.table(title, ("pages/s a core", "nutbeam", "other", "ratio"), rows)


def show(
    counts: collections.Counter[str],
    asked: int,
    start: measure.Figures,
    used: measure.Figures,
    stored: int,
) -> None:
    """Prints what became of the pages, and what they took."""
    came, cpu = counts["200"], used.cpu - start.cpu
    hours = cpu / came * 1e9 / 3600
    why = ", ".join(f"{reason} {number:,}" for reason, number in counts.items())
    rows = [
        ("pages asked for", asked), ("pages that came", came), ("share that failed", 1 - came / asked),
        ("seconds", used.process), ("CPU s", used.cpu), ("of that start", start.cpu),
        ("CPU ms a page", cpu / came * 1e3), ("KB stored a page", stored / came / 1e3),
        ("a billion pages, core hours", hours), ("the same in $", hours * CORE_HOUR),
    ]  # fmt: skip
    measure.table(f"outcomes: {why}", ("generate to index", "figure"), rows)


if __name__ == "__main__":
    main()
