"""Stores and sends cookies, if the operator enables them.

It implements RFC 6265 with the checks of its successor (6265bis): no cookies for a whole
public suffix, ``__Host-`` and ``__Secure-`` names, Secure cookies only over https.
"""

import dataclasses
import email.utils
import re
import threading
from collections import OrderedDict
from collections.abc import Iterable
from urllib.parse import urlsplit

from ..base.clock import now_ms
from ..network.dialer import split_url
from ..network.proxy import as_address
from ..urls.domains import is_shared_suffix, names_above
from .status import moment_of

_MAX_COOKIE_BYTES = 4_096
_MAX_PER_HOST = 50
_MAX_BYTES = 16 << 20
_MAX_KEPT_BYTES = 8_192  # of a host, from fetch to fetch
_OVERHEAD_BYTES = 300  # bytes that a cookie takes besides name and value
_MAX_AGE_S = 400 * 86_400.0  # 6265bis 5.5
_CONTROLS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


@dataclasses.dataclass(slots=True)
class Cookie:
    """One cookie in the jar.

    Attributes:
        name: Name.
        value: Value.
        domain: Host or domain of the cookie.
        host_only: Whether it is only for the host ``domain``, not for hosts below it.
        path: Path prefix.
        secure: Whether it is sent only over https.
        expires: Time in s since the epoch.
        order: Number in the order of arrival.
    """

    name: str
    value: str
    domain: str
    host_only: bool
    path: str
    secure: bool
    expires: float
    order: int

    @property
    def size(self) -> int:
        """Bytes in memory, roughly."""
        return (
            _OVERHEAD_BYTES + len(self.name) + len(self.value) + len(self.path) + len(self.domain)
        )


class CookieJar:
    """Keeps cookies in memory, those of the latest hosts; threads may share it."""

    def __init__(self) -> None:
        self._by_domain: OrderedDict[str, dict[tuple[str, str], Cookie]] = OrderedDict()
        self._restored: set[str] = set()
        self._count = self._bytes = 0
        self._lock = threading.Lock()

    def header(self, url: str, now: float | None = None) -> str | None:
        """Returns the value of Cookie for a URL; None if there is none."""
        (scheme, host, _), target = split_url(url)
        path = target.partition("?")[0]
        cookies = [
            cookie
            for cookie in self._cookies_of(host, now)
            if (not cookie.secure or scheme == "https") and _path_matches(path, cookie.path)
        ]
        cookies.sort(key=lambda cookie: (-len(cookie.path), cookie.order))
        return "; ".join(f"{c.name}={c.value}" if c.name else c.value for c in cookies) or None

    def take(self, url: str, values: Iterable[str], now: float | None = None) -> bool:
        """Keeps the cookies of Set-Cookie headers, except those that must be ignored.

        Returns:
            Whether a cookie is new, or has a new value.
        """
        now = now_ms() / 1000 if now is None else now
        is_new = False
        for value in values:
            cookie = parse_cookie(value, url, now)
            if cookie is not None:
                is_new |= self._keep(cookie, url.startswith("https:"), now)
        return is_new

    def restore(self, host: str, lines: str, now: float | None = None) -> None:
        """Takes over the cookies of an earlier fetch, once for each host, as ``lines_of`` has them.

        Cookies that the host could not have set are ignored; newer ones are kept.
        """
        now = now_ms() / 1000 if now is None else now
        with self._lock:
            if host in self._restored:
                return
            self._restored.add(host)
        for line in reversed(lines.splitlines()):
            cookie = parse_cookie(line, f"https://{host}/", now)
            if cookie is not None and not self._has(cookie):
                self._keep(cookie, True, now)

    def lines_of(self, host: str, now: float | None = None) -> str:
        """Returns the cookies for a host as Set-Cookie headers, one per line, the newest first.

        They have dates in place of ages. At most ``_MAX_KEPT_BYTES``: the newest ones.
        """
        lines, size = [], 0
        for cookie in sorted(self._cookies_of(host, now), key=lambda cookie: -cookie.order):
            line = _as_line(cookie)
            size += len(line) + 1
            if size > _MAX_KEPT_BYTES:
                break
            lines.append(line)
        return "\n".join(lines)

    def _cookies_of(self, host: str, now: float | None) -> list[Cookie]:
        """Returns the cookies for a host that have not expired."""
        now = now_ms() / 1000 if now is None else now
        with self._lock:
            return [
                cookie
                for domain in _domains(host)
                for cookie in self._by_domain.get(domain, {}).values()
                if cookie.expires > now and (not cookie.host_only or cookie.domain == host)
            ]

    def _has(self, cookie: Cookie) -> bool:
        with self._lock:
            return (cookie.name, cookie.path) in self._by_domain.get(cookie.domain, {})

    def _keep(self, cookie: Cookie, over_https: bool, now: float) -> bool:
        """Keeps a cookie; returns whether it is new, or has a new value."""
        with self._lock:
            cookies = self._by_domain.setdefault(cookie.domain, {})
            self._by_domain.move_to_end(cookie.domain)
            key = (cookie.name, cookie.path)
            old = cookies.get(key)
            is_new = cookie.expires > now and (old is None or old.value != cookie.value)
            # 6265bis 5.7: a cookie from http must not replace one from https.
            if old is None or over_https or not old.secure:
                self._count += 1
                cookie.order = old.order if old else self._count
                self._bytes += cookie.size - (old.size if old else 0)
                cookies[key] = cookie
            for key in [key for key, other in cookies.items() if other.expires <= now]:
                self._bytes -= cookies.pop(key).size
            if len(cookies) > _MAX_PER_HOST:
                oldest = min(cookies, key=lambda key: cookies[key].order)
                self._bytes -= cookies.pop(oldest).size
            if not cookies:
                del self._by_domain[cookie.domain]
            while self._bytes > _MAX_BYTES:
                _, forgotten = self._by_domain.popitem(last=False)
                self._bytes -= sum(other.size for other in forgotten.values())
        return is_new


