"""A URL filter and a URL normalizer: functions of columns."""

import polars as pl


def no_print_versions(urls: pl.Series) -> pl.Series:
    """Refuses pages for printers: URLs with ``print=1`` in their query."""
    return ~urls.str.contains(r"[?&]print=1(?:&|$)")


def without_tracking(urls: pl.Series, scope: str) -> pl.Series:
    """Removes parameters that only say where a reader came from."""
    shorter = urls.str.replace_all(r"([?&])(?:utm_[a-z]+|fbclid|gclid)=[^&#]*&?", "$1")
    return shorter.str.replace(r"[?&]$", "")
