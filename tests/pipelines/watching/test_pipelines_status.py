"""status: what another process does on a table, how it ended, and the exit codes of a monitor."""

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest
from crawling import crawl, json_lines, nutbeam, reach
from here import TESTS
from simulated_web import SimWeb, served_web
from waiting import PATIENCE, wait_until

from nutbeam.io.snapshots.heartbeats import BEAT, write_heartbeat
from nutbeam.io.snapshots.manifest import Manifest
from nutbeam.io.storage.files import list_files
from nutbeam.io.storage.processes import this_process
from nutbeam.io.table.opening import open_table
from nutbeam.pipelines.launch import heartbeat
from nutbeam.pipelines.watching.status import status_lines
from nutbeam.pipelines.watching.table_watch import WatchedTable
from nutbeam.policy.components.heartbeat import CommandEnd, Heartbeat, PhaseUnderWay
from nutbeam.policy.components.watched_facts import WatchedCommand, WatchedFacts, WatchedOperation
from nutbeam.policy.watching.table_health import judge_table
from nutbeam.web.base.clock import now_ms, replaced_clock

web = served_web(hosts=2, pages=4, scope="module")
DELAYED = ["--server_delay", "0.5", "--rounds", "3", "--progress", "false"]


@pytest.fixture
def status(capsys):
    """Runs status; returns its exit code and its record."""

    def run(table, *words):
        capsys.readouterr()
        code = nutbeam("status", table, "--format", "json", *words)
        return code, json.loads(capsys.readouterr().out)

    return run


@pytest.fixture(scope="module")
def slow_web():
    with SimWeb(hosts=2, pages=60, seed=7, crawl_delay=0) as server:
        yield server


def beats(table):
    files = list_files(open_table(str(table)).files / "operations")
    return [file.path.name for file in files if file.path.suffix == BEAT]


def start(table, web):
    """Starts a crawl that takes a minute, in a process of its own."""
    words = ["crawl", str(table), *web.seeds, *reach(web), *DELAYED]
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "nutbeam", *words],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip


def test_a_crawl_in_another_process_is_seen_and_its_kill_is_a_failure(slow_web, tmp_path, status):
    table = tmp_path / "table"
    process = start(table, slow_web)
    try:
        wait_until(lambda: beats(table), process)  # after two seconds

        def fetching():
            code, record = status(table)
            assert (code, record["state"]) == (0, "running")
            phases = [work["phase"] for work in record["running"] if work["phase"]]
            done = [phase for phase in phases if phase["name"] == "fetch" and phase["done"] > 1]
            return record if done else None

        record = wait_until(fetching, process)
        (work,) = record["running"]
        assert (work["command"], work["pid"]) == ("crawl", process.pid)
        assert work["batch"] in [batch["id"] for batch in record["batches"] if batch["under_way"]]
        assert work["phase"]["total"] >= work["phase"]["done"]
        assert {host["host"] for host in work["phase"]["slowest"]} <= {
            f"h{number}.example.com" for number in range(2)
        }
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(PATIENCE)
    code, record = status(table)
    assert (code, record["state"], record["running"]) == (2, "failed", [])
    assert record["last"]["command"] == "crawl"
    assert f"its process {process.pid} on" in record["last"]["message"]
    # The next command that ends well has the last word, and cleans up.
    assert nutbeam("dedup", table) == 0
    assert (status(table)[0], beats(table)) == (0, [])


@pytest.mark.few(2)
def test_a_failed_command_leaves_its_reason_until_one_ends_well(web, out, status):
    assert crawl(out, web, *web.seeds) == 0
    assert beats(out) == []
    code, record = status(out)
    assert (code, record["state"], record["last"]["outcome"]) == (0, "well", "well")
    assert record["urls"]["total"] == sum(record["urls"]["by_status"].values()) > 4
    assert nutbeam("inject", out, "http://other.example.net/") == 0
    assert crawl(out, web) == 4  # nobody says that the site may be requested
    code, record = status(out)
    (problem,) = record["problems"]
    assert code == 2
    assert problem.startswith("crawl failed: no page was fetched: ")
    assert record["last"]["failures"][-1]["url"] == "http://other.example.net/"
    assert nutbeam("generate", out) == 1  # nothing is due, and that is a snapshot, too
    assert nutbeam("compact", out) == 0  # upkeep does nobody's work
    assert crawl(out, web) == 1
    assert status(out)[1]["problems"] == [problem]
    assert nutbeam("dedup", out) == 0
    assert status(out)[0] == 0
    assert status(out, "--stale_after", "0")[0] == 1
    # That a site has no such page is no failure, and says that the crawler works again.
    assert nutbeam("inject", out, f"{web.seeds[0]}no-such-page") == 0
    write_heartbeat(open_table(str(out)).files, failed_crawl(now_ms()))
    assert status(out)[0] == 2
    assert crawl(out, web) == 4
    assert (status(out)[0], beats(out)) == (0, [])


