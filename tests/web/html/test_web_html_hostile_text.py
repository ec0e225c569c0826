"""Text and Markdown of hostile pages take time and space in proportion to the page."""

import gc
import time

import pytest

from nutbeam.web.html.html import parse_html
from nutbeam.web.pages.markdown import markdown_of
from nutbeam.web.pages.page import Source
from nutbeam.web.pages.parse_options import ParseOptions

URL = "http://e.com/d/p.html"

# Name -> (what comes once, what comes n times, n). At four times n, most take 0.1 s on a quiet machine.
REPEATED = {
    "words in one line": (b"<p>", b"word ", 100_000),
    "items with links": (b"<ul>", b"<li>item <a href=x>link</a>", 2_500),
    "items nested": (b"", b"<ul><li>x", 2_500),
    "blocks nested": (b"", b"<div>x", 10_000),
    "preformatted": (b"<pre>", b"line of `code`\n", 50_000),
    "preformatted nested": (b"", b"<pre>x", 10_000),
    "breaks": (b"<p>", b"<br>", 15_000),
    "breaks in marks": (b"<p><b><i><a href=x>", b"<br>x<br><br>", 2_500),
    "breaks after empty marks": (b"<p>x", b"<i></i><br>", 5_000),
    "marks nested": (b"<p>", b"<i><b><span>x", 4_000),
    "marks never closed": (b"", b"<b>x<p>y", 4_000),
    "marks beside one another": (b"<p>", b"<b>x</b>", 10_000),
    "comments in names": (b"", b"<p <!-- x>y<p<!-- x>", 2_000),
    "hidden nested": (b"", b"<div hidden>x", 10_000),
    "hidden in every way": (b"", b"<p style='; ; display: none'><p aria-hidden=true>", 5_000),
    "styles with signs that never close": (b"<p style='display:none", b"(/*((\\\"", 30_000),
    "styles one after another": (b"", b"<p style='display:none;display:block'>x", 2_500),
    "numbered lists nested": (b"", b"<ol reversed><li value=-7>x", 1_500),
    "items with numbers": (b"<ol start=-9>", b"<li value=3>x<li>", 2_500),
    "readings": (b"<ruby>", "漢<rt>か".encode(), 5_000),
    "ruby nested": (b"", "<ruby>漢<rt>か".encode(), 2_000),
    "control characters": (b"<p>", b"a\x01&#x1b;\x0b", 10_000),
    "styles that hide nothing": (b"<p style='", b"; \n ", 100_000),
    "classes that name no language": (b"<pre class='", b"code language sourceCode\t", 10_000),
    "tables": (b"", b"<table><tr><th>x<td>y</table>", 2_000),
    "tables nested": (b"", b"<table><tr><td>x", 5_000),
    "tables in lists in tables": (b"", b"<table><tr><th>x<td><ul><li>a", 2_000),
    "one wide row, many narrow ones": (b"<table><tr>" + b"<td>x" * 5_000, b"<tr><td>y", 2_500),
    "cells of many columns": (b"<table>", b"<tr><td colspan=999>x<td>y", 2_000),
    "cells of many rows": (b"<table>", b"<tr><td rowspan=9999 colspan=99>x<td>y", 750),
    "rows below cells of many rows": (b"<table><tr><td rowspan=999 colspan=99>x<td>", b"<tr><td>y", 1_000),
    "paragraphs in quotes nested": (b"<blockquote>" * 60, b"<p>x", 5_000),
    "old elements in comments": (b"<xmp>x</xmp>", b"<!--<xmp>-->", 10_000),
    "elements named like scripts": (b"", b"<style-x>", 10_000),
    "elements named like frames": (b"", b"<iframe-x></iframe-x>", 10_000),
    "formulas nested": (b"", b"<math><mrow>", 5_000),
    "links nested": (b"", b"<a href=x#y><table><tr><td>#", 2_500),
    "signs of Markdown": (b"<p>", b"*_`~[<&\\", 5_000),
    "ticks in code": (b"<p><code>", b"`", 100_000),
    "a line of dashes": (b"<p>", b"-", 150_000),
    "a line of number signs": (b"<h1>", b"# ", 150_000),
    "a line of digits": (b"<p>", b"1", 150_000),
    "brackets in a mark": (b"<p>x<b>", b"(", 150_000),
    "references": (b"<p>", b"&nbsp;&lt;&amp;", 25_000),
    "quotes in names of attributes": (b"", b"<p a\"=b'>", 10_000),
    "attributes": (b"<p hidden", b" a=hidden", 100_000),
}  # fmt: skip
# Characters of text and Markdown for a byte of the page; the lines of a quote have a sign for each around it.
MOST_CHARS, MOST_MARKDOWN = 10, 40


def measured(body):
    """Returns the page, its Markdown, and CPU seconds."""
    gc.collect()
    start = time.process_time()
    page = parse_html(Source(URL, body, "text/html; charset=utf-8"), ParseOptions())
    markdown = markdown_of(page.text, page.spans, URL)
    return page, markdown, time.process_time() - start


def test_a_first_page_loads_the_parsers():
    assert measured(b"<p>a<a href=x>b</a>")[1] == "a[b](http://e.com/d/x)"


@pytest.mark.few(12)
@pytest.mark.parametrize("name", REPEATED)
def test_time_and_space_grow_as_the_page(name):
    once, repeated, count = REPEATED[name]
    *_, seconds = measured(once + repeated * count)
    body = once + repeated * (4 * count)
    page, markdown, seconds_of_four = measured(body)
    # Quadratic ones take 16 times as long; 0.1 s for what else the machine does.
    assert seconds_of_four < 8 * seconds + 0.1
    assert len(page.text) <= MOST_CHARS * len(body)
    assert len(markdown) <= MOST_MARKDOWN * len(body)
    assert len(page.spans) <= len(body)


def test_eight_megabytes_in_one_line():
    page, markdown, _ = measured(b"<p>" + b"word " * 1_600_000)
    assert len(page.text) == len(markdown) == 8_000_000 - 1
