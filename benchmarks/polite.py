"""Time of a polite fetch of many hosts against a bare pool that keeps the same delays.

``python benchmarks/polite.py [--small]``. 1,000 hosts of the simulated web, 5 to 15 pages each,
every answer after 100 ms, 1 s between the end of a request and the next one to the same host, 128
threads. The bare pool is 128 threads with ``requests``. They share one heap of hosts, sorted by the
time from which a host may be requested again. The pool requests robots.txt first, as nutbeam does.
Budget: at least 95 % of its speed.

The bound is what the delays allow to any crawler: the requests to the largest host, one after the
other.
"""

import functools
import heapq
import sys
import threading
import time

import measure

LATENCY, DELAY = 0.1, 1.0
Urls = dict[str, list[str]]


def engine(doors: list[str], threads: int, urls: Urls) -> list[float]:
    """Fetches with the engine; returns when each page came, in s from the start."""
    from nutbeam.pipelines.fetch import FetchBatchOptions
    from nutbeam.web.clients.http_client import Client
    from nutbeam.web.engine.engine import Engine, Task

    options = FetchBatchOptions(connect_to=tuple(doors), threads=threads, server_delay=DELAY)
    came = []
    with measure.measured():
        start = time.perf_counter()
        tasks = (Task(url) for some in urls.values() for url in some)
        for result in Engine(options, Client(options)).run(tasks):
            if result.response is not None and result.response.status == 200:
                came.append(time.perf_counter() - start)
    return came


def pool(port: int, threads: int, urls: Urls) -> list[float]:
    """Fetches with requests, the same hosts in the same order; returns when each page came."""
    import requests

    session = requests.Session()
    session.trust_env = False
    session.mount("http://", requests.adapters.HTTPAdapter(pool_maxsize=threads))
    left = {
        host: ["/robots.txt", *(url.partition(host)[2] for url in some)]
        for host, some in urls.items()
    }
    lock, came = threading.Lock(), []

    def work() -> None:
        while True:
            with lock:
                if not ready:
                    return
                moment, host = heapq.heappop(ready)
                path = left[host].pop(0)
            time.sleep(max(0.0, moment - time.perf_counter()))
            response = session.get(f"http://127.0.0.1:{port}{path}", headers={"Host": host})
            now = time.perf_counter()
            with lock:
                if response.status_code == 200 and path != "/robots.txt":
                    came.append(now - start)
                if left[host]:
                    heapq.heappush(ready, (now + DELAY, host))

    with measure.measured():
        start = time.perf_counter()
        ready = [(start, host) for host in left]
        workers = [threading.Thread(target=work) for _ in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    return came


def some_pages(pages: list[str], hosts: int) -> Urls:
    """Returns 5 to 15 pages of each host."""
    by_host: Urls = {}
    for url in sorted(pages):
        by_host.setdefault(url.split("/")[2], []).append(url)
    return {
        host: by_host[host][: 5 + number % 11]
        for number, host in enumerate(sorted(by_host)[:hosts])
    }


def main() -> None:
    """Prints the table."""
    from nutbeam.web.simweb.server import SimWeb

    small = "--small" in sys.argv[1:]
    hosts, threads, repeats = (60, 16, 1) if small else (1_000, 128, 3)
    with SimWeb(hosts, 16, crawl_delay=0, latency=LATENCY) as server:
        urls = some_pages(
            [server.site.plan.url(page) for page in server.site.plan.all_pages()], hosts
        )
        runs = {
            "engine": functools.partial(
                measure.fresh, "polite", "engine", list(server.connect_to), threads, urls
            ),
            "pool": functools.partial(measure.fresh, "polite", "pool", server.port, threads, urls),
        }
        found = measure.interleaved(runs, repeats)
    pages = {len(figures.result) for each in found.values() for figures in each}
    if len(pages) != 1:
        raise SystemExit(f"not the same number of pages: {sorted(pages)}")
    (number,) = pages
    rows = []
    for what, figure in (("seconds", "work"), ("CPU s", "cpu")):
        both = [measure.median(found[who], figure) for who in ("engine", "pool")]
        rows.append((what, *both, both[1] / both[0]))
    tails = [_tail(found[who][0].result) for who in ("engine", "pool")]
    rows.append(("the last 5 % of the pages took, s", *tails, tails[1] / tails[0]))
    bound = max((len(some) + 1) * (LATENCY + DELAY) - DELAY for some in urls.values())
    title = (
        f"{number:,} pages of {len(urls):,} hosts, {threads} threads, {LATENCY * 1000:.0f} ms latency, "
        f"{DELAY:g} s delay;\n  the largest host alone takes {bound:.1f} s; median of {repeats}"
    )
    measure.table(title, ("one engine", "engine", "bare pool", "speed / bare pool"), rows)


def _tail(came: list[float]) -> float:
    return came[-1] - came[len(came) * 95 // 100]


if __name__ == "__main__":
    main()
