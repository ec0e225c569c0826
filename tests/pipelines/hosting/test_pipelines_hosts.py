"""The host table: its numbers follow the changes, look-ups, settings, and what is shown of it."""

import itertools
import json
import threading
import time

import polars as pl
import pytest
from command_output import printed
from crawling import manifest_of, manifests_of, nutbeam, reach, rows_of
from reference_hosts import added, count_by_host, counts_in
from simulated_web import SimWeb
from waiting import PATIENCE
from web_servers import connect_to, reply, serve

from nutbeam.io.reading.host_rows import find_hosts, host_frames
from nutbeam.io.tablets.tablets import tablets
from nutbeam.pipelines.hosting import updatehostdb
from nutbeam.pipelines.views.reading_job import Reading
from nutbeam.web.urls.row_keys import host_key

pytestmark = pytest.mark.folder_first


@pytest.fixture(scope="module")
def web():
    with SimWeb(hosts=3, pages=8, seed=7, crawl_delay=0) as server:
        yield server


@pytest.fixture(scope="module", params=["folder", "bigtable"])
def table(request, web, tmp_path_factory):
    """A table after rounds of a crawl, a filterdb, and a batch that is open."""
    folder = tmp_path_factory.mktemp("hosts")
    address = str(folder / "table")
    if request.param == "bigtable":
        address = request.getfixturevalue("bigtable").make(folder / "files")
    assert nutbeam("crawl", address, *web.seeds, "--rounds", "3", *reach(web)) == 0
    assert nutbeam("filterdb", address, "--exclude", "/news/") == 0
    assert nutbeam("inject", address, "http://new.example.org/", "http://h0.example.com/new") == 0
    return address


def pinned(table, snapshot=None):
    return Reading(str(table), "", snapshot or manifest_of(table).snapshot)


def scanned(reading, component):
    known = tablets(reading.files(component))
    return [
        row for t in known for rows in reading.table.scan(component, t) for row in rows.to_dicts()
    ]


def assert_counted(reading):
    """Asserts that the numbers of all hosts are those of a count row by row."""
    right = count_by_host(scanned(reading, "state"))
    rows = [row for frame in host_frames(reading) for row in frame.to_dicts()]
    assert [row["key"] for row in rows] == sorted(row["key"] for row in rows)
    assert counts_in(rows) == right
    keys = pl.Series("key", [host for host, _ in right][:5], dtype=pl.String)
    assert added({}, counts_in(find_hosts(reading, keys).to_dicts())) == {
        (host, name): n for (host, name), n in right.items() if host in keys.to_list()
    }
    domain = next((row["domain_urls"] for row in rows if row["key"] == "com.example"), 0)
    statuses = (n for (host, name), n in right.items() if name != "connection_failures")
    assert domain == sum(
        n for (host, name), n in right.items()
        if name != "connection_failures" and host.startswith("com.example")
    ) <= sum(statuses)  # fmt: skip


@pytest.mark.long
@pytest.mark.few(1)
def test_numbers_are_right_in_each_snapshot(table):
    snapshots = [manifest.snapshot for manifest in manifests_of(table)]
    kept = snapshots[-3:] if table.startswith("bigtable") else snapshots
    for snapshot in kept:
        assert_counted(pinned(table, snapshot))


