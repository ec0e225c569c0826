"""Pages per CPU second of the fetch engine against a bare pool of threads with requests.

``python benchmarks/fetch.py [--small]``. Both ask the same nginx on loopback for the same URLs, by
50 threads without a delay, each in a fresh process: the engine alone, without table or Beam, and a
``requests.Session`` that 50 threads share. Budget: at least 60 % of the bare pool's pages per CPU
second of the client. Both must see the same number of bytes.
"""

import functools
import pathlib
import sys
from concurrent.futures import ThreadPoolExecutor

import measure

THREADS = 50


def engine(host: str, door: str, paths: list[str]) -> tuple[int, int]:
    """Fetches with the engine; returns how many pages and bytes came."""
    from nutbeam.pipelines.fetch import FetchPagesOptions
    from nutbeam.web.engine import Engine, Task
    from nutbeam.web.http import Client

    options = FetchPagesOptions(
        connect_to=(door,), threads=THREADS, threads_per_host=THREADS, server_delay=0.0,
        content_limit=-1,
    )  # fmt: skip
    pages = size = 0
    with measure.measured():
        tasks = (Task(f"http://{host}{path}") for path in paths)
        for result in Engine(options, Client(options)).run(tasks):
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


def compare(name: str, paths: list[str], site: object, host: str, repeats: int) -> list[object]:
    """Returns a row of the table."""
    runs = {
        "engine": functools.partial(measure.fresh, "fetch", "engine", host, site.connect_to, paths),
        "pool": functools.partial(measure.fresh, "fetch", "pool", site.port, paths),
    }
    found = measure.interleaved(runs, repeats)
    results = {tuple(figures.result) for each in found.values() for figures in each}
    if len(results) != 1:
        raise SystemExit(f"{name}: not the same pages and bytes: {sorted(results)}")
    ((pages, size),) = results
    per_cpu = {who: pages / measure.median(each, "cpu") for who, each in found.items()}
    per_second = {who: pages / measure.median(each, "work") for who, each in found.items()}
    return [
        f"{name}, {pages:,} of {size // pages:,} bytes", per_cpu["engine"], per_cpu["pool"],
        per_cpu["engine"] / per_cpu["pool"], per_second["engine"], per_second["pool"],
    ]  # fmt: skip


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
    repeats, times = (2, 1) if small else (5, 3)
    helper = measure.docs_site_helper()
    docs = doc_paths(helper.PARTS)[: 300 if small else None]
    # The number tells URLs apart; nginx does not care.
    docs = [f"{path}?{number}" for number in range(times) for path in docs]
    even = [f"/small.html?{number}" for number in range(500 if small else 10_000)]
    with helper.DocsSite() as site:
        rows = [
            compare(name, paths, site, helper.HOST, repeats)
            for name, paths in (("documentation", docs), ("even pages", even))
        ]
    heads = ("pages", "engine / CPU s", "requests / CPU s", "ratio", "engine / s", "requests / s")
    measure.table(f"{THREADS} threads, median of {repeats}; budget: ratio over 0.6", heads, rows)


if __name__ == "__main__":
    main()
