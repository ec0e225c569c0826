"""The HTTP client: one GET at a time, guarded, bounded, and never raising for the web.

``requests`` and urllib3 do the work below, through ``GuardedAdapter``; with
``http_client=aiohttp`` it is done by ``aio``, under the same rules, which are here.
"""

import dataclasses
import mimetypes
import re
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

import requests

from .adapter import GuardedAdapter
from .agent import AgentOptions, agent_token, missing_agent, user_agent
from .body import ACCEPTED, Body, read_body
from .clock import now_ms
from .cookies import CookieJar
from .credentials import Credentials, load_credentials
from .failures import NETWORK_ERRORS, may_resend, reason_of
from .guard import Guard
from .headers import parse_headers
from .heads import Head
from .options import option
from .proxy import parse_proxy
from .response import Response
from .route import split_url
from .schemes import FileOptions, other_clients, scheme_of
from .steps import Locate, Request
from .userinfo import mask_headers
from .wire import Message

if TYPE_CHECKING:
    import asyncio

# They are zip archives, or have their table of contents at the end.
_DOCUMENTS = ("application/pdf", "application/vnd.", "application/msword", "application/epub+zip")
_HEADER = re.compile(r"[\t\x20-\x7e]*")


@dataclasses.dataclass(frozen=True)
class HttpOptions(AgentOptions, FileOptions):
    """How pages are asked for, and where connections may go."""

    timeout: float = option(
        10.0,
        "Longest wait for a connection, or for the next bytes.",
        unit="s",
        nutch="http.timeout",
        minimum=0.001,
    )
    http_time_limit: float = option(
        60.0, "Longest time for a whole request.", unit="s", nutch="http.time.limit", minimum=0.001
    )
    content_limit: int = option(
        1_048_576,
        "Most bytes of a body that are kept, after decoding; negative for all.",
        unit="bytes",
        nutch="http.content.limit",
    )
    document_limit: int = option(
        8_388_608,
        "The same for PDF, office documents and e-books, which cannot be read when they are cut; "
        "content_limit where that is larger.",
        unit="bytes",
    )
    accept: str = option(
        "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
        "Accept header.",
        nutch="http.accept",
    )
    accept_language: str = option(
        "en-us,en-gb,en;q=0.7,*;q=0.3", "Accept-Language header.", nutch="http.accept.language"
    )
    connect_to: tuple[str, ...] = option(
        (),
        "Reach a host elsewhere, as curl's: HOST:PORT:ADDRESS:PORT. HOST must be named; "
        "*.DOMAIN is the domain and all below it. Empty ports are any, or the same.",
    )
    allow_addresses: tuple[str, ...] = option(
        (),
        "CIDR blocks that may be reached though they are private or special. A block within "
        "::ffff:0:0/96 is the IPv4 block that it maps; wider blocks of IPv6 hold no IPv4 address.",
    )
    allowed_ports: tuple[str, ...] = option(
        ("80", "443", "8000-8999"),
        "Ports that URLs may name, as PORT or FIRST-LAST; hosts of connect_to may name any. 21 is "
        "FTP's own.",
    )
    ca_file: str = option("", "File of certificates to trust instead of the bundled ones.")
    insecure_host: tuple[str, ...] = option(
        (),
        "Hosts whose certificates are not checked; their pages are marked.",
        nutch="http.tls.certificates.check",
        pattern=r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]",
    )
    min_rate: float = option(
        100.0,
        "Least bytes per second of an answer; 0 for no least. What comes more slowly is cut.",
        unit="bytes/s",
        minimum=0.0,
    )
    min_rate_grace: float = option(
        10.0, "How long an answer may come more slowly than that.", unit="s", minimum=0.0
    )
    http_header: tuple[str, ...] = option(
        (),
        "Header to send with every request, 'Name: value'. It is stored with the pages: no "
        "place for secrets.",
    )
    http_credentials: str = option(
        "",
        "File of user names, passwords and tokens, each for one origin; it must be on each "
        "machine that fetches. Lines: ORIGIN basic USER PASSWORD, ORIGIN digest USER "
        "PASSWORD, ORIGIN bearer TOKEN. An FTP server is ftp://HOST, with basic.",
        nutch="http.auth.file",
    )
    http_cookies: bool = option(
        False, "Keep cookies and send them back, as long as a fetch of a partition lasts."
    )
    http_proxy: str = option(
        "",
        "Proxy that all requests go through, http://HOST:PORT; hosts of connect_to are reached "
        "past it. It resolves names itself.",
        nutch="http.proxy.host",
    )

    http_client: str = option(
        "requests",
        "What asks: requests, with a thread for each request at a time; or aiohttp, with one "
        "thread for them all, which takes less of the machine.",
        choices=("requests", "aiohttp"),
    )

    def __post_init__(self) -> None:
        for name in ("accept", "accept_language"):
            if not _HEADER.fullmatch(getattr(self, name)):
                raise ValueError(f"{name} must be printable ASCII, got {getattr(self, name)!r}")
        guard_of(self)
        parse_headers(self.http_header)
        parse_proxy(self.http_proxy)


