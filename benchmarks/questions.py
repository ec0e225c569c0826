"""Whether search finds the pages that questions are about: 150 questions to three sites.

``python benchmarks/questions.py [--small] [--tables FOLDER]``. The documentation site (about 1,700
pages, nginx on loopback), a shop and a news site (question_pages.py) are crawled with the default
fields and filters and indexed, and each question of questions.toml is asked as ``nutbeam search`` asks
it. The same pages are in tantivy alone (title and text, its default tokenizer and query) and in
SQLite's FTS5 (the same with Porter's stemmer, bm25, titles ten times): these have neither corrections
nor languages.

Budgets: NDCG at 10 of all questions, and of the documentation site, at least 0.9 of the best of the
three; 45 of the 50 first questions find their page among the first 5; a page that only lists others is
first in at most a tenth of the questions where it must not be; 10 ms for a query, as the median.

``--tables FOLDER`` keeps the crawls there, and takes those that are there. ``--small`` leaves the
documentation site out: too few pages to judge by.
"""

import argparse
import collections
import contextlib
import dataclasses
import json
import math
import pathlib
import re
import sqlite3
import statistics
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import unquote

import measure
import question_pages

QUESTIONS = pathlib.Path(__file__).with_name("questions.toml")
FIRST_QUESTIONS = 50  # those with a budget of their own, to the documentation site
WITHIN = (1, 3, 5, 10)
BUDGET, JUDGED = 0.9, 5
SHARE_OF_BEST = 0.9
MOST_LISTS = 0.1
MOST_MS = 10
TOP = 10
ENGINES = ("nutbeam", "tantivy", "SQLite FTS5")


@dataclasses.dataclass(frozen=True)
class Question:
    """A question of questions.toml.

    Attributes:
        ask: The query.
        pages: Paths of the pages that answer it, whatever their order.
        site: ``docs``, ``shop`` or ``news``.
        kind: ``typing``, ``language``, ``list``, or empty.
    """

    ask: str
    pages: list[str]
    site: str = "docs"
    kind: str = ""


@dataclasses.dataclass(frozen=True)
class Answer:
    """What the engines have found, and the CPU time of nutbeam's query, ms."""

    question: Question
    paths: dict[str, list[str]]
    cpu: float

    def place(self, engine: str = ENGINES[0]) -> int:
        """Returns the place of the first page that answers; 0 if there is none."""
        paths = enumerate(self.paths[engine], 1)
        return next((at for at, path in paths if path in self.question.pages), 0)

    def ndcg(self, engine: str) -> float:
        """Returns NDCG at 10: a page answers, or it does not."""
        answers = (path in self.question.pages for path in self.paths[engine])
        gain = sum(1 / math.log2(at + 1) for at, good in enumerate(answers, 1) if good)
        return gain / sum(1 / math.log2(at + 2) for at in range(min(TOP, len(self.question.pages))))

    def has_list_first(self, engine: str) -> bool:
        """Returns whether the first page only lists others."""
        first = self.paths[engine][:1]
        return bool(first and question_pages.LISTS[self.question.site].search(first[0]))


def make_table(site: str, table: str) -> None:
    """Crawls a site until nothing is due, and indexes the table."""
    with contextlib.ExitStack() as ends:
        if site == "docs":
            helper = measure.docs_site_helper()
            door, host = ends.enter_context(helper.DocsSite()).connect_to, helper.HOST
        else:
            door = ends.enter_context(question_pages.served(site))
            host = f"{site}.example.com"
        crawled = measure.command(
            "crawl", table, f"http://{host}/", f"--connect_to={door}", "--rounds=-1", "--scope=host",
            "--max_outlinks=-1", "--content_limit=-1", "--server_delay=0", "--threads_per_host=16",
            "--progress=false",
        )  # fmt: skip
    indexed = measure.command("index", table, "--progress=false")
    rows = [("crawl", crawled.process, crawled.cpu), ("index", indexed.process, indexed.cpu)]
    measure.table(f"once, {site}", ("fresh process", "seconds", "CPU s"), rows)


def documents_of(table: str) -> list[tuple[str, str, str]]:
    """Returns URL, title and text of the pages of a table."""
    with tempfile.TemporaryDirectory(prefix="questions-pages-") as folder:
        lines = pathlib.Path(folder) / "pages.jsonl"
        measure.command("pages", table, "-o", str(lines))
        records = [json.loads(line) for line in lines.read_text("utf-8").splitlines()]
    return [(one["url"], one["title"] or "", one["text"]) for one in records if one["text"]]


Finder = Callable[[str], Sequence[str]]


def nutbeam_finder(table: str, cache: str) -> Finder:
    """Returns the search of the table, as people use it: URLs of the first pages."""
    from nutbeam.pipelines.searching.forgiving_search import ForgivingSearch
    from nutbeam.pipelines.searching.searched_table import SearchedTable

    search = ForgivingSearch(SearchedTable(table, "main", cache).newest())
    return lambda text: [hit.url for hit in search.search(text, TOP).hits]


def tantivy_finder(documents: Sequence[tuple[str, str, str]]) -> Finder:
    """Returns the search of tantivy alone."""
    import tantivy

    builder = tantivy.SchemaBuilder()
    for name in ("url", "title", "text"):
        builder.add_text_field(name, stored=name == "url")
    index = tantivy.Index(builder.build())
    writer = index.writer(50_000_000, 1)
    for url, title, text in documents:
        writer.add_document(tantivy.Document(url=url, title=title, text=text))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()

    def find(text: str) -> list[str]:
        query, _ = index.parse_query_lenient(text, ["title", "text"])
        return [
            searcher.doc(place).get_first("url") for _, place in searcher.search(query, TOP).hits
        ]

    return find


