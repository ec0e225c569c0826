"""The basic URL normalizer: gives all spellings of a URL the same form."""

import re

from .row_keys import BadUrl, parse_url

# RFC 1035 2.3.4; no resolver accepts more.
MAX_LABEL, MAX_HOST = 63, 253

_PARTS = re.compile(
    r"(https?|ftp|file)://(?:[^/?@]*@)?(\[[^\]]*\]|[^/?:]*)(:[0-9]+)?(/[^?]*)(\?.*)?", re.DOTALL
)
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")
_TO_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})?|[^!#-;=?-Z\\_a-z~]")
_SLASHES = re.compile("/{2,}")
_LABELS = re.compile(rf"(?:[^.]{{1,{MAX_LABEL}}}\.)*[^.]{{1,{MAX_LABEL}}}", re.DOTALL)


def normalize_basic(url: str) -> str:
    """Returns the normal form of a URL, which is the same for all its spellings.

    It parses the URL as browsers do (WHATWG). Then, for http, https, ftp and file:

    * user info and fragment are dropped, and one trailing dot of the host;
    * escapes of ``A-Z a-z 0-9 - . _ ~`` are decoded, other escapes get
      upper-case digits, a lone ``%`` becomes ``%25``;
    * ``"<>[]^`{|}``, which WHATWG parsing leaves, are escaped;
    * several slashes of the path become one (nutch.md 3.2);
    * the query of ftp and file is dropped, because it has no meaning there.

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
        return href
    scheme, host, port, path, query = match.groups("")
    host = host.removesuffix(".")
    if not _can_resolve(host) and scheme != "file":
        raise BadUrl("malformed", url)
    path = _SLASHES.sub("/", _escape(path))
    query = _escape(query) if scheme.startswith("http") else ""
    return f"{scheme}://{host}{port}{path}{query}"


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
