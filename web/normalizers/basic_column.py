"""The basic normalizer on columns: corrects frequent faults for all URLs at once."""

import re
from collections.abc import Callable

import polars as pl

from ..base.columns import nulls, put
from ..urls.normalize import normalize_basic
from .normalizer_step import Applied, Step, apply_each

# Fewer URLs than this are normalized one at a time.
_FEW = 200
# Scheme, host, port, path and query. Backslashes, control characters, letters beyond ASCII and a
# space at the end are left to the parser. The fragment is cut off before.
_PLAIN = r"^[Hh][Tt][Tt][Pp][Ss]?://[A-Za-z0-9._-]+(?::[0-9]*)?(?:/[ -\"$-\[\]-~]*)?$"
_NOT_PLAIN = r"(?i) $|%(?:$|[^0-9a-f]|[0-9a-f](?:$|[^0-9a-f]))|%2e"
_ODD = r"[%\x20\"<>\[\]^`{|}]"
_UNRESERVED = re.compile("[A-Za-z0-9._~-]")


def _spellings() -> dict[str, str]:
    """Returns the normal form of each escape and character that is not normal."""
    spellings = {char: f"%{ord(char):02X}" for char in ' "<>[]^`{|}'}
    for code in range(256):
        plain = chr(code) if _UNRESERVED.fullmatch(chr(code)) else f"%{code:02X}"
        high, low = f"{code >> 4:x}", f"{code & 15:x}"
        spellings |= {
            f"%{a}{b}": plain for a in {high, high.upper()} for b in {low, low.upper()}
        }  # fmt: skip
    return {wrong: right for wrong, right in spellings.items() if wrong != right}


_SPELLINGS = _spellings()


class Basic(Step):
    """The normalizer urlnormalizer-basic, see ``normalize_basic``.

    Args:
        is_normal: Function that returns a mask of the URLs that are certainly normal.
    """

    name = "basic"

    def __init__(self, is_normal: Callable[[pl.Series], pl.Series] | None = None) -> None:
        self._is_normal = is_normal

    def apply(self, url: str) -> str:
        """Returns the URL in the form that row keys need."""
        return normalize_basic(url)

    def apply_column(self, urls: pl.Series) -> Applied:
        """Returns the normalized URLs.

        Corrects frequent faults in all URLs at once. A result in normal form is correct. Other
        URLs are parsed.
        """
        if self._is_normal is None or len(urls) < _FEW:
            return apply_each(normalize_basic, urls)
        guesses = _guess_normal_forms(urls)
        right = self._is_normal(guesses)
        at = (~right).arg_true()
        applied = apply_each(normalize_basic, urls.gather(at))
        reasons = nulls(len(urls))
        return Applied(put(guesses, at, applied.urls), put(reasons, at, applied.reasons))

    def touches(self, urls: pl.Series) -> pl.Series:
        """Returns which URLs ``apply`` might change."""
        is_url = urls.is_not_null()
        return is_url if self._is_normal is None else is_url & ~self._is_normal(urls)


def _guess_normal_forms(urls: pl.Series) -> pl.Series:
    """Returns URLs with frequent faults corrected; null for URLs with other faults."""
    cut = urls.str.splitn("#", 2).struct.field("field_0")
    parts = cut.str.splitn("/", 4).struct.unnest()
    parts.columns = ["scheme", "empty", "site", "rest"]
    rest = parts.get_column("rest").fill_null("")
    plain = (cut.str.contains(_PLAIN) & ~rest.str.contains(_NOT_PLAIN)).fill_null(False)
    odd = rest.str.contains(_ODD) & plain
    if odd.any():
        at = odd.arg_true()
        rest = put(rest, at, rest.gather(at).str.replace_many(_SPELLINGS))
    scheme, site = pl.col("scheme").str.to_lowercase(), pl.col("site").str.to_lowercase()
    site = (
        pl.when(scheme == "http:")
        .then(site.str.strip_suffix(":80"))
        .otherwise(site.str.strip_suffix(":443"))
        .str.strip_suffix(":")
    )
    guess = pl.concat_str(scheme, pl.lit("//"), site, pl.lit("/"), "rest")
    parts = parts.with_columns(rest=rest, plain=plain)
    return parts.select(pl.when("plain").then(guess).alias("url")).to_series()
