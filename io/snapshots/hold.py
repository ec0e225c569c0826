"""The hold: jobs that begin wait for a purge that is about to commit.

A purge reads all of a table, and commits on top of what it has read alone. Beside a crawl, whose
phases commit one after the other, it might never be the first. So it writes a small file before its
last look, ``operations/purge.hold``, and jobs pin no snapshot while that is there.

The hold is advice and no lock: a commit checks the same with it and without it. Nobody waits for a
hold whose process is dead (same boot of the same machine), or that its holder has not written again
for 60 s, by the clock of who waits: such a hold is removed. Nobody waits for longer than 15 minutes.
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
from ..storage.places import Place
from ..storage.processes import is_dead, this_process
from ..table.web_table import WebTable

_LOG = logging.getLogger(__name__)
HOLD = "operations/purge.hold"


class Times(NamedTuple):
    """The times of a hold, in s.

    Attributes:
        beat: From one writing to the next.
        stale: How long without a new one makes it void.
        look: From one look at it to the next.
        most: How long a job waits at most.
    """

    beat: float = 10.0
    stale: float = 60.0
    look: float = 0.3
    most: float = 900.0


TIMES = Times()


@contextlib.contextmanager
def held(root: WebTable, operation: str) -> Iterator[None]:
    """Keeps jobs from beginning while the block runs; waits for the hold of another purge.

    Args:
        root: The table.
        operation: Id of the purge.
    """
    wait_for_purge(root, operation)
    over = threading.Event()
    _write(root, operation, 0)
    beats = threading.Thread(target=_beat, args=(root, operation, over), daemon=True)
    beats.start()
    try:
        yield
    finally:
        over.set()
        beats.join()
        with contextlib.suppress(UserError):  # who waits finds out by itself
            remove_file(root / HOLD)


def _beat(root: WebTable, operation: str, over: threading.Event) -> None:
    number = 0
    while not over.wait(TIMES.beat):
        number += 1
        with contextlib.suppress(UserError):  # the next one may succeed
            _write(root, operation, number)


def _write(root: WebTable, operation: str, number: int) -> None:
    record = {"operation": operation, "beat": number, "process": this_process()}
    overwrite_bytes(root / HOLD, json.dumps(record).encode())


def wait_for_purge(root: WebTable, operation: str) -> None:
    """Waits until no purge is about to commit, and says so.

    Args:
        root: The table.
        operation: Id of the operation that waits.
    """
    path, began = root / HOLD, time.monotonic()
    seen, changed = None, began
    while (data := read_if_there(path)) is not None:
        now = time.monotonic()
        if seen is None:
            purge = object_or_empty(data).get("operation")
            _LOG.warning("%r waits for purge %r, which is about to commit", operation, purge)
        if data != seen:
            seen, changed = data, now
        if _is_dead(data) or now - changed >= TIMES.stale:
            _remove(path, data)
            return
        if now - began >= TIMES.most:
            _LOG.warning("%r waits no longer: it begins beside the purge", operation)
            return
        pause()


def pause() -> None:
    """Waits until the next look."""
    time.sleep(TIMES.look)


def _remove(path: Place, data: bytes) -> None:
    if read_if_there(path) == data:
        with contextlib.suppress(UserError):
            remove_file(path)


def _is_dead(data: bytes) -> bool:
    process = object_or_empty(data).get("process")  # what is damaged becomes stale
    return isinstance(process, dict) and is_dead(process)
