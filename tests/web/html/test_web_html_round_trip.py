"""Markdown that another program reads has the same blocks as the page of which it is."""

import html
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from nutbeam.web.html.html import parse_html
from nutbeam.web.pages import spans
from nutbeam.web.pages.markdown import markdown_of
from nutbeam.web.pages.page import Source
from nutbeam.web.pages.parse_options import ParseOptions

URL = "http://e.com/d/p.html"
MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])
GROUPS = tomllib.loads(Path(__file__).with_name("pages_as_text.toml").read_text("utf-8"))
PAGES = {
    f"{group}: {name}": page["html"]
    for group, pages in GROUPS.items()
    for name, page in pages.items()
    if group != "unwritable_numbers"  # which are texts in Markdown
}

PARAGRAPHS = {spans.TERM, spans.CAPTION, spans.PARAGRAPH}  # in Markdown


def parse(markup):
    return parse_html(Source(URL, markup.encode(), "text/html; charset=utf-8"), ParseOptions())


def blocks(page):
    """Yields kind, level or language, and text of the blocks that Markdown has, too."""
    begins_table = False
    for number, (kind, start, end, level, of) in enumerate(page.spans):
        text = " ".join(page.text[start:end].split())
        if kind in PARAGRAPHS:
            yield spans.PARAGRAPH, text
        elif kind == spans.CELL:
            if text:  # empty ones stand in for columns
                yield kind, text
        elif kind == spans.HEADING:
            yield kind, level, text
        elif kind == spans.PREFORMATTED:
            yield kind, of, page.text[start:end]
        elif kind == spans.LIST:
            yield kind, of if len(of) < 9 else "1"
        elif kind == spans.DATA_TABLE:
            begins_table = True  # with its first row: Markdown has captions before
        elif kind == spans.ROW:
            yield kind, begins_table
            begins_table = False
        elif kind in (spans.ITEM, spans.QUOTE) or (
            kind == spans.RULE and not ends_item(page, number)
        ):
            yield (kind,)


def ends_item(page, number):
    """Returns whether a rule is the last in an item: there it parts nothing, and comes from two only."""
    return [kind for kind, *_ in page.spans[number + 1 :] if kind != spans.RULE][:1] == [spans.ITEM]


def read_markdown(markdown):
    """Returns the page that another program makes of Markdown; breaks in cells are HTML on GitHub."""
    return parse(MARKDOWN.render(markdown).replace("&lt;br&gt;", "<br>"))


def assert_goes_round(markup):
    page = parse(markup)
    markdown = markdown_of(page.text, page.spans, URL)
    assert list(blocks(read_markdown(markdown))) == list(blocks(page)), markdown


@pytest.mark.parametrize("name", PAGES)
def test_small_pages(name):
    assert_goes_round(PAGES[name])


# All that means something in Markdown, and what it is beside.
SIGNS = st.sampled_from(
    [*"#*_`~[]()<>!&|\\-+=.:;1a \n\u3002", "- ", "1. ", "> ", "# ", "```", "---", "===", "**", "](", "<b>", "&amp;", "a b", "http://e.com"]
)  # fmt: skip
TEXTS = st.lists(SIGNS, min_size=1, max_size=4).map("".join).map(html.escape)


def element(name, attributes=""):
    return lambda content: f"<{name}{attributes}>{content}</{name}>"


def one_of_elements(*names):
    return lambda contents: st.one_of(*(contents.map(element(name)) for name in names))


def join(contents, least=1, most=3):
    return st.lists(contents, min_size=least, max_size=most).map("".join)


INLINE = st.recursive(
    TEXTS | st.just("<br>") | TEXTS.map(lambda text: f'<img src=i.png alt="{text}">'),
    lambda inner: (
        one_of_elements("b", "i", "code", "del", "span")(join(inner))
        | join(inner).map(element("a", " href='x y(z'"))
    ),
    max_leaves=4,
)
LINES = join(INLINE)
CELLS = LINES.map(element("td")) | LINES.map(element("th"))
TABLES = join(join(CELLS).map(element("tr"))).map(element("table"))
LEAVES = (
    one_of_elements("p", "h1", "h3", "div", "dl")(LINES)
    | TEXTS.map(element("pre"))
    | TABLES
    | LINES
    | st.just("<hr>")
)
BLOCKS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        join(inner).map(element("blockquote")),
        *(join(join(inner).map(element("li"))).map(element("ul", of)) for of in ("", " class=x")),
        *(join(join(inner).map(element("li"))).map(element("ol", of)) for of in ("", " start=7")),
    ),
    max_leaves=4,
)


@pytest.mark.long
@settings(max_examples=100, deadline=None)
@given(join(BLOCKS))
def test_generated_pages(markup):
    assert_goes_round(markup)
