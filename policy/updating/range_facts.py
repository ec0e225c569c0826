"""What a range of keys depends on besides its rows and their changes."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import polars as pl

from ..hosting.host_settings import Bounds
from ..hosting.merit import DomainRoom

_NO_KEYS = pl.Series("key", [], dtype=pl.String)


class RangeFacts(NamedTuple):
    """Facts about the table from outside the range of keys that is updated.

    Attributes:
        now: The time that counts as now, ms; new URLs are due then.
        host_urls: Number of URLs that large hosts (reversed) have already.
        oldest_result: Time of the oldest result that an update may still add, ms; see ``set_right``.
        table_rows: Number of rows of the table; None: unknown.
        bounds: Bounds of intervals, by host (reversed).
        room: Room of registered domains for new URLs; None: they have no limit.
        removed_keys: Keys in the range that were removed from the table while the batch was open.
    """

    now: int
    host_urls: Mapping[str, int] | None = None
    oldest_result: int | None = None
    table_rows: int | None = None
    bounds: Bounds = MappingProxyType({})
    room: DomainRoom | None = None
    removed_keys: pl.Series = _NO_KEYS
