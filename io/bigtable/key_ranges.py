"""Key ranges of a table in Bigtable: the tablets of its components, as a snapshot lists them.

The file list describes each range as a file without runs: ``first`` is the
range's smallest key or None, ``last`` is the first key of the next range or
None. So all readers of a snapshot, and their retries, have the same ranges.
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Sequence

from ...web.base.dataclass import dataclass
from ..storage.table_sizes import table_sizes
from ..tablets.file_lists import DataFile
from ..tablets.tablets import host_start

# Keys and the number of bytes before them, as ``sample_row_keys`` returns them.
Samples = list[tuple[bytes, int]]


@dataclass(frozen=True)
class KeyRange:
    """Row keys from ``low`` (inclusive) to ``high`` (exclusive); None is no limit."""

    low: str | None
    high: str | None


def plan_key_ranges(samples: Iterable[tuple[bytes, int]], number: int) -> list[KeyRange]:
    """Cuts the key space into ranges of about equal size.

    Bigtable samples keys at random, so the cuts differ from call to call: call it once per
    operation. A host that is smaller than a range is never cut.

    Args:
        samples: (key, bytes of the table before it), as ``sample_row_keys`` returns
            them, in key order; an empty key is the end of the table.
        number: The wanted number of ranges; there may be fewer.

    Returns:
        Ranges in key order that cover all keys; at least one.

    >>> plan_key_ranges([(b"com.a:http/x", 50), (b"com.b:http/y", 100)], 2)
    [KeyRange(low=None, high='com.a:'), KeyRange(low='com.a:', high=None)]
    """
    # Internal rows have keys that begin with a zero byte, see own_rows.py.
    row_samples = [(key, offset) for key, offset in samples if key > b"\1" or not key]
    total = max((offset for _, offset in row_samples), default=0)
    step = max(1, total / max(1, number))
    cuts: list[str] = []
    filled = step
    for key, offset in row_samples:
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


def grow_ranges(
    component: str,
    ranges_before: Sequence[DataFile],
    changes: Sequence[DataFile],
    samples: Callable[[], Samples],
) -> list[DataFile]:
    """Returns the ranges of a component after changes; cuts them again if one has too many rows.

    Args:
        component: A component in rows.
        ranges_before: The ranges before.
        changes: Files of changes; ``base`` is the path of the range, or None if there is
            only one range.
        samples: Function that requests samples from Bigtable; only called if new cuts
            are needed.
    """
    ranges = {file.path: file for file in ranges_before or [DataFile(component, 0, 0)]}
    first_path = next(iter(ranges))
    for change in changes:
        path = change.base or first_path
        old, added_rows = ranges[path], change.fresh or 0
        size = old.bytes + change.bytes * added_rows // max(1, change.rows)
        ranges[path] = dataclasses.replace(old, rows=old.rows + added_rows, bytes=size)
    new_ranges = list(ranges.values())
    if max(file.rows for file in new_ranges) <= 2 * table_sizes().tablet_rows:
        return new_ranges
    # The rows of a first load are not in Bigtable yet.
    return cut_ranges(component, new_ranges, samples() if ranges_before else _samples_of(changes))


def are_ranges(component: str, files: Iterable[DataFile]) -> bool:
    """Returns whether a list has key ranges instead of files.

    The path of a range has its first key.

    >>> are_ranges("hosts", [DataFile("hosts/com.b", 1, 1, "com.b")])
    True
    >>> are_ranges("hosts", [DataFile("hosts/0a-1.parquet", 1, 1, "com.b", "com.c")])
    False
    """
    return any(file.path in (component, f"{component}/{file.first or ''}") for file in files)


def cut_ranges(component: str, ranges: Sequence[DataFile], samples: Samples) -> list[DataFile]:
    """Returns new ranges of about equal size, with the same number of rows in all."""
    rows, size = (sum(getattr(file, name) for file in ranges) for name in ("rows", "bytes"))
    key_ranges = plan_key_ranges(samples, -(-rows // table_sizes().tablet_rows))
    return [
        DataFile(
            f"{component}/{key_range.low or ''}",
            # The number of rows of each range is an estimate; the sum is exact.
            rows=rows * (at + 1) // len(key_ranges) - rows * at // len(key_ranges),
            bytes=size * (at + 1) // len(key_ranges) - size * at // len(key_ranges),
            first=key_range.low,
            last=key_range.high,
        )
        for at, key_range in enumerate(key_ranges)
    ]


def _samples_of(changes: Sequence[DataFile]) -> Samples:
    ordered = sorted(changes, key=lambda change: str(change.first))
    offsets = itertools.accumulate((change.bytes for change in ordered), initial=0)
    samples = [(str(c.first).encode(), offset) for c, offset in zip(ordered, offsets, strict=False)]
    return [*samples, (b"", sum(change.bytes for change in ordered))]
