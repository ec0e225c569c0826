"""Looks up many hosts at once, with a limit for each look-up and one for all."""

import math
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeVar

from .guard import Denied, Guard

# What ``check_host`` returns of a host that has an allowed address.
FOUND = ""
_PORT = 80
_PAUSE_S = 0.05
_UNKNOWN = {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}
_Outcome = TypeVar("_Outcome")


def look_up_all(
    hosts: Iterable[str],
    look_up: Callable[[str], _Outcome],
    threads: int,
    limit: float,
    late: tuple[float, _Outcome] | None = None,
) -> dict[str, _Outcome]:
    """Returns the outcome of each host that was looked up in time.

    A name server that does not answer holds up a thread, which cannot be stopped. A look-up that is
    late gives its place to another thread, up to as many as there are places; then the other hosts
    are left out.

    Args:
        hosts: Names of hosts.
        look_up: Looks up one; raises nothing.
        threads: How many look-ups run at a time.
        limit: Time limit of all, s.
        late: Time limit of a look-up, s, and its outcome then; None: only the limit of all counts.
    """
    timeout = math.inf if late is None else late[0]
    waiting_hosts, outcomes, lock = deque(hosts), dict[str, _Outcome](), threading.Lock()
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
            outcome = look_up(host)
            with lock:
                outcomes.setdefault(host, outcome)

    def start() -> None:
        # Not a thread pool: it would wait for a name server that does not answer.
        thread = threading.Thread(target=work, name="nutbeam-lookup", daemon=True)
        running[thread] = ("", math.inf)
        thread.start()

    until, hung = time.monotonic() + limit, 0
    with lock:
        for _ in range(min(threads, len(waiting_hosts))):
            start()
    while True:
        with lock:
            now = time.monotonic()
            for thread in [t for t, (_, begun) in running.items() if now - begun > timeout]:
                host, _ = running.pop(thread)
                if late is not None:
                    outcomes.setdefault(host, late[1])
                stopped.add(thread)
                hung += 1
                if waiting_hosts and hung <= threads:
                    start()
            if not running or now > until:
                waiting_hosts.clear()
                return dict(outcomes)
        time.sleep(_PAUSE_S if len(waiting_hosts) else _PAUSE_S / 10)


def check_host(guard: Guard, host: str) -> str:
    """Returns ``FOUND``, or the reason why a host has no allowed address.

    Args:
        guard: Resolves the name, and judges its addresses.
        host: Host as in URLs.
    """
    try:
        guard.target(host.strip("[]"), _PORT, own=_PORT)
    except Denied as error:
        return error.reason
    except socket.gaierror as error:
        return "unknown" if error.errno in _UNKNOWN else "no_answer"
    except (OSError, ValueError):  # a name that cannot be asked for
        return "no_answer"
    return FOUND
