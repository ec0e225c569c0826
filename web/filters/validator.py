"""The filter urlfilter-validator: URLs of a plain, public form."""

import re

import polars as pl

from ..columns import put
from .verdicts import Verdict, Verdicts, verdicts

_OCTET = "(?:25[0-5]|2[0-4][0-9]|[01]?[0-9]?[0-9])"
_LABEL = "[A-Za-z0-9_-]+"


class Validator:
    r"""Takes URLs of visible ASCII with a scheme, a public host and a path of usual characters.

    The host is an IPv4 address, or has two labels at least, the last of which begins
    with a letter; the port has at most five digits; ``..`` in the path leads nowhere
    above it (nutch.md 3.5).

    Args:
        max_tld: Longest last label of a host, in characters, at least 2; -1 for any.

    >>> [Validator().decide(f"http://{host}/").accept for host in ("foo.com", "localhost")]
    [True, False]
    """

    name = "validator"

    def __init__(self, max_tld: int = -1) -> None:
        most = "" if max_tld < 0 else max(1, max_tld - 1)
        tld = f"[A-Za-z][A-Za-z0-9_-]{{1,{most}}}"
        host = rf"(?:{_OCTET}(?:\.{_OCTET}){{3}}|(?:{_LABEL}\.)+{tld})"
        path = r"(?:/[A-Za-z0-9_:@&?=+,.!/~*'%$;()-]*)?"
        self._pattern = (
            rf"^[A-Za-z][A-Za-z0-9+.-]*://{host}(?::[0-9]{{1,5}})?({path})"
            r"(?:\?[!-\"$-~]*)?(?:#[!-~]*)?$"
        )
        self._one = re.compile(self._pattern)

    def rule(self, line: int, url: str = "") -> str:
        """Returns what it does."""
        return "takes URLs of a plain, public form"

    def decide(self, url: str) -> Verdict:
        """Returns whether a URL is of that form."""
        match = self._one.fullmatch(url)
        return Verdict(match is not None and _stays_inside(match[1]))

    def decide_column(self, urls: pl.Series) -> Verdicts:
        """Returns what ``decide`` says of each URL; nulls are not taken."""
        accept = urls.str.contains(self._pattern).fill_null(False)
        up = accept & urls.str.contains("..", literal=True).fill_null(False)
        if up.any():
            inside = [self.decide(url).accept for url in urls.filter(up)]
            accept = put(accept, up.arg_true(), pl.Series(inside, dtype=pl.Boolean))
        return verdicts(accept)


def _stays_inside(path: str) -> bool:
    up = path.count("..")
    return not up or path.count("/") - path.count("//") - 1 > up
