"""Row keys of links: the key of the target, a space, the key of the source.

A space is smaller than all characters of row keys, and ``#`` is not one of them. So the inlinks of
a page are one range of keys, as are those of a host; the blocklist, tablets and Bigtable find the
host of the target at the start of the key.
"""

import hashlib

import polars as pl

from ...web.urls.row_keys import MAX_KEY_BYTES

SEPARATOR = " "
# A longer row key is shortened, so that two of them fit into a row key of Bigtable.
MAX_HALF = (MAX_KEY_BYTES - len(SEPARATOR)) // 2
_DIGEST = 32
_START = MAX_HALF - _DIGEST - 1


def half(key: str) -> str:
    """Returns a row key as it is in keys of links: a long one ends with ``#`` and a digest.

    >>> half("com.a:http/"), len(half("com.a:http/" + 3000 * "x"))
    ('com.a:http/', 2047)
    """
    if len(key) <= MAX_HALF:
        return key
    digest = hashlib.sha256(key.encode()).hexdigest()[:_DIGEST]
    return f"{key[:_START]}#{digest}"


def link_keys(targets: pl.Series, sources: pl.Series) -> pl.Series:
    """Returns the keys of links, from those of their targets and sources.

    >>> link_keys(pl.Series(["com.a:http/"]), pl.Series(["org.b:http/x"])).to_list()
    ['com.a:http/ org.b:http/x']
    """
    return (_halves(targets) + SEPARATOR + _halves(sources)).alias("key")


def range_of_target(target: str) -> tuple[str, str]:
    """Returns the first key that a link to a page may have, and the first one after all of them.

    >>> range_of_target("com.a:http/")
    ('com.a:http/ ', 'com.a:http/!')
    """
    start = half(target)
    return f"{start}{SEPARATOR}", f"{start}{chr(ord(SEPARATOR) + 1)}"


def _halves(keys: pl.Series) -> pl.Series:
    long = keys.str.len_bytes() > MAX_HALF
    if not long.any():
        return keys
    found = keys.filter(long).unique().drop_nulls()
    return keys.replace(found, pl.Series([half(key) for key in found], dtype=pl.String))
