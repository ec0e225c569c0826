"""Numbers of values by their hashes: buckets, and the slots of hosts in a batch."""

import zlib

import numpy as np
import polars as pl

SLOTS = 4_096


def hash_buckets(values: pl.Series, buckets: int, salt: str = "") -> pl.Series:
    """Returns a number in [0, buckets) for each value, the same on every worker.

    Args:
        values: Strings or bytes; null is a value like others.
        buckets: Number of buckets, at most 2³².
        salt: Changes the numbers: two values with the same number under one salt probably have
            different numbers under another salt.

    >>> hash_buckets(pl.Series(["a", "b", "a"]), 4096).to_list()
    [4005, 526, 4005]
    """
    keys, start = values.unique(), zlib.crc32(salt.encode())
    sums = np.fromiter((_checksum(key, start) for key in keys.to_list()), np.uint64, len(keys))
    # crc32 is linear: a salt changes all values of one length in the same way, so values with some
    # equal bits keep them. Multiplying by Knuth's constant prevents that.
    mixed = sums * np.uint64(2_654_435_761) & np.uint64(0xFFFF_FFFF)
    numbers = pl.Series(mixed * np.uint64(buckets) >> np.uint64(32))
    return values.replace_strict(keys, numbers, return_dtype=pl.UInt32)


def _checksum(value: str | bytes | None, start: int) -> int:
    # Not hash(): every worker must send a key to the same partition.
    return zlib.crc32(value.encode() if isinstance(value, str) else value or b"", start)
