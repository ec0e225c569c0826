"""A proxy for all requests, and the checks of host names that need no lookup."""

import re
import socket
from typing import NamedTuple

from ..urls.domains import is_known_suffix, names_above
from .guard import Denied, is_public, parse_ip

_PROXY = re.compile(r"http://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})/?")
# Names of no public host, although their last label is a top-level domain: infrastructure (RFC
# 3172, with home.arpa of RFC 8375) and RFC 7686; then names that routers answer themselves; then
# names that development tools use, and that resolve to a loopback address.
_SPECIAL = frozenset(
    (  # noqa: SIM905
        "arpa onion fritz.box easy.box o2.box congstar.box pi.hole router.asus.com asusrouter.com "
        "tplinkwifi.net tplinkmodem.net tplinklogin.net tplinkap.net tplinkrepeater.net "
        "tplinkextender.net tplinkplclogin.net routerlogin.net routerlogin.com orbilogin.com "
        "orbilogin.net mywifiext.net huaweimobilewifi.com tendawifi.com tendawifi.net attlocal.net "
        "connect.box vodafone.box kabel.box arris.box alice.box myfritz.box setup.ubnt.com "
        "mabbox.bytel.fr ts.net localtest.me lvh.me vcap.me lacolhost.com localho.st smackaho.st "
        "local.gd yoogle.com "
        "metadata.goog"  # the metadata server of Google's cloud
    ).split()
)
# Labels that getaddrinfo reads as an IPv4 address: 127.1, 0x7f.1, 2130706433.
_NUMBER = re.compile(r"(?:0[xX][0-9A-Fa-f]*|[0-9]+)")

OPEN = (
    "all requests go through the proxy %s, which resolves names itself: that no name leads to a "
    "private address is the responsibility of the proxy. Literal addresses, special names and "
    "ports are still checked here."
)


class ProxyFailed(OSError):
    """The proxy cannot be reached, or refuses the credentials."""


class ProxyRefused(OSError):
    """The proxy refuses to connect to this host."""


class Proxy(NamedTuple):
    """The address of the proxy.

    Attributes:
        host: Name or address, without brackets, lower-case.
        port: Port.
    """

    host: str
    port: int


def parse_proxy(text: str) -> Proxy | None:
    """Returns the proxy of ``http_proxy``; None for an empty text.

    Raises:
        ValueError: It is not ``http://HOST:PORT``; the message does not quote it, as it may hold a
            password.

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
    """Checks a host without resolving it.

    Args:
        host: Name or address literal, without brackets, lower-case.
        opened: Whether the operator allows it, if it is an address.

    Raises:
        Denied: It is not a public address, or not the name of a public host.

    >>> judge_name("www.example.com")
    """
    literal = as_address(host)
    if literal is not None:
        if not opened and not is_public(literal):
            raise Denied("address_denied", f"{literal} is no public address")
        return
    if not _is_public_name(host.removesuffix(".")):
        raise Denied("address_denied", f"{host!r} is no name of a public host")


def _is_public_name(name: str) -> bool:
    """Returns whether a name may be that of a public host.

    A top-level domain that is not in the public suffix list belongs to a private network
    (``belkin``, ``consul``, ``intra``, ``lan``) or is special (``localhost``, ``local``,
    ``internal``, ``test``): see IANA's registry of special-use names, and ICANN's name collisions.
    """
    labels = name.split(".")
    if len(labels) < 2 or not all(labels) or _NUMBER.fullmatch(labels[-1]):
        return False
    if not is_known_suffix(labels[-1]):
        return False
    return _SPECIAL.isdisjoint(names_above(name))


def as_address(host: str) -> str | None:
    """Returns the IP address that a host means to resolvers, in any spelling; None for a name.

    >>> as_address("0x7f.1"), as_address("2130706433"), as_address("www.example.com")
    ('127.0.0.1', '127.0.0.1', None)
    """
    address = parse_ip(host.split("%")[0])
    if address is not None:
        return str(address)
    labels = host.rstrip(".").split(".")
    if len(labels) <= 4 and all(map(_NUMBER.fullmatch, labels)):
        try:
            return socket.inet_ntoa(socket.inet_aton(host.rstrip(".")))
        except OSError:
            return None
    return None
