"""The server of the console: figures of a table that are looked at once a second at most, and answers."""

import contextlib
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Generic, NamedTuple, TypeVar
from urllib.parse import parse_qs

from ...policy.components.index_schema import index_component
from ...web.base.errors import Unavailable, UserError
from ...web.base.visible import check_utf8
from ..base.addressed_server import AddressedServer
from ..base.served_address import ServedAddress
from ..base.served_token import ServedToken
from ..reporting.charts import check_charts
from ..reporting.read_figures import read_crawl_figures
from ..reporting.report_page import report_page, report_policy
from ..searching.search_serving import SearchAnswers, SearchPages
from ..searching.searched_table import SearchedTable
from ..views import explain
from ..views.explain_row import TableAt
from .console_page import (
    CONSOLE_POLICY,
    CONSOLE_SCRIPT,
    console_page,
    explained_page,
    live_part,
    unreadable_part,
)
from .table_watch import TableWatch, WatchedTable, watched_record

_LOG = logging.getLogger(__name__)
_FRESH_S = 1.0  # for so long the table is not looked at again
_EXPLAIN_WAIT_S = 5.0  # URLs are explained one after the other
_REPORT_WAIT_S = 30.0
_MOST_FIELDS = 20
_TOP = 10  # pages of a page of results
_Made = TypeVar("_Made")


class ConsoleFigures(NamedTuple):
    """What the console shows of a table.

    Attributes:
        watched: What was seen; None if the table cannot be read.
        record: The same as JSON.
        live: The part of the page that changes, as HTML.
        message: Why the table cannot be read; else empty.
    """

    watched: WatchedTable | None
    record: str
    live: str
    message: str = ""


class LatestFigures:
    """The figures of a table, shared by all requests.

    Args:
        watch: Looks at the table.
        base: Path of the console.
    """

    def __init__(self, watch: TableWatch, base: str) -> None:
        self._watch, self._base = watch, base
        self._lock = threading.Lock()
        self._looked = -_FRESH_S
        self._figures: ConsoleFigures | None = None

    def get(self) -> ConsoleFigures:
        """Returns the figures; while another request looks at the table, those of the look before."""
        known = self._figures
        if known is not None and time.monotonic() - self._looked < _FRESH_S:
            return known
        if not self._lock.acquire(blocking=known is None):
            return known or self.get()
        try:
            if self._figures is None or time.monotonic() - self._looked >= _FRESH_S:
                self._figures = self._look()
                self._looked = time.monotonic()
            return self._figures
        finally:
            self._lock.release()

    def _look(self) -> ConsoleFigures:
        try:
            watched = self._watch.look()
        except UserError as error:
            _LOG.warning("the table cannot be read: %s", error)
            record = {"state": "unknown", "exit_code": 3, "problems": [str(error)]}
            return ConsoleFigures(None, json.dumps(record), unreadable_part(str(error)), str(error))
        record = watched_record(watched)
        return ConsoleFigures(watched, json.dumps(record), live_part(record, self._base))


class LatestOf(Generic[_Made]):
    """What is made once for each snapshot that is asked for, and used by one request at a time.

    Args:
        make: Makes it of the newest snapshot, whose number it gets.
        longest_s: How long a request waits for others, s.
        busy: Says why it was in vain.
    """

    def __init__(self, make: Callable[[int], _Made], longest_s: float, busy: str) -> None:
        self._make, self._longest_s, self._busy = make, longest_s, busy
        self._lock = threading.Lock()
        self._made: tuple[int, _Made] | None = None

    @contextlib.contextmanager
    def at(self, snapshot: int) -> Iterator[_Made]:
        """Gives what is made of the newest snapshot to this request alone, until the end of the block.

        Args:
            snapshot: Number of the newest snapshot.

        Raises:
            Unavailable: Other requests take too long.
            UserError: The table cannot be read.
        """
        if not self._lock.acquire(timeout=self._longest_s):
            raise Unavailable(f"{self._busy}: try again")
        try:
            if self._made is None or self._made[0] != snapshot:
                self._made = snapshot, self._make(snapshot)
            yield self._made[1]
        finally:
            self._lock.release()


class SearchedIndex:
    """The search pages of an index, which is opened at the first search.

    Args:
        address: Address of the table.
        index: Name of the index.
        folder: Where it is unpacked; see ``SearchedTable``.
    """

    def __init__(self, address: str, index: str, folder: str) -> None:
        self._address, self._index, self._folder = address, index, folder
        self._lock = threading.Lock()
        self._pages: SearchPages | None = None

    def is_there(self, watched: WatchedTable | None) -> bool:
        """Returns whether the table has the index."""
        component = index_component(self._index, "shards")
        return watched is not None and component in watched.manifest.components

    def open(self, base: str) -> SearchPages:
        """Returns the search pages.

        Args:
            base: Their path.

        Raises:
            UserError: There is no such index, or it cannot be read.
        """
        with self._lock:
            if self._pages is None:
                searched = SearchedTable(self._address, self._index, self._folder)
                self._pages = SearchPages(searched, base, _TOP)
            return self._pages


