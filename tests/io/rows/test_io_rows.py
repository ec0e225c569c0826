"""Small components are read as the last commit left them: settings, numbers of URLs, seeds."""

import itertools
from pathlib import Path

import polars as pl
import pytest
from frames import frame_of

from nutbeam.io.rows.seed_hosts import map_seed_hosts, read_seed_hosts, seed_hosts_file
from nutbeam.io.rows.small_components import (
    HOST_COUNTS_COMPONENT,
    forgets_pending,
    pending_changes,
    pending_counts,
    read_host_settings,
    write_settings,
)
from nutbeam.io.snapshots.commit import commit
from nutbeam.io.snapshots.operations import begin
from nutbeam.io.tablets.resolve import write_bases
from nutbeam.io.tablets.written import Written
from nutbeam.policy.components.schema import HOST_COUNTS, HOSTS, conform_frame


@pytest.fixture
def operations(tmp_path):
    """Begins an operation after the other on one table."""
    return (begin(str(tmp_path / "t"), "inject", f"{n:03d}.inject") for n in itertools.count())


def add(operation, component, *rows):
    """Commits rows as a file of a component, beside those that are there."""
    files = write_bases(operation.table, component, list(rows))
    commit(operation, [Written(component, files)])


def test_settings_of_hosts_are_replaced_one_host_at_a_time(operations):
    asked = (
        {"com.a": {"server_delay": "2"}, "com.b": {"min_interval": "3600"}},
        {"com.a": {"max_interval": "7200"}},
        {"com.b": {}},
        {"com.a": {}},
    )
    seen = []
    for values in asked:
        operation = next(operations)
        commit(operation, [write_settings(operation, values)])
        seen.append(dict(read_host_settings(next(operations))))
    assert [sorted(found) for found in seen] == [
        ["com.a", "com.b"],
        ["com.a", "com.b"],
        ["com.a"],
        [],
    ]
    assert seen[1]["com.b"] == seen[0]["com.b"] != seen[0]["com.a"]
    assert seen[2]["com.a"] == seen[1]["com.a"] != seen[0]["com.a"]


def counts(**numbers):
    return frame_of(HOST_COUNTS, *({"key": key, "unfetched": n} for key, n in numbers.items()))


def test_numbers_of_urls_are_summed_until_they_are_added(operations):
    assert pending_counts(next(operations)).is_empty()
    add(next(operations), HOST_COUNTS_COMPONENT, counts(**{"com.a.x": 5, "com.b": 1}))
    add(next(operations), HOST_COUNTS_COMPONENT, counts(**{"com.a.x": -2, "com.a.y": 4}))
    operation = next(operations)
    found = pending_counts(operation).select("key", "unfetched").rows()
    assert found == [("com.a.x", 3), ("com.a.y", 4), ("com.b", 1)]
    changes = pending_changes(operation).select("key", "domain_urls").rows()
    assert changes == [("com.a", 7), ("com.a.x", None), ("com.a.y", None), ("com.b", 1)]
    commit(operation, [forgets_pending(operation)])
    assert pending_counts(next(operations)).is_empty()


def test_a_host_of_a_seed_stays_one(operations):
    operation = next(operations)
    assert read_seed_hosts(operation).host_keys.is_empty()
    hosts = ({"key": "uk.co.a.www", "seed": True}, {"key": "uk.co.b", "seed": False})
    component = operation.table.seed_component
    add(operation, component, frame_of(HOSTS, *hosts))
    operation = next(operations)
    seeds = read_seed_hosts(operation)
    assert seeds.host_keys.to_list() == ["uk.co.a.www"]
    assert read_seed_hosts(next(operations)) is seeds  # a process reads them once
    mapped = map_seed_hosts(seed_hosts_file(operation))
    assert mapped.host_keys.to_list() == ["uk.co.a.www"]


def test_very_many_hosts_of_seeds_lie_in_one_file_that_processes_map(operations):
    operation = next(operations)
    component, keys = operation.table.seed_component, [f"com.h{n:06}" for n in range(100_001)]
    assert seed_hosts_file(operation) == ""
    for part in (keys[1::2], keys[::2], keys[:3]):  # out of order, and some twice
        rows = pl.DataFrame({"key": part, "seed": [True] * len(part)})
        add(next(operations), component, conform_frame(rows, HOSTS))
    operation = next(operations)
    seeds = read_seed_hosts(operation)
    path = seed_hosts_file(operation)
    assert path in Path("/proc/self/maps").read_text()
    assert seeds.host_keys.to_list() == keys
    assert map_seed_hosts(path) is seeds
    Path(path).unlink()  # another process of a crawl has removed its temporary files
    assert map_seed_hosts(seed_hosts_file(operation)).host_keys.to_list() == keys
