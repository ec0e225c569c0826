"""The HTTP client: one GET at a time, guarded, bounded, and never raising for the web.

``requests`` and urllib3 do the work below, through ``GuardedAdapter``.
"""

import dataclasses
import re
import time
from collections.abc import Callable, Iterable
from typing import cast

import requests

from .adapter import GuardedAdapter, split_url
from .agent import AgentOptions, agent_token, missing_agent, user_agent
from .body import ACCEPTED, read_body
from .cookies import CookieJar
from .credentials import Credentials, load_credentials
from .failures import NETWORK_ERRORS, reason_of
from .guard import Guard
from .headers import parse_headers
from .options import option
from .proxy import parse_proxy
from .wire import Message

_HEADER = re.compile(r"[\t\x20-\x7e]*")


@dataclasses.dataclass(frozen=True)
class HttpOptions(AgentOptions):
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
        (), "CIDR blocks that may be reached though they are private or special."
    )
    allowed_ports: tuple[str, ...] = option(
        ("80", "443", "8000-8999"),
        "Ports that URLs may name, as PORT or FIRST-LAST; hosts of connect_to may name any.",
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
        "PASSWORD, ORIGIN bearer TOKEN.",
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


@dataclasses.dataclass(slots=True)
class Response:
    """What came over the wire for one request.

    Attributes:
        url: As asked for.
        http_version: ``HTTP/1.1``; empty without an answer.
        status: Status code; 0 without an answer.
        reason: Reason phrase.
        headers: (name, value) in the order received.
        body: Decoded bytes.
        truncated: None, or why the body is not whole; see ``Body``.
        ip: Address asked; empty where none was.
        request: Head of the request, as sent, but for secrets.
        started: UTC ms.
        elapsed_ms: Until the last byte, or the error.
        error: None, or a reason: dns, refused, timeout, too_slow, reset,
            unreachable, tls, low_rate, proxy_error (it cannot be
            used), proxy_refused (for this host), incomplete, protocol_error, headers_too_large,
            bad_encoding, bad_url, address_denied, port_denied, agent_missing,
            stopped.
        status_line: As received, without the line's end.
        tls: None, ``checked`` or, where the operator wants no check, ``unchecked``.
    """

    url: str
    http_version: str = ""
    status: int = 0
    reason: str = ""
    headers: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    body: bytes = b""
    truncated: str | None = None
    ip: str = ""
    request: str = ""
    started: int = 0
    elapsed_ms: int = 0
    error: str | None = None
    tls: str | None = None
    status_line: str = ""

    def header(self, name: str) -> str | None:
        """Returns the first header of a name, given in lower case."""
        for key, value in self.headers:
            if key.lower() == name:
                return value
        return None

    def header_values(self, name: str) -> list[str]:
        """Returns the values of all headers of a name, given in lower case."""
        return [value for key, value in self.headers if key.lower() == name]


class Client:
    """Asks for URLs, one at a time per thread; safe to share by threads.

    Args:
        options: Agent, limits, and where connections may go.
        guard: Stands for the guard that the options describe.
        gate: Is asked right before each request; while it takes its time none
            is sent, and False denies it.
    """

    def __init__(
        self,
        options: HttpOptions,
        guard: Guard | None = None,
        gate: Callable[[], bool] | None = None,
    ) -> None:
        self._options = options
        self.guard = guard or guard_of(options)
        files = options.http_credentials
        self._credentials = Credentials(load_credentials(files) if files else {})
        self._jar = CookieJar() if options.http_cookies else None
        proxy = parse_proxy(options.http_proxy)
        self._adapter = GuardedAdapter(
            self.guard,
            options.timeout,
            options.http_time_limit,
            options.ca_file,
            missing_agent(options),
            gate,
            rate=options.min_rate,
            grace=options.min_rate_grace,
            unchecked=frozenset(host.lower() for host in options.insecure_host),
            proxy=proxy,
            proxy_auth=self._credentials.proxy_header(*proxy) if proxy else "",
        )
        self.token = agent_token(options)
        self._headers = {
            "User-Agent": user_agent(options),
            "Accept": options.accept,
            "Accept-Language": options.accept_language,
            "Accept-Encoding": ACCEPTED,
            **parse_headers(options.http_header),
        }

    def get(
        self,
        url: str,
        headers: Iterable[tuple[str, str]] = (),
        content_limit: int | None = None,
    ) -> Response:
        """Asks for a URL once; redirects are not followed, and nothing is raised.

        Args:
            url: Absolute http or https URL.
            headers: More headers; those whose value is not printable ASCII
                are left out.
            content_limit: Bytes, in place of the option.
        """
        response = Response(url, started=time.time_ns() // 1_000_000)
        began = time.monotonic()
        limit = self._options.content_limit if content_limit is None else content_limit
        more = {name: value for name, value in headers if _HEADER.fullmatch(value)}
        try:
            sent = self._exchange(response, more, limit)
            if response.status == 401:
                challenges = response.header_values("www-authenticate")
                if self._credentials.challenged(url, challenges, sent):
                    self._exchange(response, more, limit)
        except NETWORK_ERRORS as error:
            response = Response(url, started=response.started, error=reason_of(error))
        response.elapsed_ms = round((time.monotonic() - began) * 1000)
        return response

    def _exchange(self, response: Response, more: dict[str, str], limit: int) -> bool:
        """Sends one request and takes its answer; returns whether credentials went along."""
        url = response.url
        request = requests.PreparedRequest()
        request.method, request.url = "GET", url
        headers = self._headers | more
        authorization = self._credentials.header(url)
        if authorization is not None:
            headers["Authorization"] = authorization
        cookie = self._jar.header(url) if self._jar is not None else None
        if cookie is not None:
            headers["Cookie"] = cookie
        request.headers = headers  # type: ignore[assignment]
        message = cast(Message, self._adapter.send(request, stream=True).raw)
        self._take(response, message, limit)
        if self._jar is not None and response.status:
            self._jar.take(url, response.header_values("set-cookie"))
        return authorization is not None

    def _take(self, response: Response, message: Message, limit: int) -> None:
        body = read_body(message, limit)
        response.http_version = "HTTP/1.0" if message.version == 10 else "HTTP/1.1"
        response.status, response.reason = message.status, message.reason
        response.headers, response.status_line = message.fields, message.status_line
        response.body, response.truncated, response.error = body
        response.ip = message.connection.ip
        response.request = message.request.decode("latin-1")
        checked = message.connection.checked
        response.tls = None if checked is None else "checked" if checked else "unchecked"
        if message.status == 407 and message.connection.proxied:
            response.status, response.error = 0, "proxy_error"  # it is not the page that said so
        self._adapter.release(message, whole=body.truncated is None and body.error is None)

    def address(self, url: str) -> str | None:
        """Returns the first address at which a URL's host is reached.

        None where ``connect_to`` names the host, or it cannot be reached.
        """
        try:
            origin, _ = split_url(url)
            _, host, port = origin
            if self.guard.door(host, port) or self._adapter.is_proxied(origin):
                return None
            return str(self._adapter.dial(host.strip("[]"), port).addresses[0][1][0])
        except (OSError, ValueError):
            return None

    def close(self) -> None:
        """Closes the idle connections."""
        self._adapter.close()
