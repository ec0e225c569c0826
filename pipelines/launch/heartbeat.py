"""Writes the heartbeat of a command, so that others see what it does, and how it ended if it failed.

A thread reads the counts of this process. The first heartbeat is written after a moment, so a short
command that ends well writes none. Heartbeats are so rare that they take at most 0.5 % of a core's time.
"""

import contextlib
import dataclasses
import threading
import time
from collections.abc import Iterator

from ...io.disk.record_checks import NewerFormat
from ...io.snapshots.heartbeats import (
    remove_heartbeat,
    remove_older_heartbeats,
    remove_settled_heartbeats,
    write_heartbeat,
)
from ...io.snapshots.operations import OPERATIONS, UPKEEP, command_of_this_process, new_id
from ...io.storage.file_errors import NoTable
from ...io.storage.files import names
from ...io.storage.places import Folder
from ...io.storage.processes import this_process
from ...io.table.opening import open_table
from ...policy.components.heartbeat import (
    CommandEnd,
    FailedRequest,
    Heartbeat,
    HeldHost,
    PhaseUnderWay,
)
from ...web.base.clock import now_ms
from ...web.base.errors import UsageError, UserError, one_line
from ...web.base.progress import PROGRESS, HostActivity, Phase, Progress
from ...web.base.visible import visible
from ...web.urls.userinfo import mask_users, without_user
from ..base.command import DONE, NOTHING_TO_DO, Invocation
from ..base.ending import INTERRUPTED

FIRST_S = 2.0
# Between two heartbeats: on a disk, in a store.
_LOCAL_S, _REMOTE_S = 2.0, 10.0
_WRITE_SHARE = 200  # writing takes at most this fraction of a core's time
_LONGEST_TEXT = 500
# Ends that leave no heartbeat; wrong usage has changed nothing.
_FORGOTTEN = (DONE, NOTHING_TO_DO, UsageError.exit_code)


class CommandHeart:
    """The heartbeat of a command.

    Args:
        invocation: The command.
        operation: Id of its launch.
        progress: The counts that it shows.
    """

    def __init__(
        self,
        invocation: Invocation,
        operation: str,
        progress: Progress = PROGRESS,
    ) -> None:
        self._table = open_table(str(invocation.table)).files
        self._progress = progress
        self._interval_s = _REMOTE_S if self._table.write_interval else _LOCAL_S
        self._heartbeat = Heartbeat(
            operation, invocation.command, this_process(), now_ms(), self._interval_s
        )
        self._code, self._message, self._is_well = DONE, "", True
        self._done, self._done_at = 0, time.monotonic()
        self._begun = self._written = False
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def ends_with(self, code: int, message: str, is_well: bool | None = None) -> int:
        """Notes how the command ends; returns the exit code.

        Args:
            code: The exit code.
            message: The line that says why.
            is_well: Whether it ends well, as others see the table; None: if the code is 0.
        """
        self._code, self._message = code, message
        self._is_well = code == DONE if is_well is None else is_well
        return code

    def leave_failure(self, code: int, message: str) -> None:
        """Leaves the heartbeat of a command that has failed, if a table is there."""
        end = CommandEnd(now_ms(), code, _cut(mask_users(one_line(message))))
        last = dataclasses.replace(
            self._heartbeat, phase=None, failures=self._failures(), ended=end
        )
        with contextlib.suppress(UserError):
            if self._has_begun():
                write_heartbeat(self._table, last)

    @contextlib.contextmanager
    def beating(self) -> Iterator["CommandHeart"]:
        """Writes heartbeats while the block runs; at its end the last one, or none if it ends well."""
        self._thread.start()
        try:
            yield self
        except BaseException as error:
            is_stopped = isinstance(error, KeyboardInterrupt | GeneratorExit)
            self.ends_with(
                INTERRUPTED if is_stopped else getattr(error, "exit_code", 3), str(error)
            )
            raise
        finally:
            self._end()

    def _beat(self) -> None:
        wait_s = FIRST_S
        while not self._over.wait(wait_s):
            began = time.thread_time()
            with contextlib.suppress(UserError):  # the job itself reports what is wrong
                self._write()
            took_s = time.thread_time() - began
            wait_s = max(self._interval_s, _WRITE_SHARE * took_s)
            self._heartbeat = dataclasses.replace(self._heartbeat, interval=wait_s)

    def _write(self) -> None:
        """Writes the heartbeat, unless the table has not begun: a failed job leaves no new folder."""
        if not self._has_begun():
            return
        current = self._progress.snapshot().current
        phase = phase_under_way(current, self._rate(current)) if current else None
        self._heartbeat = dataclasses.replace(
            self._heartbeat, phase=phase, failures=self._failures()
        )
        self._written = True
        write_heartbeat(self._table, self._heartbeat)

    def _failures(self) -> tuple[FailedRequest, ...]:
        return tuple(
            FailedRequest(one.time, _cut(without_user(one.url)), _cut(one.reason))
            for one in self._progress.snapshot().failures
        )

    def _has_begun(self) -> bool:
        """Returns whether an operation has begun on the table, which it asks until one has."""
        self._begun = self._begun or bool(names(self._table / OPERATIONS))
        return self._begun

    def _rate(self, phase: Phase) -> float:
        """Returns how many were done per second since the call before."""
        now = time.monotonic()
        seconds = max(1e-3, min(now - self._done_at, phase.elapsed))
        done = phase.done - self._done if phase.elapsed > now - self._done_at else phase.done
        self._done, self._done_at = phase.done, now
        return max(0, done) / seconds

    def _end(self) -> None:
        self._over.set()
        self._thread.join()
        if not self._is_well and self._code not in _FORGOTTEN:
            self.leave_failure(self._code, self._message)
            return
        if self._written:
            remove_heartbeat(self._table, self._heartbeat.operation)
        if self._is_well:  # upkeep does not do the work of others
            command = self._heartbeat.command
            only_of = command if command in UPKEEP else ""
            settle_failures(self._table, self._heartbeat.began, only_of)


