"""Relays the phases of a launch that runs elsewhere: the launcher reads from the table how far they are."""

import contextlib
import threading
import time
from collections.abc import Iterator

from ...io.reading.launch_watch import LaunchedJob, LaunchWatch
from ...io.table.opening import open_table
from ...policy.watching.launched_phases import ended_phase, phase_elsewhere, start_of_workers
from ...web.base.errors import UserError
from ...web.base.progress import PROGRESS, Phase, Progress

# Between two looks: on a disk, in a store.
_LOCAL_S, _REMOTE_S = 1.0, 5.0
_SHARE = 10  # looking takes at most this fraction of the time


@contextlib.contextmanager
def relayed_phases(address: str, launched: str, progress: Progress = PROGRESS) -> Iterator[None]:
    """Shows how far the work of a launch is while the block runs it, if other processes do the work.

    Args:
        address: Address of the table.
        launched: Id of the launch.
        progress: What shows the phases.
    """
    relay = _Relay(address, launched, progress)
    relay.start()
    try:
        yield
        relay.end()
    finally:
        relay.stop()


class _Relay(threading.Thread):
    def __init__(self, address: str, launched: str, progress: Progress) -> None:
        super().__init__(name="relay", daemon=True)
        self._watch = LaunchWatch(address, launched)
        self._interval_s = _REMOTE_S if open_table(address).files.write_interval else _LOCAL_S
        self._progress, self._began = progress, time.monotonic()
        self._over = threading.Event()

    def run(self) -> None:
        wait_s = 0.0
        while not self._over.wait(wait_s):
            began = time.monotonic()
            self._look()
            wait_s = max(self._interval_s, _SHARE * (time.monotonic() - began))

    def stop(self) -> None:
        """Ends the looks; a phase that did not come to its end stays as it was seen last."""
        self._over.set()
        self.join()

    def end(self) -> None:
        """Looks for the last time: all phases have come to their end."""
        self.stop()
        self._look()
        self._progress.relay(None)

    def _look(self) -> None:
        with contextlib.suppress(UserError):  # the job itself reports what is wrong
            ended, current = self._watch.look()
            for job in ended:
                self._progress.relay(_phase_of(job))
            if current is not None:
                self._progress.relay(_phase_of(current))
            elif not self._watch.has_begun:
                self._progress.relay(start_of_workers(time.monotonic() - self._began))


def _phase_of(job: LaunchedJob) -> Phase:
    if job.counts is None:
        return phase_elsewhere(job.job, job.elapsed, job.urls, job.fetched)
    received = {"bytes": job.fetched.bytes} if job.fetched.bytes else {}
    return ended_phase(job.job, job.elapsed, job.urls, {**job.counts, **received})
