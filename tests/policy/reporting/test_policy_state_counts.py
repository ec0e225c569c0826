"""What is kept of parts of the state gives the same figures as the whole state at once."""

import dataclasses
import random

import polars as pl
import pytest
from frames import frame_of

from nutbeam.policy.components.schema import STATE, Status
from nutbeam.policy.reporting.state_counts import (
    CRAWLER_BLOCKS,
    TOP,
    count_state,
    counts_by_name,
    host_figures,
    sum_state_counts,
    top_pages,
)
from nutbeam.policy.schedules.schedule import DAY_MS

NOW = 1_790_000_000_000
ANSWERS = [
    {"protocol_status": 1, "http_code": 200},
    {"protocol_status": 17, "http_code": 403},
    {"protocol_status": 16, "http_code": 429},
    {"protocol_status": 16, "http_code": 403, "protocol_message": "bot_wall_cloudflare"},
    {"protocol_status": 18},
    {"protocol_status": 16, "protocol_message": "timeout"},
]


@pytest.fixture(scope="module")
def rows():
    chance, made = random.Random(7), []
    for number in range(3_000):
        host = f"com.h{int(chance.paretovariate(0.7)) % 400:03}"
        made.append(
            {
                "key": f"{host}:http/{number}",
                "status": int(chance.choice(list(Status))),
                "fetch_time": NOW + chance.randint(-DAY_MS, 100 * DAY_MS),
                "last_fetch_time": NOW - chance.randint(0, 400 * DAY_MS),
                "score": chance.random(),
                "distance": chance.randint(0, 12),
                "response_ms": chance.randint(1, 900),
                "document": f"d{number % 3}",
                **chance.choice(ANSWERS),
            }
        )
    return frame_of(STATE, *made).sort("key")


def all_figures(counts):
    figures = {
        name: counts_by_name(counts.counts, name) for name in counts.counts["figure"].unique()
    }
    for ranking in ("biggest", "slowest", "failing", "blocking"):
        figures[ranking] = host_figures(counts.host_rows, ranking)
    samples = sorted(counts.samples["key"])
    return figures, counts.rows, counts.hosts, top_pages(counts.pages), samples, len(counts.living)


def test_parts_have_the_figures_of_the_whole(rows):
    whole = all_figures(sum_state_counts([count_state(rows, NOW)]))
    for size in (37, 500):  # hosts go on in the next part
        parts = [count_state(part, NOW) for part in rows.iter_slices(size)]
        assert all_figures(sum_state_counts(parts)) == whole


def test_rankings_are_those_of_all_hosts(rows):
    hosts = host_figures(count_state(rows, NOW).host_rows, "slowest")
    plain = rows.group_by(pl.col("key").str.split(":").list.first()).agg(
        pl.col("response_ms").mean()
    )
    slowest = plain.sort("response_ms", "key", descending=[True, False]).head(TOP)
    assert [(h.host.split(".")[0], h.mean_ms) for h in hosts] == [
        (key.split(".")[1], mean) for key, mean in slowest.iter_rows()
    ]


def test_each_block_counts_once(rows):
    failing = pl.Series(["com.h001", "com.h002"])
    blocks = counts_by_name(count_state(rows, NOW, failing).counts, "blocks")
    assert set(blocks) == set(CRAWLER_BLOCKS)
    is_due = pl.col("fetch_time") <= NOW
    waiting = rows.filter(pl.col("key").str.contains("^com.h00[12]:") & is_due)
    free = waiting.filter(~pl.col("http_code").fill_null(0).is_in([403, 429]))
    assert blocks["robots_failing"] == len(free.filter(pl.col("protocol_status") != 18)) > 0
    is_wall = pl.col("protocol_message") == "bot_wall_cloudflare"
    assert blocks["walls"] == len(rows.filter(is_wall))
    assert blocks["denied"] == len(
        rows.filter((pl.col("http_code") == 403) & ~is_wall.fill_null(False))
    )


def test_a_table_without_rows_has_figures():
    counts = sum_state_counts([])
    assert (counts.rows, counts.hosts, len(counts.counts)) == (0, 0, 0)
    assert dataclasses.asdict(counts)["edges"] == ()
