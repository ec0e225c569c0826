"""The HTTP client: one request, from its headers to the response, in the thread that asks.

Each thread sends one GET at a time. Faults of servers never raise exceptions.
"""

import mimetypes
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from ..base.agent import agent_token, missing_agent, user_agent
from ..base.clock import now_ms
from ..content.whole_bodies import BROKEN, FRAME, is_whole_document
from ..exchange.cookies import CookieJar
from ..exchange.credentials import Credentials, load_credentials
from ..exchange.http_options import (
    HEADER_VALUE,
    HttpOptions,
    WireOptions,
    guard_of,
    limit_of,
    limits_of,
)
from ..exchange.status import Response
from ..network.body import ACCEPTED, Body, read_body
from ..network.dialer import Dialer, split_url
from ..network.failures import NETWORK_ERRORS, IdleClosed, reason_of
from ..network.guard import Guard
from ..network.heads import Head, head_text, list_values, parse_headers, transfer_codings
from ..network.proxy import parse_proxy
from ..network.transport import Connection, Gate, Transport
from ..network.wire import SocketWire, Wire, run_directly
from ..urls.schemes import scheme_of
from ..urls.url_parts import host_of_url
from ..urls.userinfo import mask_headers
from .file_client import FileClient
from .ftp_client import FtpClient
from .other_clients import OtherClient

if TYPE_CHECKING:
    import asyncio

_T = TypeVar("_T")


