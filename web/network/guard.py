"""Decides where a connection may go, after the name is resolved and before the connection is made.

Every address of a name is checked. The connection goes to a checked address, without a
second lookup. So an unusual spelling (``0x7f.1``), or a name server that changes its answers,
cannot lead to an internal address.
"""

import ipaddress
import re
import socket
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ..base.mappings import SizeCache

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
SockAddress = tuple[Any, ...]
Lookup = Callable[..., list[tuple[Any, Any, int, str, SockAddress]]]

# IANA special-purpose registry (RFC 6890), multicast, and 192.88.99.0/24 (RFC 7526).
# `ipaddress.is_global` is no substitute: it passes multicast and 192.0.0.8.
_DENIED_V4 = tuple(
    ipaddress.IPv4Network(block)
    for block in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16"),
        *("172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16"),
        *("198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
    )
)
# All global unicast addresses of IPv6 are in 2000::/3; all others are denied.
_UNICAST_V6 = ipaddress.IPv6Network("2000::/3")
_DENIED_V6 = tuple(
    ipaddress.IPv6Network(block) for block in ("2001::/23", "2001:db8::/32", "3fff::/20")
)
_MAPPED = ipaddress.IPv6Network("::ffff:0:0/96")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")

_CONNECT_TO = re.compile(r"(\[[^\]]*\]|[^:\[\]]*):(\d*):(\[[^\]]+\]|[^:\[\]]*):(\d*)")
_NAME = re.compile(r"(\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*")
_MAX_NAMES = 20_000
_DNS_TTL_S = 300.0


class Denied(OSError):
    """A connection that must not be made.

    Attributes:
        reason: ``address_denied``, ``address_changed``, ``port_denied``, ``agent_missing``
            or ``stopped``.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


def check_gate(gate: Callable[[], bool] | None) -> None:
    """Calls a client's gate, if it has one, right before a request.

    Raises:
        Denied: The gate denies the request.
    """
    if gate is not None and not gate():
        raise Denied("stopped", "no more requests may be sent")


class ConnectTo(NamedTuple):
    """One parsed ``connect_to`` entry; port 0 means "any" or "the same"."""

    host: str
    port: int
    address: str
    to_port: int


class Destination(NamedTuple):
    """The addresses for a connection to a host.

    Attributes:
        addresses: (family, socket address), in the order to try them.
        opened: Whether the operator allows it explicitly: ``connect_to`` has the host, or
            ``allow_addresses`` contains every address.
    """

    addresses: tuple[tuple[int, SockAddress], ...]
    opened: bool


def is_public(address: str) -> bool:
    """Returns whether an address literal is global unicast.

    If it maps or tunnels to an IPv4 address, that address must be public, too. Text that is not an
    address, or has a zone, is not public.

    >>> [is_public(a) for a in ("1.1.1.1", "224.0.0.1", "64:ff9b::7f00:1", "2606:4700::1111")]
    [True, False, False, True]
    """
    parsed = parse_ip(address)
    return parsed is not None and _is_public(parsed)


def parse_ip(text: str) -> Address | None:
    """Parses an IP address; returns None if the text is not one."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _is_public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in block for block in _DENIED_V4)
    if address.scope_id is not None:
        return False
    inner_addresses = _inner_addresses(address)
    if inner_addresses:
        return all(_is_public(inner) for inner in inner_addresses)
    return address in _UNICAST_V6 and not any(address in block for block in _DENIED_V6)


def _inner_addresses(address: ipaddress.IPv6Address) -> tuple[ipaddress.IPv4Address, ...]:
    """Returns the IPv4 addresses that an IPv6 address maps or tunnels to.

    IPv4-compatible ones (``::/96``) and the local NAT64 prefix (RFC 8215) are outside of
    ``2000::/3``, and so always denied.
    """
    if address.ipv4_mapped is not None:
        return (address.ipv4_mapped,)
    if address in _NAT64:
        return (ipaddress.IPv4Address(int(address) & 0xFFFFFFFF),)
    if address.sixtofour is not None:
        return (address.sixtofour,)
    return address.teredo or ()


