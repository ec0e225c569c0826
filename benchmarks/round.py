"""A round over many hosts, all phases, beside bare clients that only fetch.

``python benchmarks/round.py [--small] [--full]``. 40,000 pages (``--full``: 100,000) of 6 KB with 12 links
each, 20 a host, are in a batch: ``nutbeam crawl --rounds=1`` fetches and parses them, brings them into the
table and looks for duplicates; 50 at a time, no delay; once with each HTTP client. The bare clients ask the same nginx
on loopback for the same pages, and for each host's robots.txt: ``requests`` with a pool of threads, and
``aiohttp``. Budget with asyncio: 0.48 of aiohttp's pages/s, 600 MB.
"""

import asyncio
import functools
import pathlib
import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import measure

THREADS = 50


def make(folder: str, hosts: int, pages: int) -> None:
    """Makes a table with a batch of all pages, and a tiny one like it."""
    for name, number in (("table", hosts), ("tiny", 2)):
        seeds = pathlib.Path(folder) / f"{name}.txt"
        urls = (
            f"http://h{h}.example.com/even/{n}.html" for h in range(number) for n in range(pages)
        )
        seeds.write_text("\n".join(urls))
        table = pathlib.Path(folder) / name
        measure.nutbeam("inject", table, seeds, "--progress=false")
        measure.nutbeam("generate", table, f"--top_n={hosts * pages}", "--progress=false")


def ours(client: str, tiny: str, table: str, door: str) -> int:
    """Does a round, after one on a tiny table; returns how many pages the batch has."""
    import polars as pl

    options = (
        "--rounds=1", f"--connect_to={door}", f"--threads={THREADS}", "--server_delay=0",
        "--progress=false", f"--http_client={client}",
    )  # fmt: skip
    measure.nutbeam("crawl", tiny, *options)
    with measure.measured():
        measure.nutbeam("crawl", table, *options)
    outcome = pl.scan_parquet(list(pathlib.Path(table).glob("batches/*/outcome/*.parquet")))
    return int(outcome.filter(pl.col("document").is_not_null()).select(pl.len()).collect().item())


def pool(port: int, hosts: int, pages: int) -> int:
    """Fetches the same with requests; returns how many pages came."""
    import requests

    session = requests.Session()
    session.trust_env = False
    session.mount("http://", requests.adapters.HTTPAdapter(pool_maxsize=THREADS))

    def fetch(host: int) -> int:
        came = 0
        for path in ("/robots.txt", *(f"/even/{number}.html" for number in range(pages))):
            response = session.get(
                f"http://127.0.0.1:{port}{path}", headers={"Host": f"h{host}.example.com"}
            )
            came += response.status_code == 200 and len(response.content) > 0
        return came

    with measure.measured(), ThreadPoolExecutor(THREADS) as threads:
        return sum(threads.map(fetch, range(hosts)))


def tasks(port: int, hosts: int, pages: int) -> int:
    """Fetches the same with aiohttp; returns how many pages came."""
    import aiohttp

    came = 0

    async def work(session: aiohttp.ClientSession, left: Iterator[int]) -> None:
        nonlocal came
        for host in left:
            named = {"Host": f"h{host}.example.com"}
            for path in ("/robots.txt", *(f"/even/{number}.html" for number in range(pages))):
                address = f"http://127.0.0.1:{port}{path}"
                async with session.get(address, headers=named) as response:
                    body = await response.read()
                    came += response.status == 200 and len(body) > 0

    async def all_of_them() -> None:
        left = iter(range(hosts))
        async with aiohttp.ClientSession() as session, asyncio.TaskGroup() as group:
            for _ in range(THREADS):
                group.create_task(work(session, left))

    with measure.measured():
        asyncio.run(all_of_them())
    return came


def compare(folder: pathlib.Path, hosts: int, pages: int, repeats: int) -> None:
    """Times them all."""
    helper = measure.docs_site_helper()
    measure.fresh("round", "make", str(folder), hosts, pages)
    numbers = iter(range(2 * repeats))
    with helper.DocsSite() as site:
        door = f"*.example.com:80:127.0.0.1:{site.port}"

        def our(client: str) -> measure.Figures:
            at = next(numbers)
            own = [str(folder / f"{name}-{at}") for name in ("tiny", "table")]
            for name, copy in zip(("tiny", "table"), own, strict=True):
                shutil.copytree(folder / name, copy)
            return measure.fresh("round", "ours", client, *own, door)

        runs = {
            "threads": functools.partial(our, "threads"),
            "asyncio": functools.partial(our, "asyncio"),
            "pool": functools.partial(measure.fresh, "round", "pool", site.port, hosts, pages),
            "tasks": functools.partial(measure.fresh, "round", "tasks", site.port, hosts, pages),
        }
        found = measure.interleaved(runs, repeats)
    for who, figures in found.items():
        if {each.result for each in figures} != {hosts * pages}:
            raise SystemExit(f"{who}: not all pages: {[each.result for each in figures]}")
    rows = []
    for what, figure in (("pages/s", "work"), ("pages per CPU s", "cpu")):
        per = {who: hosts * pages / measure.median(each, figure) for who, each in found.items()}
        rows.append((what, *_beside(per)))
    peaks = {who: measure.median(each, "peak") / 2**20 for who, each in found.items()}
    rows.append(("peak memory, MB", *_beside(peaks)))
    title = f"{hosts * pages:,} pages on {hosts:,} hosts, {THREADS} at a time; median of {repeats}"
    heads = ("", "a whole round", "bare requests", "ratio", "with asyncio", "bare aiohttp", "ratio")
    measure.table(title, heads, rows)


def _beside(figures: dict[str, float]) -> tuple[float, ...]:
    """Returns what is shown of a figure of each: ours, the bare client's, the ratio."""
    threads, loop = figures["threads"], figures["asyncio"]
    bare, other = figures["pool"], figures["tasks"]
    return threads, bare, threads / bare, loop, other, loop / other


def main() -> None:
    """Does what the command line says."""
    sizes = measure.sized((100, 20, 1), (2_000, 20, 3), (5_000, 20, 3))
    with tempfile.TemporaryDirectory(prefix="round-") as name:
        compare(pathlib.Path(name), *sizes)


if __name__ == "__main__":
    main()
