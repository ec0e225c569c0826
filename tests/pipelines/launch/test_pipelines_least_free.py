"""A crawl ends before the disk of its table is full, and goes on when there is room."""

import json
import os
import shutil

import pytest
from crawling import latest_snapshot, nutbeam, state_of, statuses_of
from simulated_web import served_web
from web_servers import reply, serve

from nutbeam.io.snapshots.past_jobs import past_jobs
from nutbeam.io.storage.least_free import table_room
from nutbeam.io.storage.place_addresses import place_of
from nutbeam.io.table.opening import open_table

web = served_web(hosts=1, pages=4, scope="module")
PAGES = 40
NEEDED = 3_000_000  # bytes that must stay free: the end of a round takes less


def fill(folder, left):
    with (folder / "ballast").open("wb") as file:
        file.write(b"\0" * (shutil.disk_usage(folder).free - left))


def filling_server(fill_disk, at):
    """Returns the answers of a site; at one request another program fills the disk."""
    links = "".join(f'<a href="/{number}">{number}</a>' for number in range(1, PAGES))

    def answer(path, _):
        if path == "/robots.txt":
            return reply(b"", "404 Not Found")
        if path == f"/{at}":
            fill_disk()
        body = f"<title>{path}</title>{links if path == '/' else path}".encode()
        return reply(body, "200 OK", "Content-Type: text/html")

    return answer


def crawl(table, server, *words, least=NEEDED):
    connect_to = f"a.example.com:80:127.0.0.1:{server.port}"
    where = ["--connect_to", connect_to, "--server_delay", "0.1", "--least_free", least]
    return nutbeam("crawl", table, *words, *where)


def test_a_crawl_ends_when_the_disk_fills_and_goes_on_when_there_is_room(small_disk, capsys):
    disk = small_disk("8m")
    with serve(filling_server(lambda: fill(disk, NEEDED - 500_000), PAGES // 4)) as server:
        words = ["http://a.example.com/", "--format", "json"]
        assert crawl(disk / "table", server, *words) == 3
        first = json.loads(capsys.readouterr().out)
        assert first["ending"] == "disk_low"
        assert "make room (nutbeam table describe" in first["message"]
        assert 1 < first["fetched"] < PAGES
        assert nutbeam("fsck", disk / "table", "--quick") == 0
        fetched = [url for url, name in statuses_of(disk / "table").items() if name == "db_fetched"]
        assert len(fetched) == first["fetched"]
        assert crawl(disk / "table", server) == 3  # nothing begins
        requests = len(server.paths)
        (disk / "ballast").unlink()
        assert crawl(disk / "table", server) == 0
    assert len(state_of(disk / "table")) == PAGES
    assert set(statuses_of(disk / "table").values()) == {"db_fetched"}
    assert len(server.paths) - requests <= PAGES - first["fetched"] + 1  # and robots.txt


def take_files(folder, left):
    (folder / "small").mkdir()
    for number in range(os.statvfs(folder).f_favail - left):
        (folder / "small" / str(number)).touch()


def test_a_crawl_ends_when_the_inodes_run_out_and_goes_on_when_there_are_more(small_disk, capsys):
    disk = small_disk("8m,nr_inodes=4000")  # 200 stay free
    with serve(filling_server(lambda: take_files(disk, 190), PAGES // 4)) as server:
        words = ["http://a.example.com/", "--format", "json"]
        assert crawl(disk / "table", server, *words, least=1) == 3
        first = json.loads(capsys.readouterr().out)
        assert first["ending"] == "disk_low"
        assert "more files (inodes), and 200 stay free: delete small files" in first["message"]
        assert 1 < first["fetched"] < PAGES
        assert nutbeam("fsck", disk / "table", "--quick") == 0
        assert crawl(disk / "table", server, least=1) == 3  # nothing begins
        shutil.rmtree(disk / "small")
        assert crawl(disk / "table", server, least=1) == 0
    assert set(statuses_of(disk / "table").values()) == {"db_fetched"}


def test_compact_frees_a_disk_without_a_free_byte(small_disk, here, capsys):
    table = small_disk("4m") / "table"
    shutil.copytree(here[0], table)
    snapshots = latest_snapshot(table)
    fill(table.parent, 0)
    assert nutbeam("compact", table) == 3  # nothing has expired
    line = capsys.readouterr().err.splitlines()[-1]
    assert "is full, and compact writes up to" in line
    assert "or give a shorter --snapshot_retention, then run the same again" in line
    assert latest_snapshot(table) == snapshots
    assert nutbeam("compact", table, "--snapshot_retention", "0") == 0
    assert nutbeam("fsck", table) == 0
    assert len(past_jobs(open_table(str(table)))) == snapshots


def test_without_room_no_table_is_made(tmp_path, capsys):
    assert nutbeam("crawl", tmp_path / "table", "http://a.example.com/", "--least_free", "1000T",
                   "--agent_name", "x", "--agent_email", "x@example.com") == 3  # fmt: skip
    assert "--least_free keeps 1.0 PB free: make room" in capsys.readouterr().err
    (tmp_path / "a.warc").write_bytes(b"WARC/1.0\r\n\r\n\r\n\r\n")
    assert nutbeam("import_warc", tmp_path / "table", tmp_path / "a.warc",
                   "--least_free", "1000T") == 3  # fmt: skip
    assert "--least_free keeps 1.0 PB free: make room" in capsys.readouterr().err
    assert not (tmp_path / "table").exists()


def test_batches_on_another_disk_count(small_disk, tmp_path):
    disk = small_disk("1m")
    (tmp_path / "batches").symlink_to(disk)
    room = table_room(place_of(str(tmp_path)), 2_000_000)
    assert room[:2] == (shutil.disk_usage(disk).free, 2_000_000)
    assert room.is_low


@pytest.mark.parametrize("address", ["gs://bucket/table", "s3://bucket/table"])
def test_stores_have_no_limit(address):
    assert table_room(place_of(address), -1) is None
