"""Processes that hold leases, for tests. As a script it is such a process."""

import json
import subprocess
import sys
import time
from pathlib import Path

from waiting import wait_until

from nutbeam.io.batches.leases import LeaseLost, LeaseTimes, acquire
from nutbeam.io.storage.place_addresses import place_of

# Short, yet long enough for a machine on which other tests run.
TIMES = LeaseTimes(beat=0.3, fresh=1.5, stale=3.0, note=0.1, look=0.1, give_up=600.0)
_STEP = 0.05


class Holder:
    """A process that acquires a lease and then asks its gate again and again.

    Args:
        root: The table's folder.
        batch: Id of the batch.
        others: Batches whose leases must not be held meanwhile.
        clock: By how many seconds its wall clock is ahead.
        turns: How often it acquires, uses and releases.
        sends: How often it asks the gate, each time; 0 for ever.
        log: Folder of its log; none is the table's.
        times: The times of its leases.
    """

    def __init__(
        self, root, batch="1-x", others=(), clock=0.0, turns=1, sends=0, log=None, times=TIMES
    ):
        self._log = Path(log or root) / f"log-{time.monotonic_ns()}"
        words = [str(root), batch, list(others), clock, turns, sends, str(self._log), times]
        # Not with -P: it imports what is beside it.
        command = [sys.executable, __file__, json.dumps(words)]
        self.process = subprocess.Popen(command)

    def said(self, word):
        """Returns the moments, on the monotonic clock, when it said a word."""
        return [moment for moment, said, _ in self.lines() if said == word]

    def lines(self):
        """Returns all that it said: (moment, word, more)."""
        text = self._log.read_text() if self._log.exists() else ""
        return [json.loads(line) for line in text.splitlines(keepends=True) if line[-1] == "\n"]

    def wait_for(self, word, count=1):
        """Waits until it has said a word so often; returns that moment."""
        wait_until(lambda: len(self.said(word)) >= count)
        return self.said(word)[count - 1]

    def just_sent(self):
        """Waits for the next time that it passes its gate; it is at rest for a while then."""
        self.wait_for("sent", len(self.said("sent")) + 1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def _main(root, batch, others, clock, turns, sends, log, times):
    for name in ("time", "time_ns"):
        wall, ahead = getattr(time, name), clock * (10**9 if name == "time_ns" else 1)
        setattr(time, name, lambda wall=wall, ahead=ahead: wall() + int(ahead))
    with Path(log).open("a", buffering=1) as file:

        def say(word, more=None):
            file.write(json.dumps([time.monotonic(), word, more]) + "\n")

        say("started")
        for _ in range(turns):
            lease = acquire(place_of(root), batch, 0, lambda: others, times=LeaseTimes(*times))
            say("held", lease.requested_until)
            lease.note(lambda: {"h.example.com": (7.0, 0)})
            left = sends or -1
            while left and lease.may_send():
                say("sent")
                time.sleep(_STEP)
                left -= 1
            try:
                lease.check()
            except LeaseLost as error:
                say("lost", str(error))
            say("over")
            lease.release()


if __name__ == "__main__":
    _main(*json.loads(sys.argv[1]))
