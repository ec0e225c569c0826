"""The URLs that were removed from the table while a batch was open.

Results of the batch do not bring them back: neither its pages, nor the links that it has found by
the rules of that time.
"""

from collections.abc import Iterator

import polars as pl

from ...policy.components.kinds import KINDS
from ..snapshots.operations import Operation
from ..storage.parquet_files import collect, scan
from ..tablets.written import Written
from .batches import batch_component, write_file

_KIND = "removed"


def note_removed(operation: Operation, keys: pl.Series) -> Iterator[Written]:
    """Writes the keys of removed rows, in order, for each batch that is not updated yet."""
    if not len(keys):
        return
    for name, batch in operation.manifest().batches.items():
        if batch.phase != "updated":
            file = write_file(operation.table.files, name, _KIND, [keys.alias("key").to_frame()])
            yield Written(batch_component(name, _KIND), (file,))


def read_removed_keys(operation: Operation, near: pl.Series) -> pl.Series:
    """Returns the keys that were removed since the batch of an update was generated.

    Args:
        operation: The update.
        near: Keys; only removed ones from the smallest to the largest of them are read.
    """
    low, high = str(near.min() or ""), str(near.max() or "")
    paths = [
        operation.table / file.path
        for file in operation.files(batch_component(str(operation.batch), _KIND))
        if str(file.first) <= high and str(file.last) >= low
    ]
    if not paths:
        return near.clear()
    within = pl.col("key").is_between(pl.lit(low), pl.lit(high))
    return collect(scan(paths, KINDS[_KIND].schema).filter(within)).get_column("key")
