"""What jobs do with a table in the emulator."""

import polars as pl
import pytest
from bigtable_emulator import Proxy
from committing import read
from frames import frame_of

from nutbeam.io.bigtable.admin import create_table
from nutbeam.io.bigtable.client import BigtableTable, Due
from nutbeam.io.bigtable.key_ranges import KeyRange
from nutbeam.io.bigtable.snapshot_log import SnapshotLog
from nutbeam.io.bigtable.stored_rows import (
    BigtableRows,
    change_of,
    rows_to_write,
    write_changes,
)
from nutbeam.io.storage.file_errors import SnapshotTooOld
from nutbeam.io.tablets.resolve import Resolved
from nutbeam.policy.components.schema import HOSTS, STATE

pytestmark = pytest.mark.bigtable
ALL = KeyRange(None, None)
NEEDED = ("key", "score", "fetch_time")


@pytest.fixture
def served(bigtable, tmp_path):
    """A table behind a proxy that counts what the server sends."""
    with Proxy(bigtable.host) as proxy:
        address = bigtable.new_address(proxy.host)
        create_table(address, str(tmp_path))
        yield SnapshotLog(BigtableTable(address), tmp_path), proxy


@pytest.fixture
def log(served):
    return served[0]


def rows(number, **more):
    return frame_of(
        STATE,
        *({"key": f"com.h{n:04d}:http/", "fetch_time": n, "retries": 0, **more}
          for n in range(number)),
    )  # fmt: skip


def load(log, root, frame, component="state"):
    written = write_changes(root, component, frame)
    assert log.store(log.pin() + 1, b"", [change_of(component, written.file)])
    return log.pin()


def count_up(rows, changes):
    """A resolver: known rows count their changes, unknown ones are added."""
    numbers = changes.group_by("key").len("by")
    known = rows.join(numbers, on="key", how="left", maintain_order="left").with_columns(
        retries=pl.col("retries") + pl.col("by").fill_null(0).cast(pl.Int32)
    )
    new = numbers.join(rows, on="key", how="anti").select("key", retries=pl.lit(0, pl.Int32))
    return Resolved(pl.concat([known.drop("by"), new], how="diagonal").sort("key"))


def test_a_range_is_read_with_the_columns_that_are_needed(log, tmp_path):
    frame = rows(50)
    snapshot = load(log, tmp_path, frame)
    found = pl.concat(BigtableRows(log, "state", snapshot).read(ALL, NEEDED))
    assert found.equals(frame.select(NEEDED))
    due = pl.concat(BigtableRows(log, "state", snapshot).read(ALL, NEEDED, Due(9)))
    assert due.equals(frame.head(10).select(NEEDED))
    part = KeyRange("com.h0010:", "com.h0020:")
    assert pl.concat(BigtableRows(log, "state", snapshot).read(part)).equals(frame.slice(10, 10))


def test_changes_read_and_write_touched_rows_only(served, tmp_path):
    log, proxy = served
    frame = rows(3_000)
    snapshot = load(log, tmp_path, frame)
    keys = [*frame.get_column("key")[::100], "com.new:http/"]
    before = proxy.received
    written, deleted = BigtableRows(log, "state", snapshot).resolve(
        pl.DataFrame({"key": keys + keys[:1]}), count_up
    )
    asked = proxy.received - before
    assert asked < 31 * 500
    assert (written.file.rows, deleted.file) == (31, None)
    assert (written.file.first, written.file.last) == (keys[0], "com.new:http/")
    assert len(read(log)) == 3_000  # not before the commit
    assert log.store(snapshot + 1, b"", [change_of("state", written.file)])
    found = {row["key"]: row["retries"] for row in read(log)}
    assert len(found) == 3_001
    assert found[keys[0]] == 2
    assert found[keys[1]] == 1
    assert found["com.new:http/"] == 0
    assert sum(found.values()) == 31


def test_unchanged_rows_are_not_written(log, tmp_path):
    snapshot = load(log, tmp_path, rows(5))
    written, deleted = BigtableRows(log, "state", snapshot).resolve(
        rows(5).select("key"), lambda rows, _: Resolved(rows)
    )
    assert (written.file, written.dropped, deleted.file) == (None, {}, None)


def test_maps_and_nulls_count_as_values():
    old = frame_of(STATE, {"key": "a", "metadata": [("k", "v")]}, {"key": "b"}, {"key": "c"})
    new = frame_of(STATE, {"key": "a", "metadata": [("k", "w")]}, {"key": "b"},
                   {"key": "c", "score": float("nan")}, {"key": "d"})  # fmt: skip
    assert rows_to_write(old, new).get_column("key").to_list() == ["a", "c", "d"]
    assert rows_to_write(new, new).is_empty()


def test_rows_beyond_the_limits_of_bigtable_are_left_out_and_counted(log, tmp_path):
    frame = frame_of(STATE, {"key": "a"}, {"key": "k" * 5_000})
    written = write_changes(tmp_path, "state", frame)
    assert (written.file.rows, written.dropped) == (1, {"key_too_long": 1})
    assert log.store(1, b"", [change_of("state", written.file)])


def test_hosts_are_found(log, tmp_path):
    frame = frame_of(HOSTS, *({"key": f"com.h{n}", "requests": n} for n in range(9)))
    snapshot = load(log, tmp_path, frame, "hosts")
    sought = pl.Series("key", ["com.h3", "com.h1", "com.h3", "com.nobody"])
    assert BigtableRows(log, "hosts", snapshot).find(sought).equals(frame[[1, 3]])
    assert BigtableRows(log, "hosts", snapshot).find(sought.clear()).is_empty()


def test_a_snapshot_that_became_too_old_raises_after_the_last_row(log, tmp_path):
    snapshot = load(log, tmp_path, rows(5))
    reading = BigtableRows(log, "state", snapshot).read(ALL)
    assert len(next(reading)) == 5
    for _ in range(4):
        load(log, tmp_path, rows(5))
    with pytest.raises(SnapshotTooOld):
        next(reading)
    with pytest.raises(SnapshotTooOld):
        BigtableRows(log, "state", snapshot).find(pl.Series("key", ["a"]))
