"""Where a page for people is served: its address, the names by which requests may call it, its path."""

import ipaddress
import re
import socket

from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError
from ...web.base.options import option
from ...web.base.wording import quote_value

_LOOPBACK = "127.0.0.1"
_LABEL = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9])?"
_HOST = re.compile(
    rf"(({_LABEL})(\.{_LABEL})*|\[(?P<ip>[0-9a-f:.]+)\])(:(?P<port>[1-9]\d{{0,4}}))?"
)
_LAST_PORT = 65_535


@dataclass(frozen=True)
class ServedOptions:
    """Where a page is served, as options."""

    GROUP = "serving"

    port: int = option(0, "Port of the page; 0 takes a free one.", minimum=0, maximum=65535)
    host: str = option(
        _LOOPBACK,
        "IP address of this machine on which the page is served. With 0.0.0.0 and :: other "
        "machines reach it; then name it in allowed_hosts.",
    )
    allowed_hosts: tuple[str, ...] = option(
        (),
        "Names by which requests may call the page, such as that of a reverse proxy; without "
        "a port for any port. Requests for other names are refused.",
    )
    base_path: str = option("/", "Path of the page, below which all its addresses are.")


@dataclass(frozen=True)
class ServedAddress:
    """Where a page is served, and who may ask.

    Attributes:
        port: Its port; 0 takes a free one.
        host: IP address of this machine on which it is served.
        allowed_hosts: Names by which requests may call it, such as that of a reverse proxy, each
            with a port, or without for any port.
        base_path: Path of the page, below which all its addresses are.
        cors_origins: Origins of other sites whose scripts may read answers; ``*``: of all sites.

    Raises:
        UsageError: A value is wrong; the message quotes it.
    """

    port: int = 0
    host: str = _LOOPBACK
    allowed_hosts: tuple[str, ...] = ()
    base_path: str = "/"
    cors_origins: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in self.allowed_hosts:
            if not _is_host(name.lower()):
                raise UsageError(
                    "--allowed_hosts takes names of hosts, such as search.example.com or "
                    f"search.example.com:8443, got {quote_value(name)}"
                )
        if not re.fullmatch(r"/([A-Za-z0-9_~-][A-Za-z0-9._~-]*/)*", self.path):
            raise UsageError(
                f"--base_path takes a path, such as /search/, got {quote_value(self.base_path)}"
            )
        for origin in self.cors_origins:
            scheme, sign, host = origin.partition("://")
            if origin != "*" and not (sign and scheme in ("http", "https") and _is_host(host)):
                raise UsageError(
                    "--cors_origins takes origins in lower case without a path, such as "
                    f"https://example.com, or *, got {quote_value(origin)}"
                )
        if self._ip.is_unspecified and not self.allowed_hosts:
            raise UsageError(
                f"--host {self.host} takes requests from other machines: name the hosts that "
                f"they ask for, as in --allowed_hosts {_name_of_machine()}"
            )

    @property
    def path(self) -> str:
        """The base path, with a slash at its end."""
        return self.base_path if self.base_path.endswith("/") else f"{self.base_path}/"

    @property
    def is_local(self) -> bool:
        """Whether only this machine can ask: the address is loopback, and no proxy is named."""
        return self._ip.is_loopback and not self.allowed_hosts

    @property
    def _ip(self) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
        try:
            return ipaddress.ip_address(self.host)
        except ValueError:
            raise UsageError(
                f"--host takes an IP address of this machine, got {quote_value(self.host)}"
            ) from None

    def names(self, port: int) -> tuple[str, ...]:
        """Returns the values of Host that name the server; those without a port name it on any.

        Args:
            port: The port that it has.
        """
        own = (f"[{self._ip}]" if self._ip.version == 6 else str(self._ip), "localhost", _LOOPBACK)
        local = own[:1] if not (self._ip.is_loopback or self._ip.is_unspecified) else own
        return (*(f"{name}:{port}" for name in local), *map(str.lower, self.allowed_hosts))

    def open_names(self, port: int) -> tuple[str, ...]:
        """Returns hosts with ports that open the page in a browser, those for other machines first.

        >>> ServedAddress(host="0.0.0.0", allowed_hosts=("box", "a.com:1")).open_names(80)
        ('box:80', 'a.com:1', 'localhost:80')
        >>> ServedAddress(allowed_hosts=("behind.proxy",)).open_names(80)
        ('127.0.0.1:80',)
        """
        if not self._ip.is_unspecified:
            return self.names(port)[:1]
        named = (n if re.search(r":\d+$", n) else f"{n}:{port}" for n in self.allowed_hosts)
        return (*named, f"localhost:{port}")

    def is_named(self, host: str, port: int) -> bool:
        """Returns whether a value of Host, in lower case, names the server.

        >>> address = ServedAddress(allowed_hosts=("a.com", "b.com:1"))
        >>> [address.is_named(host, 80) for host in ("a.com:9", "b.com", "localhost:80", "")]
        [True, False, True, False]
        """
        names = self.names(port)
        return host in names or re.sub(r":\d*$", "", host) in names

    def allowed_origin(self, origin: str) -> str | None:
        """Returns the value of Access-Control-Allow-Origin for an origin; None: it may not read."""
        if "*" in self.cors_origins:
            return "*"
        return origin if origin in self.cors_origins else None


def _name_of_machine() -> str:
    """Returns the name of this machine, as an example; another one if that is no name of a host."""
    name = socket.gethostname().lower()
    return name if _is_host(name) else "search.example.com"


def _is_host(text: str) -> bool:
    """Returns whether a text in lower case is a host, with a port or without.

    >>> [_is_host(text) for text in ("a.b:80", "[::1]:443", "a.b:99999", "a..b", "[:::]")]
    [True, True, False, False, False]
    """
    match = _HOST.fullmatch(text)
    if match is None or int(match["port"] or 0) > _LAST_PORT:
        return False
    try:
        return match["ip"] is None or ipaddress.ip_address(match["ip"]).version == 6
    except ValueError:
        return False
