"""The text and the Markdown of small pages are those that a person would want, as pages_as_text.toml has them."""

import tomllib
from pathlib import Path

import pytest

from nutbeam.web.html.html import parse_html
from nutbeam.web.pages.markdown import markdown_of
from nutbeam.web.pages.page import Source
from nutbeam.web.pages.parse_options import ParseOptions

URL = "http://e.com/d/p.html"
GROUPS = tomllib.loads(Path(__file__).with_name("pages_as_text.toml").read_text("utf-8"))
PAGES = {
    f"{group}: {name}": page for group, pages in GROUPS.items() for name, page in pages.items()
}


@pytest.mark.parametrize("name", PAGES)
def test_text_and_markdown(name):
    wanted = PAGES[name]
    page = parse_html(
        Source(URL, wanted["html"].encode(), "text/html; charset=utf-8"), ParseOptions()
    )
    text = wanted["text"].removesuffix("\n")
    assert page.text == text
    markdown = markdown_of(page.text, page.spans, URL)
    assert markdown == wanted.get("markdown", text).removesuffix("\n")
