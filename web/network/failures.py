"""Maps errors of requests to reasons: one for each kind of error."""

import http.client
import socket
import ssl

from ..tls.contexts import tls_reason
from .guard import Denied
from .heads import HeadTooLarge
from .proxy import ProxyFailed, ProxyRefused
from .response_reader import FramingTooLarge
from .wire import LowRate, TooSlow


class IdleClosed(ConnectionResetError):
    """A server closed an idle connection instead of sending a response (RFC 9112 9.3.1)."""


class BadEncoding(Exception):
    """A body's Content-Encoding is unknown, or the body does not follow it."""


class UnsendableUrl(ValueError):
    """A URL that cannot be put into a request."""


# Exceptions that a request can raise.
NETWORK_ERRORS = (OSError, ValueError, http.client.HTTPException, BadEncoding)

# A server that ends a connection within TLS.
_CLOSED = (ssl.SSLEOFError, ssl.SSLZeroReturnError)

# The first class that matches an error determines its reason.
_REASONS: tuple[tuple[type[Exception] | tuple[type[Exception], ...], str], ...] = (
    (ProxyFailed, "proxy_error"),
    (ProxyRefused, "proxy_refused"),
    (LowRate, "low_rate"),
    (TooSlow, "too_slow"),
    (BadEncoding, "bad_encoding"),
    (socket.gaierror, "dns"),
    (TimeoutError, "timeout"),
    (ConnectionRefusedError, "refused"),
    (UnsendableUrl, "bad_url"),
    ((ConnectionError, *_CLOSED), "reset"),
    (OSError, "unreachable"),
    (http.client.IncompleteRead, "incomplete"),
    (HeadTooLarge, "headers_too_large"),
    (FramingTooLarge, "framing_too_large"),
    ((http.client.HTTPException, ValueError), "protocol_error"),
)

# Nothing was sent: the server did not fail, and no delay is due.
NOT_SENT = frozenset(
    {
        *("address_denied", "port_denied", "agent_missing", "bad_url", "stopped", "proxy_error"),
        *("address_changed", "ftp_through_proxy", "plugin_through_proxy"),
    }
)


def reason_of(error: BaseException) -> str:
    """Returns the snake_case reason of a network error.

    >>> reason_of(ConnectionRefusedError()), reason_of(TimeoutError())
    ('refused', 'timeout')
    """
    if isinstance(error, Denied):
        return error.reason
    if isinstance(error, ssl.SSLError) and not isinstance(error, _CLOSED):
        return tls_reason(error)
    for classes, reason in _REASONS:
        if isinstance(error, classes):
            return reason
    return "protocol_error"
