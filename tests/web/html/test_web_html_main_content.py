"""The main content of pages of several kinds, and of pages that no person wrote."""

import time

import pytest

from nutbeam.web.html import main_content
from nutbeam.web.html.html import parse_html
from nutbeam.web.html.main_content import LateParts
from nutbeam.web.pages.main_part import cut_text
from nutbeam.web.pages.page import Source
from nutbeam.web.pages.parse_options import ParseOptions

TALE = (
    "It was late in the afternoon when the ferry left the harbour of the small island.",
    "Most of the passengers, tired from a long day, had gone below to find a seat and some tea.",
    "Only an old fisherman stayed at the rail, and looked back at the houses on the hill.",
    "He had lived in one of them for sixty years, he said, and never thought of leaving it.",
)
PROSE = "".join(f"<p>{line}</p>" for line in TALE)
MENU = "<ul><li><a href=/>Home</a><li><a href=/shop>Shop</a><li><a href=/us>About us</a></ul>"


def main_text(markup):
    page = parse_html(Source("http://example.com/", markup.encode(), "text/html; charset=utf-8"), ParseOptions())  # fmt: skip
    return cut_text(page.text, page.main)


def test_all_lines_of_a_small_page_are_main_content():
    lines = "<h1>Opening hours</h1><p>Monday 9 to 5</p><p>Tuesday closed</p><p>Anna Meier</p>"
    assert main_text(lines) == "Opening hours\n\nMonday 9 to 5\n\nTuesday closed\n\nAnna Meier"


@pytest.mark.parametrize(
    "around",
    [
        f"<nav>{MENU}</nav><main><article><h1>Head</h1>{{}}</article></main><footer><p>Imprint</p></footer>",
        f'<div class="menu">{MENU}</div><div id="content"><h1>Head</h1>{{}}</div><div class="footer">Imprint</div>',
        f"<table><tr><td>{MENU}</td><td><h1>Head</h1>{{}}</td></tr></table><center><a href=/imprint>Imprint</a></center>",
        f'<div role="navigation">{MENU}</div><div role="main"><h1>Head</h1>{{}}</div><div role="contentinfo">Imprint</div>',
    ],
)
def test_navigation_and_footers_are_no_main_content(around):
    text = main_text(around.format(PROSE))
    assert all(line in text for line in TALE)
    assert not any(word in text for word in ("Shop", "About us", "Imprint"))


def test_comments_and_related_pages_are_no_main_content():
    related = (
        '<div class="related"><h3>More</h3><ul><li><a href=/a>The storm of the year</a></ul></div>'
    )
    comments = (
        '<ol class="commentlist"><li class="comment"><p>Nice story! I was on that ferry.</p></ol>'
    )
    text = main_text(f"<div class=post>{PROSE}</div>{related}{comments}")
    assert TALE[-1] in text
    assert not any(word in text for word in ("storm", "Nice story"))


@pytest.mark.parametrize(
    "part",
    [
        "<h2>Example</h2><pre>ferry = Ferry()\nferry.leave(harbour)</pre>",
        "<table><tr><th>Day<th>Time</tr><tr><td>Monday<td>16:30</tr></table>",
        "<ul><li>Bring warm clothes</li><li>Bring some food</li></ul>",
        "<blockquote><p>A calm sea does not make a skilled sailor.</p></blockquote>",
        "<dl><dt>ferry</dt><dd>A boat that carries people over water.</dd></dl>",
    ],
)
def test_code_tables_lists_and_quotes_between_prose_are_main_content(part):
    page = f"<nav>{MENU}</nav><main>{PROSE}{part}{PROSE}</main>"
    assert len(main_text(page)) == len(main_text(f"<main>{PROSE}{part}{PROSE}</main>"))


def test_a_table_is_main_content_as_a_whole_or_not_at_all():
    rows = "".join(f"<tr><td>{n}<td><a href=/{n}>x</a><td>A long text, which is in a cell: {n}." for n in range(9))  # fmt: skip
    text = main_text(f"<main>{PROSE}<table><tr><th>n<th>l<th>text{rows}</table>{PROSE}</main>")
    assert sum(f"in a cell: {n}." in text for n in range(9)) in (0, 9)
    assert text.count("\tx\t") == text.count("in a cell")


def test_a_page_of_links_has_its_links_as_main_content():
    links = "".join(f"<li><a href=/{n}.html>Chapter {n}: ferries</a>" for n in range(40))
    text = main_text(
        f"<div class=navbar>{MENU}</div><div class=body><h1>Contents</h1><ul>{links}</ul></div>"
    )
    assert sum(f"Chapter {n}:" in text for n in range(40)) == 40


@pytest.mark.parametrize("markup", ["", "<p></p>", "<footer>x</footer>", "x"])
def test_a_page_without_main_content_has_all_of_its_text(markup):
    page = parse_html(Source("http://example.com/", markup.encode()), ParseOptions())
    assert cut_text(page.text, page.main) == page.text


def test_pages_whose_main_content_is_found_together_have_that_of_each_alone():
    table = "<table><tr><th>Day<th>Time</tr><tr><td>Monday<td>16:30</tr></table>"
    bodies = (
        *(
            "x",
            "",
            f"<nav>{MENU}</nav><main>{PROSE}</main>",
            f"<nav>{MENU}</nav>",
            "<p></p>",
            PROSE,
        ),
        *(
            f"<main>{PROSE}{table}</main>",
            f"<a href=/>Home</a>{PROSE}",
            MENU * 9,
            f"<div>{PROSE}{MENU * 3}</div>",
        ),
    )
    alone, together = ([parse_html(Source("http://e.com/", body.encode()), ParseOptions()) for body in bodies] for _ in range(2))  # fmt: skip
    LateParts.find(page.main for page in together)
    assert [[*page.main] for page in together] == [[*page.main] for page in alone]


def test_a_page_with_noindex_has_no_main_content():
    page = parse_html(Source("http://e.com/", b"<meta name=robots content=noindex>" + PROSE.encode()), ParseOptions())  # fmt: skip
    assert (page.text, list(page.main)) == ("", [])


@pytest.mark.parametrize(
    "markup",
    [
        pytest.param("<p>" + "word " * 400_000, id="one line of 2 MB"),
        pytest.param("<ul>" + "<li>item <a href=x>link</a>" * 20_000, id="20,000 items"),
        pytest.param("<div class=a>x" * 20_000, id="deep nesting"),
        pytest.param("".join(f'<div class="c{n} w{"x" * 99}"><p>x</div>' for n in range(9_000)), id="9,000 classes"),
        pytest.param("<table><tr><td>x" * 300, id="tables in tables"),
        pytest.param(f'<div class="{"comment " * 100_000}">{PROSE}</div>', id="a class of 800 kB"),
        pytest.param("<p>\u05e9\u05dc\u05d5\u05dd <ruby>\u6f22<rt>kan</rt></ruby>" * 2_000, id="no Latin letters"),
    ],
)  # fmt: skip
def test_main_content_takes_less_time_than_the_rest_of_parsing(markup, monkeypatch):
    times = []
    find = main_content.main_parts

    def timed(pages):
        begin = time.process_time()
        parts = find(pages)
        times.append(time.process_time() - begin)
        return parts

    monkeypatch.setattr(main_content, "main_parts", timed)
    begin = time.process_time()
    page = parse_html(Source("http://example.com/", markup.encode()), ParseOptions())
    assert len(page.main) >= 0  # it is found now
    assert times[0] < 0.1 + (time.process_time() - begin) / 2
    assert all(0 <= start < end <= len(page.text) for start, end in page.main)
