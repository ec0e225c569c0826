"""Normalizes host names in rule files to the form that URLs have when rules see them."""

import re

from ..urls.row_keys import BadUrl, host

# Names in normal form. A last label that begins with a digit may belong to an IP address.
_PLAIN = re.compile(r"(?:[a-z0-9_-]++\.)*+(?![0-9])[a-z0-9_-]++")
_ADDRESS = re.compile(r"\[[0-9A-Fa-f:.]+\]")
# Characters that a URL parser would not read as part of a name.
_STRANGE = re.compile(r"[\s/\\?#@:*%<>^|\[\]]")


def host_name(text: str) -> str | None:
    """Returns a host, a domain or a suffix in the form of URLs; None if it is invalid.

    That is in lower case and punycode, by the same parser (WHATWG), without a dot at the end.

    >>> host_name("B\\u00fccher.DE."), host_name("[0:0::1]"), host_name("0x7f.1")
    ('xn--bcher-kva.de', '[::1]', '127.0.0.1')
    >>> [host_name(text) for text in ("*.foo.com", ".com", "foo.com:80", "http://foo.com", "")]
    [None, None, None, None, None]
    """
    if _PLAIN.fullmatch(text):
        return text  # the frequent case, in files of a million names
    name = text.lower().removesuffix(".")
    if _PLAIN.fullmatch(name):
        return name
    if _STRANGE.search(text) and not _ADDRESS.fullmatch(text):
        return None
    try:
        name = host(f"http://{text}/").removesuffix(".")
    except BadUrl:
        return None
    return name if all(name.split(".")) else None


def pattern_name(text: str) -> str | None:
    """Returns a host, or a ``*.DOMAIN``, in the form of URLs; None if it is neither.

    >>> pattern_name("*.Foo.com"), pattern_name("*foo.com"), pattern_name("*")
    ('*.foo.com', None, None)
    """
    star = "*." if text.startswith("*.") else ""
    name = host_name(text.removeprefix(star))
    return None if name is None else f"{star}{name}"
