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


def without_removed(
    operation: Operation, rows: pl.DataFrame, changes: pl.DataFrame
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Leaves out changes of URLs that were removed since the batch was generated.

    Args:
        operation: An update of the batch.
        rows: The table's rows of the keys of ``changes``. If a URL is in the table again, its
            changes stay.
        changes: Rows with ``key``.

    Returns:
        (the other changes, counts of the URLs that were left out).
    """
    keys = changes.get_column("key")
    low, high = str(keys.min() or ""), str(keys.max() or "")
    paths = [
        operation.table / file.path
        for file in operation.files(batch_component(str(operation.batch), _KIND))
        if str(file.first) <= high and str(file.last) >= low
    ]
    if not paths:
        return changes, {}
    near = scan(paths, KINDS[_KIND].schema).filter(
        pl.col("key").is_between(pl.lit(low), pl.lit(high))
    )
    removed = collect(near).get_column("key")
    left_out = keys.is_in(removed.implode()) & ~keys.is_in(rows.get_column("key").implode())
    number = keys.filter(left_out).n_unique()
    return changes.filter(~left_out), {"dropped/removed": number} if number else {}
