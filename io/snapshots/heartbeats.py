"""Heartbeats: what runs on a table, how far it is, and what has failed; ``operations/ID.beat``.

A command that changes a table overwrites its heartbeat every few seconds, and removes it when it ends
well. A command that fails leaves it, with the reason; one that is killed leaves it as it is. It stays
until a later command ends well. Of each command only the newest one that was left is kept. No decision
of a job depends on heartbeats, so a lost or damaged one does no harm.
"""

import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ...policy.components.heartbeat import (
    CommandEnd,
    FailedRequest,
    Heartbeat,
    HeldHost,
    PhaseUnderWay,
    heartbeat_of,
    heartbeat_record,
)
from ...web.base.errors import UserError
from ...web.base.safe_json import json_object
from ..disk.record_checks import (
    WRITER,
    Check,
    NewerFormat,
    check_count,
    check_fields,
    check_format,
    check_printable,
    check_text,
    each_item,
    this_version,
    unless_none,
)
from ..storage.files import list_files, overwrite_bytes, read_if_there, remove_file
from ..storage.places import Folder, Found, Place
from ..storage.processes import is_dead

BEAT = ".beat"
_FORMAT = 1
# A command is silent if it has shown no sign of life for this many of its intervals, and for this time.
_MISSED, _LEAST_SILENCE_S = 6, 60.0
_MOST_READ = 100  # heartbeats of a table


def check_seconds(value: Any) -> None:
    """Checks that a value is a time in s, or a speed."""
    if type(value) not in (int, float) or not 0 <= value < 1e15:
        raise ValueError(f"is no number of at least 0: {value!r}"[:100])


_CHECKS: Mapping[str, Check] = {
    **dict.fromkeys(("operation", "command"), check_printable),
    "process": each_item(check_text, lambda _: None),
    "began": check_count,
    "interval": check_seconds,
}
_PHASE_CHECKS: Mapping[str, Check] = {
    **dict.fromkeys(("name", "unit"), check_printable),
    "total": unless_none(check_count),
    **dict.fromkeys(("done", "active", "waiting"), check_count),
    **dict.fromkeys(("elapsed", "rate"), check_seconds),
    "seconds_left": unless_none(check_seconds),
    "round": check_text,
    "counts": each_item(check_text, check_count),
}
_PART_CHECKS: Mapping[type, Mapping[str, Check]] = {
    HeldHost: {"host": check_text, "pages": check_count, "seconds": check_seconds, "wait": check_seconds},
    FailedRequest: {"time": check_count, "url": check_text, "reason": check_text},
    CommandEnd: {"time": check_count, "code": check_count, "message": check_text},
    PhaseUnderWay: _PHASE_CHECKS,
}  # fmt: skip


class SeenHeartbeat(NamedTuple):
    """A heartbeat, when it was written, ms by the store's clock, and whether its process is dead."""

    heartbeat: Heartbeat
    written: int
    dead: bool

    def is_silent(self, now: int) -> bool:
        """Returns whether there was no sign of life for too long.

        Args:
            now: The time, ms.
        """
        silence_s = (now - self.written) / 1000
        return silence_s > max(_LEAST_SILENCE_S, _MISSED * self.heartbeat.interval)

    def has_ended(self, now: int) -> bool:
        """Returns whether its command has ended, is dead or silent."""
        return self.heartbeat.ended is not None or self.dead or self.is_silent(now)

    @property
    def ended(self) -> int:
        """When its command ended, or was last seen, ms."""
        end = self.heartbeat.ended
        return self.written if end is None else end.time


def write_heartbeat(table: Folder, heartbeat: Heartbeat) -> None:
    """Writes a heartbeat over the one before.

    Raises:
        UserError: It cannot be written.
    """
    record = {"format": _FORMAT, WRITER: this_version()} | heartbeat_record(heartbeat)
    overwrite_bytes(_path(table, heartbeat.operation), json.dumps(record).encode())


