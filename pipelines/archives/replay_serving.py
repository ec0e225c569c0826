"""Serves an archive on this machine: as a proxy, in place of its sites, and by path.

By path, archived pages and the pages of the replay have one address. So archived pages are sandboxed:
their scripts run, but in an origin of their own, and load nothing except what the archive has. Their
links lead to a path with a secret. Other sites do not know it, so they cannot read the archive through
the browser of the person who looks at it.
"""

import contextlib
import logging
import re
import secrets
import socket
import ssl
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

from ...web.archives.captures import Capture
from ...web.archives.warc_records import timestamp14
from ...web.base.errors import UserError
from ...web.exchange.status import moment_of
from ...web.replay.link_rewriting import LinkRewriter
from ...web.replay.replay_answers import ReplayAnswer, original_answer, page_answer
from ...web.replay.replay_requests import (
    Asked,
    ReplayRequest,
    page_path,
    parse_request,
    time_of_digits,
)
from ..base.loopback_server import POLICY, LoopbackHandler, LoopbackServer
from .replay_archive import ReplayArchive
from .replay_pages import captures_page, framed_page, host_page, message_page, start_page

_LOG = logging.getLogger(__name__)
MISSING = ("X-Nutbeam-Replay", "missing")
_FAILED = ("X-Nutbeam-Replay", "unreadable")
_TLS_HANDSHAKE = b"\x16"
_PAGES = frozenset({"", "text/html", "application/xhtml+xml", "image/svg+xml"})
_FRAMES = ("iframe", "frame")
_NO_TLS = "this replay has no certificate: start it with --certificate, or ask for the page with http://\n"
_METHODS = "GET, HEAD, CONNECT"


