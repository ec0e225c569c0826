"""Finds captures for a replay: by URL, by host, and the one nearest to a time."""

import contextlib
from collections.abc import Iterator
from typing import Any, TypeAlias

import polars as pl
import pyarrow as pa

from ...web.archives.http_messages import NOT_MODIFIED
from ...web.normalizers.basic import normalize_basic
from ...web.urls.row_keys import BadUrl, to_key
from ..base.key_columns import host_keys, host_names
from ..components.schema import TEXT

# Where a capture is that can be replayed.
REPLAYED = pa.schema(
    [
        ("key", TEXT),  # row key of its URL
        ("time", pa.int64()),  # ms
        ("status", pa.uint16()),  # of HTTP; null: it is of another protocol
        ("mime", TEXT),  # content type, as the server sent it
        ("file", pa.int32()),  # number of the file that has it
        ("row", pa.int64()),  # its place there
    ]
)
ReplayedRows: TypeAlias = pl.DataFrame  # columns of REPLAYED
_OTHER_SCHEME = {"http": "https", "https": "http"}


class CaptureIndex:
    """All captures of an archive, in memory: about 150 bytes for each.

    Args:
        rows: The captures, in any order; of several of a URL at the same time the first counts.
    """

    def __init__(self, rows: ReplayedRows) -> None:
        unique = rows.unique(["key", "time"], keep="first", maintain_order=True)
        self._rows = unique.sort("key", "time")
        self._keys = self._rows.get_column("key")

    def __len__(self) -> int:
        return len(self._rows)

    def captures_of(self, url: str) -> ReplayedRows:
        """Returns the captures of a URL, the oldest first.

        If it has none, those of its normal form count, and then those of the same URL with the other
        one of the schemes http and https.
        """
        for key in _keys_of(url):
            rows = self._between(key, f"{key}\0")
            if len(rows):
                return rows
        return self._rows.clear()

    def hosts(self) -> pl.DataFrame:
        """Returns ``host`` and its number of different URLs, ``urls``, by host."""
        rows = self._rows.select("key", host=host_keys(self._rows.get_column("key")))
        counts = rows.group_by("host").agg(urls=pl.n_unique("key")).sort("host")
        return counts.with_columns(host=host_names(counts.get_column("host")))

    def pages_of(self, host_key: str) -> ReplayedRows:
        """Returns the newest capture of each URL of a host, which is given reversed, by key."""
        rows = self._between(f"{host_key}:", f"{host_key};")
        return rows.unique("key", keep="last", maintain_order=True)

    def _between(self, first: str, end: str) -> ReplayedRows:
        """Returns the captures with keys from ``first`` on and before ``end``."""
        start, stop = (self._keys.search_sorted(key, "left") for key in (first, end))
        return self._rows.slice(start, stop - start)


def choose_capture(rows: ReplayedRows, time: int | None) -> dict[str, Any] | None:
    """Returns the capture to show of a URL; None if none has an answer of its own.

    An answer 304 says that the capture before it is still right, so that is shown.

    Args:
        rows: The captures of the URL, the oldest first.
        time: The time to come near to, ms; None: the newest.

    >>> rows = pl.DataFrame({"time": [1, 5, 9], "status": [200, 304, 404]})
    >>> [choose_capture(rows, time)["time"] for time in (None, 6, 0)]
    [9, 1, 1]
    """
    captures = rows.to_dicts()
    if not captures:
        return None
    nearest = len(captures) - 1
    if time is not None:
        nearest = min(range(len(captures)), key=lambda at: (abs(captures[at]["time"] - time), -at))
    # From the nearest one back, and then from it on.
    order = [*range(nearest, -1, -1), *range(nearest + 1, len(captures))]
    answers = (captures[at] for at in order)
    return next((one for one in answers if one["status"] != NOT_MODIFIED), None)


def _keys_of(url: str) -> Iterator[str]:
    """Yields the keys under which a URL may be in an archive, the best first."""
    spellings = [url]
    with contextlib.suppress(BadUrl):
        spellings.append(normalize_basic(url))
    for other in (False, True):
        for spelling in dict.fromkeys(spellings):
            scheme, colon, rest = spelling.partition(":")
            if other:
                scheme = _OTHER_SCHEME.get(scheme, "")
            try:
                yield to_key(f"{scheme}{colon}{rest}")
            except BadUrl:
                continue