def guard_of(options: HttpOptions) -> Guard:
    """Returns the guard that the options describe.

    Raises:
        ValueError: An entry of a list cannot be read.
    """
    return Guard(options.allow_addresses, options.connect_to, options.allowed_ports)


class ClientBase:
    """What clients have in common: what is sent, and what is made of the answer.

    Args:
        options: Agent, limits, and where connections may go.
        guard: Stands for the guard that the options describe.
        gate: Is asked right before each request; while it takes its time none
            is sent, and False denies it.

    Attributes:
        guard: Says where connections may go.
        schemes: Which are taken.
        token: The agent's product token, for robots.txt.
    """

    def __init__(
        self,
        options: HttpOptions,
        guard: Guard | None = None,
        gate: Callable[[], bool] | None = None,
    ) -> None:
        self._options, self._gate = options, gate
        self.guard = guard or guard_of(options)
        files = options.http_credentials
        self._credentials = Credentials(load_credentials(files) if files else {})
        self._jar = CookieJar() if options.http_cookies else None
        self.schemes = options.schemes
        self._others = other_clients(options, self.guard, self._credentials, gate)
        self.token = agent_token(options)
        self._headers = {
            "User-Agent": user_agent(options),
            "Accept": options.accept,
            "Accept-Language": options.accept_language,
            "Accept-Encoding": ACCEPTED,
            **parse_headers(options.http_header),
        }
        proxy = parse_proxy(options.http_proxy)
        self._way: dict[str, Any] = {
            "ca_file": options.ca_file,
            "missing_agent": missing_agent(options),
            "unchecked": frozenset(host.lower() for host in options.insecure_host),
            "proxy": proxy,
            "proxy_auth": self._credentials.proxy_header(*proxy) if proxy else "",
        }

    @property
    def loop(self) -> "asyncio.AbstractEventLoop":
        """The event loop that ``answered`` must be awaited on, where there is one."""
        raise NotImplementedError

    def get(
        self,
        url: str,
        headers: Iterable[tuple[str, str]] = (),
        content_limit: int | None = None,
        fresh: bool = False,
    ) -> Response:
        """Asks for a URL once; redirects are not followed, and nothing is raised.

        Args:
            url: Absolute URL of one of the schemes that are taken.
            headers: More headers; those whose value is not printable ASCII
                are left out.
            content_limit: Bytes, in place of the option.
            fresh: Whether a new connection is to be made.
        """
        raise NotImplementedError

    def host(self, url: str) -> str:
        """Returns the host of a URL, as its queue is named; empty for file:.

        Raises:
            ValueError: It cannot be asked for.
        """
        other = self._others.get(scheme_of(url))
        return other.host(url) if other is not None else split_url(url)[0][1]

    def address(self, url: str) -> str | None:
        """Returns the first address at which a URL's host is reached.

        None where ``connect_to`` names the host, or it cannot be reached.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Closes the idle connections."""
        raise NotImplementedError

    def answer(self, request: Request) -> Response | str | None:
        """Does what the engine's steps ask for."""
        return self.address(request.url) if isinstance(request, Locate) else self.get(*request)

    async def answered(self, request: Request) -> Response | str | None:
        """Does what the engine's steps ask for, on ``loop``."""
        raise NotImplementedError

    def _limit(self, content_limit: int | None, content_type: str) -> int:
        """Returns how many bytes of a body of some type are kept; negative for all."""
        if content_limit is not None:
            return content_limit
        limits = [self._options.content_limit]
        if content_type.strip().lower().startswith(_DOCUMENTS):
            limits.append(self._options.document_limit)
        return -1 if min(limits) < 0 else max(limits)

    def _limit_elsewhere(self, content_limit: int | None, url: str) -> int:
        """Returns the same for a URL of another scheme, whose name tells its type."""
        return self._limit(content_limit, mimetypes.guess_type(url)[0] or "")

    def _sent(self, url: str, more: Iterable[tuple[str, str]]) -> tuple[dict[str, str], bool]:
        """Returns the headers to send, and whether credentials are among them."""
        headers = self._headers | {n: value for n, value in more if _HEADER.fullmatch(value)}
        authorization = self._credentials.header(url)
        if authorization is not None:
            headers["Authorization"] = authorization
        cookie = self._jar.header(url) if self._jar is not None else None
        if cookie is not None:
            headers["Cookie"] = cookie
        return headers, authorization is not None

    def _fill(
        self, response: Response, head: Head, body: Body, request: bytes, connection: Any
    ) -> None:
        """Fills in what came of an exchange."""
        response.http_version, response.status_line = head.version, head.status_line
        response.status, response.reason = head.status, head.reason
        response.headers = mask_headers(head.fields, response.url)
        response.body, response.truncated, response.error = body
        response.ip, checked = connection.ip, connection.checked
        response.request = request.decode("latin-1")
        response.tls = None if checked is None else "checked" if checked else "unchecked"
        if response.status == 407 and connection.proxied:
            response.status, response.error = 0, "proxy_error"  # it is not the page that said so
        if self._jar is not None and response.status:
            self._jar.take(response.url, response.header_values("set-cookie"))

    def _asks_again(self, response: Response, authorized: bool) -> bool:
        """Returns whether credentials may help where an answer was 401."""
        if response.status != 401:
            return False
        challenges = response.header_values("www-authenticate")
        return self._credentials.challenged(response.url, challenges, authorized)


