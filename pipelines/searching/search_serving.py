"""Serves the search page, its completions, and the same results for programs."""

import json
import logging
import threading
import time
from http import HTTPStatus
from typing import Any, NamedTuple, Protocol
from urllib.parse import parse_qs

from ...web.base.errors import UserError
from ...web.base.visible import check_utf8, visible
from ..base.addressed_server import AddressedHandler, AddressedServer
from ..base.served_address import ServedAddress
from .forgiving_search import ForgivingSearch
from .index_search import RESULT_ORDERS, FoundPages, ShardSearch
from .question_vectors import QuestionVectors
from .search_page import (
    SEARCH_POLICY,
    SERVED_FILES,
    ResultsView,
    error_page,
    opensearch_description,
    search_page,
)
from .searched_table import SearchedTable

_LOG = logging.getLogger(__name__)
_FARTHEST = 1_000  # pages of results that can be left out
_FRESH_S = 5.0  # for so long a search does not ask whether the index has changed
_MOST_FIELDS = 20
_TYPES = {"js": "text/javascript", "svg": "image/svg+xml", "json": "application/schema+json"}


def serve_search(server: "SearchServer") -> int:
    """Serves until interrupted; prints the addresses."""
    print("\n".join(f"search page: {url}" for url in server.urls), flush=True)
    server.serve_until_interrupted()
    return 0


