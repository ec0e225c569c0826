"""The filter urlfilter-validator: URLs of a plain, public form."""

import polars as pl

from ..base.columns import put
from .verdicts import UrlFilter, Verdicts, verdicts

_OCTET = "(?:25[0-5]|2[0-4][0-9]|[01]?[0-9]?[0-9])"
_LABEL = "[A-Za-z0-9-]+"


class Validator(UrlFilter):
    r"""Accepts URLs of visible ASCII with a scheme, a public host and a path of usual characters.

    The scheme consists of letters. The host is an IPv4 address, or has at least two labels of
    letters, digits and ``-``, the last of which begins with a letter. The port has at most
    five digits. A path must have more names than ``..``; as in Nutch ``...`` counts as two
    of these, and ``///`` as two pairs of slashes (nutch.md 3.5).

    Args:
        max_tld: Longest last label of a host, in characters, at least 2; -1: no limit.

    >>> [Validator().decide(f"http://{host}/").accept for host in ("foo.com", "localhost")]
    [True, False]
    """

    name = "validator"

    def __init__(self, max_tld: int = -1) -> None:
        most = "" if max_tld < 0 else max(1, max_tld - 1)
        tld = f"[A-Za-z][A-Za-z0-9-]{{1,{most}}}"
        host = rf"(?:{_OCTET}(?:\.{_OCTET}){{3}}|(?:{_LABEL}\.)+{tld})"
        path = r"(?:/[A-Za-z0-9_:@&?=+,.!/~*'%$;()-]*)?"
        self._pattern = (
            rf"^[A-Za-z]+://{host}(?::[0-9]{{1,5}})?({path})"
            r"(?:\?[!-\"$-~]*)?(?:#[!-~]*)?$"
        )

    def rule(self, line: int, url: str = "") -> str:
        """Returns what the filter does."""
        return "accepts URLs of a plain, public form"

    def decide_column(self, urls: pl.Series) -> Verdicts:
        """Returns which URLs are of that form; nulls are refused."""
        accept = urls.str.contains(self._pattern).fill_null(False)
        up = accept & urls.str.contains("..", literal=True).fill_null(False)
        if up.any():
            inside = [_stays_inside(path) for path in urls.filter(up).str.extract(self._pattern)]
            accept = put(accept, up.arg_true(), pl.Series(inside, dtype=pl.Boolean))
        return verdicts(accept)


def _stays_inside(path: str) -> bool:
    up = _count("..", path)
    return not up or path.count("/") - _count("//", path) - 1 > up


def _count(token: str, path: str) -> int:
    """Returns how often a token occurs; overlaps count."""
    return sum(path.startswith(token, at) for at in range(len(path)))
