"""A crawl of Nutch moves over from a real HDFS, into tables here and there, and back into it."""

import contextlib
import os
import signal
import subprocess
import sys

import pytest
from clocks import clock_off
from command_output import printed
from crawling import assert_same, contents, manifest_of, nutbeam, rows_of, state_of
from hadoop_files import unpack_nutch_crawl
from nutch_java import NEEDS_NUTCH, read_with_nutch
from stores_here import Stores
from waiting import wait_until

from nutbeam.io.batches.batches import batch_component
from nutbeam.io.storage.place_addresses import place_of

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def hdfs(stores: Stores):
    return stores.server("hadoop")


@pytest.fixture(scope="module")
def nutch(hdfs, tmp_path_factory):
    """The crawl in a folder, and its address in HDFS, where Hadoop's own client has put it."""
    folder = tmp_path_factory.mktemp("nutch") / "crawl"
    unpack_nutch_crawl(folder)
    hdfs.run("-mkdir", "-p", "/nutch")
    hdfs.run("-put", str(folder), "/nutch/crawl")
    return folder, f"{hdfs.address}/nutch/crawl"


@pytest.fixture
def address(hdfs, request):
    return f"{hdfs.address}/{request.node.name}"


def imported(table):
    """Returns the rows of a table, but not how old links are: as old as the file they were in."""
    rows = contents(table)
    return rows | {"links": rows["links"].drop("first_seen", "last_seen")}


def chosen(table):
    """Returns the keys in the newest batch."""
    batch = max(manifest_of(table).batches)
    return sorted(rows_of(table, batch_component(batch, "fetchlist"))["key"])


def test_the_tables_are_those_that_come_from_a_folder(nutch, address, tmp_path, monkeypatch):
    folder, source = nutch
    tables = [tmp_path / "folder", tmp_path / "here", address]
    for table, crawl in zip(tables, (folder, source, source), strict=True):
        assert nutbeam("import_nutch", table, crawl, "--operation", "one") == 0
    for table in tables[1:]:
        assert_same(imported(table), imported(tables[0]))
    assert nutbeam("fsck", address) == 0
    with clock_off(monkeypatch, 60 * 86_400):
        for table in tables:
            assert nutbeam("generate", table, "--top_n", "12") == 0
    assert len(chosen(address)) == 12
    assert chosen(address) == chosen(tables[0])


@NEEDS_NUTCH
def test_nutch_reads_the_crawldb_that_goes_back_to_hdfs(nutch, address, hdfs, tmp_path):
    assert nutbeam("import_nutch", address, f"{nutch[1]}/crawldb") == 0
    assert nutbeam("export_nutch", address, f"{address}-out") == 0
    hdfs.run("-get", f"{address}-out/crawldb".removeprefix(hdfs.address), str(tmp_path))
    records = read_with_nutch([tmp_path / "crawldb/current/part-r-00000"])
    assert [record["key"] for record in records] == sorted(state_of(address)["url"].to_list())


def test_an_import_goes_on_after_kill_9(nutch, address, tmp_path):
    words = [nutch[1], "--operation", "mine", "--progress", "false", "--part_size", "65536"]
    batches = place_of(address) / "batches"
    for wanted in (1, 3):
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "nutbeam", "import_nutch", address, *words],
            stdout=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        wait_until(lambda wanted=wanted: len(list(batches.files_below())) >= wanted, process)
        with contextlib.suppress(ProcessLookupError):  # it has come to its end
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert nutbeam("import_nutch", address, *words) == 0
    assert nutbeam("import_nutch", tmp_path / "whole", *words) == 0
    assert_same(contents(address), contents(tmp_path / "whole"))
    assert manifest_of(address).snapshot == 1
    assert nutbeam("fsck", address) == 0


def test_half_copied_files_are_named_and_the_rest_is_imported(
    nutch, address, hdfs, tmp_path, caplog, capsys
):
    folder, _ = nutch
    (tmp_path / "data").write_bytes(
        (folder / "crawldb/current/part-r-00000/data").read_bytes()[:5000]
    )
    parts = f"{address}/crawldb/current".removeprefix(hdfs.address)
    for part, name in (("part-r-00000", "data"), ("part-r-00001", "data._COPYING_")):
        hdfs.run("-mkdir", "-p", f"{parts}/{part}")
        hdfs.run("-put", str(tmp_path / "data"), f"{parts}/{part}/{name}")
    line = printed(capsys, "import_nutch", tmp_path / "table", address)
    assert "damaged/truncated_file 1, left_out/half_copied 1" in line
    texts = [record.message for record in caplog.records if record.name == "nutbeam.import_nutch"]
    assert any("/part-r-00000/data, byte 4861: truncated file" in text for text in texts)
    assert 0 < state_of(tmp_path / "table").height < 48


def test_wrong_addresses_are_one_line_and_write_nothing(nutch, hdfs, tmp_path, refuse):
    table = tmp_path / "table"
    missing = f"{hdfs.address}/none"
    assert f"no such file or folder: {missing!r}" in refuse("import_nutch", table, missing)
    for words in ((table, f"{hdfs.rpc_address}/nutch/crawl"), (f"{hdfs.rpc_address}/t", nutch[0])):
        code = 3 if words[0] == table else 2
        assert "no WebHDFS answers at" in refuse("import_nutch", *words, code=code)
    assert not table.exists()


def test_a_folder_that_others_may_not_write_is_one_line(nutch, hdfs, refuse):
    hdfs.run("-mkdir", "/closed")
    words = (f"{hdfs.address}/closed/table", f"{nutch[1]}/crawldb")
    line = refuse("import_nutch", *words, code=3)
    assert "permission denied: user=dr.who, access=WRITE" in line
    assert line.endswith(": set HADOOP_USER_NAME to the user who may")
    assert hdfs.run("-ls", "/closed") == []
