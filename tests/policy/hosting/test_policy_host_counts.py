"""Numbers of URLs by host follow the changes: they equal a count of all rows, row by row."""

import random

import polars as pl
import pytest
from reference_histories import Web, history
from reference_hosts import added, count_by_host, counts_in

from nutbeam.policy.components.host_rows import sum_host_counts, urls_of_domains
from nutbeam.policy.components.schema import HOSTS, empty
from nutbeam.policy.hosting.hosts import changed_counts, count_urls
from nutbeam.policy.hosting.recount import recount_changes, recount_hosts

TYPES = {"key": pl.String, "status": pl.UInt8, "retries": pl.Int32}
PLAIN = Web(pages=40, gap_days=40)
ALL = Web(pages=40, gap_days=40, returning=True, too_long=True, orphans=True)


def frame(rows):
    return pl.DataFrame(sorted(rows.values(), key=lambda row: row["key"]), schema=TYPES)


@pytest.mark.long
@pytest.mark.few(1)
@pytest.mark.parametrize(("web", "seed"), [(PLAIN, 0), (ALL, 1)])
def test_two_years_of_updates(web, seed):
    for step in history(seed, web):
        before, after = (count_by_host(rows.values()) for rows in (step.before, step.product.rows))
        assert added(before, counts_in(step.product.host_counts)) == after


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", range(5))
def test_random_changes_that_add_change_and_remove(seed):
    numbers, rows, known = random.Random(seed), {}, []
    keys = [f"com.d{n % 3}.h{n % 5}:http/{n}" for n in range(60)] + [":file/a", "[::1]:http/"]
    for _ in range(40):
        before = dict(rows)
        for key in numbers.sample(keys, 15):
            if numbers.random() < 0.2:
                rows.pop(key, None)
            else:
                status, retries = numbers.randint(1, 9), numbers.choice([None, 0, 0, 2])
                rows[key] = {"key": key, "status": status, "retries": retries}
        known.append(changed_counts(frame(before), frame(rows)))
        sums = sum_host_counts(known)
        assert counts_in(sums.to_dicts()) == count_by_host(rows.values())
        assert counts_in(count_urls(frame(rows)).to_dicts()) == count_by_host(rows.values())
        # Some are merged before the others.
        known = [sums] if numbers.random() < 0.3 else known
    domains = dict(urls_of_domains(sums).iter_rows())
    assert sum(domains.values()) == sum(not key.startswith(":") for key in rows)
    assert domains.keys() <= {"com.d0", "com.d1", "com.d2", "[::1]"}


def test_rows_that_stay_equal_count_nothing():
    rows = {"a": {"key": "com.a:http/", "status": 1, "retries": 0}}
    assert changed_counts(frame(rows), frame(rows)).is_empty()


def state(key, status, ms=None, retries=0):
    return {"key": key, "status": status, "retries": retries, "response_ms": ms}


def test_a_recount_replaces_numbers_and_keeps_the_rest():
    rows = pl.DataFrame(
        [state("com.a:http/", 2, 100), state("com.a:https/", 2, 100), state("com.a:http/x", 1),
         state("com.a.b:http/", 3, retries=2)],
        schema={**TYPES, "response_ms": pl.Int32},
    )  # fmt: skip
    known = pl.DataFrame([
        {"key": "com.a", "gone": 7, "seed": True, "robots_status": 200},
        {"key": "com.none", "fetched": 3, "domain_urls": 3, "requests": 9, "seed": False},
    ], schema=empty(HOSTS).schema)  # fmt: skip
    parts = pl.concat([recount_changes(rows), known.select("key")], how="diagonal")
    found = {row["key"]: row for row in recount_hosts(known, parts).to_dicts()}
    assert counts_in(found.values()) == count_by_host(rows.to_dicts())
    a, b, none = (found[key] for key in ("com.a", "com.a.b", "com.none"))
    assert (a["seed"], a["robots_status"], a["homepage"]) == (True, 200, "com.a:https/")
    assert (a["domain_urls"], b["domain_urls"], none["domain_urls"]) == (4, 0, 0)
    assert (none["requests"], none["fetched"], b["homepage"]) == (9, 0, None)
