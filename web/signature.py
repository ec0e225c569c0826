"""Signatures: a page is unchanged, or a duplicate, when its signature is equal."""

import hashlib


def md5(body: bytes, url: str) -> bytes:
    """Returns the MD5 of a body as it was stored: 16 bytes, Nutch's MD5Signature.

    An empty body says nothing, so the URL takes its place: empty pages are
    then no duplicates of each other.

    >>> md5(b"<p>hello", "http://example.com/").hex()
    'fef204c8ad5edb6ecf33217b26aff0b9'
    >>> md5(b"", "http://example.com/a") == md5(b"", "http://example.com/b")
    False
    """
    # Equality of contents, not protection from anyone: FIPS builds must allow it.
    return hashlib.md5(body or url.encode("utf-8", "replace"), usedforsecurity=False).digest()
