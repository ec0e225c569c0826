"""What Bigtable takes, checked by us: its emulator takes more than the real one does."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...web.base.errors import UserError
from ..storage.arrow_bytes import as_numpy
from .cells import CellKind, encode

KEY_BYTES = 4 << 10
CELL_BYTES = 100 << 20
ROW_BYTES = 256 << 20
MUTATIONS_PER_REQUEST = 100_000
# Of a cell that many versions are kept, and one more may wait for its removal.
VERSIONS = 4


def split_by_limits(cells: pa.Table) -> tuple[pa.Table, dict[str, int]]:
    """Leaves out rows that Bigtable would refuse.

    Args:
        cells: Columns ``key`` and ``cell``.

    Returns:
        (rows that it takes, number of the others by reason: ``key_empty``,
        ``key_too_long``, ``cell_too_large``, ``row_too_large``).

    >>> rows = pa.table({"key": [b"a", b"b" * 4_097], "cell": [b"1", b"2"]})
    >>> kept, dropped = split_by_limits(rows)
    >>> len(kept), dropped
    (1, {'key_too_long': 1})
    """
    kept, dropped = _sieve(_reasons(cells))
    return (cells.filter(pa.array(kept)) if dropped else cells), dropped


def split_rows_by_limits(rows: pa.Table, kind: CellKind) -> tuple[pa.Table, dict[str, int]]:
    """Leaves out rows whose cells Bigtable would refuse; to be called before a commit.

    What was committed must be applied: a row that cannot be written would stop
    the table.

    Args:
        rows: Rows of the kind's schema.
        kind: What they become.

    Returns:
        As ``split_by_limits``, of rows.
    """
    reasons = _reasons(encode(rows, kind))
    kept, dropped = _sieve(reasons)
    return (rows.filter(pa.array(kept)) if dropped else rows), dropped


def check_limits(cells: pa.Table) -> None:
    """Refuses rows that Bigtable would refuse.

    Raises:
        UserError: With the first such row and the limit.
    """
    for name, rows in _reasons(cells).items():
        if rows.any():
            at = int(np.argmax(rows))
            key = cells.column("key")[at].as_py()
            size = len(cells.column("cell")[at].as_py())
            raise UserError(
                f"Bigtable does not take row {key[:80]!r} ({name}): its key has {len(key):,} bytes "
                f"(1 to {KEY_BYTES:,}), its cell {size:,} (up to {CELL_BYTES:,}, and "
                f"{ROW_BYTES:,} with its older versions)"
            )


def _reasons(cells: pa.Table) -> dict[str, np.ndarray]:
    keys, sizes = (
        as_numpy(pc.binary_length(cells.column(name).combine_chunks())) for name in ("key", "cell")
    )
    return {
        "key_empty": keys == 0,
        "key_too_long": keys > KEY_BYTES,
        "cell_too_large": sizes > CELL_BYTES,
        "row_too_large": sizes.astype(np.int64) * (VERSIONS + 1) > ROW_BYTES,
    }


def _sieve(reasons: dict[str, np.ndarray]) -> tuple[np.ndarray, dict[str, int]]:
    """Returns which rows are kept, and how many are not, each under its first reason."""
    kept = np.ones(len(reasons["key_empty"]), bool)
    counts: dict[str, int] = {}
    for name, rows in reasons.items():
        number = int((rows & kept).sum())
        if number:
            counts[name] = number
            kept &= ~rows
    return kept, counts
