"""A file of metrics for node_exporter's textfile collector: one process writes it at a time.

The file stays when the process ends. It is replaced as a whole, so a reader never sees a part of it. A file
has the metrics of one table. Beside it is a lock, ``.NAME.lock``, which names the process that writes.
"""

import contextlib
import fcntl
import json
import logging
import os
import re
import threading
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from ...io.storage.file_errors import MAKE_ROOM, NoRoom, is_disk_full
from ...policy.metrics.samples import MetricSample
from ...web.base.errors import UsageError
from ...web.base.safe_json import json_object
from ...web.base.visible import visible
from ...web.base.wording import quote_value
from .exposition import prometheus_text, samples_of_commands

_LOG = logging.getLogger("nutbeam")
SUFFIX = ".prom"  # the collector reads only such files
_HEAD = b"# nutbeam metrics of "
# A process gets a lock that it has once more, so it remembers them, and who writes.
_OWN_LOCKS: dict[Path, Mapping[str, Any]] = {}
_LOCK = threading.Lock()


class MetricsFile:
    """Writes the file, as soon as no other process does so.

    Args:
        named: A file, or a folder for files by table, as the user names it.
        table: Address of the table.
        command: The command that writes.

    Raises:
        NoRoom: The disk is full.
        UsageError: The file cannot be written, or is of another table or program.
    """

    def __init__(self, named: str, table: str, command: str) -> None:
        self.path = file_of(named, table)
        self._table, self._command = table, command
        self._lock: IO[bytes] | None = None
        self._earlier: Sequence[MetricSample] = ()
        self._failed = False
        _check_content(self.path, table)
        try:
            if is_mine := self._take_lock():
                self._replace(())
        except OSError as error:
            message = f"--metrics_file {named!r} cannot be written: {error.strerror}"
            if is_disk_full(error):
                raise NoRoom(message + MAKE_ROOM) from error
            raise UsageError(message) from error
        if not is_mine:
            self._explain_other(named)

    def write(self, samples: Iterable[MetricSample]) -> None:
        """Replaces the file, unless another process writes it; logs once if that fails.

        It keeps how other commands of the table ended.
        """
        try:
            if self._take_lock():
                self._replace(samples)
        except OSError as error:
            if not self._failed:
                _LOG.warning("the metrics file %s cannot be written: %s", self.path, error.strerror)
            self._failed = True

    def close(self) -> None:
        """Lets other processes write the file, which stays."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None
            with _LOCK:
                _OWN_LOCKS.pop(self._lock_path, None)

    @property
    def _lock_path(self) -> Path:
        return self.path.with_name(f".{self.path.name}.lock")

    def _take_lock(self) -> bool:
        """Takes the lock if it is free; returns whether this process has it."""
        with _LOCK:
            if self._lock is None and self._lock_path not in _OWN_LOCKS:
                file = self._lock_path.open("a+b")
                try:
                    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    file.close()
                    return False
                self._lock = file
                _OWN_LOCKS[self._lock_path] = self._owner()
                file.truncate(0)
                file.write(json.dumps(_OWN_LOCKS[self._lock_path]).encode())
                file.flush()
                self._earlier = self._earlier_samples()
            return self._lock is not None

    def _owner(self) -> dict[str, str | int]:
        return {"table": self._table, "command": self._command, "process": os.getpid()}

    def _explain_other(self, named: str) -> None:
        """Warns that another process of the table writes the file; refuses one of another table."""
        owner = self._other_owner()
        words = f"nutbeam {owner.get('command', '')} (process {owner.get('process', 'unknown')})"
        writer = visible(words)
        if owner.get("table", self._table) != self._table:
            raise UsageError(
                f"--metrics_file {named!r} is being written by {writer} for the table "
                f"{quote_value(str(owner['table']))}: name another file, or a folder"
            )
        _LOG.warning(
            "--metrics_file %s is being written by %s, whose counts are those of the whole table; "
            "this command writes it when that one has ended",
            visible(named), writer,
        )  # fmt: skip

    def _other_owner(self) -> Mapping[str, Any]:
        """Returns table, command and process of who writes the file; empty if that is unknown."""
        with _LOCK:
            if self._lock_path in _OWN_LOCKS:  # to open it would give up the lock
                return _OWN_LOCKS[self._lock_path]
        with contextlib.suppress(OSError, ValueError):
            return json_object(self._lock_path.read_bytes())
        return {}

    def _earlier_samples(self) -> list[MetricSample]:
        """Returns what the file says about other commands; a file that cannot be read says nothing."""
        with contextlib.suppress(OSError, ValueError):
            return samples_of_commands(self.path.read_text("utf-8"), without=self._command)
        return []

    def _replace(self, samples: Iterable[MetricSample]) -> None:
        unfinished = self.path.with_name(f".{self.path.name}.unfinished")
        text = prometheus_text([*samples, *self._earlier], self._table)
        unfinished.write_bytes(_head(self._table) + text)
        unfinished.replace(self.path)


def file_of(named: str, table: str) -> Path:
    """Returns the file of a table.

    Args:
        named: A file with the suffix ``.prom``, or a folder that exists.
        table: Address of the table.

    Raises:
        UsageError: It is neither.

    >>> file_of("/tmp/crawl.prom", "/data/mine").name, file_of("/tmp", "/data/mine").name
    ('crawl.prom', 'nutbeam-mine-90e0dc3b.prom')
    """
    path = Path(named).absolute()
    if path.is_dir():
        words = re.sub(r"[^a-z0-9]+", "-", table.rstrip("/").rpartition("/")[2].lower())[:40]
        return path / f"nutbeam-{words.strip('-')}-{zlib.crc32(table.encode()):08x}{SUFFIX}"
    if path.suffix != SUFFIX:
        raise UsageError(
            f"--metrics_file must be a folder that exists, or a file whose name ends with {SUFFIX}, "
            f"got {named!r}"
        )
    return path


def _check_content(path: Path, table: str) -> None:
    """Checks that a file may be replaced: there is none, or it has metrics of the table.

    Raises:
        UsageError: It is another file.
    """
    try:
        with path.open("rb") as file:
            line = file.readline(10_000)
    except FileNotFoundError:
        return
    except OSError as error:
        raise UsageError(
            f"--metrics_file {str(path)!r} cannot be read: {error.strerror}"
        ) from error
    if not line.startswith(_HEAD):
        raise UsageError(f"--metrics_file {str(path)!r} is another file, not of nutbeam's metrics")
    if line != _head(table):
        other = visible(line.removeprefix(_HEAD).strip().decode("utf-8", "replace"))
        raise UsageError(
            f"--metrics_file {str(path)!r} has the metrics of the table {other}: name another file, or "
            "a folder"
        )


def _head(table: str) -> bytes:
    """Returns the first line of a file: a comment that says whose it is."""
    return _HEAD + json.dumps(table).encode() + b"\n"
