"""What a command that works on a table says of itself while it runs, and how it ended if it failed."""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

from ...web.base.dataclass import dataclass

_INTERRUPTED = 130  # the exit code of a command that a person has interrupted


class HeldHost(NamedTuple):
    """A host with waiting pages.

    Attributes:
        host: Its name.
        pages: Number of waiting pages; 0 if only requests under way are left.
        seconds: Minimum time for these pages, s.
        wait: Time until its next request, s; 0 if that is due.
        active: Whether a request is under way.
    """

    host: str
    pages: int
    seconds: float
    wait: float
    active: bool


class FailedRequest(NamedTuple):
    """A request that has failed.

    Attributes:
        time: When, UTC ms.
        url: The URL, without user and password.
        reason: Why.
    """

    time: int
    url: str
    reason: str


@dataclass(frozen=True)
class PhaseUnderWay:
    """A phase of a command, as its heartbeat has it.

    Attributes:
        name: Name of the phase, such as ``fetch``.
        unit: What is counted, in the plural.
        total: How many there are to do; None if unknown.
        done: How many are done.
        elapsed: Seconds since it began.
        rate: How many were done per second since the heartbeat before.
        seconds_left: Seconds for the rest; None if unknown.
        round: Which round of a crawl it is in, such as ``2 of 3``; empty outside of rounds.
        counts: More counts by name, such as ``gone``.
        active: Number of hosts with a request under way.
        waiting: Number of hosts with waiting pages.
        slowest: The hosts whose pages take longest, the slowest first.
    """

    name: str
    unit: str
    total: int | None
    done: int
    elapsed: float
    rate: float
    seconds_left: float | None
    round: str = ""
    counts: Mapping[str, int] = dataclasses.field(default_factory=dict)
    active: int = 0
    waiting: int = 0
    slowest: tuple[HeldHost, ...] = ()


class CommandEnd(NamedTuple):
    """How a command ended that has failed or was interrupted.

    Attributes:
        time: When, UTC ms.
        code: Its exit code.
        message: The line that it printed; empty if it printed none.
    """

    time: int
    code: int
    message: str

    @property
    def is_failure(self) -> bool:
        """Whether it has failed; else a person has interrupted it."""
        return self.code != _INTERRUPTED


@dataclass(frozen=True)
class Heartbeat:
    """A sign of life of a command.

    Attributes:
        operation: Id of its launch; the operations of its jobs begin with it.
        command: Name of the command.
        process: The process, see ``this_process``.
        began: When it began, UTC ms.
        interval: Longest time until its next sign of life, s.
        phase: The phase under way; None between phases.
        failures: The last requests that have failed, the newest last.
        ended: How it ended; None while it runs.
    """

    operation: str
    command: str
    process: Mapping[str, Any]
    began: int
    interval: float
    phase: PhaseUnderWay | None = None
    failures: tuple[FailedRequest, ...] = ()
    ended: CommandEnd | None = None


def heartbeat_record(heartbeat: Heartbeat) -> dict[str, Any]:
    """Returns a heartbeat as JSON has it."""
    record = vars(heartbeat) | {"failures": [one._asdict() for one in heartbeat.failures]}
    if (phase := heartbeat.phase) is not None:
        record["phase"] = vars(phase) | {"slowest": [one._asdict() for one in phase.slowest]}
    return record | {"ended": heartbeat.ended and heartbeat.ended._asdict()}


def heartbeat_of(record: Mapping[str, Any]) -> Heartbeat:
    """Returns the heartbeat of a record; its values are not checked.

    Raises:
        TypeError: It lacks a field.

    >>> one = Heartbeat("7", "crawl", {}, 5, 2.0, PhaseUnderWay("fetch", "pages", 9, 3, 1.0, 3.0, 2.0))
    >>> heartbeat_of(heartbeat_record(one)) == one
    True
    """
    phase, ended = record.get("phase"), record.get("ended")
    if phase is not None:
        slowest = tuple(HeldHost(**_own(HeldHost, one)) for one in phase["slowest"])
        phase = PhaseUnderWay(**_own(PhaseUnderWay, phase) | {"slowest": slowest})
    values = {
        "phase": phase,
        "failures": tuple(FailedRequest(**_own(FailedRequest, one)) for one in record["failures"]),
        "ended": None if ended is None else CommandEnd(**_own(CommandEnd, ended)),
    }
    return Heartbeat(**_own(Heartbeat, record) | values)


def _own(kind: type, record: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields that a class has; a later version may have added others."""
    names = getattr(kind, "_fields", None) or [field.name for field in dataclasses.fields(kind)]
    return {name: record[name] for name in names if name in record}
