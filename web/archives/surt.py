"""SURT keys: the sorted, canonical form of URLs by which indexes of archives are searched.

pywb, OutbackCDX and Wayback look up the key that the same rules make, those of Internet Archive's
canonicalizer. So they are repeated here as they are, with their odd corners: a key is never shown
and leads to no request.
"""

import re
from urllib.parse import quote_from_bytes, unquote_to_bytes

_PARTS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)([^?#]*)(?:\?([^#]*))?")
_DEFAULT_PORTS = {"http": "80", "https": "443"}
_WWW = re.compile(r"www\d*\.")
# Every byte that is kept; others are escaped. "%" and "#" are not among them.
_KEPT = bytes(byte for byte in range(0x21, 0x7F) if byte not in b"%#").decode()
_ASPX_SESSION = re.compile(
    r"/\([a-z]\([0-9a-z]{24}\)\)(?=/[^?]+\.aspx)|/\([0-9a-z]{24}\)(?=/[^?]+\.aspx)"
)
_SESSIONS = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?P<before>.*)(?:jsessionid=[0-9a-z]{32})(?:&(?P<after>.*))?",
        r"(?P<before>.*)(?:phpsessid=[0-9a-z]{32})(?:&(?P<after>.*))?",
        r"(?P<before>.*)(?:sid=[0-9a-z]{32})(?:&(?P<after>.*))?",
        r"(?P<before>.*)(?:aspsessionid[a-z]{8}=[a-z]{24})(?:&(?P<after>.*))?",
        r"(?P<before>.*)(?:cfid=[^&]+&cftoken=[^&]+)(?:&(?P<after>.*))?",
    )
)


def surt_key(url: str) -> str:
    """Returns the key of a URL.

    >>> surt_key("https://www.Example.com/A/?b=2&a=1"), surt_key("http://example.com:8080/")
    ('com,example)/a?a=1&b=2', 'com,example:8080)/')
    """
    match = _PARTS.match(url)
    if match is None:
        return url.lower()
    scheme, authority, path, query = match.groups()
    scheme = scheme.lower()
    site = _site(scheme, authority)
    if not site:
        return f"{scheme}:{_escape(path)}"
    path = _ASPX_SESSION.sub("", _without_dots(_escape(path)).lower())
    query = _without_sessions(_escape(query or "").lower())
    ordered = "&".join(sorted(query.split("&"))) if query else ""
    return f"{site}){path.rstrip('/') or '/'}" + (f"?{ordered}" if ordered else "")


def _site(scheme: str, authority: str) -> str:
    """Returns host and port, the labels of the host in reverse; empty without a host."""
    name = authority.rpartition("@")[2].lower()
    host, _, port = name.rpartition(":") if re.search(r":\d*$", name) else (name, "", "")
    port = "" if port == _DEFAULT_PORTS.get(scheme) else port
    if host.startswith("["):
        reverse = host.strip("[]")
    else:
        labels = _WWW.sub("", host.strip("."), count=1) if _WWW.match(host) else host.strip(".")
        reverse = ",".join(reversed(labels.split(".")))
    return f"{reverse}:{port}" if port else reverse


def _escape(text: str) -> str:
    """Returns a text with the same escapes for each way to write it."""
    data = text.encode()
    while (plain := unquote_to_bytes(data)) != data:
        data = plain
    return quote_from_bytes(data, safe=_KEPT)


def _without_dots(path: str) -> str:
    """Returns a path without empty and "." segments, and without ".." and what it leaves."""
    segments: list[str] = []
    for segment in path.split("/"):
        if segment == ".." and segments:
            del segments[-1:]
        elif segment not in ("", "."):
            segments.append(segment)
    return "/" + "/".join(segments) + ("/" if path.endswith("/") and segments else "")


def _without_sessions(query: str) -> str:
    for pattern in _SESSIONS:
        if match := pattern.fullmatch(query):
            query = match["before"] + (match["after"] or "")
    return query