class ReplayServer(LoopbackServer):
    """A server of an archive, on loopback only.

    Args:
        archive: The archive.
        port: Its port; 0 takes a free one.
        tls: Certificate and key for requests of https; None: such requests are refused.
    """

    def __init__(self, archive: ReplayArchive, port: int, tls: ssl.SSLContext | None) -> None:
        self.archive, self.tls = archive, tls
        self.secret = f"/~{secrets.token_urlsafe(12)}"
        super().__init__(port, _Handler)

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Answers the requests of a connection, which may begin with TLS."""
        request.settimeout(_Handler.timeout)
        if request.recv(1, socket.MSG_PEEK) != _TLS_HANDSHAKE:
            _Handler(request, client_address, self)
        elif self.tls is not None:
            with self.tls.wrap_socket(request, server_side=True) as secured:
                _Handler(secured, client_address, self)


class _Handler(LoopbackHandler):
    server: ReplayServer
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        lengths = self.headers.get_all("Content-Length", ())
        if set(lengths) - {"0"} or "Transfer-Encoding" in self.headers:
            self._refuse(HTTPStatus.BAD_REQUEST, "a request has no body here\n")
            return
        # The target as it came: the attribute ``path`` may have lost slashes.
        target = self.requestline.split()[1]
        framed = target.startswith(f"{self.server.secret}/")
        own = self.is_local()
        for name in self.server.names:  # a proxy that is asked for itself
            if target.lower().startswith(f"http://{name}/"):
                own, target = True, target[len(f"http://{name}") :]
        if framed and own:
            target = target[len(self.server.secret) :]
        secure = isinstance(self.connection, ssl.SSLSocket)
        request = parse_request(target, self.host, own=own, secure=secure)
        if request is None or (framed and request.asked is not Asked.PAGE):
            self._refuse(HTTPStatus.BAD_REQUEST, "no URL of an archive\n")
            return
        try:
            self._answer(request, target, framed=framed and own)
        except ValueError as error:  # of a time
            self._message(HTTPStatus.BAD_REQUEST, str(error))
        except UserError as error:
            self.send_text(HTTPStatus.SERVICE_UNAVAILABLE, "text/plain", f"{error}\n", [_FAILED])

    do_HEAD = do_GET

    def do_POST(self) -> None:
        self._refuse(HTTPStatus.METHOD_NOT_ALLOWED, "an archive answers GET and HEAD\n")

    do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_TRACE = do_POST

    def do_CONNECT(self) -> None:
        """Opens a tunnel, whose other end is here."""
        if self.server.tls is None or isinstance(self.connection, ssl.SSLSocket):
            self._refuse(HTTPStatus.NOT_IMPLEMENTED, _NO_TLS)
            return
        self.send_response_only(HTTPStatus.OK, "Connection established")
        self.end_headers()
        self.wfile.flush()
        self.rfile.close()
        self.wfile.close()
        self.request = self.server.tls.wrap_socket(self.connection, server_side=True)
        self.setup()
        self.close_connection = False

    def finish(self) -> None:
        super().finish()
        if isinstance(self.request, ssl.SSLSocket):
            self.request.close()

    def _answer(self, request: ReplayRequest, target: str, *, framed: bool) -> None:
        archive, time = self.server.archive, self._wanted_time(request)
        if request.asked is Asked.OWN:
            self._own_page(request.url)
            return
        if request.asked is Asked.CAPTURES:
            rows = archive.index.captures_of(request.url)
            status = HTTPStatus.OK if len(rows) else HTTPStatus.NOT_FOUND
            self._page(status, captures_page(archive.name, request.url, rows))
            return
        if request.asked is not Asked.ORIGINAL and not framed and self._is_of_another_site():
            self._refuse(HTTPStatus.FORBIDDEN, "another site must not read this archive\n")
            return
        capture = archive.find(request.url, time)
        if request.asked is Asked.ORIGINAL:
            self._original(request, capture)
        elif capture is None:
            self._message(
                HTTPStatus.NOT_FOUND, f"The archive does not have {request.url}", [MISSING]
            )
        elif request.asked is Asked.RAW:
            fields = [
                ("Content-Security-Policy", "sandbox"),
                *self._memento_fields(capture, request),
            ]
            self._send(page_answer(capture), fields)
        elif _lacks_path(target):
            self._redirect(page_path(request.url, request.time))
        elif self.headers.get("Sec-Fetch-Dest") == "document":
            self._frame(capture, request)
        else:
            self._archived_page(capture, request, framed=framed)

    def _wanted_time(self, request: ReplayRequest) -> int | None:
        """Returns the time to come near to, UTC ms; None: the request names none."""
        if request.time:
            return time_of_digits(request.time)
        wanted = self.headers.get("Accept-Datetime")
        moment = None if wanted is None else moment_of(wanted)
        if wanted is not None and moment is None:
            raise ValueError(
                f"expected Accept-Datetime as Sat, 28 Nov 2026 16:32:24 GMT, got {wanted!r}"
            )
        return None if moment is None else round(moment * 1000)

    def _memento_fields(
        self, capture: Capture, request: ReplayRequest
    ) -> Iterator[tuple[str, str]]:
        """Yields the headers that say which capture is shown of which URL (RFC 7089)."""
        yield "Memento-Datetime", self.date_time_string(capture.time // 1000)
        gate = f"{self._own_address}{page_path(request.url)}"
        yield "Link", f'<{request.url}>; rel="original", <{gate}>; rel="timegate"'
        if not request.time:
            yield "Vary", "accept-datetime"

    @property
    def _own_address(self) -> str:
        name = self.host if self.is_local() else self.server.names[0]
        return f"http://{name}"

    def _is_of_another_site(self) -> bool:
        """Returns whether a page of another site has made a browser send the request.

        It may link to a page, which then comes in its frame.
        """
        other = self.headers.get("Sec-Fetch-Site") in ("cross-site", "same-site")
        return other and self.headers.get("Sec-Fetch-Dest") != "document"

    def _original(self, request: ReplayRequest, capture: Capture | None) -> None:
        if capture is None:
            text = f"the archive does not have {request.url}\n"
            self.send_text(HTTPStatus.NOT_FOUND, "text/plain", text, [MISSING])
        else:
            accepted = ",".join(self.headers.get_all("Accept-Encoding", ()))
            answer = original_answer(capture, accepted)
            self._send(answer, length=answer.length)

    def _archived_page(self, capture: Capture, request: ReplayRequest, *, framed: bool) -> None:
        start = self.server.secret if framed else ""
        time = timestamp14(capture.time)

        def path_of(url: str) -> str:
            return f"{start}{page_path(url, time)}"

        answer, fields = page_answer(capture), self._page_fields(capture, request, framed=framed)
        location = capture.header("location")
        if 300 <= answer.status < 400 and location:
            with contextlib.suppress(ValueError):
                target = urljoin(request.url, location)
                fields.append(("Location", re.sub(r"[^\x21-\x7e]+", "", path_of(target))))
        kind = capture.content_type.partition(";")[0].strip().lower()
        links = LinkRewriter(request.url, path_of)
        if kind in _PAGES and answer.body:
            answer = answer._replace(body=links.page(answer.body))
        elif kind == "text/css":
            answer = answer._replace(body=links.style(answer.body))
        self._send(answer, fields)

    def _page_fields(
        self, capture: Capture, request: ReplayRequest, *, framed: bool
    ) -> list[tuple[str, str]]:
        """Returns the headers of an archived page below this address."""
        source = f"{self._own_address}{self.server.secret}/" if framed else self._own_address
        policy = (
            f"sandbox allow-scripts allow-forms; default-src {source} 'unsafe-inline' 'unsafe-eval' "
            f"data: blob:; form-action {source}; base-uri {source}; object-src 'none'; "
            "webrtc 'block'"
        )
        if not framed:
            policy += "; frame-ancestors 'none'"
        fields = [
            ("Content-Security-Policy", policy),
            ("Referrer-Policy", "no-referrer"),
            ("X-DNS-Prefetch-Control", "off"),
            ("Cache-Control", "no-store"),
            *self._memento_fields(capture, request),
        ]
        # The origin of a sandboxed page is equal to no other, so its fonts and modules need this.
        return [*fields, ("Access-Control-Allow-Origin", "*")] if framed else fields

    def _frame(self, capture: Capture, request: ReplayRequest) -> None:
        source = f"{self._own_address}{self.server.secret}/"
        page = framed_page(capture, request.url, self.server.secret)
        self._page(HTTPStatus.OK, page, [("Content-Security-Policy", f"frame-src {source}")])

    def _own_page(self, target: str) -> None:
        parts = urlsplit(target)
        fields = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        archive, first = self.server.archive, fields.get("first", "0")[:9]
        start = int(first) if first.isascii() and first.isdigit() else 0
        if parts.path != "/":
            self._message(HTTPStatus.NOT_FOUND, "there is no such page")
        elif "url" in fields:
            url = fields["url"].strip()
            self._redirect(page_path(url if "://" in url else f"http://{url}"))
        elif "host" in fields:
            self._page(HTTPStatus.OK, host_page(archive.name, fields["host"], archive.index, start))
        else:
            self._page(HTTPStatus.OK, start_page(archive.name, archive.index, start))

    def _redirect(self, path: str) -> None:
        location = re.sub(r"[^\x21-\x7e]+", "", path)
        start = self.server.secret if self.requestline.split()[1].startswith("/~") else ""
        self.send_text(HTTPStatus.FOUND, "text/plain", "", [("Location", f"{start}{location}")])

    def _message(
        self, status: HTTPStatus, message: str, fields: Iterable[tuple[str, str]] = ()
    ) -> None:
        self._page(status, message_page(self.server.archive.name, message), fields)

    def _page(self, status: HTTPStatus, page: str, fields: Iterable[tuple[str, str]] = ()) -> None:
        own = dict(fields)
        policy = "; ".join(filter(None, (own.pop("Content-Security-Policy", ""), POLICY)))
        if self.headers.get("Sec-Fetch-Dest") in _FRAMES:  # a link in a frame leads to it
            policy = policy.replace("frame-ancestors 'none'", "frame-ancestors 'self'")
        self.send_text(
            status, "text/html", page, [("Content-Security-Policy", policy), *own.items()]
        )

    def _refuse(self, status: HTTPStatus, text: str) -> None:
        """Answers a request whose body, if it has one, is not read."""
        self.close_connection = True
        fields = [("Connection", "close"), ("Allow", _METHODS)]
        self.send_text(status, "text/plain", text, fields)

    def _send(
        self,
        answer: ReplayAnswer,
        fields: Iterable[tuple[str, str]] = (),
        length: int | None = None,
    ) -> None:
        """Sends an answer; with a length that its body does not have, it breaks off."""
        length = len(answer.body) if length is None else length
        self.close_connection |= length > len(answer.body)
        if answer.incomplete is not None:
            fields = [*fields, ("X-Nutbeam-Replay", f"incomplete; {answer.incomplete}")]
        self.send_response_only(answer.status, answer.reason)
        for name, value in (*answer.fields, *fields):
            # What a page says may have any byte, and what is asked for any character.
            self.send_header(name, value.encode("latin-1", "replace").decode("latin-1"))
        if answer.has_body:
            self.send_header("Content-Length", str(length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)


def _lacks_path(target: str) -> bool:
    """Returns whether the archived URL in a path ends with its host: its links would go astray."""
    return "/" not in target.partition("://")[2]