@pytest.mark.long
def test_readhostdb(table, web, capsys):
    lines = printed(capsys, "readhostdb", table).splitlines()
    assert lines[0].split("\t")[:4] == ["hostname", "unfetched", "fetched", "gone"]
    names = printed(capsys, "readhostdb", table, "--hostnames").split()
    assert names == [line.split("\t")[0] for line in lines[1:]]
    assert {"new.example.org", "h0.example.com"} <= set(names)
    assert "http://h0.example.com/" in printed(capsys, "readhostdb", table, "--homepages").split()
    records = [json.loads(line) for line in
               printed(capsys, "readhostdb", table, "--format", "json").splitlines()]  # fmt: skip
    h0 = next(record for record in records if record["host"] == "h0.example.com")
    assert h0["responses"] > 3
    assert 0 < h0["response_ms"]["p50"] <= h0["response_ms"]["p99"]
    shown = printed(capsys, "readhostdb", table, "h0.example.com", "--format", "json")
    assert json.loads(shown) == h0
    none = printed(capsys, "readhostdb", table, "none.org", code=1)
    assert "none.org: not in the host table" in none
    few = printed(capsys, "readhostdb", table, "--expr", "fetched == 0 && numRecords > 0",
                  "--hostnames")  # fmt: skip
    assert few.split() == ["new.example.org"]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--expr", "fetchd > 1"], "unknown name 'fetchd'; did you mean 'fetched'?"),
        (["--hostnames", "true", "--homepages", "true"], "contradict each other"),
        (["--percentiles", "101"], "percentiles must be numbers from 0 to 100, got '101'"),
        (["a b"], "a host is a name such as www.example.com, got 'a b'"),
        (["a.com", "--hostnames"], "a host stands alone"),
    ],
)
def test_readhostdb_refuses_in_one_line(table, capsys, words, message):
    assert nutbeam("readhostdb", table, *words) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert message in error


@pytest.mark.long
def test_look_ups_are_kept_when_another_job_commits_meanwhile(tmp_path, monkeypatch):
    table, asked, real = tmp_path / "table", [], updatehostdb.look_up
    assert nutbeam("inject", table, "http://a.invalid/", "http://b.invalid/") == 0

    def look_up(hosts, options):
        if not asked:
            assert nutbeam("inject", table, "http://c.invalid/") == 0
        asked.extend(hosts)
        return real(hosts, options)

    monkeypatch.setattr(updatehostdb, "look_up", look_up)
    assert nutbeam("updatehostdb", table, "--check", "new", "--lookup_timeout", 3) == 0
    assert sorted(asked) == ["invalid.a", "invalid.b", "invalid.c"]
    assert manifest_of(table).counts["checked_hosts"] == 3
    assert_counted(pinned(table))


def test_updatehostdb_changes_no_numbers_and_looks_up(table, web):
    before = host_rows(table)
    words = ["--check", "all", "--lookup_timeout", "3", "--failed_hosts_threshold", "0"]
    assert nutbeam("updatehostdb", table, *words, *reach(web)[:-2]) == 0
    assert_counted(pinned(table))
    assert not pinned(table).files("host_counts")
    counts = manifest_of(table).counts
    # Hosts of the simulated web are reached by connect_to. The other one is a seed, and is kept.
    assert (counts["checked_hosts"], counts["new_unknown_host"]) == (1, 1)
    after = host_rows(table)
    assert after["org.example.new"]["dns_failures"] == 1
    assert after["org.example.new"]["purged_since"] is None
    same = ("seed", "robots_text", "requests", "response_times", "homepage")
    assert [[before[key][name] for name in same] for key in sorted(before)] == [
        [after[key][name] for name in same] for key in sorted(before)
    ]
    assert nutbeam("updatehostdb", table, "--check", "all", *reach(web)[:-2]) == 0
    assert "checked_hosts" not in manifest_of(table).counts  # it was looked up just now


def host_rows(table):
    reading = pinned(table)
    return {row["key"]: row for frame in host_frames(reading) for row in frame.to_dicts()}