def parse_networks(entries: Iterable[str]) -> tuple[Network, ...]:
    """Returns the networks of ``allow_addresses``.

    A block within ``::ffff:0:0/96`` means the IPv4 block that it maps to, because a connection to
    a mapped address uses IPv4. Larger blocks, such as ``::/0``, contain no IPv4 addresses. Blocks
    of NAT64 and 6to4 allow no IPv4 addresses, because these are reached in another way.

    Raises:
        ValueError: An entry is neither an address nor a CIDR block.

    >>> parse_networks(["127.0.0.1", "fd00::/8", "::ffff:7f00:0/104"])
    (IPv4Network('127.0.0.1/32'), IPv6Network('fd00::/8'), IPv4Network('127.0.0.0/8'))
    """
    networks = []
    for entry in entries:
        try:
            networks.append(_unmap_network(ipaddress.ip_network(entry, strict=False)))
        except ValueError as error:
            raise ValueError(f"allow_addresses must be CIDR blocks, got {entry!r}") from error
    return tuple(networks)


def _unmap_network(network: Network) -> Network:
    if isinstance(network, ipaddress.IPv4Network) or not network.subnet_of(_MAPPED):
        return network
    first = int(network.network_address) & 0xFFFFFFFF
    return ipaddress.IPv4Network((first, network.prefixlen - 96))


def parse_connect_to(entry: str) -> ConnectTo:
    """Parses a ``connect_to`` entry, ``HOST:PORT:ADDRESS:PORT`` as in curl.

    HOST is required; ``*.example.com`` means ``example.com`` and every name
    below it. An empty first port means any port. An empty ADDRESS or second port
    means that of the URL. IPv6 literals are in brackets.

    Raises:
        ValueError: The entry has another form.

    >>> parse_connect_to("*.example.com:80:[::1]:8080")
    ConnectTo(host='*.example.com', port=80, address='::1', to_port=8080)
    """
    match = _CONNECT_TO.fullmatch(entry)
    if match is None:
        raise ValueError(f"connect_to must be HOST:PORT:ADDRESS:PORT, got {entry!r}")
    host, port, address, to_port = match.groups()
    host = host.lower()
    bracketed = isinstance(parse_ip(host[1:-1]), ipaddress.IPv6Address) and host[0] == "["
    if not _NAME.fullmatch(host) and not bracketed:
        raise ValueError(f"connect_to must name a host, or *.DOMAIN, got {entry!r}")
    if max(int(port or 0), int(to_port or 0)) > 65535:
        raise ValueError(f"connect_to must have ports up to 65535, got {entry!r}")
    return ConnectTo(host.strip("[]"), int(port or 0), address.strip("[]"), int(to_port or 0))


def parse_ports(entries: Iterable[str]) -> tuple[range, ...]:
    """Returns the ranges of ``allowed_ports``.

    Raises:
        ValueError: An entry is neither a port nor ``FIRST-LAST``.

    >>> parse_ports(["80", "8000-8999"])
    (range(80, 81), range(8000, 9000))
    """
    ranges = []
    for entry in entries:
        first, _, last = entry.partition("-")
        last = last or first
        numbers = first.isdecimal() and last.isdecimal()
        if not numbers or not 1 <= int(first) <= int(last) <= 65535:
            raise ValueError(f"allowed_ports must be ports or FIRST-LAST, got {entry!r}")
        ranges.append(range(int(first), int(last) + 1))
    return tuple(ranges)


