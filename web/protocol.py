"""What a response means for its page: Nutch's protocol and fetch statuses."""

import contextlib
import email.utils
import time
from typing import NamedTuple

from .http import Response
from .urls import parse

# CrawlDatum's fetch statuses.
FETCH_SUCCESS = 33
FETCH_RETRY = 34
FETCH_REDIR_TEMP = 35
FETCH_REDIR_PERM = 36
FETCH_GONE = 37
FETCH_NOTMODIFIED = 38

# ProtocolStatus.
SUCCESS = 1
FAILED = 2
PROTO_NOT_FOUND = 10
GONE = 11
MOVED = 12
TEMP_MOVED = 13
NOTFOUND = 14
RETRY = 15
EXCEPTION = 16
ACCESS_DENIED = 17
ROBOTS_DENIED = 18
REDIR_EXCEEDED = 19
NOTFETCHING = 20
NOTMODIFIED = 21
WOULDBLOCK = 22
BLOCKED = 23

PROTOCOL_STATUS_NAMES = {
    SUCCESS: "success",
    FAILED: "failed",
    PROTO_NOT_FOUND: "proto_not_found",
    GONE: "gone",
    MOVED: "moved",
    TEMP_MOVED: "temp_moved",
    NOTFOUND: "notfound",
    RETRY: "retry",
    EXCEPTION: "exception",
    ACCESS_DENIED: "access_denied",
    ROBOTS_DENIED: "robots_denied",
    REDIR_EXCEEDED: "redir_exceeded",
    NOTFETCHING: "notfetching",
    NOTMODIFIED: "notmodified",
    WOULDBLOCK: "wouldblock",
    BLOCKED: "blocked",
}

_TEMPORARY = frozenset({302, 303, 307})
# 408: the server gave up waiting, and says that asking again may help (RFC 9110 15.5.9).
_LATER = frozenset({408, 429})
_CLIENT_ERRORS = {401: ACCESS_DENIED, 403: ACCESS_DENIED, 407: ACCESS_DENIED, 404: NOTFOUND}


class Outcome(NamedTuple):
    """What a response means.

    Attributes:
        fetch_status: One of ``FETCH_…``.
        protocol_status: One of the ProtocolStatus codes.
        message: Why, in a few words; empty for success.
        redirect_target: Absolute URL, where the page is elsewhere and says so.
        retry_after_s: Seconds that the server asked to be left alone, if it did.
    """

    fetch_status: int
    protocol_status: int
    message: str = ""
    redirect_target: str | None = None
    retry_after_s: float | None = None


def classify(response: Response) -> Outcome:
    """Returns what a response means for its page.

    As Nutch's table, but: all of 2xx succeeds; 4xx is gone at once, save 408
    and 429; 304 counts only where it was asked for.

    >>> classify(Response("http://a/", status=403, reason="Forbidden"))
    Outcome(fetch_status=37, protocol_status=17, message='403 Forbidden', \
redirect_target=None, retry_after_s=None)
    >>> classify(Response("http://a/", error="dns"))[:3]
    (34, 16, 'dns')
    """
    status = response.status
    if response.error is not None and (not status or 200 <= status < 300):
        return Outcome(FETCH_RETRY, EXCEPTION, response.error)
    if 200 <= status < 300:
        return Outcome(FETCH_SUCCESS, SUCCESS)
    message = f"{status} {response.reason}".strip()[:200]
    if status == 304 and "\r\nIf-" in response.request:
        return Outcome(FETCH_NOTMODIFIED, NOTMODIFIED, message)
    if 300 <= status < 400 and status != 304:
        return _redirect(response)
    if 400 <= status < 500 and status not in _LATER:
        return Outcome(FETCH_GONE, _CLIENT_ERRORS.get(status, GONE), message)
    return Outcome(FETCH_RETRY, EXCEPTION, message, retry_after_s=_retry_after(response))


def _redirect(response: Response) -> Outcome:
    target = redirect_target(response)
    message = target or "no location"
    if response.status in _TEMPORARY:
        return Outcome(FETCH_REDIR_TEMP, TEMP_MOVED, message, target)
    return Outcome(FETCH_REDIR_PERM, MOVED, message, target)


def redirect_target(response: Response) -> str | None:
    """Returns the absolute URL that Location names; None where it names none."""
    location = response.header("location")
    if not location:
        return None
    with contextlib.suppress(UnicodeError):  # sent as UTF-8, read byte by byte
        location = location.encode("latin-1").decode()
    return parse(location, response.url)


def _retry_after(response: Response) -> float | None:
    """Returns the seconds of Retry-After, a number or a date (RFC 9110 10.2.3)."""
    value = response.header("retry-after")
    if value is None:
        return None
    if value.isascii() and value.isdigit():
        return float(value[:9])
    try:
        moment = email.utils.parsedate_to_datetime(value).timestamp()
    except (ValueError, OverflowError):
        return None
    return max(0.0, moment - time.time())
