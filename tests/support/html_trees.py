"""The ways in which an HTML page is read, for tests that hold for each of them."""

from nutbeam.web.html import tree as html_tree
from nutbeam.web.html.html import parse_html
from nutbeam.web.pages.page import Source
from nutbeam.web.pages.parse_options import ParseOptions

URL = "http://h0.example.com/d/page.html"
FETCHED = 1_750_863_600_000  # 2025-06-25 15:00 UTC
TREES = ["as it is", "flattened"]


def parser_with(tree, monkeypatch):
    """Returns a function that parses a page as it is, or flattened."""
    if tree == "flattened":
        monkeypatch.setattr(html_tree, "may_nest_deep", lambda body: True)

    def parsed(markup, robots_header=None, headers=(), **options):
        body = markup if isinstance(markup, bytes) else markup.encode()
        content_type = options.pop("content_type", "text/html; charset=utf-8")
        fetch_time = options.pop("fetch_time", FETCHED)
        if robots_header:
            headers = [*headers, ("x-robots-tag", robots_header)]
        return parse_html(
            Source(URL, body, content_type, headers, fetch_time), ParseOptions(**options)
        )

    return parsed
