"""How well the main content of pages is found, and how fast, beside trafilatura, resiliparse and the whole text.

``python benchmarks/main_content.py [--small]`` reads the pages of trafilatura's own evaluation
(``labelled_pages.py``; it needs Go, which downloads them, and ``pip install trafilatura lxml_html_clean
resiliparse``). Of each some phrases are known that belong to its main content, and some that do not. precision: share of the phrases in the results
that belong there; recall: share of those that belong there that are in the results; F: their harmonic mean.
A phrase counts only if it is in one block, and in one line for all.

nutbeam's weights are learnt from pages of this set; ``main_weights.py`` says how good they are on sites that they were not
learnt from. The time of ``nutbeam`` is that of all of parsing: text, links, metadata, structured data and main
content. ``choice_alone`` is the time to choose the main content of a page whose text and blocks are there anyway. Goals
for it: F 0.9; 300 pages a second; 100 ms for the longest.
"""

import functools
import sys
import time
from collections.abc import Callable
from typing import Any

import measure
from labelled_pages import PhrasesPage, phrases_pages, read_page

from nutbeam.web.html.block_text import BlockText
from nutbeam.web.html.tree import parse_tree


def nutbeam() -> Callable[[PhrasesPage], str]:
    """Returns nutbeam's parser."""
    from nutbeam.web.html.html import parse_html
    from nutbeam.web.pages.main_part import cut_text
    from nutbeam.web.pages.page import Source
    from nutbeam.web.pages.parse_options import ParseOptions

    options = ParseOptions()

    def extract(each: PhrasesPage) -> str:
        page = parse_html(Source(each.url, each.utf8, "text/html; charset=utf-8"), options)
        return cut_text(page.text, page.main)

    return extract


def choice_alone() -> Callable[[BlockText], str]:
    """Returns what nutbeam's parser does for the main content, besides the text of the page."""
    from nutbeam.web.html.main_content import main_parts
    from nutbeam.web.pages.main_part import cut_text

    return lambda page: cut_text(page.text, main_parts([page])[0])


def whole_text() -> Callable[[PhrasesPage], str]:
    """Returns the same without the choice of the main content."""
    from nutbeam.web.html.html import parse_html
    from nutbeam.web.pages.page import Source
    from nutbeam.web.pages.parse_options import ParseOptions

    options = ParseOptions()
    return lambda each: (
        parse_html(Source(each.url, each.utf8, "text/html; charset=utf-8"), options).text
    )


def trafilatura() -> Callable[[PhrasesPage], str]:
    """Returns trafilatura."""
    import lxml.html
    import trafilatura

    parser = lxml.html.HTMLParser(encoding="utf-8")

    def extract(each: PhrasesPage) -> str:
        tree = lxml.html.document_fromstring(each.utf8, parser=parser)
        return trafilatura.extract(tree, include_comments=False) or ""

    return extract


def resiliparse() -> Callable[[PhrasesPage], str]:
    """Returns resiliparse."""
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.html import HTMLTree

    return lambda each: extract_plain_text(
        HTMLTree.parse_from_bytes(each.utf8, "utf-8"), main_content=True, alt_texts=False
    )


EXTRACTORS: dict[str, Callable[[], Callable[[Any], str]]] = {
    each.__name__: each for each in (nutbeam, choice_alone, trafilatura, resiliparse, whole_text)
}
# What is done with a page before the time is taken.
PREPARATIONS = {"choice_alone": lambda page: read_page(parse_tree(page.utf8))[0]}


def extracted(name: str, limit: int) -> dict[str, Any]:
    """Extracts from the pages; returns the counts of phrases, and times in s.

    Args:
        name: One of ``EXTRACTORS``.
        limit: Number of pages; 0 is all.
    """
    pages = phrases_pages()[: limit or None]
    extract = EXTRACTORS[name]()
    prepare = PREPARATIONS.get(name, lambda page: page)
    extract(prepare(pages[0]))
    right = wrong = missed = 0
    texts, times = [], []
    for page in pages:
        prepared = prepare(page)
        begin = time.process_time()
        texts.append(extract(prepared))
        times.append(time.process_time() - begin)
    for page, text in zip(pages, texts, strict=True):
        lines = "\n".join(" ".join(line.split()) for line in text.split("\n"))
        hits = sum(phrase in lines for phrase in page.phrases)
        right, missed = right + hits, missed + len(page.phrases) - hits
        wrong += sum(phrase in lines for phrase in page.others)
    return {"counts": (right, wrong, missed), "cpu": sum(times), "longest": max(times), "n": len(pages)}  # fmt: skip


def main() -> None:
    """Prints the table."""
    measure.need("trafilatura", "lxml_html_clean", "resiliparse")
    small = "--small" in sys.argv[1:]
    repeats, limit = (1, 50) if small else (3, 0)
    runs = {
        name: functools.partial(measure.fresh, "main_content", "extracted", name, limit)
        for name in EXTRACTORS
    }
    rows = []
    for name, figures in measure.interleaved(runs, repeats).items():
        results = [each.result for each in figures]
        right, wrong, missed = results[0]["counts"]
        precision, recall = right / (right + wrong), right / (right + missed)
        cpu = sorted(each["cpu"] for each in results)[len(results) // 2]
        longest = min(each["longest"] for each in results)
        harmonic = 2 * precision * recall / (precision + recall)
        rows.append(
            (name, harmonic, precision, recall, results[0]["n"] / cpu, round(1000 * longest))
        )
    heads = ("", "F", "precision", "recall", "pages/s of a core", "longest, ms")
    measure.table("goal: F 0.9, 300 pages/s, 100 ms", heads, rows)


if __name__ == "__main__":
    main()
