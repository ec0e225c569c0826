import polars as pl
import pytest

from nutbeam.io.tablets.file_lists import DataFile, load_files, store_files
from nutbeam.io.tablets.tablets import host_start, rows_of_large_hosts, tablets


@pytest.mark.parametrize(
    ("key", "start"),
    [("com.a:http/", "com.a:"), ("com.a:http:81/x]:y", "com.a:"), ("[::1]:http/", "[::1]:"),
     ("com.a", "com.a"), ("[::1]", "[::1]"), ("localhost:http/a:b", "localhost:")],
)  # fmt: skip
def test_host_start(key, start):
    assert host_start(key) == start


def test_files_make_tablets_in_key_order_with_their_runs_oldest_first():
    bases = [DataFile("b", 5, 50, "k", "m"), DataFile("a", 3, 30, "c", "e")]
    runs = [DataFile("r2", 2, 2, "j", "k", "b", order=12, fresh=1),
            DataFile("r1", 3, 3, "l", "n", "b", order=9, fresh=2)]  # fmt: skip
    first, second = tablets([runs[0], bases[0], runs[1], bases[1]])
    assert (first.base.path, first.runs) == ("a", ())
    assert second.paths == ("b", "r1", "r2")
    assert (second.first, second.last) == ("j", "n")
    assert (second.rows, second.run_rows, second.bytes) == (8, 5, 55)


def test_the_zone_map_of_a_tablet_is_that_of_all_its_files():
    base = DataFile("b", 5, 50, "k", "m", min_time=10, max_time=20)
    run = DataFile("r", 1, 1, "k", "k", "b", min_time=5, max_time=15, fresh=0)
    (tablet,) = tablets([base, run])
    assert (tablet.min_time, tablet.max_time) == (5, 20)
    (tablet,) = tablets([base, DataFile("r", 1, 1, "k", "k", "b", fresh=0)])
    assert (tablet.min_time, tablet.max_time) == (None, None)


def test_lists_keep_the_names_of_their_columns(tmp_path):
    file = DataFile("state/a", 5, 50, "k", "m", min_time=10, max_time=20, max_score=0.5, statuses=2)
    component = store_files(tmp_path, "state", [file])
    stored = pl.read_parquet(tmp_path / component.list).columns
    assert stored == [
        "path", "rows", "bytes", "first", "last", "base", "partition", "order", "min_fetch_time",
        "max_fetch_time", "max_score", "statuses", "fresh", "formerly", "crc32",
    ]  # fmt: skip
    assert load_files(tmp_path, component) == [file]


def test_rows_of_hosts_with_tablets_of_their_own_are_counted():
    files = [
        DataFile("a", 3, 30, "com.a:http/1", "com.b:http/1"),
        DataFile("b", 5, 50, "com.b:http/2", "com.b:http/7"),
        DataFile("r", 3, 30, "com.b:http/7", "com.b:http/9", "b", order=9, fresh=2),
        DataFile("c", 4, 40, "com.b:http/x", "com.b:https/x"),
        DataFile("d", 9, 90, "com.b.www:http/1", "com.c:http/1"),
        DataFile("e", 1, 10, "com.d:http/1", "com.d:http/1"),
    ]
    assert rows_of_large_hosts(files) == {"com.b": 11, "com.d": 1}
    assert rows_of_large_hosts([]) == {}
