"""Leases: of all attempts at a partition of a batch, one at a time sends requests.

A runner may take a worker for dead that is not, and start another attempt; two
operations may fetch the same batch. So an attempt holds a lease, in the batch's
folder ``leases``: attempt k is a *claim*, created exclusively
(``p00003-000001.claim``), which the claim of attempt k + 1 supersedes, and a
*beat* (``p00003-000001.beat``) that its holder overwrites every 10 s.

- A holder sends nothing while its last beat was begun more than 30 s ago: the
  gate, asked before each request, waits. A beat counts only if no higher claim
  was there after it was written. So a worker that was paused beats and looks
  before it sends anything; when it is superseded, it sends nothing any more.
- An attempt begins when all others are *silent*: released; of a process that is
  dead (same boot of the same machine, same process ids); or without a new beat
  for 60 s on the observer's monotonic clock. It claims, and looks once more at
  all others: a beat that came in between sends it back to waiting.
- Then it looks at the leases of the table's other batches that are not updated
  yet, and gives its own back while one of them is held. One that is silent
  without having ended is superseded first, by a claim that nobody holds.

No decision reads a wall clock, so clocks may be wrong. No lock is left by a crash: what
is silent is superseded. A machine that was started anew, or one without
``/proc``, does not know its dead processes: that takes the 60 s.

What a successor must know travels along: how long ago others may have asked
(``Lease.requested_until``), and which delays hosts have demanded of them
(``Lease.hosts``; noted half a second after they were learnt, while the first
page of such a host has to wait for longer than that).

This holds for one table, between all processes and machines that see its
folder as one: what one has created another one must find at once (on NFS that
takes ``actimeo=0`` or ``noac``). It does not hold between tables: two tables
that crawl the same host do not know of each other. A process that is stopped
in the very moment between the gate and the system call sends one request late.
"""

import json
import logging
import math
import random
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import NamedTuple, Self

from ...web.base.errors import Unavailable, UserError
from ..storage.exclusive import create_exclusive
from ..storage.files import overwrite_bytes, read_if_there
from ..storage.places import Folder
from ..storage.processes import this_process
from ..storage.reach import is_shared
from .attempts import HELD, PROCESS, Attempt, Note, Watch

_LOG = logging.getLogger(__name__)
_Notes = Mapping[str, tuple[float | None, int]]


class Times(NamedTuple):
    """The times of leases, in s.

    Attributes:
        beat: From one beat to the next.
        fresh: How long after the begin of a beat requests may be sent.
        stale: How long without a new beat makes a lease void.
        note: How soon what was learnt about hosts is with the beat.
        look: From one look at a lease that is held to the next, on average.
        give_up: How long beats may fail before the attempt does.
    """

    beat: float = 10.0
    fresh: float = 30.0
    stale: float = 60.0
    note: float = 0.5
    look: float = 1.0
    give_up: float = 600.0


TIMES = Times()
# Cloud Storage takes one write a second to one name.
IN_STORES = TIMES._replace(note=1.0)


class LeaseLost(UserError):
    """The attempt must not go on; what it has flushed stays."""


class Lease:
    """The right to send requests for a partition; made by ``acquire``.

    Attributes:
        requested_until: Moment on the monotonic clock until which others may have
            sent requests to the same hosts.
        hosts: What hosts have demanded of them, by host.
    """

    def __init__(self, attempt: Attempt, token: str, began: float, times: Times) -> None:
        self.requested_until = -math.inf
        self.hosts: Mapping[str, Note] = {}
        self._attempt, self._token, self._times = attempt, token, times
        self._notes: Callable[[], _Notes] = dict
        self._noted: _Notes = {}
        self._beats = 0
        self._lost = ""
        self._failing = False
        self._over = False
        self._last, self._fresh_until = began, began + times.fresh
        self._changed = threading.Condition()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="nutbeam-lease", daemon=True)
        self._thread.start()

    def may_send(self) -> bool:
        """The gate: returns whether a request may be sent now; may wait for a beat."""
        if _now() < self._fresh_until:
            return True
        with self._changed:
            while not self._over and not self._lost:
                if _now() < self._fresh_until:
                    return True
                self._changed.wait(self._times.beat)
        return False

    def check(self) -> None:
        """Does nothing while the lease is held.

        Raises:
            LeaseLost: It is not.
        """
        if self._lost:
            raise LeaseLost(self._lost)

    def note(self, source: Callable[[], _Notes]) -> None:
        """Says where to look for what is learnt about hosts: ``Note`` or tuples like it.

        It is called from another thread.
        """
        self._notes = source

    def release(self) -> None:
        """Gives the lease back; nothing may be sent any more."""
        if self._over:
            return
        with self._changed:
            self._over = True
            self._fresh_until = -math.inf
            self._changed.notify_all()
        self._wake.set()
        self._thread.join()
        try:
            self._write(released=time.monotonic())
        except UserError as error:
            _LOG.warning("cannot give back a lease: %s", error)
        finally:
            HELD.discard(self._token)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()

    def _keep(self) -> None:
        while not self._wake.wait(min(self._times.note, self._times.beat)) and not self._lost:
            if _now() - self._last >= self._times.beat or self._notes() != self._noted:
                self._beat()

    def _beat(self) -> None:
        began = _now()
        try:
            self._write()
        except UserError as error:
            if not self._failing:
                _LOG.warning("cannot renew a lease: %s", error)
            self._failing = True
            if _now() - self._last >= self._times.give_up:
                self._lose(f"the lease could not be renewed: {error}")
            return
        following = self._attempt.next
        if read_if_there(following.claim) is not None:
            batch, number = self._attempt.folder.parent.name, self._attempt.partition
            self._lose(
                f"partition {number} of batch {batch!r} was taken over by another fetch, as this "
                "one was silent for too long: what it has flushed is kept"
            )
            return
        with self._changed:
            if not self._over:
                self._last, self._fresh_until = began, began + self._times.fresh
            self._failing = False
            self._changed.notify_all()

    def _lose(self, reason: str) -> None:
        with self._changed:
            self._lost = reason
            self._fresh_until = -math.inf
            self._changed.notify_all()

    def _write(self, released: float | None = None) -> None:
        self._beats += 1
        notes = self._notes()
        record = {"beat": self._beats, "released": released, "hosts": notes}
        overwrite_bytes(self._attempt.beat, json.dumps(record).encode())
        self._noted = notes


