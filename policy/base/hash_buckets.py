"""Numbers of values by their hashes: buckets, and the slots of hosts in a batch."""

import zlib

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
    keys = values.unique()
    start = zlib.crc32(salt.encode())
    numbers = [_mix_hash(value, start) * buckets >> 32 for value in keys]
    return values.replace_strict(keys, numbers, return_dtype=pl.UInt32)


def _mix_hash(value: str | bytes | None, start: int) -> int:
    data = value.encode() if isinstance(value, str) else value or b""
    # crc32, not hash(): every worker must send a key to the same partition. But crc32 is
    # linear: a salt changes all values of one length in the same way, so values with some
    # equal bits keep them. Multiplying by Knuth's constant prevents that.
    return zlib.crc32(data, start) * 2_654_435_761 & 0xFFFF_FFFF
