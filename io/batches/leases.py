"""Leases: only one attempt at a partition of a batch sends requests at a time.

A runner may believe that a live worker is dead, and start another attempt. Two
operations may fetch the same batch. So each attempt needs a lease. A lease is two
files in the batch's folder ``leases``. The *claim* of attempt k
(``p00003-000001.claim``) is created exclusively; the claim of attempt k + 1
supersedes it. The holder overwrites the *beat* (``p00003-000001.beat``) every 10 s. It also says how
many pages are fetched, for those who watch; no decision reads that.

- The gate checks each request. It makes the holder wait if the last beat was begun
  more than 30 s ago. A beat counts only if there was no higher claim after it was
  written. So a worker that was paused first writes a beat and checks the claims. A
  superseded worker sends no more requests.
- An attempt begins when all others are *silent*. An attempt is silent if it was
  released, if its process is dead (same boot of the same machine, same process ids),
  or if it has written no beat for 60 s on the observer's monotonic clock. The new
  attempt claims the partition, then checks all others again. If one of them has
  written a beat in between, the new attempt waits again.
- Then it checks the leases of the table's other batches that are not updated
  yet. It releases its own lease while one of them is held. If an attempt is silent
  but has not ended, an empty claim supersedes it first.

No decision reads a wall clock, so clocks may be wrong. A crash leaves no lock: a silent
attempt is superseded. A machine cannot recognize its dead processes after a reboot, or
without ``/proc``. Then other attempts wait for 60 s.

A lease gives its successor two facts: the moment until which others may have sent
requests (``Lease.requested_until``), and the delays that hosts demanded
(``Lease.hosts``). Delays are written half a second after they are found; the first
page of such a host waits longer than that.

Leases work within one table, for all processes and machines that share its
folder. A new file must be visible to all others at once (on NFS that
requires ``actimeo=0`` or ``noac``). Leases do not work between tables: two tables
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
from typing import NamedTuple

from ...web.base.errors import Unavailable, UserError
from ..storage.files import create_exclusive, overwrite_bytes, read_if_there
from ..storage.places import Folder, Place
from ..storage.processes import this_process
from .attempts import LEASE_TOKENS, PROCESS, Attempt, FetchedSoFar, Note, Watch

_LOG = logging.getLogger(__name__)
_Notes = Mapping[str, tuple[float | None, int]]


class LeaseTimes(NamedTuple):
    """The times of leases, in s.

    Attributes:
        beat: Interval between two beats.
        fresh: Time after the start of a beat in which requests may be sent.
        stale: Time without a new beat after which a lease is void.
        note: Longest delay before findings about hosts are written into the beat.
        look: Average interval between two checks of a held lease.
        give_up: Time of failing beats after which the attempt fails.
    """

    beat: float = 10.0
    fresh: float = 30.0
    stale: float = 60.0
    note: float = 0.5
    look: float = 1.0
    give_up: float = 600.0


LEASE_TIMES = LeaseTimes()
# The name under which jobs that fetch sitemaps have their leases; other leases are below a batch.
SITEMAP_LEASES = "sitemaps"


def times_at(place: Place) -> LeaseTimes:
    """Returns ``LEASE_TIMES``, with notes as seldom as the place's limit of writes demands."""
    return LEASE_TIMES._replace(note=max(LEASE_TIMES.note, place.write_interval))


class LeaseLost(UserError):
    """The attempt has lost its lease and must stop; the files that it has written are kept."""