def remove_heartbeat(table: Folder, operation: str) -> None:
    """Removes the heartbeat of a launch, if there is one; leaves it if that is not allowed."""
    with contextlib.suppress(UserError):
        remove_file(_path(table, operation))


def remove_older_heartbeats(table: Folder, now: int) -> None:
    """Removes what ended, dead or silent commands have left, except the newest of each command.

    Args:
        table: The table.
        now: The time, ms.
    """
    commands_with_newer = set[str]()
    for file, seen in _seen_files(table):
        if seen is not None and seen.has_ended(now):
            if seen.heartbeat.command in commands_with_newer:
                _remove(file)
            commands_with_newer.add(seen.heartbeat.command)


def remove_settled_heartbeats(table: Folder, began: int, now: int, only_of: str = "") -> None:
    """Removes what commands have left that ended before a command began which has ended well.

    Damaged heartbeats are removed, too.

    Args:
        table: The table.
        began: When the command that ended well began, ms.
        now: The time, ms.
        only_of: Name of the only command whose heartbeats are removed; empty: those of all.
    """
    for file, seen in _seen_files(table):
        if seen is not None:
            is_over = seen.has_ended(now) and seen.ended <= began
            if not is_over or only_of not in ("", seen.heartbeat.command):
                continue
        _remove(file)


def remove_all_heartbeats(table: Folder) -> None:
    """Removes all heartbeats; a command that runs writes its own again."""
    for file in heartbeat_files(table):
        _remove(file)


def _remove(file: Found) -> None:
    with contextlib.suppress(UserError):
        remove_file(file.path)


def _seen_files(table: Folder) -> Iterator[tuple[Found, SeenHeartbeat | None]]:
    """Yields (file, its heartbeat, None if it is damaged), the newest first.

    Those of a later version are left out: it removes them.
    """
    newest = sorted(heartbeat_files(table), key=lambda file: file.changed, reverse=True)
    for file in newest:
        try:
            seen = _seen(file)
        except NewerFormat:
            continue
        except UserError:
            yield file, None
        else:
            if seen is not None:  # it was removed since then
                yield file, seen


def seen_heartbeats(table: Folder) -> Iterator[SeenHeartbeat | UserError]:
    """Yields the heartbeats of a table, the newest first; of a damaged one what is wrong."""
    newest = sorted(heartbeat_files(table), key=lambda file: file.changed, reverse=True)
    for file in newest[:_MOST_READ]:
        try:
            seen = _seen(file)
        except UserError as error:
            yield error
        else:
            if seen is not None:  # it was removed since then
                yield seen


def heartbeat_files(table: Folder) -> Iterator[Found]:
    """Yields the files of heartbeats."""
    folder = table / "operations"
    for file in list_files(folder):
        is_hidden = file.path.name.startswith(".")
        if file.path.parent == folder and file.path.suffix == BEAT and not is_hidden:
            yield file


def _path(table: Folder, operation: str) -> Place:
    return table / "operations" / f"{operation}{BEAT}"


def _seen(file: Found) -> SeenHeartbeat | None:
    data = read_if_there(file.path)
    if data is None:
        return None
    try:
        heartbeat = _checked(data, file.path)
        return SeenHeartbeat(heartbeat, int(file.changed * 1000), is_dead(heartbeat.process))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise UserError(f"heartbeat is damaged: {file.path}: {str(error)[:100]}") from error


def _checked(data: bytes, path: Place) -> Heartbeat:
    record = json_object(data)
    check_format(record, _FORMAT, f"heartbeat {path}")
    heartbeat = heartbeat_of(record)
    check_fields(heartbeat, _CHECKS)
    slowest = heartbeat.phase.slowest if heartbeat.phase else ()
    for part in (*heartbeat.failures, *slowest, heartbeat.phase, heartbeat.ended):
        if part is not None:
            check_fields(part, _PART_CHECKS[type(part)])
    return heartbeat
