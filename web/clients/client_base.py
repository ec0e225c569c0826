"""The common part of the HTTP clients: the headers of requests, and the contents of responses."""

import mimetypes
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ..base.agent import agent_token, missing_agent, user_agent
from ..exchange.cookies import CookieJar
from ..exchange.credentials import Credentials, load_credentials
from ..exchange.fetch_steps import Locate, Request
from ..exchange.http_options import _HEADER, HttpOptions, guard_of
from ..exchange.response import Response
from ..network.body import ACCEPTED, Body
from ..network.connection import Limits
from ..network.failures import may_resend, reason_of
from ..network.guard import Guard
from ..network.headers import parse_headers
from ..network.heads import Head
from ..network.proxy import parse_proxy
from ..network.route import Route, split_url
from ..urls.schemes import scheme_of
from ..urls.userinfo import mask_headers
from .other_clients import other_clients

if TYPE_CHECKING:
    import asyncio


# They are zip archives, or have their table of contents at the end.
_DOCUMENTS = ("application/pdf", "application/vnd.", "application/msword", "application/epub+zip")


class ClientBase:
    """Base of the HTTP clients.

    Args:
        options: Agent, limits, and where connections may go.
        guard: Guard to use in place of the one that the options describe.
        gate: Called right before each request; no request is sent until it returns,
            and False denies the request.

    Attributes:
        guard: Says where connections may go.
        route: Where connections go, with which certificates.
        limits: Limits on time and rate.
        schemes: Supported schemes.
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
        self.route = Route(
            self.guard,
            options.ca_file,
            missing_agent(options),
            frozenset(host.lower() for host in options.insecure_host),
            proxy,
            self._credentials.proxy_header(*proxy) if proxy else "",
        )
        self.limits = Limits(
            options.timeout, options.http_time_limit, options.min_rate, options.min_rate_grace
        )

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
        """Fetches a URL once; follows no redirects, and raises nothing.

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
            ValueError: The URL cannot be fetched.
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
        """Carries out a request of the engine's steps."""
        return self.address(request.url) if isinstance(request, Locate) else self.get(*request)

    async def answered(self, request: Request) -> Response | str | None:
        """Carries out a request of the engine's steps, on ``loop``."""
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
        """Returns the same for a URL of another scheme, by the type that its name implies."""
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
        """Fills in the response of an exchange."""
        response.http_version, response.status_line = head.version, head.status_line
        response.status, response.reason = head.status, head.reason
        response.headers = mask_headers(head.fields, response.url)
        response.body, response.truncated, response.error = body
        response.ip, checked = connection.ip, connection.checked
        response.request = request.decode("latin-1")
        response.tls = None if checked is None else "checked" if checked else "unchecked"
        if response.status == 407 and connection.proxied:
            response.status, response.error = 0, "proxy_error"  # the proxy answered, not the page
        if self._jar is not None and response.status:
            self._jar.take(response.url, response.header_values("set-cookie"))

    def _attempts(
        self, response: Response, more: Iterable[tuple[str, str]]
    ) -> Iterator[dict[str, str]]:
        """Yields the headers to send, and once more those for the challenge of a 401."""
        more = list(more)
        headers, authorized = self._sent(response.url, more)
        yield headers
        if response.status == 401:
            challenges = response.header_values("www-authenticate")
            if self._credentials.challenged(response.url, challenges, authorized):
                yield self._sent(response.url, more)[0]


def failed_response(response: Response, error: BaseException) -> Response:
    """Returns the response for a request that failed."""
    failed = Response(response.url, started=response.started, error=reason_of(error))
    failed.resend = may_resend(error)
    return failed
