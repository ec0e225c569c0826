"""Finds registered domains, with the public suffix list in the package tldextract."""

import functools
from typing import Any

_CACHED_HOSTS = 1 << 17


@functools.lru_cache(maxsize=_CACHED_HOSTS)
def registered_domain(host: str) -> str:
    """Returns the domain of a host: its public suffix and one more label.

    It uses only the ICANN section of the bundled list: private suffixes
    (``co.uk.com``, ``github.io``) do not count. An address, a name with an
    unknown suffix and a bare suffix are their own domain, without a trailing dot.

    >>> registered_domain("www.example.co.uk"), registered_domain("140.211.11.130")
    ('example.co.uk', '140.211.11.130')
    >>> registered_domain("foo.github.io"), registered_domain("h1.localhost")
    ('github.io', 'h1.localhost')
    """
    return suffix_and_domain(host.removesuffix("."))[1]


def suffix_and_domain(host: str, *, private: bool = False) -> tuple[str | None, str]:
    """Returns the public suffix of a host (None if unknown, or for an address) and its domain.

    Args:
        host: The host.
        private: Whether private suffixes count, such as ``github.io``.

    >>> suffix_and_domain("www.example.co.uk"), suffix_and_domain("10.0.0.1")
    (('co.uk', 'example.co.uk'), (None, '10.0.0.1'))
    """
    parts = _extractor()(host, include_psl_private_domains=private)
    domain = f"{parts.domain}.{parts.suffix}" if parts.domain and parts.suffix else host
    return parts.suffix or None, domain


def is_public_suffix(host: str) -> bool:
    """Returns whether anybody can register a domain below a name; see ``registered_domain``.

    >>> [is_public_suffix(name) for name in ("com", "co.uk", "example.com", "localhost")]
    [True, True, False, False]
    """
    parts = _extractor()(host)
    return bool(parts.suffix) and not parts.domain


def is_known_suffix(label: str) -> bool:
    """Returns whether a label is a top-level domain in the list.

    >>> [is_known_suffix(label) for label in ("com", "xn--p1ai", "lan", "belkin", "localhost")]
    [True, True, False, False, False]
    """
    return bool(_extractor()(f"a.{label}").suffix)


@functools.cache
def plain_suffixes() -> frozenset[str]:
    """Returns the top-level domains, in ASCII, below which all domains have two labels.

    >>> "com" in plain_suffixes(), "uk" in plain_suffixes(), "localhost" in plain_suffixes()
    (True, False, False)
    """
    suffixes = _extractor().tlds
    longer = {suffix.rpartition(".")[2] for suffix in suffixes if "." in suffix}
    plain = (name for name in suffixes if "." not in name and name.isascii())
    return frozenset(plain) - longer


def is_shared_suffix(host: str) -> bool:
    """Returns whether unrelated parties have names below a name.

    The private section of the list counts, and so does a name with one label.

    >>> [is_shared_suffix(name) for name in ("co.uk", "github.io", "example.com", "localhost")]
    [True, True, False, True]
    """
    host = host.strip(".")
    parts = _extractor()(host, include_psl_private_domains=True)
    return "." not in host or (bool(parts.suffix) and not parts.domain)


def names_above(host: str) -> list[str]:
    """Returns a host and all domains above it, the longest name first.

    >>> names_above("www.foo.com")
    ['www.foo.com', 'foo.com', 'com']
    """
    labels = host.split(".")
    return [".".join(labels[at:]) for at in range(len(labels))]


def sites_of(host: str) -> list[str]:
    """Returns the names by which ``site:`` finds a host: its own, and those of its domains.

    >>> sites_of("docs.www.example.co.uk")
    ['docs.www.example.co.uk', 'www.example.co.uk', 'example.co.uk']
    >>> sites_of("127.0.0.1"), sites_of("localhost")
    (['127.0.0.1'], ['localhost'])
    """
    domain = registered_domain(host)
    names = [host]
    while names[-1] != domain and names[-1].endswith(f".{domain}"):
        names.append(names[-1].partition(".")[2])
    return names


@functools.cache
def _extractor() -> Any:
    # Late: it imports requests. Without URLs and cache, it uses neither network nor disk.
    import tldextract

    return tldextract.TLDExtract(
        suffix_list_urls=(), cache_dir=None, include_psl_private_domains=False
    )
