"""Whether search finds the page that a question is about: 50 questions to the documentation site.

``python benchmarks/questions.py [--small] [--table FOLDER]``. The documentation site (about 1,700
pages, nginx on loopback) is crawled with the default fields and filters, indexed into the embedded
index, and each question of questions.toml is asked as ``nutbeam search`` asks it. Budget: 45 of 50
questions find their page among the first 5; with fewer, the script ends with 1. The CPU time of
a query in the open index is measured, too; budget: 10 ms as the median.

``--table FOLDER`` keeps the crawl there, and takes the one that is there. ``--small`` crawls the
Debian Reference only, and asks its questions: too few to judge by.
"""

import argparse
import contextlib
import dataclasses
import pathlib
import statistics
import sys
import tempfile
import time
import tomllib
from typing import TYPE_CHECKING

import measure

if TYPE_CHECKING:
    from nutbeam.pipelines.indexing.searched_table import SearchedTable

QUESTIONS = pathlib.Path(__file__).with_name("questions.toml")
WITHIN = (1, 3, 5, 10)
BUDGET = 0.9  # of the questions, whose page must be among the first JUDGED
JUDGED = 5
SMALL = "/debian-reference/"


@dataclasses.dataclass(frozen=True)
class Answer:
    """What search found.

    Attributes:
        question: The query.
        page: Path of the page that it is about.
        place: Place of the page; 0 if it is not among the first ones.
        first: Paths of the first pages.
        cpu: CPU time of the query in an index that was used before, ms.
    """

    question: str
    page: str
    place: int
    first: list[str]
    cpu: float


def crawl(table: str, path: str) -> None:
    """Crawls the site until nothing is due, and indexes the table."""
    helper = measure.docs_site_helper()
    with helper.DocsSite() as site:
        crawled = measure.command(
            "crawl", table, f"http://{helper.HOST}{path}", f"--connect_to={site.connect_to}",
            "--rounds=-1", "--scope=host", "--max_outlinks=-1", "--content_limit=-1",
            "--server_delay=0", "--threads_per_host=16", "--progress=false",
        )  # fmt: skip
    indexed = measure.command("index", table, "--progress=false")
    rows = [("crawl", crawled.process, crawled.cpu), ("index", indexed.process, indexed.cpu)]
    measure.table("once", ("fresh process", "seconds", "CPU s"), rows)


def ask(searched: "SearchedTable", question: str, pages: list[str]) -> Answer:
    """Asks a question; the first of its pages counts."""
    from nutbeam.policy.indexing.search_query import parse_search

    index = searched.newest()
    for _ in range(2):  # the first time reads its files
        start = time.process_time()
        hits = index.search(parse_search(question), max(WITHIN)).hits
        cpu = (time.process_time() - start) * 1000
    first = ["/" + hit.url.split("/", 3)[3] for hit in hits]
    place = next((at + 1 for at, url in enumerate(first) if url in pages), 0)
    return Answer(question, pages[0], place, first, cpu)


def answers(table: str, small: bool) -> list[Answer]:
    """Asks all questions."""
    from nutbeam.pipelines.indexing.searched_table import SearchedTable

    questions = tomllib.loads(QUESTIONS.read_text())["question"]
    if small:
        questions = [one for one in questions if one["pages"][0].startswith(SMALL)]
    with tempfile.TemporaryDirectory(prefix="questions-cache-") as cache:
        searched = SearchedTable(table, "main", cache)
        print(f"\n{searched.newest().documents:,} documents in the index")
        return [ask(searched, one["ask"], one["pages"]) for one in questions]


def show(found: list[Answer]) -> bool:
    """Prints the figures; returns whether they are within the budget."""
    counts = {within: sum(0 < one.place <= within for one in found) for within in WITHIN}
    rows = [(f"first {within}", count, count / len(found)) for within, count in counts.items()]
    title = f"{len(found)} questions; budget: {BUDGET:.0%} among the first {JUDGED}"
    measure.table(title, ("their page is among the", "questions", "share"), rows)
    times = [one.cpu for one in found]
    rows = [("mean", statistics.mean(times)), ("median", statistics.median(times))]
    measure.table("CPU time of a query", ("of all questions", "ms"), [*rows, ("most", max(times))])
    print(f"\nnot among the first {JUDGED}:")
    for one in found:
        if not 0 < one.place <= JUDGED:
            place = f"place {one.place}" if one.place else f"not among {max(WITHIN)}"
            print(f"  {one.question!r}: {one.page} is {place}; first are")
            for url in one.first[:JUDGED]:
                print(f"    {url}")
    return counts[JUDGED] >= BUDGET * len(found)


def main() -> None:
    """Does what the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--table", default="")
    args = parser.parse_args()
    with contextlib.ExitStack() as ends:
        table = args.table
        if not table:
            table = ends.enter_context(tempfile.TemporaryDirectory(prefix="questions-")) + "/table"
        if not pathlib.Path(table).exists():
            crawl(table, f"{SMALL}index.en.html" if args.small else "/")
        good = show(answers(table, args.small))
    sys.exit(not good)


if __name__ == "__main__":
    main()
