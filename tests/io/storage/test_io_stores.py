"""What files and commits promise holds on disk, on Cloud Storage, on S3 and on HDFS alike."""

import itertools
import multiprocessing
import sys
import threading

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from flaky_proxy import Proxy
from frames import frame_of
from gcs_server import free_port
from stores_here import BUCKET, everywhere, in_stores

from nutbeam.io.batches.batches import put_aside, remove_aside, take_up
from nutbeam.io.batches.seeds import sources
from nutbeam.io.snapshots.commit import commit
from nutbeam.io.snapshots.manifest import newest_manifest
from nutbeam.io.snapshots.operations import begin
from nutbeam.io.storage import parquet_files
from nutbeam.io.storage import stores as module
from nutbeam.io.storage.exclusive import create_exclusive
from nutbeam.io.storage.files import (
    creating,
    file_size,
    file_version,
    list_files,
    names,
    opened,
    overwrite_bytes,
    read_bytes,
    read_if_there,
    remove_empty_folders,
    remove_file,
    remove_tree,
    store_time,
    write_bytes,
)
from nutbeam.io.storage.parquet_files import (
    ParquetWriter,
    collect,
    row_group_count,
    row_groups,
    scan,
)
from nutbeam.io.storage.places import Remote, in_store, place_of
from nutbeam.io.storage.places import below as name_below
from nutbeam.io.table.opening import open_table
from nutbeam.io.tablets import fold, tablet_writer
from nutbeam.io.tablets.fold import Groups, find_rows, folded, group_bounds, read_tablets
from nutbeam.io.tablets.resolve import write_bases
from nutbeam.io.tablets.tablet_writer import write_run
from nutbeam.io.tablets.tablets import NUMBER, Tablet
from nutbeam.policy.schema import OUTCOME, STATE
from nutbeam.web.base.errors import Unavailable, UsageError, UserError

ROWS = frame_of(OUTCOME, *({"key": f"k{n:03d}", "status": n % 9} for n in range(100)))
PROXIED = pytest.mark.parametrize("kind", ["gs", "s3"])


@pytest.fixture
def root(address):
    return place_of(address)


@pytest.fixture
def proxied(kind, stores, monkeypatch):
    """A proxy before a store's server, and the place of a table that is reached through it."""
    with Proxy(stores.server(kind).url) as proxy:
        for name, value in stores.environ(kind, proxy.url).items():
            monkeypatch.setenv(name, value)
        yield proxy, place_of(stores.address(kind))


def rows_of(numbers, score):
    keys = (f"com.a:http/{number:03d}" for number in numbers)
    return frame_of(STATE, *({"key": key, "score": score, "status": 1} for key in keys))


def below(root):
    """Returns the names of all files below a place, however deep."""
    found = []
    for name in names(root):
        try:
            inner = below(root / name)
        except UserError:  # it is a file
            inner = []
        found += [f"{name}/{deeper}" for deeper in inner] or [name]
    return found


@pytest.mark.parametrize(
    ("address", "word"),
    [
        (
            "ftp://host/table",
            "s3://BUCKET/NAME, hdfs://HOST:PORT/NAME or bigtable://PROJECT/INSTANCE/TABLE, got",
        ),
        ("bigtable-like://x", "local folder, gs://"),
        ("gcs://b/t", "write gs://"),
        ("s3a://b/t", "write s3://"),
        ("webhdfs://h:1/t", "write hdfs://"),
        ("gs://", "begins with gs://BUCKET/"),
        ("s3:///t", "begins with s3://BUCKET/"),
        ("hdfs://user@host/t", "begins with hdfs://HOST:PORT/"),
        ("gs://b/a/../t", "must not contain '..'"),
        ("gs://b/t*", r"must not contain '\*'"),
        ("gs://b/t#1", "must not contain '#'"),
        ("s3://b/a t", "must not contain ' '"),
    ],
)
def test_addresses_that_cannot_be(address, word):
    with pytest.raises(UsageError, match=word):
        open_table(address).check_place()


def test_places_are_named_as_paths_are():
    place = place_of("gs://bucket/a/table/") / "state" / "x.parquet"
    assert str(place) == "gs://bucket/a/table/state/x.parquet"
    assert (place.name, place.stem, place.suffix) == ("x.parquet", "x", ".parquet")
    assert str(place.with_name("y")) == "gs://bucket/a/table/state/y"
    assert str(place.with_suffix(".b").parent) == "gs://bucket/a/table/state"
    assert str(place.relative_to(place_of("gs://bucket/a"))) == "table/state/x.parquet"
    assert str(place_of("s3://bucket")) == str(place_of("s3://bucket/")) == "s3://bucket"
    assert str(place_of("s3://bucket") / "a") == "s3://bucket/a"
    with pytest.raises(ValueError, match="not in"):
        place.relative_to(place_of("gs://other/a"))
    assert not in_store("gs:x")


