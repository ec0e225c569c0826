"""How many places a reader passes who follows a batch through updatedb, or a page into an index."""

import os
import shutil
import subprocess
import sys

import polars as pl
import pytest
from crawling import manifest_of, nutbeam
from here import TESTS
from walks import steps_of
from web_servers import reply, serve

from nutbeam.io.storage.place_addresses import place_of
from nutbeam.policy.components.host_rows import seeds_of
from nutbeam.policy.schedules.schedule import DAY_MS
from nutbeam.web.base.clock import now_ms, replaced_clock
from nutbeam.web.urls.row_keys import host_key

# Limits of both walks: places, and climbs. If you make a walk shorter, lower its limits.
MOST = {"updatedb": (32, 3), "index": (63, 5)}
PAGES = {"/": ("/leaf", "/moved", "/temporary", "/refresh"), "/leaf": ("/",), "/target": ("/leaf",)}
REDIRECTS = {"/moved": "/target", "/temporary": "/hop", "/hop": "/target"}


def answer(path, head, redirects):
    """Answers as a site of a few pages does, with 304 to a page that is known."""
    if path in redirects:
        return reply(b"", "302 Found", f"Location: {redirects[path]}")
    if path != "/refresh" and path not in PAGES:
        return reply(b"", "404 Not Found")
    if 'If-None-Match: "a"' in head:
        return reply(b"", "304 Not Modified", 'ETag: "a"')
    links = "".join(f'<a href="{link}">{link}</a>' for link in PAGES.get(path, ()))
    refresh = '<meta http-equiv="refresh" content="0; url=/hop">' if path == "/refresh" else ""
    page = f"<html><title>{path}</title>{refresh}{path} {links}</html>"
    return reply(page.encode(), "200 OK", "Content-Type: text/html", 'ETag: "a"')


@pytest.fixture(scope="module")
def crawled(tmp_path_factory):
    """(the address of a table, the id of its parsed batch, the time of that, ms)."""
    folder = tmp_path_factory.mktemp("walks")
    table, now, redirects = folder / "table", now_ms(), dict(REDIRECTS)
    (folder / "seeds.txt").write_text("http://a.example.com/\n")

    def site(path, _):
        return answer(path, site.server.current.head, redirects)

    with serve(site) as site.server, replaced_clock(lambda: now):
        door = ("--connect_to", f"a.example.com:80:127.0.0.1:{site.server.port}")
        assert nutbeam("inject", table, folder / "seeds.txt") == 0
        for last in (False, False, True):
            now += 31 * DAY_MS
            if last:  # the fetch follows it at once to a URL that is on no fetch list
                redirects["/leaf"] = "/fresh"
            assert nutbeam("generate", table) == 0
            assert nutbeam("fetch", table, *door, "--server_delay", "0") == 0
            assert nutbeam("parse", table) == 0
            assert last or nutbeam("updatedb", table) == 0
    return table, max(manifest_of(table).batches), now


def walk_of(job, table, now, *batch):
    """Returns the lines that the program prints for a job, in a process of its own."""
    words = [sys.executable, TESTS / "support" / "walks.py", job, table, now, *batch]
    environ = {**os.environ, "PYTHONHASHSEED": "0"}
    done = subprocess.run(
        [str(word) for word in words], env=environ, check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout.splitlines()


@pytest.mark.long
@pytest.mark.parametrize("job", MOST)
def test_a_walk_is_not_longer_and_does_not_turn_back_more_often(job, crawled, tmp_path):
    table, batch, now = crawled
    shutil.copytree(table, tmp_path / "table")
    walk = walk_of(job, tmp_path / "table", now, *([batch] if job == "updatedb" else []))
    climbs = [line for line in walk if line.startswith("^")]
    rooms = {line.split()[-2].rpartition("/")[0] for line in walk}
    shown = f"{len(walk)} places, {len(rooms)} rooms, {len(climbs)} climbs"
    print("\n".join([*walk, f"{job}: {shown}"]))
    most_places, most_climbs = MOST[job]
    assert len(walk) <= most_places, shown
    assert len(climbs) <= most_climbs, shown


def test_places_are_counted_once_and_climbs_where_the_next_room_is_higher():
    def work():
        seeds = seeds_of(pl.Series([host_key("www.walked.com")]))
        assert seeds.cover(pl.Series(["www.walked.com"]), "host").all()
        place_of("folder")
        seeds_of(pl.Series(["org.walked"]))

    assert [(step.module, step.climbs) for step in steps_of(work)] == [
        ("web/urls/row_keys.py", False),
        ("policy/components/host_rows.py", True),
        ("policy/base/key_columns.py", False),
        ("io/storage/place_addresses.py", True),
    ]
