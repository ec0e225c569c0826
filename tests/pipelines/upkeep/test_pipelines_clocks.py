"""A clock that was wrong for a while leaves a table as if it had been right, and costs few requests."""

import json
import time
from collections import Counter

import polars as pl
import pytest
from clocks import DAY, WRONG, YEAR, clock_off
from crawling import asked, manifest_of, manifests_of, nutbeam, reach, rows_of, state_of
from simulated_web import SimWeb, served_web
from web_tables import InBigtable, copied_folder

from nutbeam.io.table.opening import open_table
from nutbeam.policy.components.columns import Form
from nutbeam.policy.components.kinds import KINDS
from nutbeam.policy.components.schema import Status
from nutbeam.web.base.clock import EARLIEST_MS

LONGEST_MS = 90 * DAY * 1000


def crawl_at(monkeypatch, table, clocks):
    """Crawls a web round by round, each with its clock, then nine rounds with the right one; returns requests."""
    with SimWeb(hosts=1, pages=8, seed=7, crawl_delay=0) as web:
        for at, off in enumerate(clocks):
            with clock_off(monkeypatch, off):
                seeds = [] if at else web.seeds
                assert nutbeam("crawl", table, *seeds, "--rounds", "1", *reach(web)) == 0
        assert nutbeam("crawl", table, "--rounds", "9", *reach(web)) in (0, 1)
        return Counter(asked(web))


def made_of(table):
    """Returns what a crawl came to, by URL: status and content, no matter when or how often."""
    columns = ("url", "status", "retries", "signature", "distance", "content_type")
    rows = state_of(table).select(columns)
    once = rows["status"].replace(int(Status.DB_NOTMODIFIED), int(Status.DB_FETCHED))
    return {row[0]: row[1:] for row in rows.with_columns(status=once).iter_rows()}


