"""Checks Bigtable's limits, because the emulator accepts more than the real Bigtable."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...policy.components.kinds import KINDS, kinds_in_rows
from ...web.base.errors import UserError
from ..packing.arrow_bytes import as_numpy
from .cell_layout import CellKind
from .cells import encode

MAX_ROW_KEY_BYTES = 4 << 10
MAX_CELL_BYTES = 100 << 20
MAX_ROW_BYTES = 256 << 20
MUTATIONS_PER_REQUEST = 100_000
# Number of versions of a cell that are kept; one more may exist until it is removed.
VERSIONS = 4


def split_by_limits(rows: pa.Table, kind: CellKind) -> tuple[pa.Table, dict[str, int]]:
    """Removes rows that Bigtable would refuse; called before a commit.

    A row that cannot be written would block the table: committed changes must be applied.

    Args:
        rows: Rows of the kind's schema.
        kind: The kind of their cells.

    Returns:
        (rows that Bigtable accepts, number of removed rows by reason: ``key_empty``,
        ``key_too_long``, ``cell_too_large``, ``row_too_large``).
    """
    kept = np.ones(len(rows), bool)
    counts: dict[str, int] = {}
    # Components with the same keys are in the same rows.
    sharing = [n for n in kinds_in_rows() if KINDS[n].key is KINDS[kind.component].key]
    for name, refused in _reasons(encode(rows, kind), MAX_ROW_BYTES // len(sharing)).items():
        if number := int((refused & kept).sum()):
            counts[name] = number
            kept &= ~refused
    return (rows.filter(pa.array(kept)) if counts else rows), counts


def check_limits(cells: pa.Table) -> None:
    """Checks that Bigtable accepts all rows.

    Raises:
        UserError: A row exceeds a limit; the message names the first such row and the limits.
    """
    for name, rows in _reasons(cells).items():
        if rows.any():
            at = int(np.argmax(rows))
            key = cells.column("key")[at].as_py()
            size = len(cells.column("cell")[at].as_py())
            raise UserError(
                f"Bigtable does not take row {key[:80]!r} ({name}): its key has {len(key):,} bytes "
                f"(1 to {MAX_ROW_KEY_BYTES:,}), its cell {size:,} (up to {MAX_CELL_BYTES:,}, and "
                f"{MAX_ROW_BYTES:,} with its older versions)"
            )


def _reasons(cells: pa.Table, row_bytes: int = MAX_ROW_BYTES) -> dict[str, np.ndarray]:
    keys, sizes = (
        as_numpy(pc.binary_length(cells.column(name).combine_chunks())) for name in ("key", "cell")
    )
    return {
        "key_empty": keys == 0,
        "key_too_long": keys > MAX_ROW_KEY_BYTES,
        "cell_too_large": sizes > MAX_CELL_BYTES,
        "row_too_large": sizes.astype(np.int64) * (VERSIONS + 1) > row_bytes,
    }
