"""Headers that the operator adds to every request."""

import re
from collections.abc import Iterable

_HEADER = re.compile(
    r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?)"
)
_MOST = 100
_INSTEAD = {
    "authorization": "use --http_credentials",
    "proxy-authorization": "use --http_credentials",
    "cookie": "use --http_cookies",
    "user-agent": "use --agent_name",
    "accept": "use --accept",
    "accept-language": "use --accept_language",
}
# Headers that frame a request, belong to one connection (RFC 9110 7.6.1), or are set by nutbeam.
_OURS = frozenset(
    {
        *("host", "content-length", "transfer-encoding", "expect", "connection", "keep-alive"),
        *("proxy-connection", "proxy-authenticate", "te", "trailer", "upgrade", "cookie2"),
        *("http2-settings", "accept-encoding", "range"),
    }
)
WITHHELD = "(withheld)"
# The values of these are not stored with a request.
SECRET = frozenset({"authorization", "proxy-authorization", "cookie"})


def parse_headers(entries: Iterable[str]) -> dict[str, str]:
    """Returns the headers of ``http_header`` by name.

    Raises:
        ValueError: An entry is no header, would break the request, or has another option. The
            message does not quote the value, as it may be a secret.

    >>> parse_headers(["X-Crawl: nightly", "From: crawl@example.com"])
    {'X-Crawl': 'nightly', 'From': 'crawl@example.com'}
    """
    headers: dict[str, str] = {}
    for number, entry in enumerate(entries, 1):
        match = _HEADER.fullmatch(entry.strip(" "))
        if match is None:
            raise ValueError(
                f"http_header must be 'Name: value' in printable ASCII, its number {number} is not"
            )
        name, lower = match[1], match[1].lower()
        if lower in _INSTEAD:
            raise ValueError(f"http_header must not be {name}: {_INSTEAD[lower]}")
        if lower in _OURS or lower.startswith("if-"):
            raise ValueError(f"http_header must not be {name}, which nutbeam sets itself")
        if lower in {earlier_name.lower() for earlier_name in headers}:
            raise ValueError(f"http_header must name each header once, got {name} twice")
        headers[name] = match[2]
    if len(headers) > _MOST:
        raise ValueError(f"http_header must be at most {_MOST} headers, got {len(headers)}")
    return headers
