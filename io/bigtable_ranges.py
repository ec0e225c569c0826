"""Key ranges of a table in Bigtable: the tablets of an operation, frozen when it is pinned."""

import dataclasses
import itertools
from collections.abc import Iterable

from .tablets import host_start


@dataclasses.dataclass(frozen=True)
class KeyRange:
    """Row keys from ``low`` (inclusive) to ``high`` (exclusive); None is open."""

    low: str | None
    high: str | None


def plan_key_ranges(samples: Iterable[tuple[bytes, int]], number: int) -> list[KeyRange]:
    """Cuts the key space into ranges of about as many bytes.

    Bigtable samples keys at random, others at each call: call it once an
    operation. No cut goes through a host that is smaller than a range.

    Args:
        samples: (key, bytes of the table before it), as ``sample_row_keys`` gives
            them, in key order; the empty key at the end stands for the end.
        number: How many ranges there should be; there may be fewer.

    Returns:
        Ranges in key order that cover all keys; at least one.

    >>> plan_key_ranges([(b"com.a:http/x", 50), (b"com.b:http/y", 100)], 2)
    [KeyRange(low=None, high='com.a:'), KeyRange(low='com.a:', high=None)]
    """
    # Rows of our own have keys that begin with a zero byte, see bigtable_commit.py.
    found = [(key, offset) for key, offset in samples if key > b"\1" or not key]
    total = max((offset for _, offset in found), default=0)
    step = max(1, total / max(1, number))
    cuts: list[str] = []
    filled = step
    for key, offset in found:
        if not key or offset < filled:
            continue
        text = key.decode("utf-8", "surrogateescape")
        start, last = host_start(text), cuts[-1] if cuts else ""
        cut = start if start > last else text
        if cut > last and len(cuts) < number - 1:
            cuts.append(cut)
            filled = offset + step
    edges = [None, *cuts, None]
    return [KeyRange(low, high) for low, high in itertools.pairwise(edges)]
