"""How many fetch engines a machine runs in one crawl, and into how many partitions a batch is cut for them.

One process has one interpreter. An engine takes a fifth to a third of the CPU time of a crawl, the processes
that parse take the rest: so beyond some cores one engine cannot feed all of these.
"""

import math

from ..web.base.dataclass import dataclass
from ..web.base.options import option

# One engine feeds the processes that parse on this many cores; benchmarks/cores.py measures both.
CORES_PER_ENGINE = 4
# Memory that is left for each engine, of a quarter of all memory.
ENGINE_BYTES = 512 << 20
_SHARE = 4
# Fewer URLs are not worth the start of a process, which takes as long as a thousand pages.
URLS_PER_ENGINE = 10_000


@dataclass(frozen=True)
class EngineOptions:
    """Option of the fetch engines on one machine."""

    GROUP = "fetch"

    fetch_engines: int = option(
        0,
        "How many processes of this machine fetch at once, each with hosts of its own, if the workers are "
        f"this process; 0 is one for every {CORES_PER_ENGINE} cores that it may use, one at least, as "
        "far as its memory allows.",
        minimum=0,
        maximum=256,
    )


def engines_that_fit(cores: int, memory: int | None) -> int:
    """Returns how many engines a machine runs at once.

    Args:
        cores: Cores that this process may use.
        memory: Memory that it may use, bytes; None if unknown.

    >>> [engines_that_fit(cores, 64 << 30) for cores in (1, 2, 7, 8, 32)]
    [1, 1, 1, 2, 8]
    >>> engines_that_fit(32, 4 << 30)
    2
    """
    most = cores // CORES_PER_ENGINE
    if memory is not None:
        most = min(most, memory // _SHARE // ENGINE_BYTES)
    return max(1, most)


def partitions_for(urls: int, engines: int) -> int:
    """Returns into how many partitions a batch is cut, so that each engine has enough to do.

    Args:
        urls: URLs of the batch.
        engines: Engines that run at once.

    >>> [partitions_for(urls, 4) for urls in (0, 10_000, 10_001, 1_000_000)]
    [1, 1, 2, 4]
    """
    return max(1, min(engines, math.ceil(urls / URLS_PER_ENGINE)))
