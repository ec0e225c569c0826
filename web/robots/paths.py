"""Converts paths of URLs and patterns of robots.txt to a comparable form (RFC 9309 2.2.2).

Both are ASCII. Characters that a URL may contain are not escaped; all others are
escapes in upper case. Escapes of "/", "%", "*" and "$" stay, because these four characters have a
special meaning. Many patterns are converted together, in a few passes over all their characters.
"""

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

_PLAIN = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~="
_KEPT = _PLAIN + "/%"
# Of patterns; "\n" ends one.
_KEPT_IN_PATTERNS = f"{_KEPT}*$\n"
_ESCAPES = {chr(octet): f"%{octet:02X}" for octet in range(256)}
_IN_PATH = {ord(char): escape for char, escape in _ESCAPES.items() if char not in _KEPT}
_IN_PATTERNS = {
    code: _ESCAPES[chr(code)] for code in _IN_PATH if chr(code) not in _KEPT_IN_PATTERNS
}
_UNKEPT = re.compile(rf"[^{re.escape(_KEPT)}]")
_UNKEPT_IN_PATTERNS = re.compile(rf"[^{re.escape(_KEPT_IN_PATTERNS)}]")
_DIGITS = "0123456789abcdefABCDEF"
# The meaning of two digits after a "%"; octets that are not ASCII are decoded together later.
_OCTETS = {
    digits.encode(): bytes([octet]) if octet > 127 or chr(octet) in _PLAIN else b"%%%02X" % octet
    for digits in (high + low for high in _DIGITS for low in _DIGITS)
    for octet in [int(digits, 16)]
}
_END = "\0"
_ABSOLUTE = ("http://", "https://")


def comparable_path(url: str) -> str:
    """Returns path and query of a URL in the form for comparison with patterns.

    Raises:
        ValueError: The URL has no valid host.

    >>> comparable_path("http://a/%7ea/ä?b=%2f#c")
    '/~a/%C3%A4%3Fb=%2F'
    """
    url = url.partition("#")[0]
    parts = urlsplit(url)
    path = f"{parts.path}?{parts.query}" if "?" in url else parts.path
    path = _decode_escapes(path)
    if _UNKEPT.search(path):
        path = path.translate(_IN_PATH)
    return path if path.startswith("/") else f"/{path}"


def comparable_patterns(patterns: Sequence[str]) -> list[str]:
    """Returns patterns in the form for comparison with paths.

    "*" means any text, and "$" at the end means the end. If a pattern is a whole URL by mistake, it
    is interpreted as a path that contains this URL.

    >>> comparable_patterns(["/%7ea*?b", "/a$b$", "/%2a%24"])
    ['/~a*%3Fb', '/a%24b$', '/%2A%24']
    """
    lines = [f"/{line}" if line.startswith(_ABSOLUTE) else line for line in patterns]
    text = _decode_escapes("\n".join([*lines, ""]))
    if _UNKEPT_IN_PATTERNS.search(text):
        text = text.translate(_IN_PATTERNS)
    if "$" in text:
        text = text.replace("$\n", f"{_END}\n").replace("$", "%24").replace(_END, "$")
    return text.split("\n")[:-1]


def _decode_escapes(text: str) -> str:
    """Returns text, one character per octet, in which unneeded escapes are decoded.

    All octets that are not UTF-8 are equal, as in the text of robots.txt.
    """
    if text.isascii() and "%" not in text:
        return text
    first, *rest = text.encode("utf-8", "replace").split(b"%")
    octets = [_OCTETS.get(part[:2], b"%" + part[:2]) + part[2:] for part in rest]
    whole = b"".join([first, *octets])
    return whole.decode("utf-8", "replace").encode().decode("latin-1")