def failed_crawl(ended):
    end = CommandEnd(ended, 3, "disk full")
    return Heartbeat("7", "crawl", this_process(), ended - 99, 2.0, ended=end)


def test_a_command_that_is_refused_has_failed_and_a_disk_without_room_is_a_failure(
    small_disk, here, status
):
    table = small_disk("4m") / "table"
    shutil.copytree(here[0], table)
    who = ["--agent_name", "x", "--agent_email", "x@example.com"]
    assert status(table, "--least_free", "0")[0] == 0
    assert nutbeam("crawl", table, *who, "--least_free", "1000T") == 3
    (problem,) = status(table, "--least_free", "0")[1]["problems"]
    assert problem.startswith(f"crawl failed: the disk of '{table}' has ")
    assert nutbeam("dedup", table) == 0
    with (table.parent / "ballast").open("wb") as file:
        file.write(b"\0" * shutil.disk_usage(table).free)
    assert nutbeam("crawl", table, *who, "--least_free", "0") == 3  # which cannot leave a word
    code, record = status(table, "--least_free", "0")
    assert (code, record["state"], beats(table)) == (2, "failed", [])
    assert "has 0 bytes free" in record["problems"][0]


def test_a_repair_and_a_rollback_settle_failures(tmp_path, status):
    table = tmp_path / "table"
    assert nutbeam("inject", table, "http://a.example.com/") == 0
    assert nutbeam("dedup", table, "--operation", "cleaned") == 0
    record = table / "operations" / "cleaned.dedup.json"
    of_dead = json.loads(record.read_text())
    of_dead["process"]["start"] = 1
    record.write_text(json.dumps(of_dead))
    manifest = max((table / "manifest").glob("*.json"))
    manifest.write_bytes(manifest.read_bytes()[:500])
    assert nutbeam("generate", table) == 3
    damage, failure = status(table)[1]["problems"]
    assert failure.startswith("generate failed: manifest is damaged")
    assert damage in failure
    assert nutbeam("fsck", table, "--repair") == 0
    assert status(table)[0] == 0
    write_heartbeat(open_table(str(table)).files, failed_crawl(now_ms()))
    assert nutbeam("fsck", table, "--repair") == 0  # it has nothing to repair
    assert status(table)[0] == 2
    assert nutbeam("rollback", table, "--to", "1") == 0
    assert status(table)[0] == 0


def test_a_fetch_that_has_written_no_progress_is_not_called_unseen():
    beat = Heartbeat("9", "crawl", this_process(), 1, 2.0)
    fetch = WatchedOperation("9.1.fetch", "fetch", "b", 2, "box", 3, alive=True)
    facts = WatchedFacts("t", 3, commands=(WatchedCommand(beat, 1, False, False),))
    idle = status_lines(WatchedTable(facts, judge_table(facts, 9.0), Manifest()))
    assert idle[2] == "hosts     no fetch is seen"
    facts = dataclasses.replace(facts, operations=(fetch,))
    lines = status_lines(WatchedTable(facts, judge_table(facts, 9.0), Manifest()))
    assert lines[2] == "hosts     no progress of the fetch is written yet"


def test_of_each_command_only_the_newest_failure_is_kept(tmp_path, status):
    table = str(tmp_path / "table")
    assert nutbeam("inject", table, "http://a.example.com/") == 0
    files, now = open_table(table).files, now_ms()
    for number, command in enumerate(["compact", "crawl", "crawl"]):
        end = CommandEnd(now - 10 + number, 3, f"failure {number}")
        heartbeat_of = Heartbeat(str(number), command, this_process(), now - 99, 2.0, ended=end)
        write_heartbeat(files, heartbeat_of)
        os.utime(f"{table}/operations/{number}{BEAT}", (now / 1000 + number,) * 2)
    assert nutbeam("parse", table) == 1
    assert status(table)[1]["problems"] == ["compact failed: failure 0", "crawl failed: failure 2"]
    assert sorted(beats(table)) == [f"0{BEAT}", f"2{BEAT}"]


@pytest.mark.long
def test_a_command_shows_its_phase_while_it_runs(web, tmp_path, status, monkeypatch):
    """With heartbeats as often as can be; on each back end the short test has one."""
    monkeypatch.setattr(heartbeat, "FIRST_S", 0.0)
    monkeypatch.setattr(heartbeat, "_LOCAL_S", 0.01)
    monkeypatch.setattr(heartbeat, "_WRITE_SHARE", 0)
    seen = []
    write = heartbeat.write_heartbeat
    monkeypatch.setattr(
        heartbeat, "write_heartbeat", lambda table, one: (seen.append(one), write(table, one))
    )
    assert crawl(tmp_path / "table", web, *web.seeds) == 0
    assert {"fetch", "update"} <= {one.phase.name for one in seen if one.phase}
    assert beats(tmp_path / "table") == []