def parse_cookie(text: str, url: str, now: float) -> Cookie | None:
    """Returns the cookie that a Set-Cookie header sets; None if it must be ignored.

    >>> cookie = parse_cookie("a=1; Domain=example.com; Path=/", "http://www.example.com/x", 0)
    >>> cookie.domain, cookie.host_only, cookie.path
    ('example.com', False, '/')
    >>> parse_cookie("a=1; Domain=co.uk", "http://www.example.co.uk/", 0) is None
    True
    """
    if len(text) > 2 * _MAX_COOKIE_BYTES or _CONTROLS.search(text):
        return None
    pair, *rest = text.split(";")
    name, equals, value = pair.partition("=")
    name, value = (name.strip(), value.strip()) if equals else ("", pair.strip())
    if not 0 < len(name) + len(value) <= _MAX_COOKIE_BYTES:
        return None
    parts = (part.partition("=") for part in rest)
    attributes = {key.strip().lower(): content.strip() for key, _, content in parts}
    (scheme, host, _), target = split_url(url)
    domain = attributes.get("domain", "").lower().removeprefix(".")
    is_domain_cookie = bool(domain) and _domain_allowed(host, domain)
    if domain and not is_domain_cookie and domain != host:
        return None
    secure = "secure" in attributes
    if secure and scheme != "https":
        return None
    prefix = (name or value).lower()  # a value without name could pass for a name
    if prefix.startswith(("__secure-", "__host-")) and not (name and secure):
        return None
    if prefix.startswith("__host-") and (domain or attributes.get("path") != "/"):
        return None
    path = attributes.get("path", "")
    path = path if path.startswith("/") else _default_path(target)
    owner = domain if is_domain_cookie else host
    return Cookie(
        name, value, owner, not is_domain_cookie, path, secure, _expires(attributes, now), 0
    )


def _as_line(cookie: Cookie) -> str:
    """Returns a cookie as a Set-Cookie header that ``parse_cookie`` reads."""
    parts = [f"{cookie.name}={cookie.value}", f"Path={cookie.path}"]
    parts += [] if cookie.host_only else [f"Domain={cookie.domain}"]
    parts += ["Secure"] if cookie.secure else []
    return "; ".join([*parts, f"Expires={email.utils.formatdate(cookie.expires, usegmt=True)}"])


def _domain_allowed(host: str, domain: str) -> bool:
    """Returns whether a host may set a cookie for a domain and all below it."""
    return (
        (host == domain or host.endswith(f".{domain}"))
        and not as_address(host.strip("[]"))
        and "." in domain.strip(".")
        and not is_shared_suffix(domain)
    )


def _domains(host: str) -> list[str]:
    """Returns a host and the domains above it."""
    return [host] if as_address(host.strip("[]")) else names_above(host)


def _default_path(target: str) -> str:
    path = urlsplit(target).path
    return path[: path.rfind("/")] or "/" if path.startswith("/") else "/"


def _path_matches(path: str, prefix: str) -> bool:
    if not path.startswith(prefix):
        return False
    return len(path) == len(prefix) or prefix.endswith("/") or path[len(prefix)] == "/"


def _expires(attributes: dict[str, str], now: float) -> float:
    age = attributes.get("max-age", "")
    if re.fullmatch(r"-?[0-9]+", age):
        return now + min(_MAX_AGE_S, float(age[:12])) if not age.startswith("-") else 0.0
    moment = moment_of(attributes.get("expires", ""))
    return now + _MAX_AGE_S if moment is None else min(moment, now + _MAX_AGE_S)
