"""Looks at the machine: memory, disks, inodes, open files, clock."""

import os
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

from rich import filesize

import nutbeam

from ...io.parsing.parser_limits import parser_limits
from ...io.storage.least_free import least_files_of, least_free_of
from ...io.storage.place_addresses import place_of
from ...io.storage.places import DiskRoom
from ...io.storage.processes import temporary_files
from ...web.base.clock import now_ms
from .findings import Finding, ok, warning, wrong

# A crawl takes about this much memory for itself, and this much for each process that parses.
_CRAWL_MEMORY, _PARSER_MEMORY = 600_000_000, 200_000_000
_LEAST_INODES, _FEW_INODES = 1_000, 100_000
# Open files beside those of connections: libraries, files of the table, pipes of parsers.
_OTHER_FILES = 200
_CGROUP = Path("/sys/fs/cgroup")


def look_at_memory(parse_processes: int) -> Iterator[Finding]:
    """Compares the memory that is available with what a crawl takes."""
    available = available_memory()
    if available is None:
        yield warning("memory", "this system does not say how much is available")
        return
    number = parser_limits(parse_processes).processes
    needed = _CRAWL_MEMORY + number * _PARSER_MEMORY
    text = (
        f"{filesize.decimal(available)} available; a crawl with {number} parse processes takes about "
        f"{filesize.decimal(needed)}"
    )
    cure = "end other programs, or give --parse_processes 1"
    if available >= needed:
        yield ok("memory", text)
    elif available >= _CRAWL_MEMORY // 2:
        yield warning("memory", text, cure)
    else:
        yield wrong("memory", text, cure)


def available_memory() -> int | None:
    """Returns the memory that programs may still take, bytes, also within a container; or None."""
    limits = []
    for line in _read("/proc/meminfo").splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            limits.append(1024 * int(value.split()[0]))
    most, used = (_read(_CGROUP / f"memory.{name}").strip() for name in ("max", "current"))
    if most.isdigit() and used.isdigit():
        limits.append(max(0, int(most) - int(used)))
    return min(limits, default=None)


def _read(path: str | Path) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def look_at_disk(subject: str, folder: str, least: int, cure: str) -> Iterator[Finding]:
    """Looks at the room, the inodes and the rights of a folder's disk.

    Args:
        subject: What the folder is.
        folder: The folder; it may not exist yet.
        least: How much must stay free, see ``--least_free``.
        cure: How to make room.
    """
    place = place_of(folder)
    room = place.disk_room()
    if room is None:
        yield ok(subject, f"{folder!r} is in a store, which has no limit that is known here")
        return
    keeps = least_free_of(room, least)
    text = f"{filesize.decimal(room.free)} free of {filesize.decimal(room.total)} at {folder!r}"
    if room.free < keeps:
        yield wrong(subject, f"{text}; --least_free is {filesize.decimal(keeps)}", cure)
    elif room.free < 2 * keeps:
        yield warning(subject, f"{text}; --least_free is {filesize.decimal(keeps)}", cure)
    else:
        yield ok(subject, text)
    there = next(path for path in (Path(folder).absolute(), *Path(folder).absolute().parents)
                 if path.exists())  # fmt: skip
    yield from _look_at_inodes(subject, there, room, least)
    if not os.access(there, os.W_OK | os.X_OK):
        yield wrong(subject, f"{str(there)!r} may not be written", "change its owner or its rights")


def _look_at_inodes(subject: str, folder: Path, room: DiskRoom, least: int) -> Iterator[Finding]:
    if not room.total_files:
        return  # the file system has no fixed number
    text = f"{room.free_files:,} more files fit on the disk of {str(folder)!r}"
    cure = "delete small files: nutbeam compact TABLE merges those of a table"
    if room.free_files < max(_LEAST_INODES, least_files_of(room, least)):
        yield wrong(f"{subject} inodes", text, cure)
    elif room.free_files < _FEW_INODES:
        yield warning(f"{subject} inodes", text, cure)
    else:
        yield ok(f"{subject} inodes", text)


def look_at_scratch() -> Iterator[Finding]:
    """Looks at the folder of temporary files."""
    cure = "make room there, or let TMPDIR name a folder on a larger disk"
    yield from look_at_disk("TMPDIR", str(temporary_files()), -1, cure)


def look_at_open_files(threads: int) -> Iterator[Finding]:
    """Compares the limit of open files with what a fetch opens."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 2 * threads + _OTHER_FILES
    if limit == resource.RLIM_INFINITY or limit >= needed:
        number = "no limit" if limit == resource.RLIM_INFINITY else f"at most {limit:,}"
        yield ok("open files", f"{number}; a fetch with --threads {threads} needs {needed:,}")
        return
    text = f"at most {limit:,}, and a fetch with --threads {threads} needs {needed:,}"
    yield wrong("open files", text, f"ulimit -n {needed}, or fewer --threads")


def look_at_clock() -> Iterator[Finding]:
    """Compares the clock with the time at which nutbeam was installed."""
    installed = int(1000 * Path(nutbeam.__file__).stat().st_mtime)
    cure = "set the clock, and let a service keep it right (NTP)"
    if now_ms() < installed - 86_400_000:
        yield wrong("clock", "it is before the time at which nutbeam was installed", cure)
    else:
        yield ok("clock", "it is after the time at which nutbeam was installed")


def look_at_bytecode() -> Iterator[Finding]:
    """Checks that Python may keep bytecode. Without bytecode each start takes three times as long."""
    if sys.dont_write_bytecode:
        yield warning(
            "bytecode", "Python may not write it, so each command starts slowly",
            "unset PYTHONDONTWRITEBYTECODE, or compile it: docs/guides/operations.md",
        )  # fmt: skip