def test_settings_reach_generate_and_fetch(table, web, tmp_path, capsys):
    path = tmp_path / "hosts.txt"
    path.write_text("h0.example.com\tdelay=0.05\tmax_count=2\nh1.example.com\tblocked=true\n"
                    "new.example.org\tblocked=true\n")  # fmt: skip
    assert nutbeam("hostinject", table, path) == 0
    assert nutbeam("generate", table, "--add_days", "100") == 0
    counts = manifest_of(table).counts
    batch = next(n for n, b in manifest_of(table).batches.items() if b.phase == "generated")
    rows = rows_of(table, f"batches/{batch}/fetchlist")
    hosts = rows.group_by(pl.col("key").str.extract("^([^:]*)").alias("host")).len()
    chosen = dict(hosts.iter_rows())
    assert chosen.get("com.example.h0") == 2
    assert "com.example.h1" not in chosen
    assert counts["left_out/host_blocked"] > 1
    delays = rows.filter(pl.col("key").str.starts_with(host_key("h0.example.com")))["delay"]
    assert set(delays) == {0.05}
    path.write_text("h0.example.com\th1.example.com blocked\n")
    assert nutbeam("hostinject", table, path) == 2
    assert "expected NAME=VALUE, got" in capsys.readouterr().err
    # A host that is blocked after generate is left alone by fetch.
    path.write_text("h2.example.com\tblocked=true\nh0.example.com\n")
    assert nutbeam("hostinject", table, path) == 0
    shown = json.loads(printed(capsys, "readhostdb", table, "h0.example.com", "--format", "json"))
    assert shown["settings"] == {}
    assert nutbeam("fetch", table, *reach(web)) == 0
    if chosen.get("com.example.h2"):
        assert manifest_of(table).counts["dropped/host_blocked"] == chosen["com.example.h2"]


@pytest.mark.few(1)
@pytest.mark.parametrize(("threads", "least", "most"), [(1, 0.3, 1), (3, 0.0, 3)])
def test_threads_of_a_host_have_the_pause_that_belongs_to_them(tmp_path, threads, least, most):
    table, settings = tmp_path / "table", tmp_path / "settings"
    settings.write_text(f"a.example.com threads={threads}\n")
    assert nutbeam("inject", table, *(f"http://a.example.com/{n}" for n in range(3))) == 0
    assert nutbeam("hostinject", table, settings) == 0

    together = threading.Barrier(threads)

    def answer(path, _):
        if path == "/robots.txt":
            return reply(b"")
        together.wait(PATIENCE)
        time.sleep(0.2)
        return reply(b"<p>x", "200 OK")

    with serve(answer) as server:
        reached = [word for door in connect_to(server.port) for word in ("--connect_to", door)]
        words = ("--threads_per_host", 4 - threads, "--server_delay", 0.3)
        assert nutbeam("generate", table) == 0
        assert nutbeam("fetch", table, *reached, *words) == 0
        came = [moment for path, _, moment in server.requests if path != "/robots.txt"]
    assert len(came) == 3
    assert min(b - a for a, b in itertools.pairwise(came)) >= least
    assert server.most_active == most


def test_the_table_is_whole(table):
    assert nutbeam("fsck", table) == 0


@pytest.mark.few(1)
@pytest.mark.parametrize("max_count", ["-1", "3"])
def test_a_host_in_several_tablets_has_one_limit_of_its_own(tmp_path, resize_tables, max_count):
    resize_tables(tablet_rows=8)
    table, seeds, settings = tmp_path / "table", tmp_path / "seeds", tmp_path / "hosts"
    urls = [f"http://{host}.com/{n}\tnutch.score={n}" for host in "abc" for n in range(20)]
    seeds.write_text("\n".join(urls))
    settings.write_text("a.com max_count=5\nb.com max_count=0\n")
    assert nutbeam("inject", table, seeds) == 0
    assert nutbeam("hostinject", table, settings) == 0
    assert nutbeam("generate", table, "--max_count", max_count) == 0
    rows = rows_of(table, next(n for n in manifest_of(table).components if "fetchlist" in n))
    keys = rows["key"].to_list()
    assert [key for key in keys if key.startswith("com.a:")] == sorted(
        f"com.a:http/{n}" for n in range(15, 20)
    )
    assert sum(key.startswith("com.b:") for key in keys) == 0
    assert sum(key.startswith("com.c:") for key in keys) == (3 if max_count == "3" else 20)
