"""Normalizers with rule files that have a rule per host: slash, host and protocol."""

import abc
import re
from collections.abc import Iterator
from typing import NamedTuple

import polars as pl

from ..base.wording import value_error
from ..rule_files.rule_files import entries, host_name, pattern_name
from ..urls.domains import names_above
from ..urls.schemes import SCHEMES
from ..urls.url_parts import host_of_url, parts_of
from .normalizer_step import Step

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)(://)([^/?#]*)([^?#]*)(.*)", re.DOTALL)
# A path that ends with a dot and up to this many characters gets no slash.
_EXTENSION = 5
# Schemes with a host: file: has none.
_SCHEMES = tuple(name for name in SCHEMES if name != "file")


class _Parts(NamedTuple):
    """The parts of a URL; joined, they are the URL."""

    scheme: str
    colon: str
    site: str
    path: str
    rest: str


class _PerHost(Step):
    """A normalizer with rules for some hosts.

    Host names may be written in Unicode. If two lines have the same host, the last one counts.

    Attributes:
        form: Form of a valid line.
    """

    form = ""

    def __init__(self, text: str, name: str) -> None:
        self._rules: dict[str, str] = {}
        self.file = name
        for number, host, value in _pairs(text, name):
            site, rule = self.read(host, value)
            if site is None or rule is None:
                raise value_error(f"{name}:{number}: a line must be {self.form}", f"{host} {value}")
            # URLs that basic has not normalized yet may have the host as the file writes it.
            self._rules[host.lower()] = self._rules[site] = rule

    @abc.abstractmethod
    def read(self, host: str, value: str) -> tuple[str | None, str | None]:
        """Returns the host and the rule of a line; None for an invalid one."""

    def rule_of(self, host: str) -> str | None:
        """Returns the rule for a host."""
        return self._rules.get(host)

    def apply(self, url: str) -> str:
        """Returns the URL, changed by the rule for its host."""
        host = host_of_url(url)
        rule = self.rule_of(host) if host else None
        match = _URL.fullmatch(url) if rule is not None else None
        if rule is None or match is None:
            return url
        return "".join(self.change(_Parts(*match.groups()), rule))

    @abc.abstractmethod
    def change(self, parts: "_Parts", rule: str) -> "_Parts":
        """Returns the parts of a URL, changed by the rule of its host."""

    def touches(self, urls: pl.Series) -> pl.Series:
        """Returns which URLs are on a host that has a rule."""
        hosts = parts_of(urls).get_column("host")
        wanted = [host for host in hosts.unique() if host and self.rule_of(host) is not None]
        return hosts.is_in(wanted).fill_null(False)


class Slash(_PerHost):
    """Adds or removes the slash at the end of paths: ``HOST +`` or ``HOST -`` per line.

    Adds no slash after a file's extension. Unlike Nutch's, it keeps the port.

    >>> Slash("www.foo.com\\t+", "slashes.txt").apply("http://www.foo.com/page?a=b")
    'http://www.foo.com/page/?a=b'
    """

    name = "slash"
    form = "HOST + or HOST -"

    def read(self, host: str, value: str) -> tuple[str | None, str | None]:
        """Returns the host, and ``+`` or ``-``."""
        return host_name(host), value if value in ("+", "-") else None

    def change(self, parts: "_Parts", rule: str) -> "_Parts":
        """Adds the slash at the end of the path, or removes it, as the rule says."""
        path = parts.path
        if len(path) < 2:
            return parts
        if rule == "-":
            path = path.removesuffix("/")
        elif not path.endswith("/") and (len(path) < 6 or "." not in path[-_EXTENSION - 1 :]):
            path += "/"
        return parts._replace(path=path)


class _PerDomain(_PerHost):
    """A normalizer that also has rules for ``*.DOMAIN``."""

    def rule_of(self, host: str) -> str | None:
        """Returns the rule for a host, or else for a domain of the host."""
        names = (host, *(f"*.{domain}" for domain in self.domains_of(host)))
        return next((self._rules[name] for name in names if name in self._rules), None)

    def domains_of(self, host: str) -> list[str]:
        """Returns the domains of a host for which there may be a rule; the first rule counts."""
        return names_above(host)


class Host(_PerDomain):
    """Replaces hosts by another one: ``HOST TARGET`` or ``*.DOMAIN TARGET`` per line.

    A rule for the host itself has priority, then the rule for the shortest domain above it.

    >>> Host("*.foo.com foo.com", "hosts.txt").apply("http://www.foo.com:81/x")
    'http://foo.com:81/x'
    """

    name = "host"
    form = "HOST TARGET or *.DOMAIN TARGET, with two labels in DOMAIN at least"

    def read(self, host: str, value: str) -> tuple[str | None, str | None]:
        """Returns the host or ``*.DOMAIN`` of a rule, and the host that replaces it."""
        site = pattern_name(host)
        # As in Nutch, no rule is for all hosts of a top-level domain.
        below_top = site is not None and site.startswith("*.") and site.count(".") < 2
        return None if below_top else site, host_name(value)

    def domains_of(self, host: str) -> list[str]:
        """Returns the domains above a host, the shortest first; none is a top-level domain."""
        return names_above(host)[-2:0:-1]

    def change(self, parts: "_Parts", rule: str) -> "_Parts":
        """Returns the parts with the other host."""
        login, at, place = parts.site.rpartition("@")
        port = re.search(r":[0-9]*$", place)
        return parts._replace(site=f"{login}{at}{rule}{port[0] if port else ''}")


class Protocol(_PerDomain):
    """Sets the scheme: ``HOST SCHEME``, or ``*.DOMAIN SCHEME`` for a domain and all below it.

    A rule for the host itself has priority, then the rule for the longest domain. A URL with a
    port stays unchanged. Schemes are http, https and ftp.

    >>> Protocol("*.foo.com https", "protocols.txt").apply("http://foo.com/x")
    'https://foo.com/x'
    """

    name = "protocol"
    form = f"HOST SCHEME or *.DOMAIN SCHEME, with {', '.join(_SCHEMES[:-1])} or {_SCHEMES[-1]}"

    def read(self, host: str, value: str) -> tuple[str | None, str | None]:
        """Returns the host or ``*.DOMAIN``, and the scheme."""
        scheme = value.lower()
        return pattern_name(host), scheme if scheme in _SCHEMES else None

    def change(self, parts: "_Parts", rule: str) -> "_Parts":
        """Returns the parts with the other scheme."""
        has_port = re.search(r":[0-9]+$", parts.site.rpartition("@")[2])
        return parts if has_port else parts._replace(scheme=rule)


def _pairs(text: str, name: str) -> Iterator[tuple[int, str, str]]:
    """Yields (line number, host, value); spaces and tabs separate the two."""
    for number, line in entries(text):
        words = line.split()
        if len(words) != 2:
            raise value_error(f"{name}:{number}: a line must have two words", line)
        yield number, words[0], words[1]
