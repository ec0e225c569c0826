import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dropping import as_nobody
from frames import frame_of, table_of

from nutbeam.io.storage.file_errors import MissingFile, repair_advice
from nutbeam.io.storage.files import new_name, read_bytes, write_bytes
from nutbeam.io.storage.local_place import LocalPlace
from nutbeam.io.storage.parquet_files import (
    ParquetWriter,
    collect,
    row_group_count,
    row_groups,
    scan,
)
from nutbeam.io.table.opening import open_table
from nutbeam.policy.components.schema import OUTCOME, STATE, empty
from nutbeam.web.base.errors import UserError

ROWS = frame_of(OUTCOME, *({"key": f"k{n:03d}", "status": n % 9} for n in range(100)))


def names(folder):
    return [path.name for path in folder.iterdir()]


def write(path, *tables, schema=OUTCOME):
    with ParquetWriter(path, schema) as writer:
        for table in tables:
            writer.write(table)
    return path


def test_names_are_new():
    assert len({new_name() for _ in range(100)}) == 100
    assert new_name("").isalnum()


def test_bytes_come_back(tmp_path):
    path = tmp_path / "deep" / "file"
    write_bytes(path, b"\x00data")
    assert read_bytes(path) == b"\x00data"
    assert names(path.parent) == ["file"]


def test_bytes_that_are_not_there(tmp_path):
    with pytest.raises(UserError, match=r"^data file is missing: .*/file$"):
        read_bytes(tmp_path / "file")
    with pytest.raises(UserError, match=r"^data file cannot be read: .*Is a directory"):
        read_bytes(tmp_path)


def test_rows_come_back(tmp_path):
    path = write(tmp_path / "new" / "a.parquet", ROWS[:60].to_arrow(), ROWS[60:])
    assert collect(scan([path], OUTCOME)).equals(ROWS)
    assert [len(group) for group in row_groups(path, OUTCOME)] == [60, 40]
    assert row_group_count(path) == 2
    assert pq.read_schema(path).equals(OUTCOME)  # others read what is declared


def test_rows_with_metadata_come_back(tmp_path):
    rows = frame_of(STATE, {"key": "k", "metadata": [("a", "b")]}, {"key": "l"})
    path = write(tmp_path / "a.parquet", rows, schema=STATE)
    assert collect(scan([path], STATE)).equals(rows)
    (group,) = row_groups(path, STATE)
    assert group.equals(table_of(STATE, {"key": "k", "metadata": [("a", "b")]}, {"key": "l"}))


def test_row_groups_are_of_bounded_size(tmp_path, resize_tables):
    resize_tables(row_group_rows=30)
    path = write(tmp_path / "a.parquet", ROWS)
    assert [len(group) for group in row_groups(path, OUTCOME)] == [30, 30, 30, 10]


def test_no_rows(tmp_path):
    path = write(tmp_path / "a.parquet")
    assert collect(scan([path], OUTCOME)).equals(ROWS.clear())
    assert list(row_groups(path, OUTCOME)) == []


def test_without_files_there_are_no_rows_with_all_columns():
    assert collect(scan([], OUTCOME)).equals(empty(OUTCOME))
    numbered = collect(scan([], OUTCOME, row_index="row"))
    assert (len(numbered), numbered.columns) == (0, ["row", *OUTCOME.names])


def test_a_file_appears_when_it_is_complete(tmp_path):
    path = tmp_path / "a.parquet"
    with ParquetWriter(path, OUTCOME) as writer:
        writer.write(ROWS)
        assert not path.exists()
        size = writer.close()
    assert (size, writer.rows) == (path.stat().st_size, 100)
    assert names(tmp_path) == ["a.parquet"]


def test_a_file_that_fails_never_appears(tmp_path):
    with pytest.raises(pa.ArrowInvalid):
        write(tmp_path / "a.parquet", ROWS, pl.DataFrame({"status": [1000]}))
    assert names(tmp_path) == []


