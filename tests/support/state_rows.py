"""Rows of the state for tests of Bigtable."""

import pyarrow as pa
from cell_kinds import STATE_CELL
from frames import table_of

from nutbeam.io.bigtable.cells import decode
from nutbeam.io.bigtable.key_ranges import KeyRange
from nutbeam.policy.components.schema import STATE

ALL = KeyRange(None, None)


def state(number, start=0, **more):
    rows = ({"key": f"com.h{n % 7}:http/{n:06d}", "status": 1, "fetch_time": n, **more}
            for n in range(start, start + number))  # fmt: skip
    return table_of(STATE, *rows).sort_by("key")


def scanned(table, kind=STATE_CELL, part=ALL, snapshot=1, due=None):
    parts = list(table.scan(kind, part, snapshot, due))
    return decode(pa.concat_tables(parts), kind) if parts else kind.schema.empty_table()


def keys_of(rows):
    return rows.column("key").to_pylist()
