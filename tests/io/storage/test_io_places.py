"""Addresses of places, and what is found there."""

import sys
import threading

import pytest
from stores_here import BUCKET, in_stores

from nutbeam.io.snapshots.manifest import newest_manifest
from nutbeam.io.storage.files import write_bytes
from nutbeam.io.storage.place_addresses import is_place, one_spelling, place_of
from nutbeam.io.table.opening import open_table
from nutbeam.web.base.errors import UsageError


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
        ("gs:/b/t", "write gs://, or ./gs:/b/t for a folder"),
        ("bigtable:p:i/t", "write bigtable://"),
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
    assert is_place("gs:x")  # a path


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


@in_stores
def test_places_without_a_table_and_folders_with_other_files_are_refused(address, root):
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


def test_a_table_has_one_spelling_also_through_links(tmp_path):
    (tmp_path / "table").mkdir()
    (tmp_path / "link").symlink_to("table")
    (tmp_path / "circle").symlink_to("circle")
    spelled = {f"{tmp_path}/{word}" for word in ("table", "table/", "x/../link", "./link//")}
    assert {one_spelling(word) for word in spelled} == {f"{tmp_path}/table"}
    assert one_spelling(f"{tmp_path}/circle") == f"{tmp_path}/circle"
