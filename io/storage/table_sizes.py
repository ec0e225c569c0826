"""How large the files of tables become: one value, which programs with tiny tables replace."""

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple


class TableSizes(NamedTuple):
    """Sizes of the files of a table, and when runs are folded into bases.

    Attributes:
        row_group_rows: Most rows of a row group of a Parquet file.
        tablet_rows: Rows of a tablet. To complete its last host, it may have up to twice as many.
        most_runs: Number of runs from which on a tablet is due to be folded.
        run_share: Share of its base's rows that the runs of a tablet may have.
        fold_bytes: Bytes that a commit may fold without need.
        fold_share: Share of a component's bytes that a commit may fold without need.
        share_rows: Rows that name files of old batches and that one worker counts for ``compact``.
        closed_batches: Closed batches that a manifest names itself, up to twofold; the older ones
            are in lists.
        listed_batches: Most batches of such a list.
    """

    row_group_rows: int = 131_072
    tablet_rows: int = 1_000_000
    most_runs: int = 8
    run_share: float = 0.2
    fold_bytes: int = 64 << 20
    fold_share: float = 0.02
    share_rows: int = 1 << 19
    closed_batches: int = 16
    listed_batches: int = 1024


def table_sizes() -> TableSizes:
    """Returns the sizes that count now."""
    return _sizes[-1]


@contextlib.contextmanager
def replaced_sizes(**sizes: Any) -> Iterator[None]:
    """Replaces sizes in this process, in all threads, until the block ends.

    Args:
        sizes: Fields of ``TableSizes``.

    >>> with replaced_sizes(tablet_rows=50):
    ...     table_sizes().tablet_rows
    50
    """
    replaced = table_sizes()._replace(**sizes)
    _sizes.append(replaced)
    try:
        yield
    finally:
        _sizes.remove(replaced)


_sizes = [TableSizes()]
