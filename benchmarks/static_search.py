"""How well an export for browsers agrees with the search, how large it is, and how long it takes.

``python benchmarks/static_search.py TABLE``: a table with an index, such as that of the documentation
site which ``questions.py --tables FOLDER`` keeps. The index is exported, served from loopback as files,
and asked in Chromium (``make browser``): the first 50 questions of questions.toml, and 150 queries of
one to three words from titles of the pages, chosen at random. Budget: 85 % of the queries have the same
first page as the search; for 93 % the first page of the search is among the first three.
"""

import argparse
import functools
import http.server
import importlib.util
import json
import pathlib
import random
import re
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Sequence
from types import ModuleType

import measure

HERE = pathlib.Path(__file__).parent
QUESTIONS, SHORT = 50, 150
SAME, NEAR, AMONG = 0.85, 0.93, 3  # shares of the queries; places


def browser_helper() -> ModuleType:
    """Returns tests/support/chromium.py, or ends with one line where there is no browser."""
    path = HERE.parent / "tests" / "support" / "chromium.py"
    spec = importlib.util.spec_from_file_location("chromium_helper", path)
    assert spec is not None
    assert spec.loader is not None
    helper = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(helper)
    if helper.PROGRAM is None:
        raise SystemExit("this needs Chromium: make browser")
    return helper


def short_queries(titles: Sequence[str]) -> list[str]:
    """Returns queries of one, two or three words that follow one another in a title."""
    draw, queries = random.Random(7), list[str]()
    while len(queries) < SHORT:
        words = re.findall(r"[^\W\d]{3,}", draw.choice(titles).lower())
        number = draw.choice((1, 2, 3))
        if len(words) >= number:
            at = draw.randrange(len(words) - number + 1)
            queries.append(" ".join(words[at : at + number]))
    return queries


class _Files(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def asked_in_browser(folder: str, queries: Sequence[str]) -> list[list[str]]:
    """Returns the URLs of the first ten pages of each query."""
    handler = functools.partial(_Files, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            with (
                tempfile.TemporaryDirectory() as profile,
                browser_helper().Browser(profile) as page,
            ):
                page.open(f"http://127.0.0.1:{server.server_port}/")
                ask = "import('./static_search.js').then((it) => it.answer({}))"
                ask += ".then((it) => it.texts.map((one) => one.url))"
                return [page.evaluate(ask.format(json.dumps(query))) for query in queries]
        finally:
            server.shutdown()
            thread.join()


def main() -> None:
    """Does what the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("table")
    table = parser.parse_args().table
    from nutbeam.pipelines.searching.searched_table import SearchedTable
    from nutbeam.pipelines.searching.static_export import export_index
    from nutbeam.policy.searching.search_query import parse_search

    questions = tomllib.loads((HERE / "questions.toml").read_text("utf-8"))["question"]
    with tempfile.TemporaryDirectory(prefix="static-search-") as scratch:
        index = SearchedTable(table, "main", f"{scratch}/cache").newest()
        start, cpu = time.monotonic(), time.process_time()
        size = export_index(index, pathlib.Path(scratch) / "site", "Benchmark")
        seconds, cpu = time.monotonic() - start, time.process_time() - cpu
        titles = [page.title for page in index.whole().pages() if page.title]
        queries = [one["ask"] for one in questions[:QUESTIONS]] + short_queries(titles)
        exported = asked_in_browser(f"{scratch}/site", queries)
        firsts = [
            [hit.url for hit in index.search(parse_search(query), 1).hits] for query in queries
        ]
    pairs = [(urls, first[0]) for urls, first in zip(exported, firsts, strict=True) if first]
    same = sum(urls[:1] == [first] for urls, first in pairs) / len(pairs)
    near = sum(first in urls[:AMONG] for urls, first in pairs) / len(pairs)
    rows = [("pages", size.pages), ("files", size.files), ("MB", size.bytes / 1e6),
            ("kB of a first search", size.first_bytes / 1e3), ("seconds", seconds), ("CPU s", cpu)]  # fmt: skip
    measure.table("export", ("of it", ""), rows)
    agreement = [
        ("the same first page", same, SAME),
        (f"it is among the first {AMONG}", near, NEAR),
    ]
    measure.table(f"{len(pairs)} queries", ("as the search has it", "share", "budget"), agreement)
    sys.exit(same < SAME or near < NEAR)


if __name__ == "__main__":
    main()
