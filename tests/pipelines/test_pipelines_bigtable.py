"""Jobs on tables in Bigtable's emulator: the table that comes on disk, and which rows it takes."""

import os
import subprocess
import sys

import polars as pl
import pytest
from bigtable_rows import clock, load, state
from bigtable_samples import every_third_key
from crawling import (
    asked,
    assert_same,
    assert_same_frames,
    assert_whole,
    contents,
    crawl,
    done_in,
    files_of,
    manifest_of,
    nutbeam,
    reach,
    rows_of,
    state_of,
    statuses_of,
    tree,
)

from nutbeam.io.table.bigtable_web_table import BigtableWebTable
from nutbeam.policy.base.key_columns import host_keys
from nutbeam.policy.components.schema import HOSTS, conform

pytestmark = pytest.mark.bigtable


@pytest.mark.few(1)
@pytest.mark.parametrize("rows", [1_000_000, 5], ids=["one tablet", "many"])
def test_a_crawl_makes_the_table_that_it_makes_on_disk(
    table, web, here, rows, monkeypatch, resize_tables
):
    resize_tables(tablet_rows=rows)
    monkeypatch.setattr(BigtableWebTable, "samples", every_third_key)
    before = len(asked(web))
    assert crawl(table, web, *web.seeds) == 0
    assert_whole(table, web.site)
    assert sorted(asked(web)[before:]) == here[1]
    assert_same(contents(table), contents(here[0]))  # state, hosts, and all files of batches
    assert done_in(table) == done_in(here[0])
    for name in ("state", "hosts"):
        found, wanted = (manifest_of(t).components[name] for t in (table, here[0]))
        assert found.rows == wanted.rows == len(rows_of(table, name))
    assert (manifest_of(table).components["state"].files > 2) == (rows == 5)
    # A seed more: who the seeds are is known to those who filter links.
    assert nutbeam("inject", table, "http://else.example.net/") == 0
    assert crawl(table, web) == 4  # nobody says that it may be requested
    assert "http://h0.example.com/" in statuses_of(table)


def test_generate_receives_due_rows_only(counted):
    table, counter = counted
    rows = state(3_000, due=60, now=clock(table))
    load(table, rows)
    hosts = conform(pl.DataFrame({"key": host_keys(rows["key"]).unique().sort()}), HOSTS)
    load(table, pl.DataFrame(pl.from_arrow(hosts)), "hosts", "hosts")
    counter.read.clear()
    counter.written.clear()
    assert nutbeam("generate", table) == 0
    due = rows["key"].head(60)
    asked_of = [("h", "org.example.h00"), ("h", "org.example.h01")]
    assert sorted(counter.read) == sorted([*asked_of, *(("s", key) for key in due)])
    assert counter.written == []
    # Who asks for one row receives one.
    counter.read.clear()
    assert nutbeam("readdb", table, "--url", "http://h00.example.org/00000") == 0
    assert counter.read == [("s", "org.example.h00:http/00000")]


@pytest.mark.long
def test_a_round_is_not_begun_for_nothing(counted, web, capsys):
    table, counter = counted
    now = clock(table)
    load(table, state(500, due=0, now=now))
    before = tree(table)
    counter.read.clear()
    assert nutbeam("next", table, *reach(web)) == 1
    assert counter.read == []
    assert nutbeam("crawl", table, *reach(web)) == 1
    assert tree(table) == before


@pytest.mark.long
def test_update_reads_and_writes_touched_rows_only(counted, web):
    table, counter = counted
    now = clock(table)
    assert nutbeam("crawl", table, *web.seeds, "--rounds", "1", *reach(web)) == 0
    load(table, state(2_000, due=0, now=now), "bulk")
    assert nutbeam("generate", table) == 0
    assert nutbeam("fetch", table, *reach(web)) == 0
    assert nutbeam("parse", table) == 0
    (batch,) = (name for name, b in manifest_of(table).batches.items() if b.phase == "parsed")
    pages = {key for path in files_of(table, f"batches/{batch}/pages")
             for key in pl.read_parquet(path)["key"]}  # fmt: skip
    links = pl.concat(
        pl.read_parquet(path)["outlinks"] for path in files_of(table, f"batches/{batch}/documents")
    )
    targets = set(links.explode().struct.field("key").drop_nulls())
    before, hosts = state_of(table).drop("url"), rows_of(table, "hosts")
    counter.read.clear()
    counter.written.clear()
    assert nutbeam("updatedb", table) == 0
    read, written = list(counter.read), list(counter.written)
    after = state_of(table).drop("url")
    changed = set(after.join(before, on=after.columns, how="anti", nulls_equal=True)["key"])
    assert changed >= pages
    assert {key for family, key in read if family == "s"} <= (pages | targets) & set(before["key"])
    assert sorted(key for family, key in written if family == "s") == sorted(changed)
    # The registered domain of these hosts has a row, too: the number of its URLs.
    touched = set(host_keys(pl.Series("key", sorted(pages)))) | {"com.example"}
    assert {key for family, key in read if family == "h"} <= touched & set(hosts["key"])
    assert {key for family, key in written if family == "h"} <= touched
    assert len(read) == len(set(read))


@pytest.mark.long
@pytest.mark.few(2)
@pytest.mark.parametrize("what", ["state", "hosts", "batch_pages", "batch_documents"])
def test_an_export_is_that_of_a_folder(table, here, what, tmp_path):
    assert nutbeam("copy", here[0], table) == 0
    paths = [tmp_path / "folder.parquet", tmp_path / "bigtable.parquet"]
    for path, source in zip(paths, (here[0], table), strict=True):
        assert nutbeam("export", source, "-o", path, "--what", what) == 0
    right, found = (pl.read_parquet(path).sort("key") for path in paths)
    assert found.equals(right)
    assert len(found)


@pytest.mark.long
def test_frames_are_those_of_a_folder(table, here):
    assert nutbeam("copy", here[0], table) == 0
    assert_same_frames(table, here[0])


@pytest.mark.long
def test_a_folder_is_crawled_without_googles_libraries(tmp_path):
    script = """if True:
        import sys
        from nutbeam.pipelines.command_line.cli import main
        code = main(["inject", sys.argv[1], "http://www.example.com/"])
        code += main(["generate", sys.argv[1]])
        print(code, sorted(name for name in sys.modules if name.startswith("google.cloud.bigtable")))
    """
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "table")],
        capture_output=True, text=True, check=True, env=dict(os.environ),
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "0 []"


@pytest.mark.long
def test_workers_in_other_processes_find_the_table(table):
    workers = ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]
    assert nutbeam("inject", table, "http://www.example.com/", *workers) == 0
    assert list(statuses_of(table)) == ["http://www.example.com/"]
