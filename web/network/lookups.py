"""Looks up many hosts at once, with a limit for each look-up and one for all."""

import socket
import threading
import time
from collections import deque
from collections.abc import Iterable

from .guard import Denied, Guard

# What a look-up ends with: no error, or the reason of the failure.
FOUND = ""
_PORT = 80
_PAUSE_S = 0.05


class Lookups:
    """Look-ups of hosts by a bounded number of threads.

    A name server that does not answer holds up a thread, which cannot be stopped. The look-up
    counts as failed after its time limit, and another thread takes the place of this one, up to
    as many as there are places; then the other hosts are left out.

    Args:
        guard: Resolves names, and judges their addresses.
        threads: How many look-ups run at a time.
        timeout: Time limit of a look-up, s.
        limit: Time limit of all, s.
    """

    def __init__(self, guard: Guard, threads: int, timeout: float, limit: float) -> None:
        self._guard, self._threads = guard, threads
        self._timeout, self._limit = timeout, limit

    def look_up(self, hosts: Iterable[str]) -> dict[str, str]:
        """Returns ``FOUND`` or the reason of the failure, for each host that was looked up.

        Args:
            hosts: Hosts as in URLs.
        """
        waiting_hosts, outcomes, lock = deque(hosts), dict[str, str](), threading.Lock()
        running: dict[threading.Thread, tuple[str, float]] = {}
        stopped = set[threading.Thread]()

        def work() -> None:
            me = threading.current_thread()
            while True:
                with lock:
                    if me in stopped or not waiting_hosts:
                        running.pop(me, None)
                        return
                    host = waiting_hosts.popleft()
                    running[me] = (host, time.monotonic())
                outcome = self._result(host)
                with lock:
                    outcomes.setdefault(host, outcome)

        def start() -> None:
            thread = threading.Thread(target=work, name="nutbeam-lookup", daemon=True)
            running[thread] = ("", time.monotonic())
            thread.start()

        until, hung = time.monotonic() + self._limit, 0
        with lock:
            for _ in range(min(self._threads, len(waiting_hosts))):
                start()
        while True:
            with lock:
                now = time.monotonic()
                late = [t for t, (host, at) in running.items() if host and now - at > self._timeout]
                for thread in late:
                    outcomes.setdefault(running.pop(thread)[0], "timeout")
                    stopped.add(thread)
                    hung += 1
                    if waiting_hosts and hung <= self._threads:
                        start()
                if not running or now > until:
                    waiting_hosts.clear()
                    return dict(outcomes)
            time.sleep(_PAUSE_S if len(waiting_hosts) else _PAUSE_S / 10)

    def _result(self, host: str) -> str:
        try:
            self._guard.target(host.strip("[]"), _PORT, own=_PORT)
        except Denied as error:
            return error.reason
        except socket.gaierror as error:
            return "unknown" if error.errno in _UNKNOWN else "no_answer"
        except (OSError, ValueError):  # a name that cannot be asked for
            return "no_answer"
        return FOUND


_UNKNOWN = {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}
