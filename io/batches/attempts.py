"""Watches other attempts at the partitions of a batch, by their files.

See ``io/batches/leases.py`` for the meaning of the files.
"""

import math
import os
import re
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from ...web.base.safe_json import object_or_empty
from ..storage.files import create_exclusive, names, read_if_there
from ..storage.places import Folder, Place
from ..storage.processes import is_dead, same_clock
from .batches import batch_component

PROCESS = secrets.token_hex(8)  # a forked child has it too, under another process id
LEASE_TOKENS: set[str] = set()  # tokens of the leases that this process holds
_CLAIM = re.compile(r"p(\d{5,})-(\d{6,})\.claim")


class Note(NamedTuple):
    """The demands of a host.

    Attributes:
        crawl_delay: Seconds, or None.
        backoff_until: UTC ms before which no request may be sent, or 0.
    """

    crawl_delay: float | None = None
    backoff_until: int = 0


class FetchedSoFar(NamedTuple):
    """How much of a partition is fetched: pages, with those of earlier attempts; bytes of bodies."""

    pages: int = 0
    bytes: int = 0


class Attempt(NamedTuple):
    """One attempt at a partition, as its files show it."""

    folder: Place
    partition: int
    number: int

    @property
    def claim(self) -> Place:
        return self.folder / f"p{self.partition:05d}-{self.number:06d}.claim"

    @property
    def beat(self) -> Place:
        return self.claim.with_suffix(".beat")

    @property
    def next_attempt(self) -> "Attempt":
        return self._replace(number=self.number + 1)

    def describe(self) -> str:
        """Returns a description of the attempt, for messages."""
        claim = object_or_empty(_read(self.claim))
        batch = self.folder.parent.name
        if "pid" not in claim:
            return f"partition {self.partition} of batch {batch!r}"
        return (
            f"process {claim['pid']} on {claim['host']!r}, at partition {self.partition} "
            f"of batch {batch!r} since {claim.get('since', 'some time')}"
        )


class Watch:
    """Observes other attempts, and measures how long their files stay unchanged.

    Args:
        root: The table's folder.
        stale: Seconds without a new beat that make an attempt silent.
        fresh: Seconds after a beat in which its attempt may send requests.

    Attributes:
        requested_until: See ``Lease``.
        hosts: See ``Lease``.
        next_attempt: The attempt to claim when all are silent. Claims are exclusive, so this
            does not supersede a claim that was made since.
    """

    next_attempt: Attempt

    def __init__(self, root: Folder, stale: float, fresh: float) -> None:
        self._root, self._stale, self._fresh = root, stale, fresh
        self._end_times: dict[Attempt, float] = {}
        self._seen: dict[Attempt, tuple[bytes, float]] = {}
        self.requested_until = -math.inf
        self.hosts: dict[str, Note] = {}

    def find_holder(
        self,
        batch: str,
        partition: int,
        others: Iterable[str],
        mine: Attempt | None = None,
        rivals: Callable[[int], bool] = lambda number: False,
    ) -> Attempt | None:
        """Checks the attempts at a partition, at its rivals, and all attempts at other batches.

        Returns an attempt that may send requests, or None. If ``mine`` is claimed, it
        supersedes silent attempts that may wake up.
        """
        folder = self._root / batch_component(batch, "leases")
        own_batch = _attempts(folder)
        mates = own_batch.pop(partition, [])
        for attempt in mates:
            if attempt != mine and self._silent(attempt) is None:
                return attempt
        self.next_attempt = mates[-1].next_attempt if mates else Attempt(folder, partition, 1)
        excluded = [attempts for number, attempts in own_batch.items() if rivals(number)]
        for other in others:
            excluded += _attempts(self._root / batch_component(other, "leases")).values()
        for attempts in excluded:
            for attempt in attempts:
                if self._silent(attempt) is None:
                    return attempt
            newest = attempts[-1]
            if mine is not None and newest not in self._end_times:
                if not create_exclusive(newest.next_attempt.claim, b"{}", durable=False):
                    return newest.next_attempt
                if self._silent(newest) is None:  # it has written a beat since
                    return newest
        return None

    def _silent(self, attempt: Attempt) -> float | None:
        """Returns the time of an attempt's last possible request; None if it may send more."""
        if attempt in self._end_times:
            return self._end_times[attempt]
        claim = object_or_empty(_read(attempt.claim))
        read_at = time.monotonic()
        data = _read(attempt.beat)
        beat = object_or_empty(data)
        ended = _find_end(claim, beat)
        if ended is not None and "token" in claim and beat.get("released") is None:
            # It has ended since its beat was read, and may have written what it found before.
            beat = object_or_empty(_read(attempt.beat))
            ended = _find_end(claim, beat)
        if ended is not None:
            self._end_times[attempt] = ended
        else:
            seen, since = self._seen.get(attempt, (None, 0.0))
            if seen != data:
                self._seen[attempt] = data, time.monotonic()
                return None
            if read_at - since < self._stale:
                return None
            ended = since + self._fresh
        self._learn(ended, beat)
        return ended

    def _learn(self, ended: float, beat: Mapping[str, Any]) -> None:
        self.requested_until = max(self.requested_until, ended)
        for host, values in beat.get("hosts", {}).items():
            earlier_note, note = self.hosts.get(host, Note()), Note(*values)
            delays = [d for d in (earlier_note.crawl_delay, note.crawl_delay) if d is not None]
            until = max(earlier_note.backoff_until, note.backoff_until)
            self.hosts[host] = Note(max(delays, default=None), until)


def fetched_so_far(root: Folder, batch: str) -> FetchedSoFar:
    """Returns how much of a batch is fetched, as the newest beat of each partition says.

    Args:
        root: The table's folder.
        batch: Id of the batch.
    """
    pages = received = 0
    for attempts in _attempts(root / batch_component(batch, "leases")).values():
        for attempt in reversed(attempts):  # the newest may not have written one yet
            beat = object_or_empty(_read(attempt.beat))
            counts = [beat.get(name) for name in FetchedSoFar._fields]
            if all(type(count) is int and count >= 0 for count in counts):
                pages, received = pages + beat["pages"], received + beat["bytes"]
                break
    return FetchedSoFar(pages, received)


def _find_end(claim: Mapping[str, Any], beat: Mapping[str, Any]) -> float | None:
    """Returns the moment when an attempt ended, or was found ended; None if it may live."""
    now = time.monotonic()
    if "token" not in claim:
        return -math.inf  # this claim only supersedes another attempt
    if beat.get("released") is not None:
        return min(float(beat["released"]), now) if same_clock(claim) else now
    if (claim.get("process"), claim.get("pid")) == (PROCESS, os.getpid()):
        return None if claim["token"] in LEASE_TOKENS else now
    return now if is_dead(claim) else None


def _attempts(folder: Place) -> dict[int, list[Attempt]]:
    """Returns the attempts of each partition, oldest first."""
    claims = (match for name in names(folder) if (match := _CLAIM.fullmatch(name)))
    attempts_by_partition: dict[int, list[Attempt]] = {}
    for partition, number in sorted((int(match[1]), int(match[2])) for match in claims):
        attempts_by_partition.setdefault(partition, []).append(Attempt(folder, partition, number))
    return attempts_by_partition


def _read(path: Place) -> bytes:
    return read_if_there(path) or b""