class ConsoleServer(AddressedServer):
    """A server of the console.

    Args:
        watch: Looks at the table.
        address: Where it is served, and who may ask.
        options: Options of explain.
        index: The index that is searched.
        secret: What requests must have; empty: nothing.
    """

    def __init__(
        self,
        watch: TableWatch,
        address: ServedAddress,
        options: explain.Options,
        index: SearchedIndex,
        secret: str = "",
    ) -> None:
        self.table = watch.address
        self.figures = LatestFigures(watch, address.path)
        self._explain_options = options
        self._explainer = LatestOf(
            self._make_explainer, _EXPLAIN_WAIT_S, "other URLs are explained now"
        )
        self._report_page = LatestOf(self._make_report, _REPORT_WAIT_S, "the report is being made")
        self.index = index
        super().__init__(address, _Handler)
        self.token = ServedToken(secret, f"nutbeam_{self.port}") if secret else None

    def explain_url(self, url: str, snapshot: int) -> list[str]:
        """Returns what ``nutbeam explain`` prints of a URL, as lines.

        Args:
            url: The URL.
            snapshot: Number of the newest snapshot.

        Raises:
            Unavailable: Too many others are explained now.
            UserError: The table cannot be read.
        """
        with self._explainer.at(snapshot) as explainer:
            record = explainer.explain(url)
        return [line for line in explain.explained_lines(record, self._explain_options) if line]

    def report(self, snapshot: int) -> str:
        """Returns the page that ``nutbeam report`` writes.

        Args:
            snapshot: Number of the newest snapshot.

        Raises:
            Unavailable: Another request waits for it for long.
            UserError: The table cannot be read.
        """
        with self._report_page.at(snapshot) as page:
            return page

    def _make_explainer(self, _: int) -> explain.Explainer:
        return explain.Explainer(self._explain_options, TableAt(self.table))

    def _make_report(self, snapshot: int) -> str:
        check_charts()
        return report_page(read_crawl_figures(self.table, snapshot))

    @property
    def search_pages(self) -> SearchPages:
        """The search pages of the index.

        Raises:
            UserError: There is no such index, or it cannot be read.
        """
        return self.index.open(f"{self.address.path}search/")


class _Handler(SearchAnswers):
    server: ConsoleServer

    def answer(self, page: str, query: str) -> None:
        """Answers a request for a page of the console."""
        if not self._is_admitted(page, query):
            return
        if page in ("", "live", "status.json"):
            self._answer_figures(page)
        elif page == "explain":
            self._explain(query)
        elif page == "report":
            self._answer_report()
        elif page == "console.js":
            self._reply(HTTPStatus.OK, "text/javascript", CONSOLE_SCRIPT)
        elif not (page.startswith("search/") and self._search(page, query)):
            self.refuse(HTTPStatus.NOT_FOUND, "there is no such page")

    def _is_admitted(self, page: str, query: str) -> bool:
        """Returns whether a request has the token; else answers it, and gives a browser its cookie."""
        token = self.server.token
        if token is None or token.is_in(self.headers):
            return True
        typed = ""
        with contextlib.suppress(ValueError):
            typed = _field(query, "token")
        if page == "" and token.is_secret(typed):
            path = self.server.address.path
            fields = [("Location", path), ("Set-Cookie", token.cookie(path))]
            self.send_text(HTTPStatus.SEE_OTHER, "text/plain", "", fields)
        else:
            reason = "open the address that nutbeam console has printed: it has the token"
            self.refuse(HTTPStatus.FORBIDDEN, reason)
        return False

    def _answer_figures(self, page: str) -> None:
        figures, server = self.server.figures.get(), self.server
        status = HTTPStatus.SERVICE_UNAVAILABLE if figures.message else HTTPStatus.OK
        if page == "status.json":
            self._reply(status, "application/json", figures.record)
        elif page == "live":
            self._reply(status, "text/html", figures.live)
        else:
            searches = server.index.is_there(figures.watched)
            whole = console_page(server.table, server.address.path, figures.live, searches=searches)
            self._reply(status, "text/html", whole)

    def _explain(self, query: str) -> None:
        url, status, lines, message = "", HTTPStatus.OK, list[str](), ""
        figures, server = self.server.figures.get(), self.server
        snapshot = figures.watched.facts.snapshot if figures.watched else 0
        try:
            url = _field(query, "url")
            if url and not snapshot:
                raise UserError(figures.message or "the table has no snapshot yet")
            lines = server.explain_url(url, snapshot) if url else []
        except ValueError as error:
            status, message = HTTPStatus.BAD_REQUEST, str(error)
        except UserError as error:
            status, message = HTTPStatus.SERVICE_UNAVAILABLE, str(error)
        searches = server.index.is_there(figures.watched)
        page = explained_page(
            server.table, server.address.path, url, lines, message, searches=searches
        )
        self._reply(status, "text/html", page)

    def _answer_report(self) -> None:
        figures, server = self.server.figures.get(), self.server
        snapshot = figures.watched.facts.snapshot if figures.watched else 0
        try:
            if not snapshot:
                raise UserError(figures.message or "the table has no snapshot yet")
            page = server.report(snapshot)
        except UserError as error:
            self.refuse(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        else:
            fields = [("Content-Security-Policy", report_policy())]
            self.send_text(HTTPStatus.OK, "text/html", page, fields)

    def _search(self, page: str, query: str) -> bool:
        try:
            return self.answer_search(page.removeprefix("search/"), query)
        except UserError as error:  # there is no index
            self.refuse(HTTPStatus.NOT_FOUND, str(error))
            return True

    def _reply(self, status: HTTPStatus, kind: str, text: str) -> None:
        self.send_text(status, kind, text, [("Content-Security-Policy", CONSOLE_POLICY)])


def _field(query: str, name: str) -> str:
    """Returns the last value of a field of a query; empty if there is none.

    Raises:
        ValueError: There are too many fields, or it is not UTF-8.
    """
    fields = parse_qs(query, errors="surrogateescape", max_num_fields=_MOST_FIELDS)
    value = fields.get(name, [""])[-1].strip()
    check_utf8(f"field {name}", value)
    return value