def test_ten_lines_for_people(web, here, capsys):
    assert nutbeam("status", here[0]) == 0
    lines = capsys.readouterr().out.splitlines()
    names = [line.split()[0] for line in lines]
    assert names == [
        *("table", "running", "hosts", "errors", "last"),
        *("urls", "due", "batches", "snapshot", "wrong"),
    ]
    assert lines[0].endswith(": well")
    assert lines[1] == "running   nothing"
    assert nutbeam("status", here[0], "--most_counted", "1") == 0
    assert "not counted by status, see --most_counted" in capsys.readouterr().out


def test_wrong_usage_and_a_missing_table_are_unknown_to_a_monitor(tmp_path, capsys):
    assert nutbeam("status", tmp_path / "none") == 3
    assert "no web table at" in capsys.readouterr().err
    assert nutbeam("status", tmp_path / "none", "--stale_after", "soon") == 3
    assert "'soon'" in capsys.readouterr().err
    assert nutbeam("status", tmp_path / "none", "--no_such_option") == 3


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ("manifest/*.json", "manifest is damaged"),
        ("state/*.parquet", "data file cannot be read"),
    ],
)
def test_a_damaged_file_is_a_failure(here, tmp_path, status, files, problem):
    shutil.copytree(here[0], tmp_path / "table")
    for file in (tmp_path / "table").glob(files):
        file.write_text("{")
    code, record = status(tmp_path / "table")
    assert (code, record["state"]) == (2, "failed")
    assert problem in record["problems"][0]


@pytest.mark.parametrize("data", [b"", b"{", b"[" * 100_000, b'{"format": 1}', b"\xff" * 99])
def test_a_damaged_heartbeat_is_named_and_removed_by_the_next_command(web, tmp_path, status, data):
    assert nutbeam("inject", tmp_path / "table", *web.seeds) == 0
    path = tmp_path / "table" / "operations" / f"strange{BEAT}"
    path.write_bytes(data)
    code, record = status(tmp_path / "table")
    assert (code, len(record["problems"])) == (2, 1)
    assert "heartbeat" in record["problems"][0]
    assert nutbeam("dedup", tmp_path / "table") == 0
    assert not path.exists()


def test_a_purge_removes_heartbeats(web, tmp_path):
    assert nutbeam("inject", tmp_path / "table", "http://secret.example.com/") == 0
    files = open_table(str(tmp_path / "table")).files
    write_heartbeat(files, Heartbeat("7", "fetch", {"host": "elsewhere"}, 1, 2.0))
    assert nutbeam("purge", tmp_path / "table", "--host", "secret.example.com") == 0
    assert beats(tmp_path / "table") == []


@pytest.mark.parametrize(
    "address", ["local", pytest.param("s3", marks=pytest.mark.long)], indirect=True
)
def test_a_heartbeat_is_seen_wherever_the_table_is(address, status):
    assert nutbeam("inject", address, "http://a.example.com/") == 0
    files = open_table(address).files
    phase = PhaseUnderWay("fetch", "pages", 40, 10, 5.0, 2.5, 99.0)
    write_heartbeat(files, Heartbeat("7", "fetch", this_process(), now_ms(), 2.0, phase))
    code, record = status(address)
    assert (code, record["state"], record["running"][0]["phase"]["done"]) == (0, "running", 10)
    write_heartbeat(files, Heartbeat("7", "fetch", {"host": "far", "pid": 1}, now_ms(), 2.0))
    with replaced_clock(lambda: time.time_ns() // 1_000_000 + 61_000):
        code, record = status(address)
    assert (code, record["state"]) == (2, "failed")
    assert "no sign of life of its process 1 on 'far'" in record["problems"][0]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_tables_of_older_formats_have_a_status(tmp_path, status, number):
    (archive,) = (TESTS / "tables").glob(f"format{number}.tar.*")
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path, filter="data")
    code, record = status(tmp_path / "table", "--stale_after", "1000000000")
    assert (code, record["running"]) == (0, [])
    assert record["urls"]["by_status"]
    assert record["batches"]


def test_watch_shows_it_again_until_it_is_interrupted(here):
    words = ["status", str(here[0]), "--watch", "--interval", "0.1", "--format", "json"]
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "nutbeam", *words], stdout=subprocess.PIPE, text=True
    )
    lines = [process.stdout.readline() for _ in range(3)]
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    records = json_lines("".join(lines) + rest)
    assert {record["state"] for record in records} == {"well"}
    assert len({record["time"] for record in records}) > 1
    assert Path(here[0]).is_dir()