class SearchPages:
    """The search pages of an index, which a server has below a path.

    Args:
        searched: The index.
        base: Path of the pages.
        top: Most pages of a page of results.
        name: Name of the page; empty: that of the table and the index.
        questions: Makes vectors of queries.

    Attributes:
        name: Name of the page.
    """

    def __init__(
        self,
        searched: SearchedTable,
        base: str,
        top: int,
        name: str = "",
        questions: QuestionVectors | None = None,
    ) -> None:
        self._searched, self.base, self.top = searched, base, top
        self.name = name or f"{searched.address} ({searched.index})"
        self._lock, self._checked = threading.Lock(), 0.0
        self._search, self._questions = searched.newest(), questions

    def search(self, query: str, first: int, order: str) -> tuple[FoundPages, int]:
        """Returns the results of a query in the newest snapshot, and the number of the first.

        A start past the end leads back to the last page of results.

        Raises:
            ValueError: The query is wrong.
            UserError: The index cannot be read.
        """
        index = ForgivingSearch(self.newest(), self._questions)
        results = index.search(query, self.top, first, order=order, facets=True)
        if results.total and not results.hits and first:
            first = (min(results.total - 1, _FARTHEST) // self.top) * self.top
            results = index.search(query, self.top, first, order=order, facets=True)
        return results, first

    def newest(self) -> ShardSearch:
        """Returns the index of the newest snapshot.

        Raises:
            UserError: It cannot be read.
        """
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


class SearchServer(AddressedServer):
    """A server of the search page.

    Args:
        searched: The index.
        address: Where it is served, and who may ask.
        top: Most pages of a page of results.
        name: Name of the page; empty: that of the table and the index.
        questions: Makes vectors of queries.
    """

    def __init__(
        self,
        searched: SearchedTable,
        address: ServedAddress,
        top: int,
        name: str = "",
        questions: QuestionVectors | None = None,
    ) -> None:
        self.search_pages = SearchPages(searched, address.path, top, name, questions)
        super().__init__(address, _Handler)


class _Request(NamedTuple):
    """What a request asks for: the query, the number of the first result, the order."""

    query: str = ""
    first: int = 0
    order: str = RESULT_ORDERS[0]


class SearchServing(Protocol):
    """A server that has search pages.

    Attributes:
        address: Where it is served, and who may ask.
        search_pages: The pages.
    """

    address: ServedAddress
    search_pages: SearchPages


class SearchAnswers(AddressedHandler):
    """Answers requests for search pages."""

    server: Any  # an AddressedServer that is a SearchServing

    @property
    def _pages(self) -> SearchPages:
        serving: SearchServing = self.server
        return serving.search_pages

    def answer_search(self, page: str, query: str) -> bool:
        """Answers a request, if there is such a page; else returns False.

        Args:
            page: Its path below that of the search pages.
            query: The query of the URL.
        """
        if page in ("", "search.json"):
            self._answer(query, as_json=page != "")
        elif page == "complete.json":
            self._complete(query)
        elif page == "opensearch.xml":
            self._send(HTTPStatus.OK, "application/opensearchdescription+xml", self._description())
        elif page in SERVED_FILES:
            self._send(HTTPStatus.OK, _TYPES[page.rpartition(".")[2]], SERVED_FILES[page])
        else:
            return False
        return True

    def _answer(self, text: str, *, as_json: bool) -> None:
        status, results, message = HTTPStatus.OK, None, ""
        request = _Request()
        try:
            request = _parse_request(text)
            request = request._replace(query=request.query.strip())
            if request.query:
                results, first = self._pages.search(*request)
                request = request._replace(first=first)
        except ValueError as error:
            status, message = HTTPStatus.BAD_REQUEST, str(error)
        except UserError as error:
            status, message = HTTPStatus.SERVICE_UNAVAILABLE, str(error)
        pages = self._pages
        if as_json:
            self._send_json(status, _record(request, results, message))
        elif message:
            page = error_page(pages.name, pages.base, request.query, message)
            self._send(status, "text/html", page)
        else:
            view = ResultsView(
                pages.base,
                request.query,
                request.order,
                request.first,
                pages.top,
                _FARTHEST,
            )
            self._send(status, "text/html", search_page(pages.name, view, results))

    def _complete(self, text: str) -> None:
        status = HTTPStatus.OK
        try:
            completions = self._pages.newest().complete(_parse_request(text).query)
            record: dict[str, Any] = {
                "words": completions.words,
                "pages": [one._asdict() for one in completions.pages],
            }
        except ValueError as error:
            status, record = HTTPStatus.BAD_REQUEST, {"error": str(error)}
        except UserError as error:
            status, record = HTTPStatus.SERVICE_UNAVAILABLE, {"error": str(error)}
        self._send_json(status, record)

    def _description(self) -> str:
        # A proxy sends this header. A client that sends a wrong one changes only its own answer.
        secure = self.headers.get("X-Forwarded-Proto", "").strip().lower() == "https"
        start = f"{'https' if secure else 'http'}://{self.host}{self._pages.base}"
        return opensearch_description(self._pages.name, start)

    def _send_json(self, status: HTTPStatus, record: dict[str, Any]) -> None:
        fields = []
        if self.server.address.cors_origins:
            allowed = self.server.address.allowed_origin(self.headers.get("Origin", ""))
            fields = [("Vary", "Origin")]
            if allowed is not None:
                fields.append(("Access-Control-Allow-Origin", allowed))
        self._send(status, "application/json", json.dumps(record), fields)

    def _send(
        self, status: HTTPStatus, kind: str, text: str, fields: list[tuple[str, str]] | None = None
    ) -> None:
        policy = ("Content-Security-Policy", SEARCH_POLICY)
        self.send_text(status, kind, text, [policy, *(fields or ())])


class _Handler(SearchAnswers):
    server: SearchServer

    def answer(self, page: str, query: str) -> None:
        """Answers a request for a page of this server."""
        if not self.answer_search(page, query):
            self._send(HTTPStatus.NOT_FOUND, "text/plain", "there is no such page\n")


def _record(request: _Request, results: FoundPages | None, message: str) -> dict[str, Any]:
    """Returns the answer for programs; ``search_answer.schema.json`` describes it."""
    if message:
        return {"error": message}
    found = results or FoundPages(0, ())
    return {
        "query": request.query,
        "order": request.order,
        "start": request.first,
        "searched": found.searched or request.query,
        "notes": [note._asdict() for note in found.notes],
        "total": found.total,
        "pages": [*map(vars, found.hits)],
        "facets": [
            {
                "name": facet.name,
                "values": [
                    {"label": value.label, "count": value.pages, "query": value.query}
                    for value in facet.values
                ],
            }
            for facet in found.facets
        ],
    }


def _parse_request(text: str) -> _Request:
    """Returns what the query of a URL asks for.

    Raises:
        ValueError: There are too many parameters, or a value is not UTF-8.
    """
    if text.count("&") >= _MOST_FIELDS:
        raise ValueError(f"a request has at most {_MOST_FIELDS} fields")
    parsed = parse_qs(text, errors="surrogateescape")
    fields = {name: values[-1] for name, values in parsed.items()}
    for name, value in fields.items():
        check_utf8(f"parameter {visible(name)}", value)
    start, order = fields.get("start", "0")[:9], fields.get("order", RESULT_ORDERS[0])
    if order not in RESULT_ORDERS:
        raise ValueError(f"order must be {' or '.join(RESULT_ORDERS)}, got {visible(order)!r}")
    first = min(int(start), _FARTHEST) if start.isascii() and start.isdigit() else 0
    return _Request(fields.get("q", ""), first, order)
