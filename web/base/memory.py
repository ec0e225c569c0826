"""Limits the use of memory: fewer heaps, return of free memory; makes garbage collection rare."""

import contextlib
import ctypes
import functools
import gc
from collections.abc import Iterator

_M_TRIM_THRESHOLD = -1  # from glibc's malloc.h
_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8
_ARENAS = 2
_LARGE = 1 << 20  # bytes
_FREE_AT_END = 128 << 10  # bytes; glibc's default
# Within ``keep_free_blocks``: glibc's largest, and room for several such blocks.
_LARGEST, _KEPT_AT_END = 32 << 20, 256 << 20


def share_heaps() -> None:
    """Makes threads that start from now on share few heaps of glibc's malloc.

    By default there are eight for each core, and each keeps the peak of its threads. Only one
    thread of Python allocates at a time, so they do not slow each other. Call it early: it has
    no effect on heaps that exist.

    Large blocks, such as bodies, are never in a heap, so that they leave no holes in it. By default
    glibc puts them there after the first one was freed.
    """
    libc = _glibc()
    if libc is not None:
        libc.mallopt(_M_ARENA_MAX, _ARENAS)
        libc.mallopt(_M_MMAP_THRESHOLD, _LARGE)


@contextlib.contextmanager
def keep_free_blocks() -> Iterator[None]:
    """Keeps freed blocks for the next ones, up to 256 MB, while the context is open.

    Without it, each array of 8 MB is memory that the system has to clear first: sums over such
    arrays take twice as long. It holds for all threads.
    """
    libc = _glibc()
    if libc is None:
        yield
        return
    libc.mallopt(_M_MMAP_THRESHOLD, _LARGEST)
    libc.mallopt(_M_TRIM_THRESHOLD, _KEPT_AT_END)
    try:
        yield
    finally:
        libc.mallopt(_M_MMAP_THRESHOLD, _LARGE)
        libc.mallopt(_M_TRIM_THRESHOLD, _FREE_AT_END)
        libc.malloc_trim(0)


def collect_seldom() -> None:
    """Makes garbage collection rare.

    Reference counts free nearly everything. Collecting the rest costs 5 % of a crawl, 10 % of
    parsing, and a tenth of a second while modules are imported.
    """
    gc.set_threshold(100_000, 50, 100)


@functools.cache  # later calls would keep garbage of a command; to count what is kept takes long
def keep_modules() -> None:
    """Excludes imported objects from garbage collection; only the first call has an effect."""
    gc.freeze()


def give_back() -> None:
    """Returns free memory to the system, as far as possible; takes some milliseconds."""
    libc = _glibc()
    if libc is not None:
        libc.malloc_trim(0)
    import pyarrow as pa  # late, because share_heaps does not need it

    pa.default_memory_pool().release_unused()


@functools.cache
def _glibc() -> ctypes.CDLL | None:
    """Returns the C library if it is glibc, else None."""
    try:
        libc = ctypes.CDLL(None)
    except (OSError, TypeError):
        return None
    return libc if hasattr(libc, "malloc_trim") and hasattr(libc, "mallopt") else None
