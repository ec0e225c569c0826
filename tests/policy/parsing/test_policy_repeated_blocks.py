"""What most pages of a host share at the ends of their main content is not main content."""

import pytest

from nutbeam.policy.parsing.repeated_blocks import RepeatedBlocks
from nutbeam.web.pages.page import Page


def page(*lines, main=None):
    """Returns a page with a paragraph for each line; all are main content if nothing else is said."""
    text, spans = "\n\n".join(lines), []
    for line in lines:
        at = spans[-1][2] + 2 if spans else 0
        spans.append(("paragraph", at, at + len(line), 1, ""))
    return Page(text=text, spans=spans, main=[(0, len(text))] if main is None else main)


def trimmed(pages, host="com.example"):
    """Returns the texts of the parts of pages that lose something, by number of the page."""
    blocks = RepeatedBlocks()
    for number, each in enumerate(pages):
        blocks.add(number, each)
    hosts = [host] * len(pages) if isinstance(host, str) else host
    parts = blocks.trimmed_parts([f"{name}:http/{n}" for n, name in enumerate(hosts)])
    return {
        number: [pages[number].text[start:end] for start, end in each]
        for number, each in parts.items()
    }


def test_blocks_at_the_ends_of_most_pages_are_left_out():
    pages = [
        page("Read our letter", f"Story {n}", f"Its end {n}", "Give us money") for n in range(8)
    ]
    assert trimmed(pages) == {n: [f"Story {n}\n\nIts end {n}"] for n in range(8)}


def test_headings_between_other_blocks_stay():
    pages = [
        page(f"Name {n}", "Examples", f"Code {n}", "See also", f"Name {n + 1}") for n in range(9)
    ]
    assert trimmed(pages) == {}


@pytest.mark.parametrize(
    ("number", "others", "changes"),
    [(7, 0, False), (8, 0, True), (8, 7, True), (8, 8, False)],
)
def test_it_takes_eight_pages_of_the_host_and_more_than_half_of_them(number, others, changes):
    pages = [page("Notice", f"Text {n}") for n in range(number)]
    pages += [page(f"Other {n}") for n in range(others)]
    assert bool(trimmed(pages)) is changes


def test_pages_of_other_hosts_do_not_count():
    pages = [page("Notice", f"Text {n}") for n in range(10)]
    assert trimmed(pages, host=["com.a", "com.b"] * 5) == {}


def test_copies_of_one_page_keep_their_content():
    assert trimmed([page("The same", "story") for _ in range(20)]) == {}


def test_only_what_was_main_content_before_counts_and_remains():
    lines = ("Menu", "Notice", "Text", "Comments", "End")
    pages = []
    for n in range(8):
        text = page(*(f"{line} {n}" if line in ("Text", "End") else line for line in lines))
        places = {text.text[start:end].split()[0]: (start, end) for _, start, end, *_ in text.spans}
        text.main = [(places["Notice"][0], places["Text"][1]), places["End"]]
        pages.append(text)
    assert trimmed(pages) == {n: [f"Text {n}", f"End {n}"] for n in range(8)}


def test_a_table_is_one_block():
    pages = []
    for n in range(8):
        spans = [
            ("table", 0, 9, 0, ""),
            ("row", 0, 9, 0, ""),
            ("cell", 0, 5, 1, ""),
            ("cell", 6, 9, 0, ""),
        ]
        pages.append(Page(text=f"Title\t{n:03}\n\nx", spans=spans, main=[(0, 9)]))
    assert trimmed(pages) == {}
