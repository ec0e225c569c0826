"""Finds pages on which the HTML parser would be quadratic.

lexbor is linear on all pages that people write. Three things make it quadratic, and one such page
could block a worker for minutes or fill its memory: deep nesting (the parser looks through all open
elements at each block), ten thousands of distinct attributes, and open formatting elements that
each new paragraph repeats.

The checks cost a few per cent of the parser's time, so the first of them only counts bytes. They
find careless and plainly hostile pages. A page that is made to pass them stays within the time and
memory limits of the parse process.
"""

import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

# Up to this number of tags any page is harmless (0.05 s at worst).
_SAFE_TAGS = 1_000
_SAFE_OPEN = 500
_CHUNK_BYTES = 8_192
# 16,000 attributes of one element take 0.3 s.
_MAX_ATTRIBUTES = 16_000
_WINDOW_BYTES = 32_768
# Elements that repeating the open formatting elements may make: about 200 MB.
_MAX_REPEATED = 2_000_000

_TAG = re.compile(rb"<(/?)([a-z][^\s/>]*)")
_TAG_NAME = re.compile(rb"<[a-z][^\s/>]{0,100}", re.IGNORECASE)
# HTML 13.2.4.3, list of active formatting elements; an open <a> ends at the next.
FORMATTING = frozenset(b"b big code em font i nobr s small strike strong tt u".split())
# Elements that are never open, or that the next one of their kind ends.
FLAT = frozenset(
    b"area base br col embed hr img input link meta param source track wbr "
    b"p li dt dd option optgroup tr td th tbody thead tfoot colgroup rp rt".split()
)


def is_hazardous(body: bytes, max_nesting: int) -> bool:
    """Tells whether the HTML parser would be quadratic on a document in UTF-8.

    Args:
        body: The document.
        max_nesting: The number of elements that may be open at once. It is measured where few end
            tags or very many tags make it likely.

    >>> is_hazardous(b"<div>" * 30_000, 5000), is_hazardous(b"<br>" * 30_000, 5000)
    (True, False)
    """
    if any(crowded_tags(body)):
        return True
    if len(body) <= 3 * _SAFE_TAGS:
        return False
    tags, most_open = _estimate(np.frombuffer(body, np.uint8))
    if tags <= _SAFE_TAGS or (most_open <= _SAFE_OPEN and tags <= 20 * max_nesting):
        return False
    nesting, formatting = _measure(body.lower())
    return nesting > max_nesting or formatting * tags > _MAX_REPEATED


def _estimate(body: NDArray[np.uint8]) -> tuple[int, int]:
    """Returns the number of tags, and about how many are open at once."""
    opens = body == ord("<")
    tags = int(np.count_nonzero(opens))
    if tags <= _SAFE_TAGS:
        return tags, tags
    closes = opens[:-1] & (body[1:] == ord("/"))
    steps = [
        np.count_nonzero(opens[start : start + _CHUNK_BYTES])
        - 2 * np.count_nonzero(closes[start : start + _CHUNK_BYTES])
        for start in range(0, len(body), _CHUNK_BYTES)
    ]
    balance = np.cumsum(steps)
    return tags, int(np.max(balance - np.minimum.accumulate(np.minimum(balance, 0))))


def _measure(body: bytes) -> tuple[int, int]:
    """Returns how many elements, and formatting elements, are open at once at most.

    An end tag counts if an element of its name is open, whatever stands between them.
    """
    by_name: dict[bytes, int] = {}
    nesting = deepest = formatting = most = 0
    for slash, name in _TAG.findall(body):
        if name in FLAT:
            continue
        step = -1 if slash else 1
        count = by_name.get(name, 0) + step
        if count < 0:
            continue
        by_name[name] = count
        nesting += step
        deepest = max(deepest, nesting)
        if name in FORMATTING:
            formatting += step
            most = max(most, formatting)
    return deepest, most


def crowded_tags(body: bytes) -> Iterator[tuple[int, int]]:
    """Yields where the attributes of a tag begin and end, of tags with too many of them.

    >>> tag = b"<p " + b"a=b " * 20_000 + b">"
    >>> [tag[:start] + tag[end:] for start, end in crowded_tags(tag)]
    [b'<p>']
    """
    at = 0
    while len(body) > 2 * _WINDOW_BYTES and at < len(body):
        window_end = at + _WINDOW_BYTES
        if body.find(b">", at, window_end) >= 0:
            at = window_end
            continue
        end = body.find(b">", window_end)
        end = len(body) if end < 0 else end
        tag = _TAG_NAME.match(body, max(0, body.rfind(b"<", 0, window_end)), end)
        # Without a match this is text after a tag, or a comparison in a script.
        attributes = body[tag.end() : end] if tag else b""
        if tag and b">" not in attributes and _count(attributes) > _MAX_ATTRIBUTES:
            yield tag.end(), end
        at = end


def _count(attributes: bytes) -> int:
    """Returns about how many attributes there are, whatever stands between them."""
    return max(len(attributes.split()), attributes.count(b"="), attributes.count(b"/"))
