"""The response to a request, and its class: Nutch's protocol and fetch statuses."""

import dataclasses
import email.utils
from typing import NamedTuple

from ..base.clock import now_ms
from ..content.bot_walls import find_bot_wall
from ..urls.userinfo import from_wire, parse_target


@dataclasses.dataclass(slots=True)
class Response:
    """The response to one request, or the reason why there is none.

    Attributes:
        url: The requested URL.
        http_version: ``HTTP/1.1``; ``HTTP/0.9`` for a page without a head; empty without an answer.
        status: Status code; 0 without an answer.
        reason: Reason phrase.
        headers: (name, value) in the order received.
        body: Decoded bytes.
        truncated: None, or the reason why the body is incomplete; see ``Body``. ``frame`` and
            ``checksum``: it is whole, but the answer broke off, or its checksum is wrong.
        ip: Address connected to; empty if there was none.
        request: Head of the request as sent, without secrets.
        started: UTC ms.
        elapsed_ms: Until the last byte, or the error.
        error: None, or the reason of a failure, such as ``dns``; docs/reference/reasons.md lists them.
        status_line: As received, without the line's end.
        tls: None, ``checked``, or ``unchecked`` if the operator has turned the check off.
        resend: Whether an idle connection was closed without an answer, so that the request may be
            sent again at the host's next turn; then ``error`` is ``reset``.
        cookies: The cookies that were sent, a secret; empty for none.
        new_cookie: Whether it has set a cookie that is new, or has a new value.
        wire: With ``store_wire`` the body as it was transferred, with its codings; None if it
            is ``body``.
        wire_head: With ``store_wire`` the head as it came; None if it is what status line and headers
            give.
        cipher: With ``store_wire`` the version of TLS and the cipher suite; empty without TLS.
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
    resend: bool = False
    cookies: str = ""
    new_cookie: bool = False
    wire: bytes | None = None
    wire_head: str | None = None
    cipher: str = ""

    def header(self, name: str) -> str | None:
        """Returns the first header of a name, given in lower case."""
        return next(iter(self.header_values(name)), None)

    def header_values(self, name: str) -> list[str]:
        """Returns the values of all headers of a name, given in lower case."""
        return [value for key, value in self.headers if key.lower() == name]


HTTP_OK = 200

# CrawlDatum's fetch statuses.
FETCH_SUCCESS = 33
FETCH_RETRY = 34
FETCH_REDIR_TEMP = 35
FETCH_REDIR_PERM = 36
FETCH_GONE = 37
FETCH_NOTMODIFIED = 38

_NAMES = "success retry redir_temp redir_perm gone notmodified".split()  # noqa: SIM905
FETCH_STATUS_NAMES = dict(enumerate(_NAMES, FETCH_SUCCESS))

# ProtocolStatus.
SUCCESS = 1
FAILED = 2
PROTO_NOT_FOUND = 10
GONE = 11
MOVED = 12
TEMP_MOVED = 13
NOTFOUND = 14
EXCEPTION = 16
ACCESS_DENIED = 17
ROBOTS_DENIED = 18
NOTMODIFIED = 21
# Of a page that its server has, or redirects.
ANSWERED = (SUCCESS, MOVED, TEMP_MOVED, NOTMODIFIED)

_FROM_TEN = (
    "proto_not_found gone moved temp_moved notfound retry exception access_denied robots_denied "
    "redir_exceeded notfetching notmodified wouldblock blocked"
)
PROTOCOL_STATUS_NAMES = {SUCCESS: "success", FAILED: "failed"} | dict(
    enumerate(_FROM_TEN.split(), PROTO_NOT_FOUND)
)

# Message of a page whose server's certificate was not checked.
UNCHECKED = "certificate not checked"
# Longest pause that a server can demand, so that a server's mistake does not last forever.
MAX_RETRY_AFTER_S = 30 * 86_400


class StatusRow(NamedTuple):
    """A row of the table of status codes.

    Attributes:
        codes: Codes and ``FIRST-LAST`` ranges, separated by commas.
        fetch_status: Result for the URL, one of ``FETCH_…``.
        protocol_status: One of the ProtocolStatus codes.
        meaning: Explanation for the documentation.
    """

    codes: str
    fetch_status: int
    protocol_status: int
    meaning: str


# Every code from 100 to 599 once; docs/reference/status.md is generated from it.
STATUS_TABLE = (
    StatusRow("100-199", FETCH_RETRY, EXCEPTION, "Interim response, and no other came."),
    StatusRow("200-299", FETCH_SUCCESS, SUCCESS, "A page; with 204 and 205 an empty one."),
    StatusRow("302,303,307", FETCH_REDIR_TEMP, TEMP_MOVED, "Moved for now."),
    StatusRow("304", FETCH_NOTMODIFIED, NOTMODIFIED, "Not changed, if the request had conditions."),
    StatusRow("300,301,305,306,308-399", FETCH_REDIR_PERM, MOVED, "Moved for good."),
    StatusRow(
        "401,403,407",
        FETCH_GONE,
        ACCESS_DENIED,
        "Access denied: gone at once, unless a bot wall says so.",
    ),
    StatusRow("404", FETCH_GONE, NOTFOUND, "Not found: gone at once."),
    StatusRow(
        "400,402,405,406,409-424,426-428,430-499",
        *(FETCH_GONE, GONE),
        "Refused, and another request will not help.",
    ),
    # 408: the server waited too long; another request may help (RFC 9110 15.5.9).
    StatusRow("408", FETCH_RETRY, EXCEPTION, "The server waited too long: tried again later."),
    # 425: the same request may be sent again (RFC 8470 5.2).
    StatusRow(
        "425,429",
        *(FETCH_RETRY, EXCEPTION),
        "Too early, or too many requests: Retry-After, or the host's back-off.",
    ),
    StatusRow("500-599", FETCH_RETRY, EXCEPTION, "The server failed; 503 with Retry-After as 429."),
)
# The server is there, and wants the requests later.
BUSY_STATUSES = frozenset({425, 429, 503})


def parse_codes(codes: str) -> list[int]:
    """Returns the codes that a row of the table names.

    >>> parse_codes("302,307-309")
    [302, 307, 308, 309]
    """
    numbers: list[int] = []
    for part in codes.split(","):
        first, _, last = part.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return numbers


_MEANINGS = {code: row for row in STATUS_TABLE for code in parse_codes(row.codes)}
_REDIRECTED = frozenset({FETCH_REDIR_TEMP, FETCH_REDIR_PERM})


class Outcome(NamedTuple):
    """The meaning of a response for its page.

    Attributes:
        fetch_status: One of ``FETCH_…``.
        protocol_status: One of the ProtocolStatus codes.
        message: The reason as a short text; empty for success.
        redirect_target: Absolute URL of the target of a redirect, if there is one.
        retry_after_s: Pause in s that the server demands, if it does.
    """

    fetch_status: int
    protocol_status: int
    message: str = ""
    redirect_target: str | None = None
    retry_after_s: float | None = None


def classify(response: Response) -> Outcome:
    """Returns the meaning of a response for its page: see ``STATUS_TABLE``.

    It differs from Nutch: all 2xx are successes; all 4xx except 408, 425 and 429 are gone at once;
    304 is only accepted if the request was conditional. The answer of a guard before the site says
    nothing about the page, with any code: it is tried again later, and the host is left alone for now.

    >>> classify(Response("http://a/", status=403, reason="Forbidden"))
    Outcome(fetch_status=37, protocol_status=17, message='403 Forbidden', \
redirect_target=None, retry_after_s=None)
    >>> classify(Response("http://a/", error="dns"))[:3]
    (34, 16, 'dns')
    """
    status = response.status
    if response.error is not None and (not status or 200 <= status < 300):
        return Outcome(FETCH_RETRY, EXCEPTION, response.error)
    wall = find_bot_wall(status, response.headers, response.body)
    if wall is not None:
        return Outcome(FETCH_RETRY, EXCEPTION, wall.message, retry_after_s=_retry_after(response))
    if 200 <= status < 300:
        return Outcome(FETCH_SUCCESS, SUCCESS)
    message = f"{status} {response.reason}".strip()[:200]
    row = _MEANINGS.get(status)
    if row is None or (status == 304 and "\r\nIf-" not in response.request):
        return Outcome(FETCH_RETRY, EXCEPTION, message)
    if row.fetch_status in _REDIRECTED:
        target = redirect_target(response)
        return Outcome(row.fetch_status, row.protocol_status, target or "no location", target)
    wait = _retry_after(response) if row.fetch_status == FETCH_RETRY else None
    return Outcome(row.fetch_status, row.protocol_status, message, retry_after_s=wait)


def redirect_target(response: Response) -> str | None:
    """Returns the absolute URL in Location, without user; None if there is none."""
    location = response.header("location")
    if not location:
        return None
    return parse_target(from_wire(location), response.url)


def _retry_after(response: Response) -> float | None:
    value, date = (response.header(name) or "" for name in ("retry-after", "date"))
    return seconds_to_wait(value, MAX_RETRY_AFTER_S, date)


def seconds_to_wait(retry_after: str, longest: float, date: str = "") -> float | None:
    """Returns the seconds of Retry-After, a number or a date (RFC 9110 10.2.3).

    A date is compared with the date of the response, not with the clock of this machine. None if the
    value is neither a date nor a number of at least 0.

    Args:
        retry_after: The value.
        longest: The largest result, s.
        date: The date of the response; without one the clock counts.

    >>> seconds_to_wait("2", 60), seconds_to_wait("soon", 60), seconds_to_wait("99", 60)
    (2.0, None, 60.0)
    """
    value = retry_after.strip()
    if value.isascii() and value.isdigit():
        return min(float(value[:9]), float(longest))
    moment = moment_of(value)
    if moment is None:
        return None
    sent = moment_of(date)
    wait = moment - (now_ms() / 1000 if sent is None else sent)
    return min(max(0.0, wait), float(longest))


def moment_of(date: str) -> float | None:
    """Returns the seconds since the epoch of a date in a header, UTC if it has no zone; or None."""
    try:
        parts = email.utils.parsedate_tz(date)
        return email.utils.mktime_tz(parts) if parts else None
    except (ValueError, OverflowError):
        return None
