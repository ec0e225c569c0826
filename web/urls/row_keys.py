"""Parses URLs as browsers do, and makes row keys: URLs with the host reversed."""

import re

import ada_url

MAX_KEY_BYTES = 4096

# Patterns of normalized URLs and of keys. Hosts are those of WHATWG: visible ASCII without
# the delimiters /?#:@[]\ and upper case. The path is never empty.
_HOST = r"(\[[0-9a-f:.]+\]|[!\"$-.0-9;->\^-~]*)"
_SCHEME = r"([a-z][a-z0-9+.-]*)"
_PORT = "(?::([0-9]+))?"
_PATH = r"(/[!-\"$-~]*)"
_URL = re.compile(f"{_SCHEME}://{_HOST}{_PORT}{_PATH}")
# A key as far as its path: host, scheme, port. As a pattern, because columns are matched, too.
KEY_SITE = f"{_HOST}:{_SCHEME}{_PORT}"
_KEY = re.compile(KEY_SITE + _PATH)
_SHOWN = 100


class BadUrl(ValueError):
    """A URL that cannot be used.

    Attributes:
        reason: The reason as a snake_case word, which is the name of its count.
    """

    def __init__(self, reason: str, url: str) -> None:
        super().__init__(reason, url)
        self.reason = reason
        self.url = url

    def __str__(self) -> str:
        shown = self.url if len(self.url) <= _SHOWN else f"{self.url[:_SHOWN]}..."
        return f"{self.reason}: {shown!r}"


def parse_url(url: str, base: str | None = None) -> str | None:
    """Returns a URL as browsers parse it (WHATWG); None if it is invalid.

    >>> parse_url("HTTP://Foo.com:80/a/../b c")
    'http://foo.com/b%20c'
    >>> parse_url("../x?y#z", "http://foo.com/a/b")
    'http://foo.com/x?y#z'
    >>> parse_url("http://a b/") is None
    True
    """
    try:
        return ada_url.normalize_url(url) if base is None else ada_url.join_url(base, url)
    except ValueError:
        return None


def host(url: str) -> str:
    """Returns the host of a URL, without port; IPv6 addresses stay in brackets.

    Raises:
        BadUrl: The URL is invalid.

    >>> host("http://Foo.com:8080/"), host("http://[2600:1F18::1]/")
    ('foo.com', '[2600:1f18::1]')
    """
    try:
        return str(ada_url.URL(url).hostname)
    except ValueError as error:
        raise BadUrl("malformed", url) from error


def host_key(host: str) -> str:
    """Returns the host in the form of row keys: its labels in reverse order.

    IPv4 addresses are reversed like names, as in Nutch; IPv6 addresses are not.

    >>> host_key("www.foo.com"), host_key("10.0.0.1"), host_key("[::1]")
    ('com.foo.www', '1.0.0.10', '[::1]')
    """
    return host if host.startswith("[") else ".".join(reversed(host.split(".")))


def from_host_key(key: str) -> str:
    """Returns the host of a reversed host; undoes ``host_key``.

    >>> from_host_key("com.foo.www")
    'www.foo.com'
    """
    return host_key(key)  # reversing twice changes nothing


def to_key(url: str) -> str:
    """Returns the row key of a normalized URL (Nutch's TableUtil).

    Keys are ASCII. Sorted, they are in the order of reversed hosts, so a host
    is one range of keys (``com.foo:``) and a domain two (and ``com.foo.``).

    Raises:
        BadUrl: ``malformed`` if the URL is not normalized (no path, a user,
            a fragment, an upper-case host, anything but visible ASCII),
            ``key_too_long`` if the key is over ``MAX_KEY_BYTES``.

    >>> to_key("http://bar.baz.com:8983/to/index.html?a=b&c=d")
    'com.baz.bar:http:8983/to/index.html?a=b&c=d'
    """
    match = _URL.fullmatch(url)
    if match is None or not (match[2] or match[1] == "file"):
        raise BadUrl("malformed", url)
    scheme, name, port, rest = match.groups()
    key = f"{host_key(name)}:{scheme}{f':{port}' if port else ''}{rest}"
    if len(key) > MAX_KEY_BYTES:
        raise BadUrl("key_too_long", url)
    return key


def from_key(key: str) -> str:
    """Returns the URL of a row key; undoes ``to_key``.

    Raises:
        BadUrl: ``malformed`` if it is not a row key.

    >>> from_key("com.baz.bar:http:8983/to/index.html?a=b&c=d")
    'http://bar.baz.com:8983/to/index.html?a=b&c=d'
    >>> from_key("[2600:1f18::1]:http/")
    'http://[2600:1f18::1]/'
    """
    match = _KEY.fullmatch(key)
    if match is None:
        raise BadUrl("malformed", key)
    name, scheme, port, rest = match.groups()
    return f"{scheme}://{from_host_key(name)}{f':{port}' if port else ''}{rest}"


def shown_url(key: str) -> str:
    """Returns the URL of a row key, for people; a key that is none is shown as it is.

    >>> shown_url("com.a:http/"), shown_url("../x")
    ('http://a.com/', '../x')
    """
    try:
        return from_key(key)
    except BadUrl:
        return key


def host_key_of(key: str) -> str:
    """Returns the reversed host at the start of a row key.

    >>> host_key_of("com.foo.www:http:8080/x"), host_key_of("[::1]:http/"), host_key_of(":file/x")
    ('com.foo.www', '[::1]', '')
    """
    end = key.find("]") + 1 or -1 if key.startswith("[") else key.find(":")
    return key[:end] if end >= 0 else key
