import itertools
import random

import pyarrow as pa
import pytest
from frames import frame_of
from hypothesis import example, given
from hypothesis import strategies as st
from tablet_files import FILES, SORTED_KEYS, keys_of, state, write

from nutbeam.io.storage.parquet_files import collect, scan
from nutbeam.io.tablets.resolve import write_bases
from nutbeam.io.tablets.tablet_writer import TabletWriter
from nutbeam.policy.components.kinds import KINDS
from nutbeam.policy.components.schema import HOSTS, STATE
from nutbeam.web.urls.row_keys import host_key_of


@FILES
@given(SORTED_KEYS, st.lists(st.integers(0, 12), max_size=8), st.integers(1, 12))
@example([f"com.a:http/{n}" for n in range(9)], [4, 4], 3)
def test_tablets_are_cut_between_hosts(tmp_path, keys, sizes, most):
    files = write(tmp_path, state(keys), sizes, most)
    found = keys_of(tmp_path, files)
    assert list(itertools.chain(*found)) == keys
    for part in found:
        assert 0 < len(part) < 2 * most or most == 1
    size_of = {
        host: sum(host_key_of(key) == host for key in keys) for host in map(host_key_of, keys)
    }
    for before, after in itertools.pairwise(found):
        host = host_key_of(before[-1])
        assert host != host_key_of(after[0]) or size_of[host] > most


@pytest.mark.parametrize("sizes", [[], [10], [5, 5, 5, 5, 5, 5], [1] * 30, [29]])
def test_a_host_larger_than_a_tablet_takes_several(tmp_path, sizes):
    keys = [f"com.a:http/{n}" for n in range(3)]
    keys += [f"com.b:http/{n:02d}" for n in range(25)]
    keys += [f"com.c:http/{n}" for n in range(4)]
    found = keys_of(tmp_path, write(tmp_path, state(keys), sizes, 10))
    assert list(itertools.chain(*found)) == keys
    assert max(len(part) for part in found) <= 13
    assert len(found) <= 5
    # What follows a big host begins where it ends, or is in one file with its rest.
    assert keys[-4:] == found[-1][-4:]


def test_zone_maps(tmp_path):
    keys = [f"com.{host}:http/{n}" for host in "abc" for n in range(4)]
    files = write(tmp_path, state(keys), [3, 3], 4)
    for file, part in zip(files, keys_of(tmp_path, files), strict=True):
        rows = collect(scan([tmp_path / file.path], STATE))
        assert (file.first, file.last, file.rows) == (part[0], part[-1], len(part))
        assert (file.min_time, file.max_time) == (
            rows["fetch_time"].min(), rows["fetch_time"].max()
        )  # fmt: skip
        assert file.max_score == rows["score"].max()
        assert file.statuses == sum(1 << status for status in set(rows["status"]))
        assert file.bytes == (tmp_path / file.path).stat().st_size


def test_zone_maps_of_rows_that_have_no_times(tmp_path):
    writer = TabletWriter(tmp_path, "hosts", HOSTS)
    writer.write(frame_of(HOSTS, {"key": "com.a"}, {"key": "com.b"}))
    (file,) = writer.close()
    assert (file.first, file.last, file.min_time, file.statuses) == (
        "com.a", "com.b", None, None
    )  # fmt: skip


def test_the_range_of_rows_that_are_not_in_order_has_all_of_them(tmp_path):
    """Host counts are written tablet by tablet: host a1 is before host a, but its key is not."""
    kind = KINDS["host_counts"]
    with TabletWriter(tmp_path, kind.name, kind.schema) as writer:
        for keys in (["com.a1", "com.a19"], ["com.a", "com.a1"]):
            writer.write(frame_of(kind.schema, *({"key": key} for key in keys)))
        (file,) = writer.close()
    assert (file.first, file.last) == ("com.a", "com.a19")


def test_a_writer_without_rows_writes_nothing(tmp_path):
    writer = TabletWriter(tmp_path, "state", STATE)
    writer.write(state([]))
    assert writer.close() == []
    assert list(tmp_path.iterdir()) == []


def test_an_abandoned_writer_leaves_no_file(tmp_path):
    with TabletWriter(tmp_path, "state", STATE) as writer:
        writer.write(state(["com.a:http/"]))
    assert list((tmp_path / "state").iterdir()) == []


@pytest.mark.parametrize(
    ("component", "schema", "later"),
    [("state", STATE, first) for first in KINDS["state"].later_versions]
    + [("hosts", HOSTS, KINDS["hosts"].later_versions[-1])],
)
def test_empty_columns_of_later_versions_take_hardly_any_room(tmp_path, component, schema, later):
    before = pa.schema(list(schema)[: schema.get_field_index(later)])
    assert len(before) < len(schema)
    draw = random.Random(1)
    moments = iter(lambda: 1_700_000_000_000 + draw.randrange(10**10), None)
    values = {"status": 2, "fetch_interval": 2_592_000, "robots_status": 404, "http_code": 200}
    times = [name for name in before.names if name.endswith("_time")]
    rows = [
        {"key": f"com.h{n:06d}", **values, **dict(zip(times, moments, strict=False))}
        for n in range(20_000)
    ]
    known = [{name: row[name] for name in before.names if name in row} for row in rows]
    sizes = []
    for columns in (before, schema):
        writer = TabletWriter(tmp_path, component, columns)
        writer.write(frame_of(columns, *known))
        sizes.append(sum(file.bytes for file in writer.close()))
    assert sizes[1] <= 1.10 * sizes[0]


ADDED = {
    "state": {"change_shape", "change_days", "max_depth", "duplicate_of", "usage", "gone_since"},
    "hosts": {
        *("unfetched", "fetched", "gone", "redir_temp", "redir_perm", "notmodified", "duplicate"),
        *("orphan", "parse_failed", "connection_failures", "dns_failures", "dns_time", "homepage"),
        *(
            "score",
            "response_times",
            "linking_domains",
            "settings",
            "purged_since",
            "domain_urls",
            "cookies",
        ),
    },
}


@pytest.mark.parametrize("component", ADDED)
def test_columns_that_later_formats_added_cost_little_where_they_are_empty(tmp_path, component):
    dice = random.Random(1)
    hosts = [f"com.example{dice.randrange(10**9)}" for _ in range(10_000)]
    if component == "state":
        keys = [f"{host}:http/{dice.randrange(10**9)}/" for host in hosts]
        rows = [{"key": key, "status": 1, "score": dice.random(), "fetch_time": dice.randrange(10**12),
                 "fetch_interval": 2_592_000, "retries": 0, "distance": 1} for key in sorted(keys)]  # fmt: skip
    else:
        rows = [{"key": host, "seed": False, "requests": dice.randrange(100), "exceptions": 0,
                 "last_request_time": dice.randrange(10**12)} for host in sorted(hosts)]  # fmt: skip
    schema = {"state": STATE, "hosts": HOSTS}[component]
    frame = frame_of(schema, *rows)
    assert ADDED[component] < set(schema.names)
    sizes = {}
    for name, left_out in (("old", ADDED[component]), ("new", set())):
        kept = [field for field in schema if field.name not in left_out]
        (tmp_path / name).mkdir()
        given = frame.select(field.name for field in kept)
        files = write_bases(tmp_path / name, component, [given], pa.schema(kept))
        sizes[name] = sum((tmp_path / name / file.path).stat().st_size for file in files)
    assert sizes["new"] <= 1.1 * sizes["old"]
