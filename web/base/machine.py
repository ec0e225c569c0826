"""What this process may use of the machine: cores and memory, less where a container limits them.

Limits are those of cgroups, of version 1 or 2: Docker, Kubernetes, YARN and systemd set them.
"""

import functools
import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

# The numbers of version 1 that mean "no limit" are near 2 ** 63.
_NO_LIMIT = 1 << 60


@functools.lru_cache(maxsize=8)  # many steps ask; it takes some twenty reads in a container
def usable_cores(root: Path = Path("/")) -> int:
    """Returns how many cores this process may use: a quota of 1.5 CPUs counts as two.

    Args:
        root: The folder with ``proc`` and ``sys``.
    """
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, min([cores, *map(math.ceil, _limits("cpu", _quota, root))]))


def usable_memory(root: Path = Path("/")) -> int | None:
    """Returns how much memory this process may use at most, bytes; None if the system does not say.

    Args:
        root: The folder with ``proc`` and ``sys``.
    """
    lines = (line.partition(":") for line in _read(root / "proc/meminfo").splitlines())
    total = [1024 * int(value.split()[0]) for name, _, value in lines if name == "MemTotal"]
    return min([*total, *map(int, _limits("memory", _memory, root))], default=None)


def _limits(controller: str, read: Callable[[Path], float | None], root: Path) -> Iterator[float]:
    """Yields the limits of the cgroup of this process, and of those around it."""
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, names, path = line.split(":", 2)
        if names and controller not in names.split(","):
            continue
        group = PurePosixPath("/") / path
        for mount in (names, controller, "unified") if names else ("", "unified"):
            # In a container the path is often that of the host; the files are at the mount itself.
            for place in (group, *group.parents):
                limit = read(root / "sys/fs/cgroup" / mount / str(place).lstrip("/"))
                if limit is not None:
                    yield limit


def _quota(folder: Path) -> float | None:
    """Returns a limit of CPUs, of version 2 or 1.

    A folder without a limit has ``max 100000``, or -1.
    """
    quota, period = (_read(folder / "cpu.max").split() or [*_quota_of_version_1(folder)])[:2]
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() else None


def _quota_of_version_1(folder: Path) -> Iterator[str]:
    for name in ("quota", "period"):
        yield _read(folder / f"cpu.cfs_{name}_us").strip()


def _memory(folder: Path) -> float | None:
    limit = (_read(folder / "memory.max") or _read(folder / "memory.limit_in_bytes")).strip()
    return int(limit) if limit.isdigit() and int(limit) < _NO_LIMIT else None


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
