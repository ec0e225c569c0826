"""Percent-escapes of bytes: file names in paths, and URLs in bytes that are not UTF-8.

Nobody knows the encoding of such a URL. The server that wrote it understands the bytes, so they are
escaped as they are, as browsers do in ``Location``.
"""

import codecs
import re
from urllib.parse import quote_from_bytes, unquote_to_bytes

# Characters that the normalizer keeps in a path, besides letters, digits and "-._~".
_SAFE = "!$&'()*+,;=:@"
_HOSTILE = re.compile(rb"[\x00\r\n]")
# Name of the handler of errors: bytes that are wrong in the encoding become ``%XX``.
ESCAPED = "nutbeam.escaped"
# Scheme and host. A host is not escaped: the bytes are Latin-1 there, as HTTP once said.
_HOST = re.compile(rb"\s*(?:[a-z][a-z0-9+.-]*:)?[/\\]{2}[^/\\?#]*", re.IGNORECASE)


def path_bytes(path: str) -> bytes:
    """Returns the path of a URL as bytes, percent-decoded once.

    Raises:
        ValueError: A part of it is ``.`` or ``..``, contains a slash, NUL or a line
            break, or is empty and not the last one.

    >>> path_bytes("/a%20b/%FF/")
    b'/a b/\\xff/'
    """
    names = [unquote_to_bytes(name) for name in path.removeprefix("/").split("/")]
    for at, name in enumerate(names):
        empty = not name and at + 1 < len(names)
        if empty or name in (b".", b"..") or b"/" in name or _HOSTILE.search(name):
            raise ValueError(f"expected a path of plain names, got {path!r}")
    return b"/" + b"/".join(names)


def path_url(path: bytes) -> str:
    """Returns a path in the form of URLs.

    >>> path_url(b"/a b/\\xff?#")
    '/a%20b/%FF%3F%23'
    """
    return quote_from_bytes(path, "/" + _SAFE)


def name_url(name: bytes) -> str:
    """Returns a name as a link relative to its folder.

    >>> name_url(b"mailto:x"), name_url(b"a b"), name_url(b"//x")
    ('./mailto:x', 'a%20b', '%2F%2Fx')
    """
    text = quote_from_bytes(name, _SAFE)
    return f"./{text}" if ":" in text else text


def _escape(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    wrong = error.object[error.start : error.end]
    return "".join(f"%{byte:02X}" for byte in wrong), error.end


codecs.register_error(ESCAPED, _escape)


def url_of_bytes(raw: bytes) -> str:
    r"""Returns a URL, absolute or relative, from its bytes: UTF-8, or else escaped.

    >>> url_of_bytes("/café".encode()), url_of_bytes(b"/caf\xe9?q=\xfc")
    ('/café', '/caf%E9?q=%FC')
    """
    try:
        return raw.decode()
    except UnicodeDecodeError:
        host = _HOST.match(raw)
        start = host.end() if host else 0
        try:
            site = raw[:start].decode()
        except UnicodeDecodeError:
            site = raw[:start].decode("latin-1")
        return site + raw[start:].decode("utf-8", ESCAPED)
