"""compact thins old batches: replaced versions of pages go, and with --keep_bodies old bodies, too."""

import json
import shutil

import pytest
from command_output import printed_pages
from crawling import manifest_of, nutbeam, reach, rows_of, state_of
from growing_old import pass_time
from simulated_web import served_web
from small_disk import mounted

from nutbeam.io.snapshots.commit import commit
from nutbeam.pipelines.views.reader import read
from nutbeam.policy.schedules.schedule import DAY_MS
from nutbeam.web.base.clock import now_ms, replaced_clock

web = served_web(hosts=1, pages=10, scope="module")
AT_ONCE = ("--snapshot_retention", "0", "--keep_batches", "0")


@pytest.fixture(scope="module")
def crawled(web, tmp_path_factory):
    """A table with a whole batch, and one in which most of its pages were fetched again."""
    table = tmp_path_factory.mktemp("thinning") / "table"
    assert nutbeam("crawl", table, *web.seeds, "--rounds", "4", *reach(web)) == 0
    top = ["--top_n", len(state_of(table)) - 2]
    again = ["--rounds", "1", "--add_days", "40", *top]
    assert nutbeam("crawl", table, *again, *reach(web)) == 0
    return table


@pytest.fixture
def table(crawled, tmp_path):
    shutil.copytree(crawled, tmp_path / "table")
    return tmp_path / "table"


def compact(table, capsys, *words):
    capsys.readouterr()
    assert nutbeam("compact", table, "--format", "json", *words) == 0
    return json.loads(capsys.readouterr().out)["counts"]


def test_only_the_newest_version_of_a_page_stays(table, capsys):
    pages, state = printed_pages(table, capsys), state_of(table)
    before = read(str(table), "batch_pages")
    assert not any("superseded" in name for name in compact(table, capsys))  # all is young
    counts = compact(table, capsys, *AT_ONCE)
    left = read(str(table), "batch_pages")
    assert counts["dropped/superseded/pages"] > 0
    assert left["url"].is_duplicated().sum() < before["url"].is_duplicated().sum()
    assert set(left["url"]) >= set(state.drop_nulls("page")["url"])
    assert state_of(table).equals(state)
    assert printed_pages(table, capsys) == pages
    assert nutbeam("fsck", table) == 0
    assert "dropped/superseded/pages" not in compact(
        table, capsys, *AT_ONCE
    )  # nothing is left to do


def test_compact_deletes_the_same_in_small_shares(table, tmp_path, resize_tables, capsys):
    shutil.copytree(table, tmp_path / "other")
    counts = [compact(tmp_path / "other", capsys, *AT_ONCE)]
    resize_tables(share_rows=2)
    counts.append(compact(table, capsys, *AT_ONCE))
    for one in counts:
        del one["deleted/bytes"]  # names of files are of different length
    assert counts[0] == counts[1]
    assert counts[0]["dropped/superseded/pages"] > 0
    assert nutbeam("fsck", table) == 0


def test_old_bodies_go_and_texts_stay(table, web, tmp_path, capsys):
    pages, state = printed_pages(table, capsys), state_of(table)
    assert "dropped/bodies" not in compact(table, capsys, *AT_ONCE, "--keep_bodies", "30d")
    assert compact(table, capsys, *AT_ONCE, "--keep_bodies", "0")["dropped/bodies"] > 0
    left = read(str(table), "batch_pages")
    assert left["body"].null_count() == len(left)
    assert "dropped" in set(left["truncated"])
    assert state_of(table).equals(state)
    assert printed_pages(table, capsys) == pages
    assert "dropped/bodies" not in compact(table, capsys, *AT_ONCE, "--keep_bodies", "0")
    assert nutbeam("warc", table, tmp_path / "archive", "--format", "json") in (0, 1)
    assert "body_dropped" in capsys.readouterr().out
    assert nutbeam("fsck", table) == 0
    # And the table goes on, with whole pages.
    again = ["--rounds", "1", "--add_days", "90"]
    assert nutbeam("crawl", table, *again, *reach(web)) == 0
    assert read(str(table), "batch_pages")["body"].drop_nulls().len() > 0


def describe(table, capsys, *words):
    capsys.readouterr()
    assert nutbeam("table", "describe", table, "--format", "json", *words) == 0
    return json.loads(capsys.readouterr().out)


def test_a_description_says_how_much_compact_deletes_and_when(table, capsys):
    size = sum(path.stat().st_size for path in table.rglob("*") if path.is_file())
    young = describe(table, capsys)
    assert young["bytes"] == size
    of_state = next(one for one in young["components"] if one["what"] == "state")
    assert of_state["current"] + of_state["waiting"] == sum(
        path.stat().st_size for path in (table / "state").iterdir()
    )
    assert [day["bytes"] > 0 for day in young["freed"]] == [True]  # all in a week
    pass_time(table, 8)
    due = sum(day["bytes"] for day in describe(table, capsys)["freed"])
    assert due == young["freed"][0]["bytes"]
    assert compact(table, capsys)["deleted/bytes"] == due
    assert nutbeam("table", "describe", table) == 0
    assert "component              current       older     files" in capsys.readouterr().out


def test_the_newest_batch_keeps_its_bodies(table, capsys):
    before = rows_of_batch(table)
    compact(table, capsys, "--snapshot_retention", "0", "--keep_bodies", "0")
    assert rows_of_batch(table).equals(before)
    assert before["body"].null_count() < len(before)


def rows_of_batch(table):
    """Returns the pages of the newest batch, which --keep_batches keeps."""
    name = max(path.name for path in (table / "batches").iterdir())
    return rows_of(table, f"batches/{name}/pages").sort("key")


def test_a_rollback_beside_compact_keeps_its_pages(table, web, capsys, monkeypatch):
    """Rows of the older snapshot need files that those of the newest one do not."""
    pages, older = printed_pages(table, capsys), manifest_of(table).snapshot
    later = now_ms() + 8 * DAY_MS
    again = ["--rounds", "1", "--add_days", "90", *reach(web)]

    def commit_late(*terms):
        assert nutbeam("rollback", table, "--to", older) == 0
        return commit(*terms)

    monkeypatch.setattr("nutbeam.pipelines.compact.commit", commit_late)
    with replaced_clock(lambda: later):
        assert nutbeam("crawl", table, *again) == 0
        assert nutbeam("compact", table) == 3
    assert f"rolled back to snapshot {older}" in capsys.readouterr().err
    assert printed_pages(table, capsys) == pages


def test_compact_frees_a_full_disk(table, tmp_path, caplog):
    """Old files go before new ones are written."""
    size = sum(file.stat().st_size for file in table.rglob("*") if file.is_file())
    with mounted(tmp_path / "disk", f"{size // 1024 + 2000}k") as disk:
        shutil.copytree(table, disk / "table")
        with (disk / "other").open("wb", buffering=0) as other:
            while shutil.disk_usage(disk).free > 8192:
                other.write(bytes(4096))
        assert nutbeam("compact", disk / "table", "--full", "true", *AT_ONCE) == 0
        assert "of old files are deleted first" in caplog.text
        assert shutil.disk_usage(disk).free > 100_000
        caplog.clear()
        with (disk / "other").open("ab", buffering=0) as other:
            while shutil.disk_usage(disk).free > 40_000:
                other.write(bytes(4096))
        nutbeam("compact", disk / "table")
        assert "there is nothing old that can be deleted first" in caplog.text
