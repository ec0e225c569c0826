"""The hold: makes new jobs wait for a purge that is about to commit.

A purge reads a whole table, and can only commit if nothing has changed since. During a crawl,
whose phases commit one after the other, it might never succeed. So before its last check it
writes a small file, ``operations/purge.hold``. Jobs pin no snapshot while this file exists.

The hold is a hint, not a lock: each commit makes the same checks with and without it. A waiting
job removes a hold if its process is dead (same boot of the same machine), or if it was not written
for 60 s by the job's own clock. No job waits longer than 15 minutes.
"""

import contextlib
import json
import logging
import threading
import time
from collections.abc import Iterator
from typing import NamedTuple

from ...web.base.errors import UserError
from ...web.base.safe_json import object_or_empty
from ..storage.files import overwrite_bytes, read_if_there, remove_file
from ..storage.places import Folder
from ..storage.processes import is_dead, this_process

_LOG = logging.getLogger(__name__)
HOLD = "operations/purge.hold"


class HoldTimes(NamedTuple):
    """The times of a hold, in s.

    Attributes:
        beat: Interval at which its holder writes the file.
        stale: Age at which the hold is void.
        look: Interval at which waiting jobs read the file.
        most: Longest wait of a job.
    """

    beat: float = 10.0
    stale: float = 60.0
    look: float = 0.3
    most: float = 900.0


HOLD_TIMES = HoldTimes()


@contextlib.contextmanager
def hold_table(table: Folder, operation: str) -> Iterator[None]:
    """Makes new jobs wait while the block runs; first waits for the hold of another purge.

    Args:
        table: The table.
        operation: Id of the purge.
    """
    wait_for_purge(table, operation)
    over = threading.Event()
    _write(table, operation, 0)
    beats = threading.Thread(target=_beat, args=(table, operation, over), daemon=True)
    beats.start()
    try:
        yield
    finally:
        over.set()
        beats.join()
        with contextlib.suppress(UserError):  # it becomes stale
            remove_file(table / HOLD)


def _beat(table: Folder, operation: str, over: threading.Event) -> None:
    number = 0
    while not over.wait(HOLD_TIMES.beat):
        number += 1
        with contextlib.suppress(UserError):  # the next write may succeed
            _write(table, operation, number)


def _write(table: Folder, operation: str, number: int) -> None:
    record = {"operation": operation, "beat": number, "process": this_process()}
    overwrite_bytes(table / HOLD, json.dumps(record).encode())


def wait_for_purge(table: Folder, operation: str) -> None:
    """Waits until no purge is about to commit; logs the purge that it waits for.

    Args:
        table: The table.
        operation: Id of the waiting operation.
    """
    path, began = table / HOLD, time.monotonic()
    seen, changed = None, began
    while (data := read_if_there(path)) is not None:
        now = time.monotonic()
        if seen is None:
            purge = object_or_empty(data).get("operation")
            _LOG.warning("%r waits for purge %r, which is about to commit", operation, purge)
        if data != seen:
            seen, changed = data, now
        process = object_or_empty(data).get("process")  # a damaged file becomes stale
        if (isinstance(process, dict) and is_dead(process)) or now - changed >= HOLD_TIMES.stale:
            with contextlib.suppress(UserError):
                if read_if_there(path) == data:
                    remove_file(path)
            return
        if now - began >= HOLD_TIMES.most:
            _LOG.warning("%r waits no longer: it begins beside the purge", operation)
            return
        pause_in_hold()


def pause_in_hold() -> None:
    """Waits until the next check of the hold."""
    time.sleep(HOLD_TIMES.look)
