"""Leases: of all attempts at a partition of a batch, one at a time sends requests.

A runner may believe that a live worker is dead, and start another attempt; two
operations may fetch the same batch. So an attempt holds a lease, in the batch's
folder ``leases``: attempt k is a *claim*, created exclusively
(``p00003-000001.claim``), which the claim of attempt k + 1 supersedes, and a
*beat* (``p00003-000001.beat``) that its holder overwrites every 10 s.

- A holder sends nothing while its last beat was begun more than 30 s ago: the
  gate, which each request must pass, waits. A beat counts only if there was no
  higher claim after it was written. So a worker that was paused beats and checks
  before it sends anything; a superseded one sends nothing any more.
- An attempt begins when all others are *silent*: released; of a process that is
  dead (same boot of the same machine, same process ids); or without a new beat
  for 60 s on the observer's monotonic clock. It claims, and checks all others
  once more: a beat that came in between sends it back to waiting.
- Then it checks the leases of the table's other batches that are not updated
  yet, and gives its own back while one of them is held. An attempt that is silent
  but has not ended is superseded first, by a claim that nobody holds.

No decision reads a wall clock, so clocks may be wrong. A crash leaves no lock: a silent
attempt is superseded. A machine that was rebooted, or one without ``/proc``, cannot
recognize its dead processes: there it takes the 60 s.

A lease hands on what a successor needs: the moment until which others may have sent
requests (``Lease.requested_until``), and the delays that hosts demanded of them
(``Lease.hosts``; written half a second after they are found, while the first
page of such a host has to wait for longer than that).

This holds for one table, between all processes and machines that share its
folder: a file that one creates must be visible to all others at once (on NFS that
takes ``actimeo=0`` or ``noac``). It does not hold between tables: two tables
may crawl the same host at the same time. A process that is stopped
exactly between the gate and the system call sends one request late.
"""

import contextlib
import json
import logging
import math
import random
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Mapping
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
        note: How soon findings about hosts are written into the beat.
        look: From one check of a held lease to the next, on average.
        give_up: How long beats may fail before the attempt fails.
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
    """The attempt must not continue; its written files stay."""


class Lease:
    """The right to send requests for a partition; made by ``acquire``.

    Attributes:
        requested_until: Moment on the monotonic clock until which others may have
            sent requests to the same hosts.
        hosts: Demands of hosts that others have noted, by host.
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
        """Returns whether a request may be sent now (the gate); may wait for a beat."""
        if _now() < self._fresh_until:
            return True
        with self._changed:
            while not self._over and not self._lost:
                if _now() < self._fresh_until:
                    return True
                self._changed.wait(self._times.beat)
        return False

    def check(self) -> None:
        """Checks that the lease is held.

        Raises:
            LeaseLost: It is not.
        """
        if self._lost:
            raise LeaseLost(self._lost)

    def note(self, source: Callable[[], _Notes]) -> None:
        """Sets the function that returns findings about hosts: a ``Note`` or such a tuple by host.

        Another thread calls it.
        """
        self._notes = source

    def release(self) -> None:
        """Gives the lease back; no request may be sent any more."""
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

    def __exit__(self, *_: object) -> None:
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
                "one was silent for too long: its written pages are kept"
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
    """Returns the lease of a partition; waits for its holders.

    Args:
        root: The table's folder.
        batch: Id of the batch.
        partition: Number of the partition.
        others: Returns the batches whose leases must not be held meanwhile;
            called before each check.
        on_wait: Callback: receives the seconds of each wait.
        times: The times; None is ``TIMES``, or ``IN_STORES``.
        most: How long to wait, in s. The wait for an attempt that has crashed ends
            after ``times.stale``.

    Raises:
        Unavailable: It was held all the time.
        UserError: The batch's folder may not be written.
    """
    times = times or (IN_STORES if is_shared(root / "batches") else TIMES)
    watch = Watch(root, times.stale, times.fresh)
    announced: set[Attempt] = set()  # the first attempt at a partition stands for all
    began = _now()
    while True:
        found = _try(watch, batch, partition, others, times)
        if isinstance(found, Lease):
            return found
        if found is not None and found._replace(number=1) not in announced:
            announced.add(found._replace(number=1))
            limit = "" if most == math.inf else f", {most:g} s at most"
            _LOG.warning("fetch of batch %r waits for %s%s", batch, found.describe(), limit)
        if found is not None and _now() - began >= most:
            raise Unavailable(
                f"fetch of batch {batch!r} has waited {most:g} s (max_lease_wait) for "
                f"{found.describe()}: run it again later, or end that one"
            )
        seconds = min(times.look * (0.5 + random.random()), max(0.01, began + most - _now()))
        time.sleep(seconds)
        if on_wait is not None:
            on_wait(seconds)


def _try(
    watch: Watch, batch: str, partition: int, others: Callable[[], Iterable[str]], times: Times
) -> Lease | Attempt | None:
    """Claims a partition if nobody holds it.

    Returns:
        The lease, or an attempt that holds it; None if a rival was faster.
    """
    holder = watch.survey(batch, partition, others())
    if holder is not None:
        return holder
    attempt = watch.next
    lease = _claim(attempt, times)
    if lease is None:
        return None
    with contextlib.ExitStack() as undo:
        undo.callback(lease.release)
        # Once more: a later rival sees this claim.
        holder = watch.survey(batch, partition, others(), attempt)
        if holder is not None:
            return holder
        undo.pop_all()
    lease.requested_until, lease.hosts = watch.requested_until, watch.hosts
    return lease


def _claim(attempt: Attempt, times: Times) -> Lease | None:
    token = secrets.token_hex(8)
    began = _now()
    since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())  # for people
    record = {**this_process(), "process": PROCESS, "token": token, "since": since}
    HELD.add(token)
    with contextlib.ExitStack() as undo:
        undo.callback(HELD.discard, token)
        if not create_exclusive(attempt.claim, json.dumps(record).encode(), durable=False):
            return None
        undo.pop_all()
    return Lease(attempt, token, began, times)


if hasattr(time, "CLOCK_BOOTTIME"):

    def _now() -> float:
        """Returns the time, s, of a clock that also runs while the machine sleeps."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

else:
    _now = time.monotonic
