"""Small components are read as the last commit left them: settings, numbers of URLs, seeds."""

import itertools

import pytest
from frames import frame_of

from nutbeam.io.rows.small_components import (
    HOST_COUNTS_COMPONENT,
    forgets_pending,
    pending_changes,
    pending_counts,
    read_host_settings,
    read_seeds_hosts,
    seed_files,
    write_settings,
)
from nutbeam.io.snapshots.commit import commit
from nutbeam.io.snapshots.operations import begin
from nutbeam.io.tablets.resolve import write_bases
from nutbeam.io.tablets.written import Written
from nutbeam.policy.components.schema import HOST_COUNTS, HOSTS


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
    assert read_seeds_hosts(operation.table, seed_files(operation)).hosts == frozenset()
    hosts = ({"key": "uk.co.a.www", "seed": True}, {"key": "uk.co.b", "seed": False})
    component = operation.table.seed_component
    add(operation, component, frame_of(HOSTS, *hosts))
    operation = next(operations)
    seeds = read_seeds_hosts(operation.table, seed_files(operation))
    assert (seeds.hosts, seeds.domains) == ({"www.a.co.uk"}, {"a.co.uk"})
