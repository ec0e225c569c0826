"""A proxy that all requests go through, and what can still be judged before it."""

import ipaddress
import re
import socket
from typing import NamedTuple

from .guard import Denied, is_public

_PROXY = re.compile(r"http://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})/?")
# Names that are nobody's on the internet: RFC 6761, 6762, 7686, 8375, 9476, and the cloud's own.
_SPECIAL = (
    *("localhost", "local", "localdomain", "internal", "intranet", "lan", "home", "corp"),
    *("private", "svc", "home.arpa", "onion", "alt", "test", "invalid"),
)
# What getaddrinfo would read as an IPv4 address: 127.1, 0x7f.1, 2130706433.
_NUMBER = re.compile(r"(?:0[xX][0-9A-Fa-f]*|[0-9]+)")

OPEN = (
    "all requests go through the proxy %s, which resolves names itself: that no name leads to a "
    "private address is the proxy's to see to. Literal addresses, special names and ports are "
    "judged here as ever."
)


class Proxy(NamedTuple):
    """Where the proxy is.

    Attributes:
        host: Name or address, without brackets, lower-case.
        port: Port.
    """

    host: str
    port: int

    @property
    def url(self) -> str:
        """The proxy as it is typed."""
        return (
            f"http://[{self.host}]:{self.port}"
            if ":" in self.host
            else f"http://{self.host}:{self.port}"
        )


def parse_proxy(text: str) -> Proxy | None:
    """Returns the proxy of ``http_proxy``; None for an empty text.

    Raises:
        ValueError: It is no ``http://HOST:PORT``; not quoted, it may hold a password.

    >>> parse_proxy("http://Proxy.example.com:3128")
    Proxy(host='proxy.example.com', port=3128)
    """
    if not text:
        return None
    if "@" in text:
        raise ValueError(
            "http_proxy must be http://HOST:PORT without user and password: "
            "these go into the file of --http_credentials"
        )
    match = _PROXY.fullmatch(text)
    if match is None or not 0 < int(match[2]) < 65536:
        raise ValueError(f"http_proxy must be http://HOST:PORT, got {text!r}")
    return Proxy(match[1].lower().strip("[]"), int(match[2]))


def judge_name(host: str, opened: bool = False) -> None:
    """Checks what can be known of a host without resolving it.

    Args:
        host: Name or address literal, without brackets, lower-case.
        opened: Whether the operator allows the address that it is.

    Raises:
        Denied: It is no public address, or a name of no public host.

    >>> judge_name("www.example.com")
    """
    literal = as_address(host)
    if literal is not None:
        if not opened and not is_public(literal):
            raise Denied("address_denied", f"{literal} is no public address")
        return
    labels = host.rstrip(".").split(".")
    special = any(
        host.rstrip(".") == name or host.rstrip(".").endswith(f".{name}") for name in _SPECIAL
    )
    if special or len(labels) < 2 or _NUMBER.fullmatch(labels[-1]):
        raise Denied("address_denied", f"{host!r} is no name of a public host")


def as_address(host: str) -> str | None:
    """Returns the address that a host is a spelling of, as resolvers read it; None for a name.

    >>> as_address("0x7f.1"), as_address("2130706433"), as_address("www.example.com")
    ('127.0.0.1', '127.0.0.1', None)
    """
    try:
        return str(ipaddress.ip_address(host.split("%")[0]))
    except ValueError:
        pass
    labels = host.rstrip(".").split(".")
    if len(labels) <= 4 and all(map(_NUMBER.fullmatch, labels)):
        try:
            return socket.inet_ntoa(socket.inet_aton(host.rstrip(".")))
        except OSError:
            return None
    return None