class Client(ClientBase):
    """Asks for URLs, one at a time per thread; safe to share by threads.

    See ``ClientBase`` for what it takes.
    """

    def __init__(
        self,
        options: HttpOptions,
        guard: Guard | None = None,
        gate: Callable[[], bool] | None = None,
    ) -> None:
        super().__init__(options, guard, gate)
        self._adapter = GuardedAdapter(
            self.guard,
            options.timeout,
            options.http_time_limit,
            gate=gate,
            rate=options.min_rate,
            grace=options.min_rate_grace,
            **self._way,
        )
        self.idle = self._adapter.idle

    def get(
        self,
        url: str,
        headers: Iterable[tuple[str, str]] = (),
        content_limit: int | None = None,
        fresh: bool = False,
    ) -> Response:
        """See ``ClientBase``."""
        other = self._others.get(scheme_of(url))
        if other is not None:
            return other.get(url, headers, self._limit_elsewhere(content_limit, url))
        response = Response(url, started=now_ms())
        began, more = time.monotonic(), list(headers)
        try:
            sent, authorized = self._sent(url, more)
            if fresh:
                self.idle.forget(split_url(url)[0])
            self._exchange(response, sent, content_limit)
            if self._asks_again(response, authorized):
                self._exchange(response, self._sent(url, more)[0], content_limit)
        except NETWORK_ERRORS as error:
            response = Response(url, started=response.started, error=reason_of(error))
            response.resend = may_resend(error)
        response.elapsed_ms = round((time.monotonic() - began) * 1000)
        return response

    def _exchange(
        self, response: Response, headers: Mapping[str, str], content_limit: int | None
    ) -> None:
        """Sends one request and takes its answer."""
        request = requests.PreparedRequest()
        request.method, request.url = "GET", response.url
        request.headers = headers  # type: ignore[assignment]
        message = cast(Message, self._adapter.send(request, stream=True).raw)
        body = read_body(message, self._limit(content_limit, message.head.content_type))
        self._fill(response, message.head, body, message.request, message.connection)
        self._adapter.release(message, whole=body.truncated is None and body.error is None)

    def address(self, url: str) -> str | None:
        """See ``ClientBase``."""
        other = self._others.get(scheme_of(url))
        return other.address(url) if other is not None else self._adapter.route.address(url)

    def close(self) -> None:
        """Closes the idle connections."""
        self._adapter.close()


def client_of(
    options: HttpOptions,
    guard: Guard | None = None,
    gate: Callable[[], bool] | None = None,
) -> ClientBase:
    """Returns the client that the options name; see ``ClientBase``."""
    if options.http_client == "aiohttp":
        from .aio import AioClient  # late: few want it, and it takes a while to load

        return AioClient(options, guard, gate)
    return Client(options, guard, gate)
