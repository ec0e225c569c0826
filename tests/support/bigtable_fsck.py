"""Rows of a table in Bigtable that tests of fsck look at, change and commit."""

import dataclasses

import polars as pl
from crawling import (
    manifest_at,
)

from nutbeam.io.bigtable.snapshot_log import open_log
from nutbeam.io.bigtable.stored_rows import write_changes
from nutbeam.io.snapshots.manifest import store_manifest
from nutbeam.io.table.opening import open_table

BAD = b"\x80\0\0\0\0\0\0\0\x01bad"


def newest(table):
    return open_log(table).head().snapshot


def own(table, key):
    return open_log(table).rows.get(key)


def set_own(table, key, **cells):
    log = open_log(table)
    found = {name.encode(): value for name, value in cells.items()}
    log.rows.put(key, found, log.head().snapshot)


def history_row(snapshot):
    return b"\0snapshot/%08d" % snapshot


def commit_rows(address, rows, operation="test.update"):
    """Makes a snapshot with some rows of the state, all of them known."""
    table, log = open_table(address), open_log(address)
    written = write_changes(table.files, "state", rows, rows["key"])
    base = manifest_at(table, log.head().snapshot)
    made = dataclasses.replace(base, snapshot=base.snapshot + 1, operation=operation, job="update")
    assert store_manifest(table, made, {"state": [written.file]})
    return written.file


def rows_of_with(state, key, score):
    return state.filter(pl.col("key") == key).with_columns(score=pl.lit(score))
