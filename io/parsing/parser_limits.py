"""How many processes a worker parses with, and how much memory they have together.

A machine may run several workers: Flink starts one for each TaskManager, Dataflow one for each CPU.
They share its cores and its memory, or those of their container.
"""

import math
import resource
from pathlib import Path

from ...web.base.dataclass import dataclass
from ...web.base.machine import usable_cores, usable_memory

# A process that parses has about this much of its own, with a usual page.
PARSER_BYTES = 128 << 20
# With less, a process is ended before it has parsed a page.
LEAST_BYTES = 64 << 20
_WORKER = "apache_beam.runners.worker.sdk_worker_main"
_PAGE_BYTES = resource.getpagesize()
# Of the memory: the rest is for the worker itself, which holds chunks, and for what it runs beside.
_SHARE = 2


# How many processes of one crawl share this machine; see ``share_machine``.
_beside = 1


@dataclass(frozen=True)
class ParserLimits:
    """What the processes that parse may use together.

    Attributes:
        processes: How many there are.
        memory: Their memory together, bytes; None is no limit.
    """

    processes: int
    memory: int | None


def share_of_worker(cores: int, memory: int | None, workers: int) -> ParserLimits:
    """Returns what fits if each of some workers parses with its share of the machine.

    Args:
        cores: Cores that the workers may use together.
        memory: Memory that they may use together, bytes; None if unknown.
        workers: Number of workers, at least 1.

    >>> share_of_worker(16, 2 << 30, 1)  # a container of 2 GB on a machine of 16 cores
    ParserLimits(processes=8, memory=1073741824)
    >>> share_of_worker(16, 64 << 30, 16).processes
    1
    """
    processes = max(1, cores // workers)
    if memory is None:
        return ParserLimits(processes, None)
    share = memory // workers // _SHARE
    return ParserLimits(max(1, min(processes, share // PARSER_BYTES)), share)


def parser_limits(processes: int = 0, memory: int = 0) -> ParserLimits:
    """Returns what the processes that parse may use in this process.

    Args:
        processes: How many there are; 0 means as many as fit. Processes of one crawl share them.
        memory: Their memory together, bytes; 0 means half of what this worker may use.
    """
    processes, memory = math.ceil(processes / _beside), memory // _beside
    workers = workers_here() if _beside == 1 else _beside
    of_all = memory * _SHARE * workers if memory else usable_memory()
    fit = share_of_worker(usable_cores(), of_all, workers)
    return ParserLimits(processes or fit.processes, fit.memory)


def share_machine(processes: int) -> None:
    """Makes this process one of several of a crawl, which share the machine: see ``parser_limits``."""
    global _beside
    _beside = processes


def workers_here(root: Path = Path("/")) -> int:
    """Returns how many workers of Beam share the machine, or the container, with this process.

    A process that is no worker, such as a crawl on this machine, has no others beside it: 1.

    Args:
        root: The folder with ``proc``.
    """
    if not _is_worker(root / "proc/self"):
        return 1
    folders = (root / "proc").iterdir()
    return max(1, sum(folder.name.isdigit() and _is_worker(folder) for folder in folders))


def memory_of(pid: int) -> int:
    """Returns the memory that a process has of its own, bytes, without what it shares; 0 if it ended."""
    try:
        _, resident, shared, *_ = Path(f"/proc/{pid}/statm").read_text().split()
    except OSError:
        return 0
    return (int(resident) - int(shared)) * _PAGE_BYTES


def _is_worker(folder: Path) -> bool:
    try:
        # As a word of its own: the shell that has started it has it, too, within a word.
        return _WORKER.encode() in (folder / "cmdline").read_bytes().split(b"\0")
    except OSError:  # it has ended
        return False
