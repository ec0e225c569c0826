"""The parts of a URL, as columns of Common Crawl's index have them."""

import functools
import ipaddress
import re
from typing import NamedTuple

from ..urls.domains import suffix_and_domain
from .surt import surt_key

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?")
_PORT = re.compile(r"(.*?)(?::([0-9]*))?", re.DOTALL)
_LABELS = 5


class HostParts(NamedTuple):
    """A host, and what it belongs to; an address has only its name.

    Attributes:
        name: The host.
        labels: Its last labels, the last one first; None for labels that it has not.
        suffix: Public suffix of a registry.
        domain: The registered domain.
        private_suffix: Public suffix, of registries or of others such as ``github.io``.
        private_domain: The domain below that.
        reverse: Its labels in reverse.
    """

    name: str
    labels: tuple[str | None, ...] = (None,) * _LABELS
    suffix: str | None = None
    domain: str | None = None
    private_suffix: str | None = None
    private_domain: str | None = None
    reverse: str | None = None


class UrlParts(NamedTuple):
    """A URL: host, scheme, port (None: the URL names none), path, and query (None: there is none)."""

    host: HostParts
    scheme: str
    port: int | None
    path: str
    query: str | None


def url_parts(url: str) -> UrlParts:
    """Returns the parts of a URL.

    >>> url_parts("https://a.example.co.uk:81/b?c=1")[1:]
    ('https', 81, '/b', 'c=1')
    """
    match = _URL.match(url)
    if match is None:
        return UrlParts(host_parts(""), "", None, url, None)
    scheme, authority, path, query = match.groups()
    site = _PORT.fullmatch((authority or "").rpartition("@")[2])
    name, digits = (site[1], site[2]) if site else ("", None)
    port = int(digits) if digits and len(digits) < 6 else None
    return UrlParts(host_parts(name.lower()), scheme.lower(), port, path, query)


@functools.lru_cache(maxsize=1 << 16)
def host_parts(host: str) -> HostParts:
    """Returns a host with the domains that it belongs to.

    >>> parts = host_parts("www.foo.github.io")
    >>> parts.labels, parts.suffix, parts.domain
    (('io', 'github', 'foo', 'www', None), 'io', 'github.io')
    >>> parts.private_suffix, parts.private_domain, parts.reverse
    ('github.io', 'foo.github.io', 'io.github.foo.www')
    >>> host_parts("127.0.0.1")[1:3], host_parts("localhost").domain
    (((None, None, None, None, None), None), None)
    """
    if not host or _is_address(host):
        return HostParts(host)
    name = host.removesuffix(".")
    labels: list[str | None] = [*reversed(name.split("."))]
    reverse = ".".join(filter(None, labels))
    last = tuple((labels + [None] * _LABELS)[:_LABELS])
    domains = (_known_domains(name, private=private) for private in (False, True))
    (suffix, domain), (private_suffix, private_domain) = domains
    return HostParts(name, last, suffix, domain, private_suffix, private_domain, reverse)


def _known_domains(name: str, *, private: bool) -> tuple[str | None, str | None]:
    suffix, domain = suffix_and_domain(name, private=private)
    return (None, None) if suffix is None else (suffix, None if domain == suffix else domain)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def surt_host(host: str) -> str:
    """Returns a host as the host index names it, without ``www`` and port.

    >>> surt_host("www.example.com"), surt_host("commoncrawl.org")
    ('com,example', 'org,commoncrawl')
    """
    return surt_key(f"http://{host}/").removesuffix(")/")
