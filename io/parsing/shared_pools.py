"""The pools of processes that parse which all work of this process shares."""

import atexit
import functools

from .parse_pool import ParsePool
from .parser_limits import parser_limits


@functools.cache
def shared_pool(size: int, memory: int, module: str, total_memory: int = 0) -> ParsePool:
    """Returns this process's pool; it starts at the first call and ends with the process.

    Args:
        size: Number of children; 0 means as many as fit this worker, see ``parser_limits``.
        memory: Largest address space of each, in bytes; 0 is no limit.
        module: See ``ParsePool``.
        total_memory: Largest memory of all together, in bytes; 0 means half of what this worker may use.
    """
    limits = parser_limits(size, total_memory)
    pool = ParsePool(limits.processes, memory, module, limits.memory)
    _pools.append(pool)
    atexit.register(pool.close)
    return pool


_pools: list[ParsePool] = []


def rest_pools() -> None:
    """Ends the idle children of this process's pools, which frees their memory."""
    for pool in _pools:
        pool.rest()
