"""User and password in URLs: taken out before a URL that somebody else wrote is kept or shown."""

import re
from collections.abc import Iterable

import ada_url

from .urls import parse

# What a host's name, and a user before it, does not have.
_ENDS = re.compile(r"([/\\?#\s\"'<>]+)")
_SCHEME = re.compile(r"(?:https?|ftp|wss?):", re.IGNORECASE)
_SCHEME_AT_END = re.compile(rf"{_SCHEME.pattern}\Z", re.IGNORECASE)
_TWO_SLASHES = re.compile(r"[/\\]{2}")
_SLASHES = "/\\"
# Their values are no URLs, and are sent back as they came.
_VERBATIM = frozenset({"set-cookie", "etag", "www-authenticate", "proxy-authenticate"})
_TARGETS = frozenset({"location", "content-location"})


def parse_target(href: str, base: str) -> str | None:
    """Returns the absolute URL of a link or redirect, without user and password; None if invalid.

    >>> parse_target("//me:secret@foo.com/a?b=c@d", "http://bar.com/")
    'http://foo.com/a?b=c@d'
    """
    url = parse(href, base)
    return url if url is None else without_user(url)


def without_user(url: str) -> str:
    """Returns a URL that ``parse`` gave, without user and password.

    What its path or query holds is part of its name and stays.

    >>> without_user("http://us%65r:p%77@foo.com/x@y"), without_user("mailto:me@foo.com")
    ('http://foo.com/x@y', 'mailto:me@foo.com')
    """
    if "@" not in url:
        return url
    try:
        parsed = ada_url.URL(url)
        parsed.username = parsed.password = ""
    except ValueError:  # without a host, such as mailto: and view-source:
        return mask_users(url)
    return str(parsed.href)


def mask_users(text: str) -> str:
    """Returns a text without the user and password of the URLs in it.

    Takes steps in proportion to the text's length, whatever it holds.

    >>> mask_users('<http://me:secret@foo.com/>; rel="next", 0; url=//u@bar.com')
    '<http://foo.com/>; rel="next", 0; url=//bar.com'
    """
    if "@" not in text:
        return text
    words = _ENDS.split(text)  # every second one is what stands between two others
    for at in range(0, len(words), 2):
        end = words[at].rfind("@") + 1
        if end:
            start = _user_start(words, at, end)
            words[at] = words[at] if start is None else words[at][:start] + words[at][end:]
    return "".join(words)


def _user_start(words: list[str], at: int, end: int) -> int | None:
    """Returns where the user of a URL begins in a word that has an @ before ``end``; None if none does.

    It begins after two slashes, or after a scheme with any number of them, as browsers read it.
    """
    before, slashes = (words[at - 2], words[at - 1]) if at else ("", "")
    if len(slashes) - len(slashes.rstrip(_SLASHES)) >= 2:
        return 0
    if slashes and not slashes.strip(_SLASHES) and _SCHEME_AT_END.search(before[-len("https:") :]):
        return 0
    scheme = _SCHEME.search(words[at], 0, end)
    return scheme.end() if scheme else None


def mask_headers(fields: Iterable[tuple[str, str]], url: str) -> list[tuple[str, str]]:
    """Returns a response's headers without the users and passwords of URLs in them.

    Args:
        fields: (name, value) of each.
        url: What was asked for.

    >>> mask_headers([("Location", "ht\\ttp://me:secret@foo.com"), ("Age", "1")], "http://bar.com/")
    [('Location', 'http://foo.com/'), ('Age', '1')]
    """
    return [(name, _masked(name.lower(), value, url)) for name, value in fields]


def _masked(name: str, value: str, url: str) -> str:
    if "@" not in value or name in _VERBATIM:
        return value
    if name not in _TARGETS:
        return mask_users(value)
    target = parse(from_wire(value), url)
    if target is None:  # what is broken is cut at the last @, wherever that stands
        end = value.rfind("@")
        begins = _TWO_SLASHES.search(value, 0, end)
        return value if begins is None else f"{value[: begins.start()]}//{value[end + 1 :]}"
    return without_user(target) if without_user(target) != target else value


def from_wire(value: str) -> str:
    """Returns the text of a header: sent as UTF-8, read byte by byte."""
    try:
        return value.encode("latin-1").decode()
    except UnicodeError:
        return value
