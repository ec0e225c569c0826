"""A sketch of a set of domains: the smallest hashes of their names.

Up to 256 domains it is exact; above, it estimates their number with an error of about 6 %.
Sketches are united, in any order, and a domain counts once.
"""

import hashlib
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

KEPT_HASHES = 256
_HASH = np.dtype("<u8")
_SPAN = 2.0**64
_Hashes = npt.NDArray[np.uint64]


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