@pytest.mark.parametrize(
    ("address", "module", "extra"),
    [("gs://b/t", "gcsfs.core", "gcp"), ("s3://b/t", "s3fs", "s3"),
     ("hdfs://h/t", "fsspec.implementations.webhdfs", "hdfs")],
)  # fmt: skip
def test_a_client_that_is_not_installed(address, module, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr("nutbeam.io.storage.store_clients._LOCAL", threading.local())
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://{extra}")  # a client of its own
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{extra}")
    with pytest.raises(UsageError, match=rf"pip install 'nutbeam\[{extra}\]'$"):
        open_table(address).check_place()


@everywhere
def test_bytes_come_back(root):
    path = root / "deep" / "file"
    assert read_if_there(path) is None
    with pytest.raises(UserError, match=r"^data file is missing: .*/deep/file$"):
        read_bytes(path)
    write_bytes(path, b"\x00data")
    assert read_bytes(path) == read_if_there(path) == b"\x00data"
    assert file_size(path) == 5
    assert names(path.parent) == ["file"]
    assert names(root) == ["deep"]
    assert names(root / "none") == []


@everywhere
@pytest.mark.parametrize("data", [b"", b"line\n" * 500_000])
def test_streams_come_back(root, data):
    with creating(root / "x" / "part") as file:
        for at in range(0, len(data), 1_000_000):
            file.write(data[at : at + 1_000_000])
    with opened(root / "x" / "part") as file:
        assert b"".join(iter(lambda: file.read(1 << 20), b"")) == data


@everywhere
def test_what_is_replaced_is_another_version(root):
    assert file_version(root / "x" / "beat") == ()
    write_bytes(root / "x" / "beat", b"1")
    before = file_version(root / "x" / "beat")
    overwrite_bytes(root / "x" / "beat", b"2")
    assert read_bytes(root / "x" / "beat") == b"2"
    assert () != file_version(root / "x" / "beat") != before
    assert names(root / "x") == ["beat"]


@everywhere
def test_a_tree_is_removed(root):
    for name in ("a", "b"):
        write_bytes(root / "tree" / name / "file", b"x")
    write_bytes(root / "tree2" / "file", b"x")
    remove_tree(root / "tree")
    remove_tree(root / "none")
    assert below(root) == ["tree2/file"]


@everywhere
def test_files_have_ages_by_the_stores_clock(root):
    before = int(store_time(root / "manifest"))
    for name in ("a", "x/b", "x/y/c"):
        write_bytes(root / "tree" / name, b"xyz")
    write_bytes(root / "tree2" / "file", b"x")
    after = store_time(root / "manifest") + 1
    found = {file.path: file.changed for file in list_files(root / "tree")}
    assert sorted(name_below(root, path) for path in found) == [
        "tree/a", "tree/x/b", "tree/x/y/c",
    ]  # fmt: skip
    assert all(before <= written <= after for written in found.values())
    assert list(list_files(root / "none")) == []
    assert names(root / "manifest") == []

    assert remove_file(root / "tree" / "a") == 3
    assert remove_file(root / "tree" / "a") == 0
    remove_empty_folders(root / "tree")
    assert below(root / "tree") == ["x/b", "x/y/c"]
    assert [remove_file(root / "tree" / name) for name in ("x/b", "x/y/c")] == [3, 3]
    remove_empty_folders(root / "tree")
    remove_empty_folders(root / "none")
    assert "tree" not in names(root)


@everywhere
def test_tablets_with_runs_are_read_as_on_disk(root, monkeypatch):
    """Row groups of 40 rows: pieces begin and end anywhere among the rows that runs supersede."""
    for room in (fold, parquet_files, tablet_writer):
        monkeypatch.setattr(room, "ROW_GROUP_ROWS", 40)
    (base,) = write_bases(root, "state", [rows_of(range(0, 200, 2), 1.0)])
    runs = []
    for order, (numbers, at, score, fresh) in enumerate(
        [([0, 80, 81, 198], [0, 40, 100, 99], 2.0, 1), ([80, 100], [40, 50], 3.0, 0)], start=2
    ):
        rows = rows_of(numbers, score).with_columns(pl.Series(NUMBER, at, dtype=pl.UInt32))
        runs.append(write_run(root, "state", base, rows, fresh, order))
    tablet = Tablet(base, tuple(runs))
    expected = dict.fromkeys(range(0, 200, 2), 1.0) | {0: 2.0, 81: 2.0, 198: 2.0, 80: 3.0, 100: 3.0}
    keys = [f"com.a:http/{n:03d}" for n in sorted(expected)]
    scores = [expected[n] for n in sorted(expected)]

    whole = list(folded(root, STATE, tablet))
    assert pl.concat(whole)["key"].to_list() == keys
    assert pl.concat(whole)["score"].to_list() == scores
    assert [len(piece) for piece in whole] == [40, 41, 20]
    bounds = group_bounds(root, tablet).to_list()
    assert bounds == [f"com.a:http/{n:03d}" for n in (78, 158, 198)]
    for start, stop in [(0, 1), (1, 2), (1, 3), (2, None), (3, None)]:
        behind = bounds[start - 1] if start else ""
        some = list(folded(root, STATE, tablet, None, Groups(start, stop, behind)))
        wanted = whole[start:stop]
        assert [piece.rows() for piece in some[: len(wanted)]] == [p.rows() for p in wanted]
    read = read_tablets(root, "state", [tablet, tablet], ["key", "score"])
    assert sorted(read.rows()) == sorted(list(zip(keys, scores, strict=True)) * 2)
    good = pl.col("score") > 1
    narrow = read_tablets(root, "state", [tablet], ["key"], lambda rows: rows.filter(good))
    assert len(narrow) == 5
    found = find_rows(root, "state", tablet, pl.Series("key", ["com.a:http/081", "com.a:http/100"]))
    assert found.select("score", NUMBER).rows() == [(2.0, 100), (3.0, 50)]


@everywhere
def test_what_is_put_aside_is_taken_up(root):
    path = put_aside(root, "1-x", ROWS)
    assert take_up(root, path).equals(ROWS)
    remove_aside(root, "1-x")
    assert names(root / "batches" / "1-x" / "aside") == []


@everywhere
def test_creates_a_file_once(root):
    path = root / "deep" / "er" / "name"
    assert create_exclusive(path, b"one") is True
    assert create_exclusive(path, b"two") is False
    assert create_exclusive(path, b"one") is False  # of the same content, and yet not this call's
    assert read_bytes(path) == b"one"
    assert names(path.parent) == ["name"]  # nothing temporary is left


@everywhere
@pytest.mark.parametrize("threads", [2, 8])
def test_each_name_is_won_once_by_threads(root, threads):
    won = [[] for _ in range(threads)]
    gate = threading.Barrier(threads)

    def race(me):
        for number in range(10):
            gate.wait()
            if create_exclusive(root / f"{number:03d}", f"{me}".encode()):
                won[me].append(number)

    racers = [threading.Thread(target=race, args=(me,)) for me in range(threads)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    assert sorted(itertools.chain(*won)) == list(range(10))
    for me, numbers in enumerate(won):
        for number in numbers:
            assert read_bytes(root / f"{number:03d}") == f"{me}".encode()
    assert len(names(root)) == 10


def _race(address, me, gate, results):
    won = []
    for number in range(10):
        gate.wait()
        if create_exclusive(place_of(address) / f"{number:03d}", f"{me}".encode()):
            won.append(number)
    results.put(won)


@pytest.mark.parametrize("address", ["gs", "s3"], indirect=True)
def test_each_name_is_won_once_by_processes(address):
    spawn = multiprocessing.get_context("spawn")
    gate, results = spawn.Barrier(3), spawn.Queue()
    racers = [spawn.Process(target=_race, args=(address, me, gate, results)) for me in range(3)]
    for racer in racers:
        racer.start()
    won = [results.get() for _ in racers]
    for racer in racers:
        racer.join()
    assert sorted(itertools.chain(*won)) == list(range(10))


@everywhere
def test_many_operations_at_once_are_all_committed(address):
    def work(me):
        commit(begin(address, "inject", f"op-{me}"), [])

    racers = [threading.Thread(target=work, args=(me,)) for me in range(4)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    assert newest_manifest(address).snapshot == 4


@PROXIED
def test_an_answer_that_was_lost_is_no_defeat(proxied, kind):
    proxy, root = proxied
    once = iter([True])
    proxy.cut = lambda method, path: (
        method == ("POST" if kind == "gs" else "PUT") and next(once, False)
    )
    assert create_exclusive(root / "name", b"mine") is True
    assert next(once, None) is None  # it was lost
    assert create_exclusive(root / "name", b"mine") is False
    assert read_bytes(root / "name") == b"mine"


@pytest.mark.parametrize("address", ["hdfs"], indirect=True)
def test_a_rename_whose_answer_was_lost_is_no_defeat(root, stores):
    server = stores.server("hdfs")
    server.cut.append("RENAME")
    assert create_exclusive(root / "name", b"mine") is True
    assert server.cut == []
    server.cut.append("RENAME")
    assert create_exclusive(root / "name", b"mine") is False
    assert names(root) == ["name"]


@everywhere
def test_rows_come_back(root):
    path = root / "new" / "a.parquet"
    with ParquetWriter(path, OUTCOME) as writer:
        writer.write(ROWS[:60])
        writer.write(ROWS[60:])
        assert [name for name in names(path.parent) if not name.startswith(".")] == []
        size = writer.close()
    assert size == file_size(path)
    assert names(path.parent) == ["a.parquet"]
    assert collect(scan([path], OUTCOME)).equals(ROWS)
    chosen = scan([path, path], OUTCOME).filter(pl.col("status") == 3).select("key")
    assert collect(chosen).equals(pl.concat([ROWS.filter(pl.col("status") == 3)] * 2).select("key"))
    assert collect(scan([path], OUTCOME).head(7)).equals(ROWS.head(7))
    assert collect(scan([path], OUTCOME).select(pl.len())).item() == 100
    assert [len(group) for group in row_groups(path, OUTCOME)] == [60, 40]
    assert [g.column_names for g in row_groups(path, OUTCOME, ["status"])] == [["status"]] * 2
    assert row_group_count(path) == 2


@everywhere
def test_columns_that_a_file_lacks_are_null(root):
    older = pa.schema([OUTCOME.field("key"), pa.field("gone", pa.int8())])
    path = root / "older.parquet"
    with ParquetWriter(path, older) as writer:
        writer.write(pa.table({"key": ["a"], "gone": [1]}, schema=older))
    rows = collect(scan([path], OUTCOME))
    assert rows.columns == OUTCOME.names
    assert rows.row(0, named=True)["key"] == "a"
    assert rows["status"].null_count() == 1


def fail_after(writing, write):
    """Writes something, and then fails."""
    with writing as target:
        write(target)
        raise RuntimeError


@everywhere
def test_a_writer_that_fails_leaves_nothing(root):
    with pytest.raises(RuntimeError):
        fail_after(ParquetWriter(root / "a" / "b", OUTCOME), lambda writer: writer.write(ROWS))
    if isinstance(root, Remote):
        with pytest.raises(RuntimeError):
            fail_after(creating(root / "a" / "c"), lambda file: file.write(b"x"))
    assert below(root) in ([], ["a"])


@everywhere
def test_files_that_are_missing_or_damaged(root):
    with pytest.raises(UserError, match=r"^data file is missing: .*/gone$"):
        collect(scan([root / "gone"], OUTCOME))
    with pytest.raises(UserError, match=r"^data file is missing: .*/gone$"):
        list(row_groups(root / "gone", OUTCOME))
    with ParquetWriter(root / "whole", OUTCOME) as writer:
        writer.write(ROWS)
    data = read_bytes(root / "whole")
    for name, damaged in [("cut", data[:-9]), ("empty", b""), ("flipped", b"x" * len(data))]:
        write_bytes(root / name, damaged)
        with pytest.raises(UserError, match=rf"^data file cannot be read: .*/{name}: "):
            collect(scan([root / "whole", root / name], OUTCOME))


WIDE = pa.schema([("key", pa.large_string()), ("body", pa.large_binary())])


@in_stores
def test_a_large_file_goes_up_in_pieces_and_is_given_up_whole(root, monkeypatch):
    monkeypatch.setattr(module, "BLOCK_BYTES", 5 << 20)
    bodies = [np.random.default_rng(n).bytes(1 << 20) for n in range(12)]
    rows = pa.table({"key": [str(n) for n in range(12)], "body": bodies}, schema=WIDE)
    with ParquetWriter(root / "large", WIDE) as writer:
        writer.write(rows)
    assert file_size(root / "large") > 12 << 20
    (back,) = row_groups(root / "large", WIDE)
    assert back.equals(rows)
    with pytest.raises(RuntimeError):
        fail_after(ParquetWriter(root / "given-up", WIDE), lambda writer: writer.write(rows))
    assert names(root) == ["large"]


@PROXIED
def test_only_the_columns_that_are_asked_for_are_read(proxied):
    proxy, root = proxied
    bodies = [np.random.default_rng(n).bytes(1 << 20) for n in range(8)]
    with ParquetWriter(root / "wide", WIDE) as writer:
        for n in range(2):
            keys = [f"{n}-{at}" for at in range(8)]
            writer.write(pa.table({"key": keys, "body": bodies}, schema=WIDE))
    proxy.requests.clear()
    before = proxy.sent
    keys = collect(scan([root / "wide"], WIDE).select("key"))
    assert len(keys) == 16
    assert proxy.sent - before < 400_000  # of 16 MB
    print(f"{len(proxy.requests)} requests, {proxy.sent - before} bytes of {16 << 20}")
    assert len(proxy.requests) <= 9  # how large it is, its end, a column of each row group


@everywhere
def test_what_others_have_committed_is_seen_at_once(address):
    assert begin(address, "inject", "before").snapshot == 0
    root = place_of(address)
    assert names(root / "manifest") == []
    commit(begin(address, "inject", "one"), [])
    assert open_table(str(root)).snapshots() == [1]
    assert begin(address, "inject", "two").snapshot == 1


@in_stores
def test_what_there_is_at_an_address(address, root):
    open_table(address).check_place()
    with pytest.raises(UsageError, match=r"^no web table at .*: it does not exist$"):
        newest_manifest(address)
    write_bytes(root / "holiday.jpg", b"x")
    with pytest.raises(UsageError, match=r"not empty: it has 'holiday.jpg'"):
        open_table(address).check_place()
    with pytest.raises(UsageError, match="must be a folder, got the file"):
        open_table(f"{address}/holiday.jpg").check_place()


@pytest.mark.parametrize("kind", ["gs", "s3"])
def test_a_bucket_that_is_not_there(kind, stores, monkeypatch):
    for name, value in stores.environ(kind).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match=r"^cannot read table .*: there is no bucket 'none'$"):
        open_table(f"{kind}://none/table").check_place()
    open_table(f"{kind}://{BUCKET}/empty").check_place()


@PROXIED
@pytest.mark.parametrize(
    ("code", "word"),
    [(403, "permission denied"), (401, "permission denied"), (400, "slow down|400|Bad")],
)
def test_a_store_that_refuses(proxied, code, word):
    proxy, root = proxied
    proxy.every, proxy.code = 1, code
    with pytest.raises(UsageError, match=word) as caught:
        open_table(str(root)).check_place()
    assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match=r"^cannot write .*/x: "):
        create_exclusive(root / "x", b"")


@pytest.mark.parametrize("kind", ["s3"])
def test_a_store_that_would_lose_commits(proxied):
    proxy, root = proxied
    proxy.drop = {"if-none-match"}  # as some that speak S3's protocol ignore it
    with pytest.raises(UserError, match=r"^no table can be kept at s3://tables: .*If-None-Match"):
        begin(str(root), "inject", "op")
    proxy.drop = set()
    begin(str(root), "inject", "op")
    assert names(root / "operations") == ["op.json"]


@PROXIED
def test_a_store_that_is_busy_now_and_then(proxied):
    proxy, root = proxied
    proxy.every = 3
    for number in range(5):
        assert create_exclusive(root / f"{number}", b"x")
        assert read_bytes(root / f"{number}") == b"x"
    assert len(names(root)) == 5
    assert proxy.refused > 3


def test_a_name_node_that_does_not_answer():
    port = free_port()
    table = f"hdfs://127.0.0.1:{port}/table"
    # Not bad usage: whoever schedules it may try again.
    with pytest.raises(Unavailable) as caught:
        open_table(table).check_place()
    assert str(caught.value) == (
        f"cannot read table {table!r}: HDFS at '127.0.0.1:{port}' cannot be reached (connection "
        "refused): name the host and the HTTP port of its name node (9870, unless it was set)"
    )
    with pytest.raises(Unavailable, match=rf"^cannot read seeds '{table}': HDFS at .* refused"):
        sources([table])


def test_a_name_node_whose_name_is_none():
    with pytest.raises(Unavailable, match=r"HDFS at 'no.such.host.invalid' cannot be reached \("):
        open_table("hdfs://no.such.host.invalid/table").check_place()
