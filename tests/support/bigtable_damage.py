"""Writes odd cells into a table in Bigtable."""

import pyarrow as pa
from cell_kinds import STATE_CELL

from nutbeam.io.table.opening import open_table


def put(table, key, value, snapshot, kind=STATE_CELL):
    """Writes bytes into a cell, with the timestamp of a snapshot."""
    cells = pa.table({"key": [key.encode()], "cell": [value]})
    open_table(table).log.table.write(kind, cells, snapshot)