class Guard:
    """Resolves names and decides where connections may go; safe to share by threads.

    Args:
        allow_addresses: CIDR blocks that may be reached though not public.
        connect_to: ``HOST:PORT:ADDRESS:PORT`` entries, see ``parse_connect_to``; connections
            to these hosts only go to the given addresses.
        allowed_ports: Ports that a URL may have, such as ``8000-8999``.
        lookup: Function to use instead of ``socket.getaddrinfo``.

    Raises:
        ValueError: An entry cannot be read.
    """

    def __init__(
        self,
        allow_addresses: Iterable[str] = (),
        connect_to: Iterable[str] = (),
        allowed_ports: Iterable[str] = ("80", "443"),
        lookup: Lookup = socket.getaddrinfo,
    ) -> None:
        self._allowed = parse_networks(allow_addresses)
        self._ports = parse_ports(allowed_ports)
        self._connect_to = tuple(parse_connect_to(entry) for entry in connect_to)
        self._lookup = lookup
        self._names: SizeCache[str, tuple[float, list[tuple[int, SockAddress]]]]
        self._names = SizeCache(_MAX_NAMES)

    def connect_to(self, host: str, port: int) -> ConnectTo | None:
        """Returns the first ``connect_to`` entry that names a host and port, if any."""
        for entry in self._connect_to:
            if entry.port in (0, port) and _matches_host(entry.host, host):
                return entry
        return None

    def target(self, host: str, port: int, own: int = 0) -> Destination:
        """Returns the addresses at which a host may be reached.

        Args:
            host: Name or address literal as in the URL, without brackets, lower-case.
            port: Port as in the URL.
            own: The usual port of the URL's scheme, which needs no permission; 0 for none.

        Raises:
            Denied: No address is allowed, or the port is not allowed.
            socket.gaierror: The name does not resolve.
        """
        entry = self.connect_to(host, port)
        if entry is not None:
            return Destination(self.addresses(entry.address or host, entry.to_port or port), True)
        if port != own:
            self.check_port(port)
        resolved = self._resolve(host)
        opened = [entry for entry in resolved if self.allows(entry[1][0])]
        passed = [entry for entry in resolved if entry in opened or is_public(entry[1][0])]
        if not passed:
            raise Denied("address_denied", f"{resolved[0][1][0]} is no public address")
        return Destination(_with_port(passed, port), len(opened) == len(passed))

    def check_port(self, port: int) -> None:
        """Checks the port of a URL.

        Raises:
            Denied: The port is not allowed.
        """
        if not any(port in ports for ports in self._ports):
            raise Denied("port_denied", f"port {port} is not in allowed_ports")

    def addresses(self, host: str, port: int) -> tuple[tuple[int, SockAddress], ...]:
        """Returns the addresses of a host that the operator has named, unchecked.

        Raises:
            socket.gaierror: The name does not resolve.
        """
        return _with_port(self._resolve(host), port)

    def allows(self, address: str) -> bool:
        """Returns whether ``allow_addresses`` contains an address literal."""
        parsed = parse_ip(address)
        if parsed is None:
            return False
        mapped = getattr(parsed, "ipv4_mapped", None) or parsed
        return any(mapped in block for block in self._allowed if block.version == mapped.version)

    def knows(self, host: str) -> bool:
        """Returns whether the address of a name is cached, so that no lookup is needed."""
        cached_entry = self._names.get(host)
        return cached_entry is not None and time.monotonic() < cached_entry[0]

    def _resolve(self, host: str) -> list[tuple[int, SockAddress]]:
        now = time.monotonic()
        cached_entry = self._names.get(host)
        if cached_entry is not None and now < cached_entry[0]:
            return cached_entry[1]
        try:
            answers = self._lookup(host, 0, type=socket.SOCK_STREAM)
        except UnicodeError as error:  # a label over 63 characters
            raise socket.gaierror(socket.EAI_NONAME, "no host name") from error
        resolved = list(dict.fromkeys((int(entry[0]), entry[4]) for entry in answers))
        if not resolved:
            raise socket.gaierror(socket.EAI_NONAME, "no address")
        self._names.put(host, (now + _DNS_TTL_S, resolved))
        return resolved


def _with_port(
    resolved: list[tuple[int, SockAddress]], port: int
) -> tuple[tuple[int, SockAddress], ...]:
    return tuple((family, (to[0], port, *to[2:])) for family, to in resolved)


def _matches_host(pattern: str, host: str) -> bool:
    if pattern.startswith("*."):
        return host == pattern[2:] or host.endswith(pattern[1:])
    return host == pattern