def assert_timely(table):
    """Asserts that no time of a row is in the future, or later than the options allow."""
    rows, now = state_of(table), time.time() * 1000
    for name in ("last_fetch_time", "modified_time"):
        assert rows.filter(pl.col(name) > now).select("url", name).rows() == []
        assert rows.filter(pl.col(name) < 0).select("url", name).rows() == []
    due = pl.col("fetch_time")
    assert rows.filter((due > now + LONGEST_MS) | (due < now - DAY * 1000)).rows() == []
    assert rows.filter(pl.col("last_inlink_day") > now // (DAY * 1000)).rows() == []


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    table = tmp_path_factory.mktemp("right") / "table"
    with pytest.MonkeyPatch.context() as monkeypatch:
        requests = crawl_at(monkeypatch, table, [0, 0])
    assert set(requests.values()) == {1}
    return made_of(table)


CASES = [
    ("decades_ahead", "second"),
    ("ten_days_ahead", "first"),
    ("before_1970", "second"),
    ("decades_ahead", "first"),
    ("decades_ahead", "both"),
    ("ten_days_ahead", "second"),
    ("ten_days_ahead", "both"),
    ("before_1970", "first"),
    ("before_1970", "both"),
]


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_a_wrong_clock_leaves_no_trace(monkeypatch, tmp_path, undisturbed, case):
    wrong, rounds = case
    off = WRONG[wrong]
    clocks = {"first": [off, 0], "second": [0, off], "both": [off, off]}[rounds]
    requests = crawl_at(monkeypatch, tmp_path / "table", clocks)
    assert max(requests.values()) <= 2, requests.most_common(3)
    assert made_of(tmp_path / "table") == undisturbed
    if wrong != "ten_days_ahead":  # of its rows those that nobody touches are right in ten days
        assert_timely(tmp_path / "table")
    left = [m.counts.get("stale_results") for m in manifests_of(tmp_path / "table")]
    assert not any(left)


@pytest.mark.long
@pytest.mark.parametrize("deletes", ["while_ahead", "when_right", "both"])
def test_without_its_history_a_table_knows_since_when_the_clock_is_right(
    monkeypatch, backend, deletes
):
    table = backend.fresh()
    with SimWeb(hosts=1, pages=8, seed=7, crawl_delay=0) as web:
        crawl = ("crawl", table, "--rounds", "1", *reach(web))
        assert nutbeam(*crawl[:2], *web.seeds, *crawl[2:]) == 0
        with clock_off(monkeypatch, WRONG["decades_ahead"]):
            assert nutbeam(*crawl) == 0
            if deletes != "when_right":
                forget_the_past(table)
        if deletes != "while_ahead":
            assert nutbeam("inject", table, *web.seeds) == 0
            forget_the_past(table)
        for _ in range(3):
            assert nutbeam(*crawl) in (0, 1)
            forget_the_past(table)
        requests = Counter(asked(web))
    assert len(requests) > 8
    assert max(requests.values()) == 2, requests.most_common(3)


def forget_the_past(table):
    """Deletes all snapshots but the newest ones."""
    assert nutbeam("compact", table, "--snapshot_retention", "0") == 0
    assert len(open_table(table).snapshots()) == 1


web = served_web(hosts=1, pages=4, scope="module")


@pytest.fixture(scope="module")
def original(web, tmp_path_factory):
    """A table of one round and an open batch, made decades ahead; tests only read it."""
    table = tmp_path_factory.mktemp("ahead") / "table"
    with pytest.MonkeyPatch.context() as monkeypatch, clock_off(monkeypatch, 54 * YEAR):
        assert nutbeam("crawl", table, *web.seeds, "--rounds", "1", *reach(web)) == 0
        assert nutbeam("generate", table, "--top_n", "1") == 0
    return table


table = copied_folder()


@pytest.mark.long
def test_fsck_finds_times_of_the_future_and_repairs_them(table, web, capsys, caplog):
    before = state_of(table)
    assert nutbeam("fsck", table, "--format", "json") == 3
    problems = json.loads(capsys.readouterr().out)["problems"]
    assert {p["kind"] for p in problems} == {"clock"}
    said = "; ".join(p["message"] for p in problems)
    assert f"{len(before)} rows of state" in said
    assert "1 row of hosts" in said
    assert nutbeam("fsck", table, "--quick") == 3
    capsys.readouterr()

    assert nutbeam("fsck", table, "--repair", "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)["repaired"]["rows"] == {"clock": len(before) + 1}
    assert_timely(table)
    # The registered domain has a row, too, which was not requested.
    (host,) = (row for row in rows_of(table, "hosts").to_dicts() if row["last_request_time"])
    assert host["last_request_time"] <= time.time() * 1000
    known = [column for column in before.columns if "time" not in column and "_day" not in column]
    assert state_of(table).select(known).equals(before.select(known))
    assert not [b for b in manifest_of(table).batches.values() if b.created > time.time() * 1000]
    caplog.clear()
    assert nutbeam("readdb", table, "--stats") == nutbeam("fsck", table) == 0
    assert FUTURE not in caplog.text

    requests = len(asked(web))
    assert nutbeam("crawl", table, "--rounds", "9", *reach(web)) == 0
    assert Counter(asked(web)[:requests]) & Counter(asked(web)[requests:]) == Counter()


FUTURE = "the table has times in the future, up to 20"


@pytest.mark.long
def test_commands_say_in_one_line_that_the_table_has_times_of_the_future(table, web, caplog):
    (seed,) = web.seeds
    for words in (
        ["readdb", table, "--stats"],
        ["explain", table, seed],
        ["generate", table],
        ["updatedb", table],
    ):
        caplog.clear()
        nutbeam(*words)
        said = [line for line in caplog.messages if FUTURE in line]
        assert len(said) == 1, words
        assert f"nutbeam fsck {table} --repair" in said[0]


@pytest.mark.long
def test_a_long_interval_that_a_seed_list_sets_is_no_time_of_the_future(tmp_path, web, caplog):
    table, seconds = tmp_path / "table", 365 * DAY
    (seed,) = web.seeds
    (tmp_path / "seeds.txt").write_text(f"{seed}\tnutch.fetchInterval.fixed={seconds}\n")
    words = ("--rounds", "1", "--schedule", "adaptive", *reach(web))
    assert nutbeam("crawl", table, tmp_path / "seeds.txt", *words) == 0
    late = state_of(table).filter(pl.col("fetch_time") > (time.time() + 300 * DAY) * 1000)
    assert late.get_column("fixed_interval").to_list() == [seconds]
    nutbeam("readdb", table, "--stats")
    assert FUTURE not in caplog.text


@pytest.mark.long
def test_a_longer_limit_of_update_is_no_time_of_the_future_but_generate_says_so(
    tmp_path, web, caplog, capsys
):
    table, seconds = tmp_path / "table", 300 * DAY
    (seed,) = web.seeds
    (tmp_path / "seeds.txt").write_text(f"{seed}\tnutch.fetchInterval={seconds}\n")
    longer = ("--max_fetch_interval", "365d")
    words = ("--rounds", "1", *longer, *reach(web))
    assert nutbeam("crawl", table, tmp_path / "seeds.txt", *words) == 0
    early = "the next fetch of 1 URL is later than --max_fetch_interval 7776000 allows"
    for given, expected in (((), True), (longer, False)):
        caplog.clear()
        nutbeam("generate", table, *given)
        assert FUTURE not in caplog.text
        assert (early in caplog.text) == expected
        capsys.readouterr()
        assert nutbeam("explain", table, seed, *given) == 0
        assert ("allows, so it is due now" in capsys.readouterr().out) == expected


@pytest.mark.long
def test_explain_says_that_a_clock_was_wrong(table, web, capsys):
    (seed,) = web.seeds
    assert nutbeam("explain", table, seed) == 0
    said = capsys.readouterr().out
    assert "clock: a clock was wrong: fetch_time 20" in said
    assert "not_due" not in "".join(l for l in said.splitlines() if "last generate:" not in l)


def test_a_batch_of_the_future_keeps_its_urls_no_longer_than_others(table):
    (batch,) = [b for b in manifest_of(table).batches.values() if b.phase == "generated"]
    assert batch.blocks_until > (time.time() + 50 * YEAR) * 1000
    assert nutbeam("generate", table, "--top_n", "1") == 0
    (batch, _) = [b for b in manifest_of(table).batches.values() if b.phase == "generated"]
    assert 6 * DAY < batch.blocks_until / 1000 - time.time() < 7 * DAY
    assert batch.created <= time.time() * 1000


def test_a_clock_that_cannot_be_is_named_and_not_believed(tmp_path, caplog, monkeypatch):
    with clock_off(monkeypatch, WRONG["before_1970"]):
        assert nutbeam("inject", tmp_path / "table", "http://a.example/") == 0
        assert nutbeam("generate", tmp_path / "table") == 0
    assert "the clock of this machine says 19" in caplog.text
    (row,) = state_of(tmp_path / "table").to_dicts()
    assert row["fetch_time"] >= EARLIEST_MS
    assert all(name.split("-")[0].isdigit() for name in manifest_of(tmp_path / "table").batches)


@pytest.fixture
def linked(tmp_path, web, monkeypatch):
    """A table with a link table, whose hosts were looked up, all ten days ahead."""
    table = tmp_path / "linked"
    with clock_off(monkeypatch, WRONG["ten_days_ahead"]):
        assert nutbeam("crawl", table, *web.seeds, "--rounds", "1", *reach(web)) == 0
        assert nutbeam("invertlinks", table) == 0
        assert look_up(table) == 1
    return table


def look_up(table):
    """Looks up all hosts that are due, and returns how many were."""
    assert nutbeam("updatehostdb", table, "--check", "all", "--lookup_timeout", "3") == 0
    return manifest_of(table).counts.get("checked_hosts", 0)


def future_times(table):
    """Returns the columns of each component that have a time of the future."""
    late = {
        (name, column)
        for name in ("state", "hosts", "links")
        for column, most in rows_of(table, name).max().row(0, named=True).items()
        if column in TIMES[name] and (most or 0) > time.time() * 1000
    }
    return late - {("state", "fetch_time"), ("hosts", "backoff_until")}


TIMES = {
    name: {column.name for column in KINDS[name].columns if column.form is Form.TIME}
    for name in ("state", "hosts", "links")
}


@pytest.mark.long
def test_links_seen_by_a_clock_ahead_are_seen_again(linked, web):
    assert {("links", "first_seen"), ("links", "last_seen")} <= future_times(linked)
    assert nutbeam("generate", linked, "--add_days", "60") == 0
    for job in ("fetch", "parse", "updatedb"):
        assert nutbeam(job, linked, *(reach(web) if job == "fetch" else ())) == 0
    assert nutbeam("invertlinks", linked) == 0
    counts = manifest_of(linked).counts
    assert counts["clock"] == counts["links_seen"] > 0
    assert not {name for name, _ in future_times(linked)} & {"links"}


@pytest.mark.long
def test_hosts_that_were_looked_up_by_a_clock_ahead_are_looked_up_again(linked):
    assert ("hosts", "dns_time") in future_times(linked)
    assert look_up(linked) == 1
    assert not {name for name, _ in future_times(linked)} & {"hosts"}


@pytest.mark.long
def test_fsck_repairs_times_of_links_and_of_look_ups(linked, capsys):
    assert nutbeam("fsck", linked) == 3
    assert "rows of links with times that cannot be" in capsys.readouterr().out
    assert nutbeam("fsck", linked, "--repair") == 0
    assert future_times(linked) == set()
    assert nutbeam("fsck", linked) == 0


@pytest.mark.long
@pytest.mark.bigtable
def test_in_bigtable_a_wrong_clock_leaves_no_trace(monkeypatch, tmp_path_factory, bigtable, capsys):
    tables = InBigtable(tmp_path_factory, bigtable)
    table = tables.fresh()
    with SimWeb(hosts=1, pages=4, seed=7, crawl_delay=0) as web:
        with clock_off(monkeypatch, WRONG["ten_days_ahead"]):
            assert nutbeam("crawl", table, *web.seeds, "--rounds", "1", *reach(web)) == 0
        known, copy = state_of(table).select("url"), tables.copy(table)
        assert len(known) > 1
        assert nutbeam("crawl", table, "--rounds", "1", *reach(web)) == 0
        assert set(Counter(asked(web)).values()) == {1}
    rows = state_of(table).join(known, on="url", how="semi")
    assert rows["last_fetch_time"].null_count() == 0  # what was added ahead was due at once

    assert nutbeam("fsck", copy) == 3
    capsys.readouterr()
    assert nutbeam("fsck", copy, "--repair", "--format", "json") == 0
    repaired = json.loads(capsys.readouterr().out)["repaired"]["rows"]
    assert repaired == {"clock": len(known) + 1}  # and its host
    assert_timely(copy)
