"""Serves the search page on this machine. Texts of pages stay texts; the page has no scripts."""

import json
import logging
import re
import threading
import time
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from ...policy.indexing.search_query import parse_search
from ...web.base.errors import UserError
from ...web.base.visible import check_utf8, visible
from ..base.loopback_server import (
    LOOPBACK,
    POLICY,
    LoopbackHandler,
    LoopbackServer,
    page_start,
    shown,
)
from .index_search import FoundPages, Hit, ShardSearch
from .searched_table import SearchedTable, snippet_spans

_LOG = logging.getLogger(__name__)
_FARTHEST = 1_000  # pages of results that can be left out
_FRESH_S = 5.0  # for so long a search does not ask whether the index has changed
_MOST_FIELDS = 20
_HELP = (
    'Also: "a phrase", -without, site:example.com, type:pdf, lang:de, after:2026-01-31, '
    "inurl:docs, intitle:guide"
)


def serve_search(searched: SearchedTable, port: int, top: int) -> int:
    """Serves until interrupted; prints the address.

    Raises:
        UsageError: The port is taken, or there is no such index.
    """
    with SearchServer(searched, port, top) as server:
        print(f"search page: http://{LOOPBACK}:{server.port}/", flush=True)
        server.serve_until_interrupted()
    return 0


class SearchServer(LoopbackServer):
    """A server of the search page, on loopback only."""

    def __init__(self, searched: SearchedTable, port: int, top: int) -> None:
        self._searched, self.top = searched, top
        self._lock, self._checked = threading.Lock(), 0.0
        self._search = searched.newest()
        super().__init__(port, _Handler)

    @property
    def name(self) -> str:
        """The table and the index, for people."""
        return f"{self._searched.address} ({self._searched.index})"

    def search(self, query: str, first: int) -> FoundPages:
        """Returns the results of a query in the newest snapshot.

        Raises:
            ValueError: The query is wrong.
            UserError: The index cannot be read.
        """
        return self._newest().search(parse_search(query), self.top, first)

    def _newest(self) -> ShardSearch:
        with self._lock:
            if time.monotonic() - self._checked > _FRESH_S:
                try:
                    self._search = self._searched.newest()
                except UserError as error:
                    if self._searched.opened is None:  # it may have what was purged
                        raise
                    _LOG.warning("the search page shows an older index: %s", error)
                self._checked = time.monotonic()
            return self._search


class _Handler(LoopbackHandler):
    server: SearchServer

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if not self.is_local():
            self._send(HTTPStatus.MISDIRECTED_REQUEST, "text/plain", "another host\n")
        elif url.path == "/" or url.path == "/search.json":
            self._answer(url.query, as_json=url.path == "/search.json")
        else:
            self._send(HTTPStatus.NOT_FOUND, "text/plain", "there is no such page\n")

    do_HEAD = do_GET

    def _answer(self, text: str, *, as_json: bool) -> None:
        status, results, message, query, first = HTTPStatus.OK, None, "", "", 0
        try:
            query, first = _parameters(text)
            results = self.server.search(query, first) if query else None
        except ValueError as error:
            status, message = HTTPStatus.BAD_REQUEST, str(error)
        except UserError as error:
            status, message = HTTPStatus.SERVICE_UNAVAILABLE, str(error)
        if as_json:
            record: dict[str, Any] = {"error": message} if message else {"total": 0, "pages": []}
            if results is not None:
                record = {"total": results.total, "pages": [*map(vars, results.hits)]}
            self._send(status, "application/json", json.dumps(record))
        elif message:
            self._send(status, "text/html", error_page(self.server.name, query, message))
        else:
            page = search_page(self.server.name, query, results, first, self.server.top)
            self._send(status, "text/html", page)

    def _send(self, status: HTTPStatus, kind: str, text: str) -> None:
        self.send_text(status, kind, text, [("Content-Security-Policy", POLICY)])


def _parameters(text: str) -> tuple[str, int]:
    """Returns the query, and the number of the first result.

    Raises:
        ValueError: There are too many parameters, or a value is not UTF-8.
    """
    if text.count("&") >= _MOST_FIELDS:
        raise ValueError(f"a request has at most {_MOST_FIELDS} fields")
    parsed = parse_qs(text, errors="surrogateescape")
    fields = {name: values[-1] for name, values in parsed.items()}
    for name, value in fields.items():
        check_utf8(f"parameter {visible(name)}", value)
    start = fields.get("start", "0")[:9]
    first = min(int(start), _FARTHEST) if start.isascii() and start.isdigit() else 0
    return fields.get("q", "").strip(), first


def search_page(name: str, query: str, results: FoundPages | None, first: int, top_n: int) -> str:
    """Returns the page with the results of a query.

    Args:
        name: Name of the table and the index.
        query: The query; empty for the first page.
        results: What it has found; None if there is no query.
        first: Number of pages that are left out before.
        top_n: Most pages of a page of results.
    """
    return _page(name, query, "" if results is None else _results(query, results, first, top_n))


def error_page(name: str, query: str, message: str) -> str:
    """Returns the page for a query that is wrong, or an index that cannot be read."""
    return _page(name, query, f'<p role="alert">{shown(message)}</p>')


def _page(name: str, query: str, content: str) -> str:
    title = f"{query} - search" if query else f"Search {name}"
    focus = "" if query else " autofocus"
    return (
        f"{page_start(title)}<body>"
        f"<header><h1>Search {shown(name)}</h1>"
        '<form action="/" method="get" role="search">'
        f'<input type="search" name="q" value="{shown(query)}" aria-label="Query" '
        f'autocomplete="off" maxlength="1000"{focus}><button>Search</button></form></header>'
        f'<main>{content}</main><footer class="soft">{shown(_HELP)}</footer></body></html>\n'
    )


def _results(query: str, results: FoundPages, first: int, top_n: int) -> str:
    if not results.hits:
        return "<p>No page found.</p>"
    pages = "page" if results.total == 1 else "pages"
    items = "".join(map(_item, results.hits))
    return (
        f'<p class="soft">{results.total:,} {pages}</p><ol start="{first + 1}">{items}</ol>'
        f"{_steps(query, results, first, top_n)}"
    )


def _item(hit: Hit) -> str:
    title, url = shown(hit.title or hit.url), shown(hit.url)
    if re.match(r"(https?|ftp)://", hit.url, re.IGNORECASE):
        address = shown(quote(hit.url, safe="%/:=&?~#+!$,;'@()*[]"))
        title = f'<a href="{address}" rel="noreferrer noopener">{title}</a>'
    snippet = "".join(
        f"<mark>{shown(text)}</mark>" if is_mark else shown(text)
        for text, is_mark in snippet_spans(hit)
    )
    return (
        f'<li><h2 dir="auto">{title}</h2><p class="soft">{url} · {hit.score:.2f}</p>'
        f'<p dir="auto">{snippet}</p></li>'
    )


def _steps(query: str, results: FoundPages, first: int, top_n: int) -> str:
    steps = []
    if first > 0:
        steps.append(("Previous", max(0, first - top_n)))
    if first + len(results.hits) < results.total:
        steps.append(("Next", first + top_n))
    links = (
        f'<a href="/?{shown(urlencode({"q": query, "start": start}))}">{name}</a>'
        for name, start in steps
    )
    return f'<nav aria-label="Pages of results">{"".join(links)}</nav>' if steps else ""