def sqlite_finder(documents: Sequence[tuple[str, str, str]]) -> Finder:
    """Returns the search of SQLite's FTS5."""
    database = sqlite3.connect(":memory:")
    tokenizer = "porter unicode61 remove_diacritics 2"
    database.execute(
        f"create virtual table pages using fts5(url unindexed, title, text, tokenize='{tokenizer}')"
    )
    database.executemany("insert into pages values (?, ?, ?)", documents)
    sql = f"select url from pages where pages match ? order by bm25(pages, 0, 10, 1) limit {TOP}"

    def find(text: str) -> list[str]:
        words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", text))
        return [url for (url,) in database.execute(sql, (words,))]

    return find


def ask(question: Question, finders: dict[str, Finder]) -> Answer:
    """Asks all engines."""
    paths = {
        name: [f"/{unquote(url.split('/', 3)[3])}" for url in find(question.ask)]
        for name, find in finders.items()
    }
    start = time.process_time()  # of the second time: the first one reads files
    finders[ENGINES[0]](question.ask)
    return Answer(question, paths, (time.process_time() - start) * 1000)


def answers(tables: pathlib.Path, sites: Sequence[str]) -> list[Answer]:
    """Asks all questions to some sites."""
    questions = [Question(**one) for one in tomllib.loads(QUESTIONS.read_text("utf-8"))["question"]]
    found = []
    for site in sites:
        table = str(tables / site)
        if not pathlib.Path(table).exists():
            make_table(site, table)
        documents = documents_of(table)
        with tempfile.TemporaryDirectory(prefix="questions-cache-") as cache:
            found_by = (
                nutbeam_finder(table, cache),
                tantivy_finder(documents),
                sqlite_finder(documents),
            )
            finders = dict(zip(ENGINES, found_by, strict=True))
            found += [ask(one, finders) for one in questions if one.site == site]
    return found


def show(found: list[Answer]) -> bool:
    """Prints the figures; returns whether they are within the budgets."""
    groups: dict[str, list[Answer]] = collections.defaultdict(list)
    for one in found:
        groups["all"].append(one)
        groups[one.question.site].append(one)
        if one.question.kind:
            groups[f"kind {one.question.kind}"].append(one)
    scores = {
        name: [statistics.mean(one.ndcg(engine) for one in group) for engine in ENGINES]
        for name, group in groups.items()
    }
    shares = {name: score[0] / max(score) for name, score in scores.items()}
    rows: list[tuple[Any, ...]] = [
        (name, len(group), *scores[name], shares[name]) for name, group in groups.items()
    ]
    title = f"NDCG at {TOP}; budget: {SHARE_OF_BEST} of the best, of all and of docs"
    measure.table(title, ("questions", "number", *ENGINES, "of the best"), rows)
    listed = groups["kind list"]
    lists = [sum(one.has_list_first(engine) for one in listed) for engine in ENGINES]
    title = f"a list of pages is first, where it must not be; budget: {MOST_LISTS:.0%}"
    measure.table(title, ("of questions", *ENGINES), [(len(listed), *lists)])
    first = [one for one in found if one.question.site == "docs"][:FIRST_QUESTIONS] or found
    counts = {within: sum(0 < one.place() <= within for one in first) for within in WITHIN}
    rows = [(f"first {within}", count, count / len(first)) for within, count in counts.items()]
    title = f"the first {len(first)} questions; budget: {BUDGET:.0%} among the first {JUDGED}"
    measure.table(title, ("their page is among the", "questions", "share"), rows)
    times = [one.cpu for one in found]
    rows = [("mean", statistics.mean(times)), ("median", statistics.median(times))]
    measure.table("CPU time of a query", ("of all questions", "ms"), [*rows, ("most", max(times))])
    _show_misses(found)
    good = (shares["all"] >= SHARE_OF_BEST, shares.get("docs", 1.0) >= SHARE_OF_BEST,
            counts[JUDGED] >= BUDGET * len(first), lists[0] <= MOST_LISTS * len(listed),
            statistics.median(times) <= MOST_MS)  # fmt: skip
    return all(good)


def _show_misses(found: list[Answer]) -> None:
    for one in found:
        question, place = one.question, one.place()
        if 0 < place <= JUDGED and not (question.kind == "list" and one.has_list_first(ENGINES[0])):
            continue
        where = f"place {place}" if place else f"not among {TOP}"
        print(f"\n{question.ask!r} ({question.site}): {question.pages[0]} is {where}; first are")
        for path in one.paths[ENGINES[0]][:JUDGED]:
            print(f"  {path}")


def main() -> None:
    """Does what the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--full", action="store_true", help="as without it")
    parser.add_argument("--tables", default="")
    args = parser.parse_args()
    with contextlib.ExitStack() as ends:
        tables = args.tables or ends.enter_context(tempfile.TemporaryDirectory(prefix="questions-"))
        good = show(
            answers(
                pathlib.Path(tables), ("shop", "news") if args.small else ("docs", "shop", "news")
            )
        )
    sys.exit(not good)


if __name__ == "__main__":
    main()