def acquire(
    root: Folder,
    batch: str,
    partition: int,
    others: Callable[[], Iterable[str]] = tuple,
    on_wait: Callable[[float], None] | None = None,
    times: Times | None = None,
    most: float = math.inf,
) -> Lease:
    """Returns the lease of a partition; waits for those who hold it.

    Args:
        root: The table's folder.
        batch: Id of the batch.
        partition: Number of the partition.
        others: Returns the batches whose leases must not be held meanwhile;
            asked again at each look.
        on_wait: Is told after each wait for how many seconds that was.
        times: The times; ``TIMES``, or ``IN_STORES``, unless given.
        most: How long to wait, in s. Who ends without a word is waited for no
            longer than ``times.stale``.

    Raises:
        Unavailable: Somebody held it all the time.
        UserError: The batch's folder may not be written.
    """
    times = times or (IN_STORES if is_shared(root / "batches") else TIMES)
    watch = Watch(root, times.stale, times.fresh)
    told: set[Attempt] = set()  # their first attempts stand for all
    began = _now()
    while True:
        holder = watch.survey(batch, partition, others())
        if holder is None:
            lease, holder = _try(watch, batch, partition, others, times)
            if lease is not None:
                return lease
        if holder is not None and holder._replace(number=1) not in told:
            told.add(holder._replace(number=1))
            limit = "" if most == math.inf else f", {most:g} s at most"
            _LOG.warning("fetch of batch %r waits for %s%s", batch, holder.describe(), limit)
        if holder is not None and _now() - began >= most:
            raise Unavailable(
                f"fetch of batch {batch!r} has waited {most:g} s (max_lease_wait) for "
                f"{holder.describe()}: run it again later, or end that one"
            )
        seconds = min(times.look * (0.5 + random.random()), max(0.01, began + most - _now()))
        time.sleep(seconds)
        if on_wait is not None:
            on_wait(seconds)


def _try(
    watch: Watch,
    batch: str,
    partition: int,
    others: Callable[[], Iterable[str]],
    times: Times,
) -> tuple[Lease | None, Attempt | None]:
    """Claims, and looks once more: who claims later sees this claim."""
    attempt = watch.next
    lease = _claim(attempt, times)
    if lease is None:
        return None, None
    try:
        holder = watch.survey(batch, partition, others(), attempt)
    except BaseException:
        lease.release()
        raise
    if holder is not None:
        lease.release()
        return None, holder
    lease.requested_until, lease.hosts = watch.requested_until, watch.hosts
    return lease, None


def _claim(attempt: Attempt, times: Times) -> Lease | None:
    token = secrets.token_hex(8)
    began = _now()
    since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())  # for people
    record = {**this_process(), "process": PROCESS, "token": token, "since": since}
    HELD.add(token)
    try:
        if create_exclusive(attempt.claim, json.dumps(record).encode(), durable=False):
            return Lease(attempt, token, began, times)
    except BaseException:
        HELD.discard(token)
        raise
    HELD.discard(token)
    return None


if hasattr(time, "CLOCK_BOOTTIME"):

    def _now() -> float:
        """A clock that also counts while the machine sleeps."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

else:
    _now = time.monotonic
