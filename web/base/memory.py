"""Limits the use of memory: few heaps, free memory is returned, garbage is collected seldom."""

import ctypes
import functools
import gc

_M_ARENA_MAX = -8  # of glibc's malloc.h
_ARENAS = 2


def share_heaps() -> None:
    """Makes threads that start from now on share few heaps of glibc's malloc.

    Else there are eight for each core, and each keeps what its threads have used at the most.
    Only one thread of Python allocates at a time, so they do not slow each other. Once a
    process has had eight heaps this does nothing: it comes early.
    """
    libc = _glibc()
    if libc is not None:
        libc.mallopt(_M_ARENA_MAX, _ARENAS)


def collect_seldom() -> None:
    """Excludes imported objects from garbage collection, and collects seldom.

    Reference counts free nearly all; collecting the rest costs 5 % of a crawl, and a tenth of parsing.
    Only the first call has an effect: later ones would also keep what a command has left.
    """
    if not gc.get_freeze_count():
        gc.freeze()
        gc.set_threshold(100_000, 50, 100)


def give_back() -> None:
    """Returns free memory to the system, as far as the allocators can; takes some milliseconds."""
    libc = _glibc()
    if libc is not None:
        libc.malloc_trim(0)
    import pyarrow as pa  # late: who only shares heaps shall not wait for it

    pa.default_memory_pool().release_unused()


@functools.cache
def _glibc() -> ctypes.CDLL | None:
    """Returns the C library, None where it is another one."""
    try:
        libc = ctypes.CDLL(None)
    except (OSError, TypeError):
        return None
    return libc if hasattr(libc, "malloc_trim") and hasattr(libc, "mallopt") else None
