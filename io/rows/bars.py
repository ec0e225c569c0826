"""Reads the blocklist of a table."""

import functools

from ...policy.bars import Bars, bars_of
from ...policy.schema import BARS
from ..snapshots.manifest import Pinned
from ..storage.parquet_files import collect, scan
from ..storage.places import Folder

COMPONENT = "bars"


def read_bars(pinned: Pinned) -> Bars:
    """Returns the blocklist of the snapshot that is read."""
    return _read(pinned.root, tuple(file.path for file in pinned.files(COMPONENT)))


@functools.lru_cache(maxsize=4)
def _read(root: Folder, paths: tuple[str, ...]) -> Bars:
    if not paths:
        return Bars()
    return bars_of(collect(scan([root / path for path in paths], BARS)))
