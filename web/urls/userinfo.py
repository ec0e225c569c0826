"""Removes user and password from URLs before they are stored or shown."""

import re
from collections.abc import Iterable

import ada_url

from .percent import url_of_bytes
from .row_keys import parse_url

# Characters that neither a host nor a user before it has.
_ENDS = re.compile(r"([/\\?#\s\"'<>]+)")
_SCHEME = re.compile(r"(?:https?|ftp|wss?):", re.IGNORECASE)
_SCHEME_AT_END = re.compile(rf"{_SCHEME.pattern}\Z", re.IGNORECASE)
_TWO_SLASHES = re.compile(r"[/\\]{2}")
_SLASHES = "/\\"
# Headers whose values are not URLs, and are sent back unchanged.
_VERBATIM = frozenset({"set-cookie", "etag", "www-authenticate", "proxy-authenticate"})
_TARGETS = frozenset({"location", "content-location"})


def parse_target(href: str, base: str) -> str | None:
    """Returns the absolute URL of a link or redirect, without user and password; None if invalid.

    >>> parse_target("//me:secret@foo.com/a?b=c@d", "http://bar.com/")
    'http://foo.com/a?b=c@d'
    """
    url = parse_url(href, base)
    return url if url is None else without_user(url)


def without_user(url: str) -> str:
    """Returns a parsed URL without user and password.

    Path and query stay, whatever they contain.

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

    The time is linear in the length of any text.

    >>> mask_users('<http://me:secret@foo.com/>; rel="next", 0; url=//u@bar.com')
    '<http://foo.com/>; rel="next", 0; url=//bar.com'
    """
    if "@" not in text:
        return text
    words = _ENDS.split(text)  # every second item is a separator
    slashes, after_scheme = 0, False
    for at in range(0, len(words), 2):
        if at:
            previous_word, ends = words[at - 2], words[at - 1]
            end_slashes = len(ends) - len(ends.rstrip(_SLASHES))
            if end_slashes < len(ends):
                slashes, after_scheme = end_slashes, False
            elif previous_word:
                slashes, after_scheme = end_slashes, bool(_SCHEME_AT_END.search(previous_word[-6:]))
            else:  # the whole word was removed
                slashes += end_slashes
        words[at] = _without_user(words[at], slashes >= 2 or after_scheme)
    return "".join(words)


def _without_user(word: str, begins_host: bool) -> str:
    """Returns a word without the user before its last @.

    The user begins at the start of the word, or after a scheme in it.
    """
    end = word.rfind("@") + 1
    if not end:
        return word
    scheme = None if begins_host else _SCHEME.search(word, 0, end)
    start = 0 if begins_host else scheme.end() if scheme else end
    return word[:start] + word[end:]


def mask_headers(fields: Iterable[tuple[str, str]], url: str) -> list[tuple[str, str]]:
    """Returns a response's headers without the users and passwords of URLs in them.

    Args:
        fields: (name, value) of each.
        url: The requested URL.

    >>> mask_headers([("Location", "ht\\ttp://me:secret@foo.com"), ("Age", "1")], "http://bar.com/")
    [('Location', 'http://foo.com/'), ('Age', '1')]
    """
    return [(name, _mask_header(name.lower(), value, url)) for name, value in fields]


def _mask_header(name: str, value: str, url: str) -> str:
    if "@" not in value or name in _VERBATIM:
        return value
    if name not in _TARGETS:
        return mask_users(value)
    target = parse_url(from_wire(value), url)
    if target is None:  # in an invalid URL, the part up to the last @ is removed
        end = value.rfind("@")
        begins = _TWO_SLASHES.search(value, 0, end)
        return value if begins is None else f"{value[: begins.start()]}//{value[end + 1 :]}"
    return without_user(target) if without_user(target) != target else value


def from_wire(value: str) -> str:
    r"""Returns the URL in a header that was read as Latin-1; see ``url_of_bytes``.

    >>> from_wire("/caf\xc3\xa9"), from_wire("/caf\xe9")
    ('/café', '/caf%E9')
    """
    if value.isascii():
        return value
    try:
        raw = value.encode("latin-1")
    except UnicodeEncodeError:  # it comes from a client that has decoded it
        return value
    return url_of_bytes(raw)
