"""Chooses the URL that stands for a page to which redirects lead: Nutch's rule (nutch.md 2.3)."""

import ada_url

from .domains import registered_domain


def choose_representative(source: str, target: str, *, temporary: bool) -> str:
    """Returns the better URL of a redirect's two ends, as users know the page.

    Args:
        source: URL that redirects, normalized.
        target: URL that it leads to, normalized.
        temporary: Whether the redirect is temporary.

    >>> choose_representative("http://a.com/", "http://a.com/home?id=1", temporary=True)
    'http://a.com/'
    >>> choose_representative("http://a.com/x", "http://b.com/", temporary=True)
    'http://b.com/'
    >>> choose_representative("http://a.com/x", "http://a.com/y", temporary=False)
    'http://a.com/y'
    """
    one, two = ada_url.URL(source), ada_url.URL(target)
    if registered_domain(one.hostname) != registered_domain(two.hostname):
        return target
    roots = _is_root(one), _is_root(two)
    if not temporary:
        return source if roots[0] else target
    if roots[0] != roots[1]:
        return source if roots[0] else target
    return source if _size(one, two) <= _size(two, one) else target


def _is_root(url: ada_url.URL) -> bool:
    return url.pathname + url.search in ("", "/")


def _size(url: ada_url.URL, other: ada_url.URL) -> tuple[int, int]:
    """Returns a sort key: the shorter path of one host, else the host with fewer labels."""
    if url.hostname == other.hostname:
        path = url.pathname + url.search
        # As Java splits: empty parts at the end do not count.
        return len(path.rstrip("/").split("/")), len(path)
    return url.hostname.count("."), 0
