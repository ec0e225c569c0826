"""The URL normalizers without rules: basic, querystring, ajax.

Basic gives all spellings of a URL the same form. On a column it corrects frequent faults of all URLs
at once.
"""

import re
from collections.abc import Callable
from urllib.parse import unquote_plus

import polars as pl

from ..base.columns import nulls, put
from ..urls.row_keys import BadUrl, parse_url
from .normalizer_step import NormalizedColumn, Step, apply_each

# RFC 1035 2.3.4; no resolver accepts more.
MAX_LABEL, MAX_HOST = 63, 253

_PARTS = re.compile(
    r"(https?|ftp|file)://(?:[^/?@]*@)?(\[[^\]]*\]|[^/?:]*)(:[0-9]+)?(/[^?]*)(\?.*)?", re.DOTALL
)
# URLs of other schemes with a host, which plug-ins may fetch.
_OTHER_PARTS = re.compile(
    r"([a-z][a-z0-9+.-]*)://(?:[^/?@]*@)?([^/?:@]+)(:[0-9]+)?(/[^?]*)?(\?.*)?", re.DOTALL
)
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")
_TO_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})?|[^!#-;=?-Z\\_a-z~]")
_SLASHES = re.compile("/{2,}")
_LABELS = re.compile(rf"(?:[^.]{{1,{MAX_LABEL}}}\.)*[^.]{{1,{MAX_LABEL}}}", re.DOTALL)
# Fewer URLs than this are normalized one at a time.
_FEW = 200
# Scheme, host, port, path and query. Backslashes, control characters, letters beyond ASCII and a
# space at the end are left to the parser. The fragment is cut off before.
_PLAIN = r"^[Hh][Tt][Tt][Pp][Ss]?://[A-Za-z0-9._-]+(?::[0-9]*)?(?:/[ -\"$-\[\]-~]*)?$"
_NOT_PLAIN = r"(?i) $|%(?:$|[^0-9a-f]|[0-9a-f](?:$|[^0-9a-f]))|%2e"
_ODD = r"[%\x20\"<>\[\]^`{|}]"


def normalize_basic(url: str) -> str:
    """Returns the normal form of a URL, which is the same for all its spellings.

    It parses the URL as browsers do (WHATWG). Then, for http, https, ftp and file:

    * user info and fragment are dropped, and one trailing dot of the host;
    * escapes of ``A-Z a-z 0-9 - . _ ~`` are decoded, other escapes get
      upper-case digits, a lone ``%`` becomes ``%25``;
    * ``"<>[]^`{|}``, which WHATWG parsing leaves, are escaped;
    * several slashes of the path become one;
    * the query of ftp and file is dropped, because it has no meaning there.

    For other schemes with a host, it drops user info and fragment, writes the host in lower case,
    and decodes and escapes path and query in the same way; the path is at least ``/``.

    Raises:
        BadUrl: ``malformed``: WHATWG refuses the URL, or no resolver accepts the host
            (an empty label, a label over 63 bytes, or over 253 bytes in all).

    >>> normalize_basic(" HTTPS://user@Foo.COM.:443//a/./../%7efoo%2fx|y?a=%#z ")
    'https://foo.com/~foo%2Fx%7Cy?a=%25'
    """
    href = parse_url(url)
    if href is None:
        raise BadUrl("malformed", url)
    href = href.partition("#")[0]
    match = _PARTS.fullmatch(href)
    if match is None:
        return _normalize_other(href)
    scheme, host, port, path, query = match.groups("")
    host = host.removesuffix(".")
    if not _can_resolve(host) and scheme != "file":
        raise BadUrl("malformed", url)
    path = _SLASHES.sub("/", _escape(path))
    query = _escape(query) if scheme.startswith("http") else ""
    return f"{scheme}://{host}{port}{path}{query}"


def _normalize_other(href: str) -> str:
    """Returns the normal form of a parsed URL that is not of http, https, ftp or file.

    >>> _normalize_other("gemini://me@Foo.com:1965"), _normalize_other("mailto:me@foo.com")
    ('gemini://foo.com:1965/', 'mailto:me@foo.com')
    """
    match = _OTHER_PARTS.fullmatch(href)
    if match is None:
        return href
    scheme, host, port, path, query = match.groups("")
    host = host.lower().removesuffix(".")
    if not _can_resolve(host):
        raise BadUrl("malformed", href)
    return f"{scheme}://{host}{port}{_SLASHES.sub('/', _escape(path or '/'))}{_escape(query)}"


def _can_resolve(host: str) -> bool:
    if not 0 < len(host) <= MAX_HOST:
        return False
    return host.startswith("[") or _LABELS.fullmatch(host) is not None


def _escape(text: str) -> str:
    return _TO_ESCAPE.sub(_normal_spelling, text)


def _normal_spelling(match: re.Match[str]) -> str:
    if match[1] is None:
        return "".join(f"%{byte:02X}" for byte in match[0].encode())
    char = chr(int(match[1], 16))
    return char if _UNRESERVED.match(char) else match[0].upper()


def _spellings() -> dict[str, str]:
    """Returns the normal form of each escape and character that is not normal."""
    spellings = {char: f"%{ord(char):02X}" for char in ' "<>[]^`{|}'}
    for code in range(256):
        plain = chr(code) if _UNRESERVED.fullmatch(chr(code)) else f"%{code:02X}"
        high, low = f"{code >> 4:x}", f"{code & 15:x}"
        spellings |= {
            f"%{a}{b}": plain for a in {high, high.upper()} for b in {low, low.upper()}
        }  # fmt: skip
    return {wrong: right for wrong, right in spellings.items() if wrong != right}


_SPELLINGS = _spellings()


class Basic(Step):
    """The normalizer urlnormalizer-basic, see ``normalize_basic``.

    Args:
        is_normal: Function that returns a mask of the URLs that are certainly normal.
    """

    name = "basic"

    def __init__(self, is_normal: Callable[[pl.Series], pl.Series] | None = None) -> None:
        self._is_normal = is_normal

    def apply(self, url: str) -> str:
        """Returns the URL in the form that row keys need."""
        return normalize_basic(url)

    def apply_column(self, urls: pl.Series) -> NormalizedColumn:
        """Returns the normalized URLs.

        Corrects frequent faults in all URLs at once. A result in normal form is correct. Other
        URLs are parsed.
        """
        if self._is_normal is None or len(urls) < _FEW:
            return apply_each(normalize_basic, urls)
        guesses = _guess_normal_forms(urls)
        right = self._is_normal(guesses)
        at = (~right).arg_true()
        applied = apply_each(normalize_basic, urls.gather(at))
        reasons = nulls(len(urls))
        return NormalizedColumn(put(guesses, at, applied.urls), put(reasons, at, applied.reasons))

    def touches(self, urls: pl.Series) -> pl.Series:
        """Returns which URLs ``apply`` might change."""
        is_url = urls.is_not_null()
        return is_url if self._is_normal is None else is_url & ~self._is_normal(urls)


def _guess_normal_forms(urls: pl.Series) -> pl.Series:
    """Returns URLs with frequent faults corrected; null for URLs with other faults."""
    cut = urls.str.splitn("#", 2).struct.field("field_0")
    parts = cut.str.splitn("/", 4).struct.unnest()
    parts.columns = ["scheme", "empty", "site", "rest"]
    rest = parts.get_column("rest").fill_null("")
    plain = (cut.str.contains(_PLAIN) & ~rest.str.contains(_NOT_PLAIN)).fill_null(False)
    odd = rest.str.contains(_ODD) & plain
    if odd.any():
        at = odd.arg_true()
        rest = put(rest, at, rest.gather(at).str.replace_many(_SPELLINGS))
    scheme, site = pl.col("scheme").str.to_lowercase(), pl.col("site").str.to_lowercase()
    site = (
        pl.when(scheme == "http:")
        .then(site.str.strip_suffix(":80"))
        .otherwise(site.str.strip_suffix(":443"))
        .str.strip_suffix(":")
    )
    guess = pl.concat_str(scheme, pl.lit("//"), site, pl.lit("/"), "rest")
    parts = parts.with_columns(rest=rest, plain=plain)
    return parts.select(pl.when("plain").then(guess).alias("url")).to_series()


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
        return f"{start}{'&' if '?' in start else '?'}{_ESCAPED}{_escape_fragment(fragment)}"

    def touches(self, urls: pl.Series) -> pl.Series:
        """Returns which URLs have the form that ``apply`` rewrites in its scope."""
        wanted = _ESCAPED if self._back else _HASH_BANG
        return urls.str.contains(wanted, literal=True).fill_null(False)


def _escape_fragment(fragment: str) -> str:
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