def test_older_files_lack_columns_and_newer_ones_have_more(tmp_path):
    old, new = tmp_path / "old.parquet", tmp_path / "new.parquet"
    pq.write_table(pa.table({"key": ["a"], "status": pa.array([1], pa.uint8())}), old)
    both = pa.schema([*OUTCOME, pa.field("more", pa.int8())])
    pq.write_table(pa.Table.from_pylist([{"key": "b", "score": 1.0, "more": 1}], both), new)
    expected = frame_of(OUTCOME, {"key": "a", "status": 1}, {"key": "b", "score": 1.0})
    assert collect(scan([old, new], OUTCOME)).equals(expected)
    assert collect(scan([new, old], OUTCOME).select("key")).to_series().to_list() == ["b", "a"]
    groups = [next(row_groups(path, OUTCOME)) for path in (old, new)]
    assert pl.from_arrow(pa.concat_tables(groups)).equals(expected)
    (some,) = row_groups(old, OUTCOME, ["score", "key"])
    assert some.to_pylist() == [{"score": None, "key": "a"}]


def test_only_requested_columns_are_read(tmp_path):
    path = write(tmp_path / "a.parquet", ROWS)
    (group,) = row_groups(path, OUTCOME, ["status"])
    assert group.column_names == ["status"]


def test_names_are_taken_as_they_are(tmp_path):
    path = write(tmp_path / "batch=1" / "a*[b].parquet", ROWS)
    assert collect(scan([path], OUTCOME)).equals(ROWS)


def test_a_missing_file(tmp_path):
    path = tmp_path / "a.parquet"
    expected = r"^data file is missing: .*a.parquet$"
    with pytest.raises(UserError, match=expected):
        scan([path], OUTCOME)
    with pytest.raises(UserError, match=expected):
        list(row_groups(path, OUTCOME))
    with pytest.raises(UserError, match=expected):
        row_group_count(path)


def test_a_file_that_goes_while_it_is_read(tmp_path):
    path = write(tmp_path / "a.parquet", ROWS)
    rows = scan([path], OUTCOME)
    path.unlink()
    with pytest.raises(MissingFile, match=r"^data file cannot be read: [^\n]*a.parquet"):
        collect(rows)


def damaged(path, how):
    data = path.read_bytes()
    middle = len(data) // 4
    path.write_bytes(
        {
            "empty": b"",
            "text": b"hello world, I am no Parquet file",
            "half": data[: len(data) // 2],
            "no_end": data[:-1],
            "no_start": data[10:],
            "garbled": data[:middle] + bytes(200) + data[middle + 200 :],
            "footer": data[:-1500] + bytes(1480) + data[-20:],
        }[how]
    )


@pytest.mark.parametrize(
    "how", ["empty", "text", "half", "no_end", "no_start", "garbled", "footer"]
)
def test_a_damaged_file_is_one_clear_line(tmp_path, how):
    path = write(tmp_path / "a.parquet", ROWS)
    damaged(path, how)
    with pytest.raises(UserError, match=r"^data file cannot be read: [^\n]+$"):
        collect(scan([path], OUTCOME))
    with pytest.raises(UserError, match=r"^data file cannot be read: [^\n]+$"):
        list(row_groups(path, OUTCOME))


@pytest.mark.parametrize("writer", [ParquetWriter, write_bytes])
def test_a_folder_that_may_not_be_written(locked, writer):
    value = b"" if writer is write_bytes else OUTCOME
    error = as_nobody(writer, LocalPlace(locked) / "a.parquet", value)
    assert isinstance(error, UserError)
    assert str(error) == f"cannot write {locked}/a.parquet: Permission denied"


def test_a_writer_that_is_abandoned_leaves_nothing(tmp_path):
    writer = ParquetWriter(tmp_path / "a.parquet", OUTCOME)
    writer.write(ROWS)
    writer.abandon()
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("manifest/lists/state-1.parquet", "fsck {}"),
        # A folder of the table that is a link may lead to a folder with manifests of its own.
        ("batches/manifest/lists/state-1.parquet", "fsck {}"),
        ("index/state/shards/1.parquet", "index {} --full --index state"),
    ],
)
@pytest.mark.parametrize("address", ["/data/state/mine", "s3://bucket/state/mine"])
def test_advice_names_the_table_that_was_opened(address, name, advice):
    files = open_table(address).files
    assert repair_advice(files / name) == f": run nutbeam {advice.format(address)}"
