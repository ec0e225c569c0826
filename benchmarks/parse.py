"""CPU of parsing with all that parse does, against bare lexbor.

``python benchmarks/parse.py [--small]``, or ``--memory`` for the peak memory over all pages
and ten times as many (the same ones on other hosts; ``--full``: six times as many of both). The pages of the documentation site: what parse's child
processes do with them (``documents_of``: decode, guard, parse, title, text, links resolved,
normalized, filtered and judged by scope, metadata, signature), against three calls of selectolax:
parse, ``text()``, ``css('a')``. A second baseline also reads href and text of each link. Each is a
fresh process on one thread. Budget: at most twice the CPU of the three calls.
"""

import functools
import os
import pathlib
import sys
from typing import Any

import measure

# What a child process gets at a time: four row groups of a file of pages.
JOB_BYTES = 16 << 20


def ours(limit: int, hosts: int = 1) -> int:
    """Parses pages as parse does, in jobs of as many pages; returns the links kept.

    Args:
        limit: As for ``bodies``.
        hosts: Number of hosts that have the same pages, one after the other.
    """
    # As the child processes have it, before these are imported.
    os.environ |= dict.fromkeys(("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "ARROW_IO_THREADS"), "1")
    import polars as pl
    import pyarrow as pa

    from nutbeam.policy.components.host_rows import seeds_of
    from nutbeam.policy.components.schema import PAGES, conform
    from nutbeam.policy.parsing.documents import DocumentOptions, ParseRules, documents_of
    from nutbeam.web.base.memory import collect_seldom, keep_modules
    from nutbeam.web.exchange.status import FETCH_SUCCESS
    from nutbeam.web.urls.row_keys import to_key

    def tables(host: str, some: list[tuple[str, bytes]]) -> list[pa.Table]:
        jobs: dict[int, list[dict[str, Any]]] = {}
        size = 0
        for url, body in some:
            page = {
                "key": to_key(url.replace("docs.", host, 1)), "score": 1.0, "distance": 1,
                "fetch_status": FETCH_SUCCESS, "fetch_time": 0,
                "content_type": "text/html; charset=utf-8", "headers": [], "body": body,
            }  # fmt: skip
            jobs.setdefault(size // JOB_BYTES, []).append(page)
            size += len(body)
        return [conform(pa.Table.from_pylist(job), PAGES) for job in jobs.values()]

    found = bodies(limit)
    options = DocumentOptions(max_outlinks=-1)
    seeds = seeds_of(pl.Series(["com.example.docs"]))
    # What a process does once, is done; of another host, whose links are not those of these.
    documents_of(tables("warm.", found[:100])[0], ParseRules(options, seeds))
    links = 0
    collect_seldom()
    keep_modules()
    for number in range(hosts):
        jobs = tables(f"docs{number or ''}.", found)
        with measure.measured():
            for job in jobs:
                _, counts = documents_of(job, ParseRules(options, seeds))
                links += counts.get("outlinks", 0)
    return links


def bare(limit: int, links: bool) -> int:
    """Parses with lexbor; returns the links found."""
    from selectolax.lexbor import LexborHTMLParser

    pages = [body for _, body in bodies(limit)]
    found = 0
    with measure.measured():
        for body in pages:
            parser = LexborHTMLParser(body)
            parser.text()
            anchors = parser.css("a")
            found += len(anchors)
            if links:
                [(node.attributes.get("href"), node.text()) for node in anchors]
    return found


def bodies(limit: int) -> list[tuple[str, bytes]]:
    """Returns URL and body of the site's pages, without serving them; 0 is all."""
    found = []
    for path, folder, _ in measure.docs_site_helper().PARTS:
        files = sorted(pathlib.Path(folder).rglob("*.html"))
        for file in files[: limit or None]:
            url = f"http://docs.example.com{path}{file.relative_to(folder)}"
            found.append((url, file.read_bytes()))
    return found


def memory(limit: int) -> None:
    """Compares peaks over pages and over ten times as many."""
    pages = len(bodies(limit))
    hosts = measure.sized((6, 60), (1, 10), (6, 60))
    peaks = [measure.fresh("parse", "ours", limit, number).peak / 2**20 for number in hosts]
    heads = ("peak memory, MB", *(f"{number * pages:,} pages" for number in hosts), "ratio")
    measure.table("one process", heads, [("documents_of", *peaks, peaks[1] / peaks[0])])


def main() -> None:
    """Prints the table."""
    repeats, limit = measure.sized((2, 50), (3, 0), (5, 0))
    if "--memory" in sys.argv[1:]:
        memory(limit)
        return
    runs = {
        "documents_of": functools.partial(measure.fresh, "parse", "ours", limit),
        "lexbor: parse, text, css": functools.partial(measure.fresh, "parse", "bare", limit, False),
        "lexbor: and each link read": functools.partial(
            measure.fresh, "parse", "bare", limit, True
        ),
    }
    found = measure.interleaved(runs, repeats)
    pages = len(bodies(limit))
    ours_cpu = measure.median(found["documents_of"], "cpu")
    rows = [
        (name, cpu, 1000 * cpu / pages, ours_cpu / cpu, each[0].result)
        for name, each in found.items()
        for cpu in [measure.median(each, "cpu")]
    ]
    heads = ("CPU", "s", "ms a page", "documents_of / this", "links")
    measure.table(f"{pages:,} pages, median of {repeats}; budget: 2", heads, rows)


if __name__ == "__main__":
    main()
