"""Rows for tables in Bigtable's emulator, put there without a crawl."""

import polars as pl

from nutbeam.io.snapshots.commit import commit
from nutbeam.io.snapshots.operations import begin
from nutbeam.io.tablets.written import Written
from nutbeam.policy.components.schema import STATE, Status, conform

DAY = 86_400_000


def load(table, rows, name="load", component="state"):
    """Puts rows into a table, as an inject."""
    operation = begin(table, "inject", f"{name}.inject")
    parts = operation.table.load(component, [rows])
    files = tuple(file for part in parts for file in part.files)
    return commit(operation, [Written(component, files)])


def clock(table):
    """Returns what counts as now, ms."""
    return begin(table, "inject", "clock.inject").now


def state(number, due, now):
    """Returns rows of the state on a hundred hosts, the first ones due."""
    keys = sorted(f"org.example.h{n % 100:02d}:http/{n:05d}" for n in range(number))
    frame = pl.DataFrame({"key": keys}).with_columns(
        status=pl.lit(int(Status.DB_UNFETCHED)),
        score=pl.lit(1.0),
        fetch_interval=pl.lit(2_592_000),
        retries=pl.lit(0),
        fetch_time=pl.when(pl.int_range(pl.len()) < due).then(now - DAY).otherwise(now + DAY),
    )
    return pl.DataFrame(pl.from_arrow(conform(frame, STATE)))
