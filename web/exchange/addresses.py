"""Looks up addresses of hosts, many at once; hosts at one address share it; checks single hosts."""

import contextlib
import ipaddress
import math
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import polars as pl

from ..base.dataclass import dataclass
from ..base.options import shared_option
from ..network.dialer import split_url
from ..network.guard import Denied, Destination, Guard
from ..network.proxy import parse_proxy
from ..urls.row_keys import from_host_key, from_key, host_key_of
from .http_options import HttpOptions

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


THREADS = 64
SECONDS = 600.0
ADDRESS_CHANGED = "address_changed"


@dataclass(frozen=True)
class AddressOptions:
    """Options that decide where connections go, for jobs before fetch."""

    connect_to: tuple[str, ...] = shared_option(HttpOptions, "connect_to")
    allow_addresses: tuple[str, ...] = shared_option(HttpOptions, "allow_addresses")
    allowed_ports: tuple[str, ...] = shared_option(HttpOptions, "allowed_ports")
    http_proxy: str = shared_option(HttpOptions, "http_proxy")

    def __post_init__(self) -> None:
        Addresses(self)


class Addresses:
    """Chooses the address for requests to a host; safe to share by threads.

    Args:
        options: Options that decide where connections go.
        guard: Guard to use instead of the guard from the options.

    Raises:
        ValueError: An option cannot be read.
    """

    def __init__(self, options: "AddressOptions | HttpOptions", guard: Guard | None = None) -> None:
        where = options.allow_addresses, options.connect_to, options.allowed_ports
        self._guard = guard or Guard(*where)
        self._proxied = parse_proxy(options.http_proxy) is not None

    def uses_name(self, host: str, ports: Iterable[int]) -> bool:
        """Returns whether connections to a host use its name: with ``connect_to`` or a proxy."""
        return not self._direct_ports(host, ports)

    def _direct_ports(self, host: str, ports: Iterable[int]) -> list[int]:
        if self._proxied:
            return []
        return [port for port in ports if self._guard.connect_to(host.strip("[]"), port) is None]

    def look_up(self, host: str, ports: Iterable[int]) -> str | None:
        """Returns the address of a host: its smallest one, of IPv4 if it has any.

        So hosts with the same addresses get the same one, for any order of the name server's
        answers. None if connections use the name; empty if no address is allowed.
        """
        direct = self._direct_ports(host, ports)
        if not direct:
            return None
        addresses: set[str] = set()
        for port in direct:
            with contextlib.suppress(OSError, ValueError):  # or a name that cannot be asked for
                target = self._guard.target(host.strip("[]"), port)
                addresses.update(entry[1][0] for entry in target.addresses)
        return min(addresses, key=_order, default="")

    def look_up_all(
        self, hosts: Mapping[str, Iterable[int]], threads: int = THREADS, seconds: float = SECONDS
    ) -> dict[str, str | None]:
        """Returns the addresses of hosts, see ``look_up``, by reversed host.

        Hosts that were not looked up in time are missing.

        Args:
            hosts: Ports by reversed host.
            threads: Lookups at a time.
            seconds: Time limit in all.
        """
        return look_up_all(
            hosts, lambda key: self.look_up(from_host_key(key), hosts[key]), threads, seconds
        )


class PinnedGuard(Guard):
    """A guard that allows only one address for each host.

    Args:
        options: Options of the guard.
        pins: Address by host; empty if the host had no allowed address.
    """

    def __init__(self, options: HttpOptions, pins: Mapping[str, str]) -> None:
        super().__init__(options.allow_addresses, options.connect_to, options.allowed_ports)
        self._pins = {host.strip("[]"): address for host, address in pins.items()}

    def target(self, host: str, port: int, own: int = 0) -> Destination:
        """Returns the addresses for connections to a host; see ``Guard.target``.

        Raises:
            Denied: Also if its pinned address is not among its addresses.
        """
        target = super().target(host, port, own)
        pin = self._pins.get(host)
        if pin is None or self.connect_to(host, port) is not None:
            return target
        pinned_addresses = tuple(entry for entry in target.addresses if entry[1][0] == pin)
        if not pinned_addresses:
            was = pin or "no address"
            raise Denied(ADDRESS_CHANGED, f"{host} is at {target.addresses[0][1][0]}, not {was}")
        return target._replace(addresses=pinned_addresses)


def endpoints(keys: pl.Series) -> dict[str, set[int]]:
    """Returns the ports of row keys, by reversed host; only ports of http and https.

    >>> endpoints(pl.Series(["com.a:http:81/x", "com.a:https/", "com.b:ftp/"]))
    {'com.a': {81, 443}, 'com.b': set()}
    """
    ports_by_host: dict[str, set[int]] = {}
    for place in keys.str.extract("^([^/]*)/").unique(maintain_order=True).drop_nulls():
        ports = ports_by_host.setdefault(host_key_of(place), set())
        with contextlib.suppress(ValueError):  # it is not http
            ports.add(split_url(from_key(f"{place}/"))[0][2])
    return ports_by_host


def _order(address: str) -> tuple[int, int]:
    parsed = ipaddress.ip_address(address)
    return parsed.version, int(parsed)
