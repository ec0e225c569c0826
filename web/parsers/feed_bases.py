"""The base URLs of a feed's elements (XML Base), and its links as absolute URLs."""

import functools
import re
from urllib.parse import urljoin

_MAX_CHARS = 4_096
# Of longer ones, only the end is split into segments.
_SHORT_CHARS = 256
_HAS_SCHEME_OR_ROOT = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|[/?#\\]|\Z")
_STAND_IN = "http://h/"


class BaseUrls:
    """The base URLs of the open elements.

    They are resolved when they are used, for most are not.

    >>> bases = BaseUrls("http://example.com/feed")
    >>> bases.push("a/")
    >>> bases.push("")
    >>> bases.current(), bases.join("../b")
    ('http://example.com/a/', 'http://example.com/b')
    """

    def __init__(self, url: str) -> None:
        self._resolved = [url]
        self._said: list[str] = []

    def push(self, said: str) -> None:
        """Opens an element, with its ``xml:base``; empty if it has none."""
        self._said.append(said)

    def pop(self) -> None:
        """Closes the innermost element."""
        self._said.pop()
        del self._resolved[len(self._said) + 1 :]

    def current(self) -> str:
        """Returns the base URL of the innermost element."""
        resolved = self._resolved
        for said in self._said[len(resolved) - 1 :]:
            base = said.strip() if len(said) <= _MAX_CHARS else ""
            joined = join_url(resolved[-1], base) if base else ""
            resolved.append(joined if 0 < len(joined) <= _MAX_CHARS else resolved[-1])
        return resolved[-1]

    def join(self, href: str) -> str:
        """Returns a link as an absolute URL, with its characters as they stand there."""
        return join_url(self.current(), href)


def join_url(base: str, href: str) -> str:
    """Returns ``urljoin`` of a base and a reference; odd hosts: the reference.

    Its time does not depend on the number of segments of the base.

    >>> join_url("http://example.com/" + "a/" * 200 + "b", "../c")[-10:]
    '/a/a/a/a/c'
    """
    try:
        if len(base) <= _SHORT_CHARS or _HAS_SCHEME_OR_ROOT.match(href):
            return urljoin(base, href)
        last = href.count("..") + 2
        start, *segments = _folder(base).rsplit("/", last)
        if len(segments) < last or start.count("/", 0, _SHORT_CHARS) < 3:
            return urljoin(base, href)
        joined = urljoin(_STAND_IN + "/".join(segments), href)
        return f"{start}/{joined.removeprefix(_STAND_IN)}"
    except ValueError:
        return href


@functools.lru_cache(16)
def _folder(base: str) -> str:
    return urljoin(base, ".")