def settle_failures(table: Folder, began: int, only_of: str = "") -> None:
    """Removes what earlier commands have left, as far as that is allowed: the work is done well now.

    Args:
        table: The table.
        began: When the command that did it began, ms.
        only_of: Name of the only command whose failures are settled; empty: those of all.
    """
    with contextlib.suppress(UserError):
        remove_settled_heartbeats(table, began, now_ms(), only_of)


@contextlib.contextmanager
def refusal_left(invocation: Invocation) -> Iterator[None]:
    """Leaves the heartbeat of a command that the block refuses.

    Wrong usage leaves none, and neither does a table that is missing or of a later version.
    """
    try:
        yield
    except (UsageError, NoTable, NewerFormat):
        raise
    except UserError as error:
        with contextlib.suppress(UserError):  # the address or its store may be what is wrong
            heart = CommandHeart(invocation, invocation.options.operation or new_id())
            remove_older_heartbeats(open_table(str(invocation.table)).files, now_ms())
            heart.leave_failure(error.exit_code, str(error))
        raise


@contextlib.contextmanager
def beating_heart(invocation: Invocation, operation: str) -> Iterator[CommandHeart]:
    """Writes the heartbeats of a command while the block runs; removes what it settles, if it ends well.

    What the command has not committed at the end of the block, it will not commit.

    Args:
        invocation: The command.
        operation: Id of its launch.
    """
    with contextlib.suppress(UserError):  # the job itself reports what is wrong
        remove_older_heartbeats(open_table(str(invocation.table)).files, now_ms())
    heart = CommandHeart(invocation, operation)
    with command_of_this_process(operation), heart.beating():
        yield heart


def phase_under_way(phase: Phase, rate: float) -> PhaseUnderWay:
    """Returns a phase as a heartbeat has it.

    Args:
        phase: The phase.
        rate: How many are done per second now.
    """
    hosts = phase.hosts or HostActivity()
    now = time.monotonic()
    slowest = (
        HeldHost(
            _cut(one.host),
            one.pages,
            round(one.seconds, 1),
            round(max(0.0, one.next_at - now), 1),
            bool(one.active),
        )
        for one in hosts.slowest
    )
    left = phase.seconds_left
    return PhaseUnderWay(
        phase.name, phase.unit, phase.total, phase.done, round(phase.elapsed, 1), round(rate, 2),
        None if left is None else round(left, 1), phase.round, dict(phase.counts),
        hosts.active, hosts.waiting, tuple(slowest),
    )  # fmt: skip


def _cut(text: str) -> str:
    return visible(text[:_LONGEST_TEXT])
