"""The normalizers urlnormalizer-querystring and urlnormalizer-ajax."""

import re
from urllib.parse import unquote_plus

import polars as pl

from .normalizer_step import Step

_HASH_BANG = "#!"
_ESCAPED = "_escaped_fragment_="
_QUERY = re.compile(r"([^?#]*)\?([^#]*)(#.*)?", re.DOTALL)
_HAS_PAIRS = r"^[^?#]*\?[^#]*&"


class Querystring(Step):
    """Sorts the parts of a query, so that URLs do not differ by their order.

    In Nutch this normalizer also removes the user; here the basic normalizer does that.

    >>> Querystring().apply("http://example.com:1234/a/b/c?c=d&a=b#ref")
    'http://example.com:1234/a/b/c?a=b&c=d#ref'
    """

    name = "querystring"

    def apply(self, url: str) -> str:
        """Returns the URL with the parts of its query in order."""
        match = _QUERY.fullmatch(url)
        if match is None or "&" not in match[2]:
            return url
        # As in Java's split, empty parts at the end are ignored.
        parts = sorted(match[2].rstrip("&").split("&"))
        return f"{match[1]}?{'&'.join(parts)}{match[3] or ''}"

    def touches(self, urls: pl.Series) -> pl.Series:
        """Returns which URLs have more than one part in their query."""
        return urls.str.contains(_HAS_PAIRS).fill_null(False)


class Ajax(Step):
    """Turns ``#!`` into ``_escaped_fragment_``, which a server can receive.

    It must come before basic, which removes fragments. In scope ``indexer`` it
    converts URLs back.

    >>> Ajax().apply("http://example.org/#!k=v&something=is wrong")
    'http://example.org/?_escaped_fragment_=k=v%26something=is%20wrong'
    >>> Ajax("indexer").apply("http://example.org/?key=value&_escaped_fragment_=key=value")
    'http://example.org/?key=value#!key=value'
    """

    name = "ajax"

    def __init__(self, scope: str = "default") -> None:
        self._back = scope == "indexer"

    def apply(self, url: str) -> str:
        """Returns the URL in the form of its scope."""
        if self._back and _ESCAPED in url:
            return _with_fragment(url)
        start, hash_bang, fragment = url.partition(_HASH_BANG)
        if self._back or not hash_bang:
            return url
        return f"{start}{'&' if '?' in start else '?'}{_ESCAPED}{_escape(fragment)}"

    def touches(self, urls: pl.Series) -> pl.Series:
        """Returns which URLs have the form that ``apply`` rewrites in its scope."""
        wanted = _ESCAPED if self._back else _HASH_BANG
        return urls.str.contains(wanted, literal=True).fill_null(False)


def _escape(fragment: str) -> str:
    """Escapes bytes up to the space, ``#``, ``%``, ``&``, ``+`` and all beyond ASCII."""
    return "".join(
        f"%{byte:02X}" if byte < 33 or byte > 126 or byte in b"#%&+" else chr(byte)
        for byte in fragment.encode("utf-8", "replace")
    )


def _with_fragment(url: str) -> str:
    match = _QUERY.fullmatch(url)
    if match is None:
        return url
    parts = match[2].split("&")
    at = next((i for i, part in enumerate(parts) if part.startswith(_ESCAPED)), None)
    if at is None:
        return url
    fragment = unquote_plus("&".join(parts[at:]).removeprefix(_ESCAPED), errors="replace")
    query = "?" + "&".join(parts[:at]) if at else ""
    return f"{match[1]}{query}{_HASH_BANG}{fragment}"
