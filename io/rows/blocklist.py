"""Reads the blocklist of a table."""

import functools

from ...policy.components.blocklist import Blocklist, blocklist_of
from ...policy.components.schema import BLOCKLIST
from ..snapshots.manifest import Pinned
from ..storage.parquet_files import collect, scan
from ..storage.places import Folder

BLOCKLIST_COMPONENT = "blocklist"


def read_blocklist(pinned: Pinned) -> Blocklist:
    """Returns the blocklist in the snapshot that ``pinned`` reads."""
    return _read(pinned.table, tuple(file.path for file in pinned.files(BLOCKLIST_COMPONENT)))


@functools.lru_cache(maxsize=4)
def _read(root: Folder, paths: tuple[str, ...]) -> Blocklist:
    if not paths:
        return Blocklist()
    return blocklist_of(collect(scan([root / path for path in paths], BLOCKLIST)))
