"""The state machine by itself: rows per CPU second of one core, without reading and writing.

``python benchmarks/state_machine.py [--small]``. Applies the changes of a batch to 200,000 rows of the
state in memory: each row linked; each row tried, with all kinds of results; and the mixture of a usual
update, in which a tenth is tried, half is linked, and a tenth of the rows is new.

Budget: 2 million rows a second and core.
"""

import os
import sys
import time
from typing import NamedTuple

os.environ["POLARS_MAX_THREADS"] = "1"  # before polars is imported

import measure
import numpy as np
import polars as pl
import tables

from nutbeam.policy.components.schema import CHANGES, STATE, conform, to_frame
from nutbeam.policy.updating.range_facts import RangeFacts
from nutbeam.policy.updating.status import update_state
from nutbeam.policy.updating.update_rules import UpdateRules, UpdateTableOptions
from nutbeam.web.exchange.status import (
    FETCH_GONE,
    FETCH_NOTMODIFIED,
    FETCH_REDIR_TEMP,
    FETCH_RETRY,
    FETCH_SUCCESS,
    SUCCESS,
)

NOW = 1_700_000_000_000
BUDGET = 2.0  # million rows a second
RESULTS = (FETCH_SUCCESS, FETCH_NOTMODIFIED, FETCH_REDIR_TEMP, FETCH_RETRY, FETCH_GONE)
SHARES = (0.6, 0.25, 0.05, 0.05, 0.05)


class Mixture(NamedTuple):
    """Shares of the rows that a batch changes, and of new URLs."""

    tried: float
    linked: float
    new: float


MIXTURES = {
    "all linked": Mixture(0, 1, 0),
    "all tried": Mixture(1, 0, 0),
    "1/10 tried, 1/2 linked, 1/10 new": Mixture(0.1, 0.5, 0.1),
}


def rows_and_changes(number: int, how: Mixture) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Returns (rows of the state, changes of a batch in no order)."""
    random = np.random.default_rng(1)
    rows = tables.state_rows(tables.host_sizes(number, number // 25), 0, number, NOW)
    rows = to_frame(conform(rows, STATE)).sort("key")
    keys = rows.get_column("key")
    tried = keys.filter(pl.Series(random.random(number) < how.tried))
    linked = keys.filter(pl.Series(random.random(number) < how.linked))
    new = [f"org.host{at // 20}:http/new/{at}" for at in range(int(number * how.new))]
    targets = pl.concat([linked, pl.Series("key", new, dtype=pl.String)])
    links = targets.to_frame().with_columns(
        inlink_score=pl.lit(0.01), inlink_distance=pl.lit(3), order=pl.int_range(pl.len()) % 10
    )
    changes = pl.concat([_events(tried, random), links], how="diagonal_relaxed")
    return rows, to_frame(conform(changes.sample(fraction=1, shuffle=True, seed=1), CHANGES))


def _events(keys: pl.Series, random: np.random.Generator) -> pl.DataFrame:
    results = random.choice(RESULTS, len(keys), p=SHARES)
    fetched = pl.col("fetch_status") == FETCH_SUCCESS
    body = {
        "content_type": pl.lit("text/html; charset=utf-8"),
        "etag": pl.col("key").hash(1).cast(pl.String),
        "signature": pl.col("key").hash(0).cast(pl.String).cast(pl.Binary),
        "parse_status": pl.lit(1),
        "batch_id": pl.lit(tables.BATCH),
        "page": pl.lit(f"batches/{tables.BATCH}/pages/00000-00000.parquet"),
        "document": pl.lit(f"batches/{tables.BATCH}/documents/00000-00000.parquet"),
    }
    return pl.DataFrame({"key": keys, "fetch_status": results}).with_columns(
        order=pl.lit(0),
        protocol_status=pl.when(fetched).then(SUCCESS),
        http_code=pl.when(fetched).then(200),
        fetch_time=pl.lit(NOW - 60_000),
        response_ms=pl.lit(30),
        **{name: pl.when(fetched).then(value) for name, value in body.items()},
    )


def speed(number: int, how: Mixture, repeats: int = 5) -> tuple[int, float]:
    """Returns (number of rows after the update, CPU seconds of the fastest of several runs)."""
    rows, changes = rows_and_changes(number, how)
    options, seconds = UpdateTableOptions(), []
    for _ in range(repeats):
        start = time.process_time()
        after, *_ = update_state(rows, changes, RangeFacts(NOW), UpdateRules(options))
        seconds.append(time.process_time() - start)
    return len(after), min(seconds)


def main() -> None:
    """Does what the command line says."""
    number = 20_000 if "--small" in sys.argv[1:] else 200_000
    shown = []
    for name, how in MIXTURES.items():
        rows, seconds = speed(number, how)
        rate = rows / seconds / 1e6
        shown.append((name, rate, BUDGET, rate / BUDGET))
    heads = ("million rows/s and core", "updatedb", "budget", "ratio")
    measure.table(f"{number:,} rows", heads, shown)


if __name__ == "__main__":
    main()
