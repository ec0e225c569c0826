"""Judges from the facts of a table what runs on it, how the last work ended, and whether all is well."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from ...web.base.dataclass import dataclass
from ...web.base.wording import format_count, in_words
from ..components.heartbeat import FailedRequest, Heartbeat, PhaseUnderWay
from ..components.watched_facts import WatchedCommand, WatchedFacts, WatchedOperation

State = Literal["running", "well", "stale", "failed"]
# As Nagios has them; ``unknown`` is for a table that cannot be read, or wrong usage.
EXIT_CODES: dict[str, int] = {"running": 0, "well": 0, "stale": 1, "failed": 2, "unknown": 3}
_HOLD_STALE_MS = 60_000  # as in the hold of a purge
# After the phase of a batch: the job that it waits for.
NEXT_JOBS = {"generated": "fetch", "fetched": "parse", "parsed": "updatedb"}
_COMMANDS_OF_JOBS = {"update": "updatedb"}
# A request of a fetch is so recent that its process lives, ms.
_FRESH_MS = 60_000


@dataclass(frozen=True)
class RunningWork:
    """A command that runs, or an operation of which there is no heartbeat.

    Attributes:
        command: Name of the command, or of the job.
        operation: Id of the launch, or of the operation.
        began: When it began, UTC ms.
        host: Name of its machine; empty if unknown.
        pid: Id of its process; 0 if unknown.
        job: The job under way; empty between jobs.
        batch: The batch that the job works on; empty if none, or unknown.
        phase: How far the phase under way is; None if that is unknown.
        failures: The last requests that have failed.
    """

    command: str
    operation: str
    began: int
    host: str = ""
    pid: int = 0
    job: str = ""
    batch: str = ""
    phase: PhaseUnderWay | None = None
    failures: tuple[FailedRequest, ...] = ()


class LastWork(NamedTuple):
    """The work that ended last.

    Attributes:
        command: The command, or the job that has made the newest snapshot.
        operation: Id of its operation, or launch.
        ended: When, UTC ms.
        outcome: ``well``, ``interrupted`` or ``failed``.
        message: Why it failed; empty if it did not.
        snapshot: Number of the snapshot that it has made; 0: none.
        failures: Its last requests that have failed, if it ended without a commit.
    """

    command: str
    operation: str
    ended: int
    outcome: Literal["well", "interrupted", "failed"]
    message: str = ""
    snapshot: int = 0
    failures: tuple[FailedRequest, ...] = ()


@dataclass(frozen=True)
class TableHealth:
    """What runs on a table, what has ended, and what is wrong.

    Attributes:
        state: ``running``, ``well``, ``stale`` or ``failed``.
        running: What runs, the newest first.
        last: What ended last; None if nothing did.
        problems: What is wrong, a line each.
    """

    state: State
    running: tuple[RunningWork, ...]
    last: LastWork | None
    problems: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        """The exit code for a monitor."""
        return EXIT_CODES[self.state]


def judge_table(facts: WatchedFacts, stale_after_s: float) -> TableHealth:
    """Returns the state of a table.

    A failure that left a heartbeat counts until a command that ends well removes that, or until work
    that began after it has committed and goes on. Without a heartbeat it counts until another operation
    begins or a snapshot is committed. Of each command the newest failure is named.

    Args:
        facts: What the table says of itself.
        stale_after_s: Longest time since the newest snapshot while nothing runs, s.
    """
    running = tuple(_running(facts))
    ended = sorted(_ended(facts), key=lambda work: work.ended)
    last = ended[-1] if ended else None
    newest_failures = {
        work.command: work
        for work in ended
        if work.outcome == "failed" and not _is_settled(work, facts, running)
    }
    failures = newest_failures.values()
    age_s = (facts.now - facts.committed) / 1000
    stale = not running and facts.committed > 0 and age_s > stale_after_s
    problems = list(facts.damages)
    problems += [facts.disk_low] if facts.disk_low else []
    problems += [f"{work.command} failed: {work.message}" for work in failures]
    if stale:
        problems.append(
            f"the newest snapshot is {in_words(age_s)} old, --stale_after is {in_words(stale_after_s)}"
        )
    if facts.hold_written and facts.now - facts.hold_written > _HOLD_STALE_MS:
        problems.append("a purge has left its hold: the next job removes it")
    if facts.stop_file:
        problems.append(f"a stop file ends each crawl: {facts.stop_file}")
    state: State = "running" if running else "well"
    if facts.damages or facts.disk_low or failures:
        state = "failed"
    elif stale:
        state = "stale"
    return TableHealth(state, running, last, tuple(problems))


def _is_settled(failure: LastWork, facts: WatchedFacts, running: tuple[RunningWork, ...]) -> bool:
    """Returns whether work that began after a failure has committed and goes on."""
    return any(failure.ended < work.began <= facts.committed for work in running)


def _running(facts: WatchedFacts) -> Iterator[RunningWork]:
    for command in facts.commands:
        if _is_alive(command):
            yield _of_heartbeat(command, facts)
    for operation in _unwatched(facts):
        if _is_under_way(operation, facts):
            yield RunningWork(
                _COMMANDS_OF_JOBS.get(operation.job, operation.job),
                operation.id,
                operation.began,
                operation.host,
                operation.pid,
                operation.job,
                operation.batch or "",
                _fetch_of(operation, facts),
            )


def _fetch_of(operation: WatchedOperation, facts: WatchedFacts) -> PhaseUnderWay | None:
    """Returns how far a fetch without a heartbeat is, as its leases say; None if nothing is known."""
    totals = [batch.urls for batch in facts.batches if batch.id == operation.batch]
    if operation.job != "fetch" or not operation.fetched or not totals:
        return None
    elapsed_s = max(0, facts.now - operation.began) / 1000
    rate = operation.fetched / elapsed_s if elapsed_s else 0.0
    left_s = max(0, totals[0] - operation.fetched) / rate if rate else None
    counts = {"bytes": operation.received} if operation.received else {}
    return PhaseUnderWay(
        "fetch", "pages", totals[0], operation.fetched, elapsed_s, rate, left_s, counts=counts
    )


def _is_alive(command: WatchedCommand) -> bool:
    return not (command.heartbeat.ended or command.dead or command.silent)


def _of_heartbeat(command: WatchedCommand, facts: WatchedFacts) -> RunningWork:
    """Returns what a command does; its phase is not known if another job has begun since then."""
    heartbeat = command.heartbeat
    begun = [one for one in facts.operations if _is_of(one, heartbeat)]
    operation = begun[0] if begun else None
    process = heartbeat.process
    pid = process.get("pid")
    return RunningWork(
        heartbeat.command,
        heartbeat.operation,
        heartbeat.began,
        str(process.get("host", "")),
        pid if type(pid) is int else 0,
        operation.job if operation else "",
        (operation.batch or "") if operation else "",
        None if operation and operation.began > command.written else heartbeat.phase,
        heartbeat.failures,
    )


def _is_of(operation: WatchedOperation, heartbeat: Heartbeat) -> bool:
    return operation.id.startswith(f"{heartbeat.operation}.")


def _unwatched(facts: WatchedFacts) -> Iterator[WatchedOperation]:
    """Yields the operations of which there is no heartbeat."""
    for operation in facts.operations:
        if not any(_is_of(operation, command.heartbeat) for command in facts.commands):
            yield operation


def _is_under_way(operation: WatchedOperation, facts: WatchedFacts) -> bool:
    """Returns whether an operation without a heartbeat runs, as far as is known.

    It counts as long as nothing was committed after it has begun, or the leases of its fetch are
    renewed. It may be so short that it writes no heartbeat, of an older version, or have been
    submitted to a cluster.
    """
    is_fresh = facts.now - operation.requested <= _FRESH_MS
    return operation.alive is not False and (is_fresh or operation.began > facts.committed)


def _ended(facts: WatchedFacts) -> Iterator[LastWork]:
    if facts.job:  # else its manifest is damaged
        job = _COMMANDS_OF_JOBS.get(facts.job, facts.job)
        yield LastWork(job, facts.operation, facts.committed, "well", snapshot=facts.snapshot)
    for command in facts.commands:
        heartbeat = command.heartbeat
        if (end := heartbeat.ended) is not None:
            if end.is_failure:
                reason = end.message or f"exit code {end.code}"
                yield _last_of(heartbeat, end.time, "failed", reason)
            else:
                yield _last_of(heartbeat, end.time, "interrupted", end.message)
        elif not _is_alive(command):
            yield _last_of(heartbeat, command.written, "failed", _cut_off(command, facts.now))
    for operation in _unwatched(facts) if _knows_commits(facts) else ():
        began_last = operation.began >= max(facts.begun, facts.committed)
        if operation.alive is False and began_last:
            process = f"its process {operation.pid} on {operation.host!r}"
            message = f"{process} ended before the job had committed"
            job = _COMMANDS_OF_JOBS.get(operation.job, operation.job)
            yield LastWork(job, operation.id, operation.began, "failed", message)


def _knows_commits(facts: WatchedFacts) -> bool:
    """Returns whether it is known which operations have committed: the newest manifest can be read."""
    return bool(facts.job) or not facts.snapshot


def _last_of(
    heartbeat: Heartbeat, ended: int, outcome: Literal["interrupted", "failed"], message: str
) -> LastWork:
    return LastWork(
        heartbeat.command, heartbeat.operation, ended, outcome, message,
        failures=heartbeat.failures,
    )  # fmt: skip


def _cut_off(command: WatchedCommand, now: int) -> str:
    process = command.heartbeat.process
    who = f"its process {process.get('pid')} on {process.get('host')!r}"
    if command.dead:
        return f"{who} was killed"
    return f"no sign of life of {who} for {in_words((now - command.written) / 1000)}"


def waiting_line(facts: WatchedFacts, running: tuple[RunningWork, ...]) -> str:
    """Returns which batches wait for which job; those under way do not wait."""
    under_way = {work.batch for work in running}
    waiting = [batch for batch in facts.batches if batch.id not in under_way]
    if not waiting:
        return "none waits"
    oldest = waiting[0]
    age = in_words(max(0, facts.now - oldest.created) / 1000)
    line = f"{oldest.id} waits for {NEXT_JOBS.get(oldest.phase, 'a job')}, generated {age} ago"
    more = len(waiting) - 1
    return f"{line}, and {format_count(more, 'others')}" if more else line