class Lease(contextlib.AbstractContextManager["Lease"]):
    """The right to send requests for a partition; made by ``acquire``.

    Attributes:
        requested_until: Moment on the monotonic clock until which others may have
            sent requests to the same hosts.
        hosts: Delays and pauses that other attempts have noted, by host.
    """

    def __init__(self, attempt: Attempt, token: str, began: float, times: LeaseTimes) -> None:
        self.requested_until = -math.inf
        self.hosts: Mapping[str, Note] = {}
        self._attempt, self._token, self._times = attempt, token, times
        self._notes: Callable[[], _Notes] = dict
        self._fetched: Callable[[], FetchedSoFar] = FetchedSoFar
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
            LeaseLost: The lease is not held.
        """
        if self._lost:
            raise LeaseLost(self._lost)

    def note(self, source: Callable[[], _Notes]) -> None:
        """Sets the function that returns what was found about hosts.

        It returns a dict from host to ``Note`` (or an equal tuple). Another thread calls it.
        """
        self._notes = source

    def show(self, source: Callable[[], FetchedSoFar]) -> None:
        """Sets the function that returns how much is fetched, for the beats; another thread calls it."""
        self._fetched = source

    def release(self) -> None:
        """Releases the lease; after this no request may be sent."""
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
            LEASE_TOKENS.discard(self._token)

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
        following = self._attempt.next_attempt
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
        record |= self._fetched()._asdict()
        overwrite_bytes(self._attempt.beat, json.dumps(record).encode())
        self._noted = notes


def acquire(
    root: Folder,
    batch: str,
    partition: int,
    others: Callable[[], Iterable[str]] = tuple,
    on_wait: Callable[[float], None] | None = None,
    times: LeaseTimes | None = None,
    most: float = math.inf,
    rivals: Callable[[int], bool] = lambda number: False,
) -> Lease:
    """Waits until the lease of a partition is free, then takes and returns it.

    Args:
        root: The table's folder.
        batch: Id of the batch.
        partition: Number of the partition.
        others: Function that returns the batches whose leases nobody may hold at the
            same time; called before each check.
        on_wait: Callback: receives the seconds of each wait.
        times: The times; None is those of ``times_at``.
        most: Longest wait, in s. The wait for a crashed attempt ends after
            ``times.stale``.
        rivals: Returns whether nobody may hold the lease of another partition of the batch at the
            same time, by its number.

    Raises:
        Unavailable: Another attempt held the lease all the time.
        UserError: The batch's folder is not writable.
    """
    times = times or times_at(root / "batches")
    watch = Watch(root, times.stale, times.fresh)
    announced: set[Attempt] = set()  # only the first attempt at each partition
    began = _now()
    while True:
        holder = _try(watch, (batch, partition), others, rivals, times)
        if isinstance(holder, Lease):
            return holder
        if holder is not None and holder._replace(number=1) not in announced:
            announced.add(holder._replace(number=1))
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
    of: tuple[str, int],
    others: Callable[[], Iterable[str]],
    rivals: Callable[[int], bool],
    times: LeaseTimes,
) -> Lease | Attempt | None:
    """Claims a partition if its lease is free.

    Returns:
        The lease, or the attempt that holds it; None if another attempt claimed first.
    """
    holder = watch.find_holder(*of, others(), rivals=rivals)
    if holder is not None:
        return holder
    attempt = watch.next_attempt
    lease = _claim(attempt, times)
    if lease is None:
        return None
    with contextlib.ExitStack() as undo:
        undo.callback(lease.release)
        # Check again after the claim: attempts that begin later see this claim.
        holder = watch.find_holder(*of, others(), attempt, rivals)
        if holder is not None:
            return holder
        undo.pop_all()
    lease.requested_until, lease.hosts = watch.requested_until, watch.hosts
    return lease


def _claim(attempt: Attempt, times: LeaseTimes) -> Lease | None:
    token = secrets.token_hex(8)
    began = _now()
    since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())  # only for display
    record = {**this_process(), "process": PROCESS, "token": token, "since": since}
    LEASE_TOKENS.add(token)
    with contextlib.ExitStack() as undo:
        undo.callback(LEASE_TOKENS.discard, token)
        if not create_exclusive(attempt.claim, json.dumps(record).encode(), durable=False):
            return None
        undo.pop_all()
    return Lease(attempt, token, began, times)


def _now() -> float:
    """Returns the time, s, of a clock that also runs while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
