"""How memory is used: few heaps, what is free goes back, garbage is looked for seldom."""

import ctypes
import functools
import gc

_M_ARENA_MAX = -8  # of glibc's malloc.h
_ARENAS = 2


def share_heaps() -> None:
    """Makes threads that come from now on share few heaps of glibc's malloc.

    Else there are eight for each core, and each keeps what its threads have used at the most.
    One thread of Python allocates at a time, so they do not get into each other's way. Once a
    process has had eight heaps this does nothing: it comes early.
    """
    libc = _glibc()
    if libc is not None:
        libc.mallopt(_M_ARENA_MAX, _ARENAS)


def collect_seldom() -> None:
    """Leaves what was imported out of each search for garbage, and searches seldom.

    References free nearly all; to look for the rest costs 5 % of a crawl, and a tenth of parsing.
    Only the first call does something: what a command has left would stay, too.
    """
    if not gc.get_freeze_count():
        gc.freeze()
        gc.set_threshold(100_000, 50, 100)


def give_back() -> None:
    """Returns memory that is free, as far as the allocators can tell; takes some milliseconds."""
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
