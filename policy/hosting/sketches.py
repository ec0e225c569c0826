"""Sketches in rows of hosts: of sets of domains, and of response times; they are added in any order.

**Domains.** A sketch has the smallest hashes of their names. Up to 256 domains it is exact; above, it
estimates their number with an error of about 6 %. A domain counts once.

**Response times.** A sketch has the numbers of times in classes that grow by a tenth. A percentile from
it is within 5 % of the true one.
"""

import hashlib
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import polars as pl

from ..base.key_columns import host_keys
from ..components.schema import HostRows

KEPT_HASHES = 256
_HASH = np.dtype("<u8")
_SPAN = 2.0**64
_Hashes = npt.NDArray[np.uint64]
_GROWTH = np.log(1.1)
_CLASSES = 232  # up to 2**31 ms
_CLASS = np.dtype("<u4")


def sketch_domains(names: Iterable[str]) -> bytes:
    """Returns the sketch of some domains."""
    return _smallest(domain_hashes(names))


def domain_hashes(names: Iterable[str]) -> _Hashes:
    """Returns the hash of each domain, as sketches have them."""
    digests = b"".join(hashlib.blake2b(name.encode(), digest_size=8).digest() for name in names)
    return np.frombuffer(digests, _HASH)


def sketch_hashes(sketch: bytes) -> _Hashes:
    """Returns the hashes that a sketch keeps."""
    return np.frombuffer(sketch[: len(sketch) // 8 * 8], _HASH)


def unite_sketches(sketches: Iterable[bytes]) -> bytes:
    """Returns the sketch of the domains of several sketches."""
    return _smallest(np.concatenate([sketch_hashes(b""), *map(sketch_hashes, sketches)]))


def _smallest(hashes: _Hashes) -> bytes:
    return np.unique(hashes)[:KEPT_HASHES].astype(_HASH).tobytes()


def number_of_domains(sketch: bytes | None) -> int:
    """Returns how many domains a sketch has.

    >>> number_of_domains(unite_sketches([sketch_domains(["a.com", "b.com"]),
    ...                                   sketch_domains(["b.com"])]))
    2
    """
    hashes = sketch_hashes(sketch or b"")
    if len(hashes) < KEPT_HASHES:
        return len(hashes)
    return round((KEPT_HASHES - 1) / (float(hashes[-1]) / _SPAN))


def _class_of(ms: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Returns the class of each time; class 0 has times below 1.05 ms."""
    classes = np.rint(np.log(np.maximum(ms, 1.0)) / _GROWTH).astype(np.int64)
    return np.minimum(classes, _CLASSES - 1)


def _pack_numbers(numbers: npt.NDArray[np.int64]) -> bytes:
    most = np.iinfo(_CLASS).max
    return np.trim_zeros(np.minimum(numbers, most), "b").astype(_CLASS).tobytes()


def _unpack_numbers(sketch: bytes) -> npt.NDArray[np.int64]:
    return np.frombuffer(sketch[: len(sketch) // 4 * 4], _CLASS).astype(np.int64)


def add_sketches(sketches: Iterable[bytes]) -> bytes:
    """Returns the sketch of all times of several sketches."""
    parts = [_unpack_numbers(sketch) for sketch in sketches]
    total = np.zeros(max((len(part) for part in parts), default=0), np.int64)
    for part in parts:
        total[: len(part)] += part
    return _pack_numbers(total)


def number_of_times(sketch: bytes | None) -> int:
    """Returns how many times a sketch has."""
    return int(_unpack_numbers(sketch or b"").sum())


def percentile(sketch: bytes | None, percent: float) -> float | None:
    """Returns a percentile of the times of a sketch, ms; None if it has none.

    >>> rows = pl.DataFrame({"key": "com.a:http/", "response_ms": [100.0] * 9 + [2000.0]})
    >>> percentile(sketch_hosts(rows).get_column("response_times").item(), 50)
    97.0
    """
    numbers = _unpack_numbers(sketch or b"")
    if not numbers.sum():
        return None
    rank = percent / 100 * (numbers.sum() - 1)
    at = int(np.searchsorted(np.cumsum(numbers), rank, side="right"))
    return round(float(np.exp(at * _GROWTH)), 0)


def sketch_hosts(rows: pl.DataFrame) -> HostRows:
    """Returns ``key`` (reversed host) and ``response_times``, from ``key`` and ``response_ms``."""
    timed = rows.filter(pl.col("response_ms").is_not_null())
    hosts = host_keys(timed.get_column("key"))
    classes = _class_of(timed.get_column("response_ms").cast(pl.Float64).to_numpy())
    numbers = (
        pl.DataFrame({"key": hosts, "at": classes})
        .filter(pl.col("key") != "")
        .group_by("key", "at")
        .len()
        .group_by("key")
        .agg("at", "len")
        .sort("key")
    )
    sketches = [
        _pack_numbers(np.bincount(at, weights=number).astype(np.int64))
        for at, number in numbers.select("at", "len").iter_rows()
    ]
    return numbers.select("key", response_times=pl.Series(sketches, dtype=pl.Binary))
