"""A file ``.STOP`` in the table ends a crawl after the round that is under way."""

import json

import pytest
from crawling import asked, assert_whole, crawl, manifest_of, manifests_of, nutbeam, place_in, reach
from simulated_web import served_web
from web_servers import connect_to, reply, serve

from nutbeam.io.storage.files import overwrite_bytes, remove_file

web = served_web(hosts=2, pages=6, scope="module")


def stop(table):
    overwrite_bytes(place_in(table, ".STOP"), b"")


def test_a_stop_ends_the_loop_after_the_round_and_keeps_its_work(tables, tmp_path, capsys):
    table = tables(tmp_path / "table")
    stopped = []

    def answer(path, connection):
        if path == "/robots.txt":
            return reply(b"", "404 Not Found")
        if path == "/1" and not stopped:  # in the middle of the second round
            stop(table)
            stopped.append(path)
        number = int(path.strip("/") or 0)
        page = f"<title>{number}</title><a href=/{number + 1}>on</a>"
        return reply(page.encode(), "200 OK", "Content-Type: text/html")

    with serve(answer) as server:
        words = ("http://www.example.com/", "--connect_to", connect_to(server.port)[0])
        words = ("crawl", table, *words, "--server_delay", "0", "--rounds", "4")
        assert nutbeam(*words, "--format", "json") == 0
        record = json.loads(capsys.readouterr().out)
        assert (record["rounds"], record["ending"]) == (2, "stopped")
        assert record["message"] == f"stopped by {place_in(table, '.STOP')}: remove it to go on"
        # That round came to its end: its batch is in the table, duplicates are sought.
        assert {b.phase for b in manifest_of(table).batches.values()} == {"updated"}
        assert not manifest_of(table).waiting_for("dedup")
        before = len(server.requests)
        assert nutbeam(*words) == 0  # still told to stop
        assert len(server.requests) == before
        remove_file(place_in(table, ".STOP"))
        assert nutbeam(*words, "--format", "json") == 0
        assert json.loads(capsys.readouterr().out.splitlines()[-1])["rounds"] == 4
        assert server.paths.count("/2") == 1


@pytest.mark.long
def test_round_and_next_begin_nothing_but_finish_open_batches(web, tmp_path, capsys):
    table = tmp_path / "table"
    assert nutbeam("crawl", table, *web.seeds, "--rounds", "1", *reach(web)) == 0
    assert nutbeam("generate", table) == 0
    stop(table)
    made = len(manifests_of(table))
    before = len(asked(web))
    assert nutbeam("round", table, *reach(web)) == 0
    assert len(manifests_of(table)) == made
    assert len(asked(web)) == before
    done = []
    for _ in range(9):
        code = nutbeam("next", table, *reach(web))
        done.append(manifests_of(table)[-1].job)
        if code == 1:
            break
    assert done == ["fetch", "parse", "update", "dedup", "dedup"]
    assert nutbeam("fsck", table) == 0  # it is no damage,
    assert nutbeam("compact", table, "--snapshot_retention", "0") in (0, 1)
    assert (table / ".STOP").exists()  # and nobody takes it away
    (table / ".STOP").unlink()
    assert crawl(table, web) == 0
    assert_whole(table, web.site)