class Client:
    """Fetches URLs, one at a time per thread; safe to share by threads.

    Args:
        options: Agent, limits, and where connections may go.
        guard: Guard to use instead of the guard from the options.
        gate: Called right before each request; no request is sent until it returns,
            and False denies the request.

    Attributes:
        guard: Decides where connections may go.
        dialer: Determines addresses, proxy and certificates of connections.
        transport: Sends the requests.
        schemes: Supported schemes.
        token: The agent's product token, for robots.txt.
    """

    _wire: type[Wire] = SocketWire

    def __init__(
        self, options: HttpOptions, guard: Guard | None = None, gate: Gate | None = None
    ) -> None:
        self._options = options
        self._keeps_wire = isinstance(options, WireOptions) and options.store_wire
        self.guard = guard or guard_of(options)
        files = options.http_credentials
        self._credentials = Credentials(load_credentials(files) if files else {})
        self._jar = CookieJar() if options.http_cookies else None
        self.schemes = options.schemes
        self.token = agent_token(options)
        self._headers = {
            "User-Agent": user_agent(options),
            "Accept": options.accept,
            "Accept-Language": options.accept_language,
            "Accept-Encoding": ACCEPTED,
            **parse_headers(options.http_header),
        }
        proxy = parse_proxy(options.http_proxy)
        auth = self._credentials.proxy_header(*proxy) if proxy else ""
        unchecked = frozenset(host.lower() for host in options.insecure_host)
        missing = missing_agent(options)
        self.dialer = Dialer(self.guard, options.ca_file, missing, unchecked, proxy, auth)
        self.transport = Transport(
            self.dialer,
            limits_of(options),
            gate,
            self._wire,
            self._run_blocking,
            self._keeps_wire,
        )

        self._others: dict[str, OtherClient] = {}
        if "file" in options.schemes:
            self._others["file"] = FileClient(
                options.file_roots, options.file_parent, options.file_redirect_noncanonical
            )
        if "ftp" in options.schemes:
            self._others["ftp"] = FtpClient(options, self.dialer, self._credentials, gate)
        self._of_hosts: dict[str, OtherClient] = {}
        if options.protocols:
            from .protocol_plugins import plugin_clients  # most crawls have none

            by_scheme, self._of_hosts = plugin_clients(options, self.dialer, gate)
            self._others |= by_scheme

    @property
    def jar(self) -> CookieJar | None:
        """The cookies; None if they are not kept."""
        return self._jar

    def cookies(self, url: str) -> str:
        """Returns the cookies that a request for a URL would send; empty for none."""
        return (self._jar.header(url) if self._jar is not None else None) or ""

    @property
    def loop(self) -> "asyncio.AbstractEventLoop | None":
        """The event loop of ``request`` and ``locate``, or None."""
        return None

    def run(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        """Runs a coroutine that awaits ``request`` and ``locate``; returns its result."""
        return run_directly(coroutine)

    async def _run_blocking(self, call: Callable[[], _T]) -> _T:
        """Runs a call that may block."""
        return call()

    def get(
        self,
        url: str,
        headers: Iterable[tuple[str, str]] = (),
        content_limit: int | None = None,
        fresh: bool = False,
    ) -> Response:
        """Fetches a URL once; follows no redirects, and raises nothing.

        Args:
            url: Absolute URL of one of ``schemes``.
            headers: Additional headers; headers whose value is not printable ASCII
                are left out.
            content_limit: Limit in bytes, instead of the option.
            fresh: Whether to make a new connection.
        """
        return self.run(self.request(url, headers, content_limit, fresh))

    def host(self, url: str) -> str:
        """Returns the host of a URL, in the form that queue names have; empty for file:.

        Raises:
            ValueError: The URL cannot be fetched.
        """
        other = self._other_client(url)
        return other.host(url) if other is not None else split_url(url)[0][1]

    def _other_client(self, url: str) -> OtherClient | None:
        """Returns the client of a URL that is not requested by HTTP, or by a plug-in."""
        if self._of_hosts and (of_host := self._of_hosts.get(host_of_url(url) or "")):
            return of_host
        return self._others.get(scheme_of(url))

    def close(self) -> None:
        """Closes the idle connections."""
        self.transport.idle.close()

    async def request(
        self,
        url: str,
        headers: Iterable[tuple[str, str]] = (),
        content_limit: int | None = None,
        fresh: bool = False,
    ) -> Response:
        """Fetches a URL once, on ``loop`` if there is one; see ``get``."""
        other = self._other_client(url)
        if other is not None:
            # The content type is not known yet, so the limit depends on the file extension.
            limit = self._limit(content_limit, mimetypes.guess_type(url)[0] or "")
            return await self._run_blocking(lambda: other.get(url, headers, limit))
        response = Response(url, started=now_ms())
        began = time.monotonic()
        try:
            for sent in self._attempts(response, headers):
                response.cookies = sent.get("Cookie", "")
                await self._exchange(response, sent, content_limit, fresh)
        except NETWORK_ERRORS as error:
            response = Response(url, started=response.started, error=reason_of(error))
            response.resend = isinstance(error, IdleClosed)
        response.elapsed_ms = round((time.monotonic() - began) * 1000)
        return response

    async def _exchange(
        self,
        response: Response,
        headers: dict[str, str],
        content_limit: int | None,
        fresh: bool = False,
    ) -> None:
        """Sends one request and fills in the response."""
        head = self.dialer.head("GET", response.url, headers)
        connection, whole = await self.transport.send(head, fresh), False
        try:
            limit = self._limit(content_limit, connection.head.content_type)
            body = await read_body(connection, limit)
            self._fill(response, connection, self._judge_body(body, connection.head.content_type))
            whole = body.truncated is None and body.error is None
        finally:
            self.transport.release(connection, whole)

    def _judge_body(self, body: Body, content_type: str) -> Body:
        """Returns a body; it has no error if it is whole, or if incomplete ones are kept."""
        if body.truncated not in BROKEN:
            return body
        if body.coding_ended or is_whole_document(body.data, content_type, body.missing):
            return Body(body.data, FRAME)
        if self._options.keep_incomplete and body.data:
            return Body(body.data, body.truncated)
        return body

    async def locate(self, url: str) -> str | None:
        """Returns the first IP address for connections to a URL's host; on ``loop``, if any.

        None if ``connect_to`` has the host, or if the host has no allowed address.
        """
        other = self._other_client(url)
        if other is not None:
            return await self._run_blocking(lambda: other.address(url))
        try:
            origin, _ = split_url(url)
            if not self.dialer.is_direct(origin):
                return None
            target = await self.transport.dial(*origin[1:])
        except (OSError, ValueError):
            return None
        return str(target.addresses[0][1][0])

    def _limit(self, content_limit: int | None, content_type: str) -> int:
        """Returns the limit in bytes for a body of a content type; negative: no limit."""
        if content_limit is not None:
            return content_limit
        limits = [self._options.content_limit]
        if limit_of(content_type) == "document_limit":
            limits.append(self._options.document_limit)
        return -1 if min(limits) < 0 else max(limits)

    def _headers_for(
        self, url: str, more: Iterable[tuple[str, str]]
    ) -> tuple[dict[str, str], bool]:
        """Returns (headers to send, whether they include credentials)."""
        headers = self._headers | {n: value for n, value in more if HEADER_VALUE.fullmatch(value)}
        authorization = self._credentials.header(url)
        if authorization is not None:
            headers["Authorization"] = authorization
        if cookies := self.cookies(url):
            headers["Cookie"] = cookies
        return headers, authorization is not None

    def _fill(self, response: Response, connection: Connection, body: Body) -> None:
        """Fills in the response of an exchange."""
        head, checked = connection.head, connection.checked
        response.http_version, response.status_line = head.version, head.status_line
        response.status, response.reason = head.status, head.reason
        response.headers = mask_headers(head.fields, response.url)
        response.body, response.truncated, response.error = body[:3]
        response.ip, response.request = connection.ip, connection.request.decode("latin-1")
        response.tls = None if checked is None else "checked" if checked else "unchecked"
        if self._keeps_wire:
            _keep_wire(response, connection)
        if response.status == 407 and connection.proxied:
            response.status, response.error = 0, "proxy_error"  # the proxy answered, not the page
        if self._jar is not None and response.status:
            values = response.header_values("set-cookie")
            response.new_cookie |= self._jar.take(response.url, values)

    def _attempts(
        self, response: Response, more: Iterable[tuple[str, str]]
    ) -> Iterator[dict[str, str]]:
        """Yields the headers to send; after a 401, yields the headers that answer its challenge."""
        more = list(more)
        headers, authorized = self._headers_for(response.url, more)
        yield headers
        if response.status == 401:
            challenges = response.header_values("www-authenticate")
            if self._credentials.read_challenge(response.url, challenges, authorized):
                yield self._headers_for(response.url, more)[0]


def _keep_wire(response: Response, connection: Connection) -> None:
    """Puts an answer as it came into its response; see ``keep_answer``."""
    response.cipher, response.wire, response.wire_head = connection.cipher, None, None
    if connection.answer_on_wire is not None:
        keep_answer(response, connection.head, *connection.answer_on_wire)


def keep_answer(response: Response, head: Head, came: bytes, body: bytes) -> None:
    """Puts an answer as it came into its response, as far as status line, headers and body lack it.

    The bodies of error pages and of failures are kept in any case: as pages they are not stored. A
    head from which a password was removed is not kept.

    Args:
        response: The response, complete but for what came.
        head: Its head.
        came: The bytes of its head; empty if it had none.
        body: The body with its codings.
    """
    shown = head_text(head.status_line, head.fields)
    if came and response.headers == head.fields and came.decode("latin-1") != shown:
        response.wire_head = came.decode("latin-1")
    coded = list_values(head.fields, "content-encoding") or transfer_codings(head.fields)
    unstored = response.status // 100 != 2 or response.error is not None
    if coded or unstored or not body.startswith(response.body):
        response.wire = body
