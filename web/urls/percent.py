"""Converts paths of URLs to the bytes of file names, and back."""

import re
from urllib.parse import quote_from_bytes, unquote_to_bytes

# Characters that the normalizer keeps in a path, besides letters, digits and "-._~".
_SAFE = "!$&'()*+,;=:@"
_HOSTILE = re.compile(rb"[\x00\r\n]")


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
