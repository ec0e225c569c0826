"""Which pages the fast HTML parser must not see.

lexbor is linear on all that people write. Three things make it quadratic, and
one page of each could hold a worker for minutes or fill its memory: deep
nesting (each block looks through all that are open), distinct attributes by
the ten thousand, and open formatting elements that each new paragraph repeats.

The checks cost a few per cent of the parser's time, so the first of them only
counts bytes. They see what is careless and what is plainly hostile; a page made
to get past them stays within the time and memory limits of the parsing process.
"""

import re

import numpy as np
from numpy.typing import NDArray

# So few tags are harmless in any order (at worst 0.05 s).
_SAFE_TAGS = 1_000
_SAFE_OPEN = 500
_CHUNK_BYTES = 8_192
# 16,000 attributes of one element take 0.3 s.
_MAX_ATTRIBUTES = 16_000
_WINDOW_BYTES = 32_768
# Elements that repeating the open formatting elements may make: about 200 MB.
_MAX_REPEATED = 2_000_000

_TAG = re.compile(rb"<(/?)([a-z][^\s/>]*)")
# HTML 13.2.4.3, list of active formatting elements; an open <a> ends at the next.
FORMATTING = frozenset(b"b big code em font i nobr s small strike strong tt u".split())
# Never open, or ended by what follows them.
FLAT = frozenset(
    b"area base br col embed hr img input link meta param source track wbr "
    b"p li dt dd option optgroup tr td th tbody thead tfoot colgroup rp rt".split()
)


def is_hazardous(body: bytes, max_nesting: int) -> bool:
    """Tells whether a document in UTF-8 would cost the fast parser dearly.

    Args:
        body: The document.
        max_nesting: How many elements may be open at once; looked at closely
            where few end tags or very many tags make it likely.

    >>> is_hazardous(b"<div>" * 30_000, 5000), is_hazardous(b"<br>" * 30_000, 5000)
    (True, False)
    """
    if has_crowded_tag(body):
        return True
    if len(body) <= 3 * _SAFE_TAGS:
        return False
    tags, most_open = _estimate(np.frombuffer(body, np.uint8))
    if tags <= _SAFE_TAGS or (most_open <= _SAFE_OPEN and tags <= 20 * max_nesting):
        return False
    nesting, formatting = _measure(body.lower())
    return nesting > max_nesting or formatting * tags > _MAX_REPEATED


def _estimate(body: NDArray[np.uint8]) -> tuple[int, int]:
    """Returns how many tags there are, and about how many are open at once."""
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
    """Returns the most elements, and formatting elements, that are open at once.

    An end tag counts if an element of its name is open, whatever lies between.
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


def has_crowded_tag(body: bytes) -> bool:
    """Tells whether a tag of over 64 KiB has too many attributes."""
    start = 0
    while len(body) > 2 * _WINDOW_BYTES and start < len(body):
        end = start + _WINDOW_BYTES
        if body.find(b">", start, end) >= 0:
            start = end
            continue
        opened = body.rfind(b"<", 0, end)
        closed = body.find(b">", end)
        tag = body[opened : closed if closed >= 0 else len(body)] if opened >= 0 else b""
        # Else it is text after a tag, or a comparison in a script.
        if tag[1:2].isalpha() and b">" not in tag and _count_attributes(tag) > _MAX_ATTRIBUTES:
            return True
        start = closed if closed >= 0 else len(body)
    return False


def _count_attributes(tag: bytes) -> int:
    return max(len(tag.split()), tag.count(b"="), tag.count(b"/"))
