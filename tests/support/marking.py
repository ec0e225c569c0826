"""A component that only tests declare: marks on URLs."""

import polars as pl
import pyarrow as pa
from crawling import manifest_of
from frames import frame_of

from nutbeam.io.snapshots.commit import commit
from nutbeam.io.snapshots.operations import begin
from nutbeam.io.table.opening import open_table
from nutbeam.io.tablets.file_lists import load_files
from nutbeam.io.tablets.ranges import Range
from nutbeam.io.tablets.resolve import Resolution, Resolved
from nutbeam.io.tablets.tablets import tablets
from nutbeam.policy.components.columns import Column, Columns
from nutbeam.policy.components.declaration import Kind, RowLayout, Zone
from nutbeam.policy.components.kinds import kind_of
from nutbeam.policy.components.schema import TEXT

SEEN_ITEM = Columns([Column("day", pa.int32(), "A day."), Column("by", TEXT, "Who.")])
SEEN = pa.large_list(pa.struct(list(SEEN_ITEM.schema)))
MARKS = Columns(
    [
        Column("key", TEXT, "A URL."),
        Column("mark", pa.int64(), "Its mark."),
        Column("target", TEXT, "Another key."),
        Column("seen", SEEN, "When it was seen, and by whom.", items=SEEN_ITEM),
        Column("fetch_time", pa.int64(), "A time, ms."),
        Column("status", TEXT, "A word; in other components it is a number."),
        Column("chosen", pa.bool_(), "Whether it is even."),
    ]
)
ROWS = {f"com.a:http/{n:02d}": n for n in range(40)}
MARKS_KIND = Kind("marks", MARKS, layout=RowLayout.TABLETS, zone=Zone("fetch_time"))


def newer(rows, changes):
    """A resolver: changes take the place of the rows of their keys."""
    kept = rows.join(changes, on="key", how="anti")
    return Resolved(pl.concat([kept, changes.select(rows.columns)]).sort("key"))


def mark(table, marks, name, **more):
    """Commits marks, as a job of this component would."""
    given = sorted(marks.items())
    known = ({"key": k, "mark": n, "fetch_time": 1000 * n, "chosen": n % 2 == 0} for k, n in given)
    put_rows(table, "marks", ({**row, "status": "marked", **more} for row in known), name)


def put_rows(table, component, rows, name):
    """Commits rows of a component in tablets, as a job of this component would."""
    operation = begin(table, "mark", f"{name}.mark")
    known = tablets(operation.files(component))
    part = Range(None, None, known[0] if known else None)
    frame = frame_of(kind_of(component).schema, *rows)
    how = Resolution(component, part, newer, order=operation.snapshot + 1)
    commit(operation, operation.table.resolve(how, frame))


def values_of(address, column="mark", component="marks"):
    """Returns a column of the marks of a table, or of another component, by key."""
    table = open_table(address)
    table = table.at(table.latest_snapshot())
    known = tablets(load_files(table, manifest_of(address).components.get(component)))
    return dict(row for t in known for rows in table.scan(component, t)
                for row in rows.select("key", column).iter_rows())  # fmt: skip
