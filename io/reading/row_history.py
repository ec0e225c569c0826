"""Reads the history of a row of the state: its values in the snapshots that are kept."""

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from ...web.base.dataclass import dataclass
from ...web.base.errors import UserError
from ..snapshots.lineage import lineage
from ..snapshots.manifest import Manifest
from ..snapshots.pinned import Pinned, Snapshot
from ..table.opening import open_table

_STATE = "state"
# Each snapshot is a look into the table.
_MOST = 20


@dataclass(frozen=True)
class Version:
    """The values of a row from one snapshot on.

    Attributes:
        manifest: The snapshot that changed it; the oldest one that is kept may only have it.
        values: The values; None is no row.
    """

    manifest: Manifest
    values: dict[str, Any] | None


def row_history(address: str, key: str, columns: Sequence[str]) -> list[Version]:
    """Returns the versions of a row of the state, the newest first; none if it was never there.

    Args:
        address: Address of the table.
        key: The row key.
        columns: The columns that make a version.
    """
    versions: list[Version] = []
    for manifest in _changing(address):
        try:
            values = _values(Snapshot(address, manifest.snapshot), key, columns)
        except UserError:  # it has expired, or is damaged
            break
        if versions and versions[-1].values == values:
            versions.pop()  # it was so before
        versions.append(Version(manifest, values))
    # Before it was added, it was not there; that is no news.
    return versions[:-1] if versions and versions[-1].values is None else versions


def _changing(address: str) -> Iterator[Manifest]:
    """Yields the newest snapshots of the lineage that have changed the state, and the oldest."""
    number, later = 0, None
    with_gaps = lineage(open_table(address))
    while number < _MOST:
        try:
            manifest = next(with_gaps, None)
        except UserError:  # a damaged manifest: older ones are not reached
            manifest = None
        if manifest is None:
            break
        if later is not None and later.components.get(_STATE) != manifest.components.get(_STATE):
            yield later
            number += 1
        later = manifest
    if later is not None:
        yield later


def _values(pinned: Pinned, key: str, columns: Sequence[str]) -> dict[str, Any] | None:
    with pinned.reading():
        rows = pinned.find_rows(_STATE, pl.Series("key", [key]), columns)
    return rows.row(0, named=True) if len(rows) else None
