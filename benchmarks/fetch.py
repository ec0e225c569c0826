"""Pages per CPU second of the fetch engine against the bare clients below it.

``python benchmarks/fetch.py [--small]``. All ask the same nginx on loopback for the same URLs, 50 at a
time without a delay, each in a fresh process: the engine alone, without table or Beam, with each of its
HTTP clients; a ``requests.Session`` that 50 threads share; an ``aiohttp.ClientSession`` that 50 tasks
share. Budget: at least 60 % of the pages per CPU second of the bare client that it is built on. All
must see the same number of bytes.
"""

import asyncio
import functools
import pathlib
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import measure

THREADS = 50


def engine(name: str, host: str, door: str, paths: list[str]) -> tuple[int, int]:
    """Fetches with the engine and one of its clients; returns how many pages and bytes came."""
    from nutbeam.pipelines.fetch import FetchBatchOptions
    from nutbeam.web.clients.aio_client import client_of
    from nutbeam.web.engine.engine import Engine, Task

    options = FetchBatchOptions(
        connect_to=(door,), threads=THREADS, threads_per_host=THREADS, server_delay=0.0,
        content_limit=-1, http_client=name,
    )  # fmt: skip
    pages = size = 0
    client = client_of(options)
    with measure.measured():
        tasks = (Task(f"http://{host}{path}") for path in paths)
        for result in Engine(options, client).run(tasks):
            if result.response is not None and result.response.status == 200:
                pages += 1
                size += len(result.response.body)
    return pages, size


def pool(port: int, paths: list[str]) -> tuple[int, int]:
    """Fetches with requests, the fast way: one session, and no look for proxies at each request."""
    import requests

    session = requests.Session()
    session.trust_env = False
    session.mount("http://", requests.adapters.HTTPAdapter(pool_maxsize=THREADS))

    def fetch(path: str) -> tuple[int, int]:
        response = session.get(f"http://127.0.0.1:{port}{path}")
        return int(response.status_code == 200), len(response.content)

    with measure.measured(), ThreadPoolExecutor(THREADS) as threads:
        found = list(threads.map(fetch, paths))
    return sum(pages for pages, _ in found), sum(size for _, size in found)


def tasks(port: int, paths: list[str]) -> tuple[int, int]:
    """Fetches with aiohttp, the fast way: one session, 50 tasks."""
    import aiohttp

    found = [0, 0]

    async def work(session: aiohttp.ClientSession, left: Iterator[str]) -> None:
        for path in left:
            async with session.get(f"http://127.0.0.1:{port}{path}") as response:
                size = len(await response.read())
                found[:] = found[0] + (response.status == 200), found[1] + size

    async def all_of_them() -> None:
        left = iter(paths)
        async with aiohttp.ClientSession() as session, asyncio.TaskGroup() as group:
            for _ in range(THREADS):
                group.create_task(work(session, left))

    with measure.measured():
        asyncio.run(all_of_them())
    return found[0], found[1]


def compare(
    name: str, paths: list[str], site: object, host: str, repeats: int
) -> list[list[object]]:
    """Returns two rows of the table."""
    ours = functools.partial(measure.fresh, "fetch", "engine")
    runs = {
        "threads": functools.partial(ours, "threads", host, site.connect_to, paths),
        "asyncio": functools.partial(ours, "asyncio", host, site.connect_to, paths),
        "pool": functools.partial(measure.fresh, "fetch", "pool", site.port, paths),
        "tasks": functools.partial(measure.fresh, "fetch", "tasks", site.port, paths),
    }
    found = measure.interleaved(runs, repeats)
    results = {tuple(figures.result) for each in found.values() for figures in each}
    if len(results) != 1:
        raise SystemExit(f"{name}: not the same pages and bytes: {sorted(results)}")
    ((pages, size),) = results
    rows: list[list[object]] = []
    for what, figure in (("per CPU second", "cpu"), ("per second", "work")):
        speed = {who: pages / measure.median(each, figure) for who, each in found.items()}
        rows.append(
            [
                f"{name}, {pages:,} of {size // pages:,} bytes, {what}", speed["threads"],
                speed["pool"], speed["threads"] / speed["pool"], speed["asyncio"],
                speed["tasks"], speed["asyncio"] / speed["tasks"],
            ]
        )  # fmt: skip
    return rows


def doc_paths(parts: list[tuple[str, str, str]]) -> list[str]:
    """Returns the paths of all pages of the documentation site."""
    return sorted(
        path + str(file.relative_to(folder))
        for path, folder, _ in parts
        for file in pathlib.Path(folder).rglob("*.html")
    )


def main() -> None:
    """Prints the table."""
    small = "--small" in sys.argv[1:]
    repeats, times = measure.sized((2, 1), (3, 3), (5, 3))
    helper = measure.docs_site_helper()
    docs = doc_paths(helper.PARTS)[: 300 if small else None]
    # The number tells URLs apart; nginx does not care.
    docs = [f"{path}?{number}" for number in range(times) for path in docs]
    even = [f"/small.html?{number}" for number in range(3000 if small else 10_000)]
    with helper.DocsSite() as site:
        rows = [
            row
            for name, paths in (("documentation", docs), ("even pages", even))
            for row in compare(name, paths, site, helper.HOST, repeats)
        ]
    heads = (
        *("pages", "with threads", "bare requests", "ratio"),
        *("with asyncio", "bare aiohttp", "ratio"),
    )
    title = f"{THREADS} at a time, median of {repeats}; budget: ratios over 0.6 per CPU second"
    measure.table(title, heads, rows)


if __name__ == "__main__":
    main()
