"""TMPDIR: what killed commands leave is swept, and what to say where it is full or not there."""

import os
import re
import resource
import shutil
import signal
import subprocess
import sys

import pytest
from crawling import manifests_of, nutbeam, reach, tree
from ending import command, session, wait_for
from short_form import first
from simulated_web import served_web
from waiting import PATIENCE, wait_until

JOBS = ("inject", "generate", "fetch", "parse", "updatedb", "dedup", "compact", "crawl")
WORDS = ["--parse_processes", "1"]


web = served_web(hosts=2, pages=15, latency=0.05, scope="module")


def run(temporary, *words, **more):
    """Runs a command with a TMPDIR of its own; returns (exit code, what it said)."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "nutbeam", *map(str, words)],
        env=os.environ | {"TMPDIR": str(temporary)}, capture_output=True, text=True, timeout=PATIENCE,
        check=False, **more,
    )  # fmt: skip
    return done.returncode, done.stderr


MOMENTS = {
    "begun": lambda table, web: True,
    "fetching": lambda table, web: len(web.requests()) >= 3,
    "parsing": lambda table, web: list(table.glob("batches/*/pages/p*.parquet")),
    "updating": lambda table, web: list(table.glob("batches/*/outcome/*.parquet")),
}
WORKERS = ("--direct_num_workers", "2", "--direct_running_mode", "multi_processing")


@pytest.mark.long
@pytest.mark.parametrize("more", first(1, [(), WORKERS]))
@pytest.mark.parametrize("moment", first(2, ["parsing", "begun", "fetching", "updating"]))
def test_temporary_files_of_a_killed_crawl_are_swept_by_the_next_command(
    web, tmp_path, moment, more
):
    table, temporary = tmp_path / "table", tmp_path / "tmp"
    web.clear() if hasattr(web, "clear") else None
    words = ("crawl", table, *web.seeds, *reach(web), *more, "--flush_seconds", 0.1)
    with command(temporary, *words) as process:
        wait_for(process, lambda: list(temporary.iterdir()) and MOMENTS[moment](table, web))
        process.kill()
        process.wait()
        wait_until(lambda: not session(process.pid))
        others = temporary / "beam-pipeline-tempsomeone"
        others.mkdir()
        code, error = run(temporary, "inject", table, "http://example.com/")
        assert (code, error.count("Traceback")) == (0, 0)
    assert list(temporary.iterdir()) == [others]


@pytest.fixture
def small(small_disk):
    """A TMPDIR that is full."""
    folder = small_disk("64k")
    (folder / "ballast").write_bytes(b"\0" * shutil.disk_usage(folder).free)
    return folder


def full(folder):
    return (
        f"TMPDIR is full: no room in {str(folder)!r} for temporary files: "
        "make room there, or let TMPDIR name another folder\n"
    )


@pytest.mark.long
@pytest.mark.parametrize("job", first(1, ["parse", *(job for job in JOBS if job != "parse")]))
def test_a_full_tmpdir_is_named(web, small, tmp_path, job):
    """A job that needs no temporary file does its work; the others say what is full."""
    table = tmp_path / "table"
    jobs = {
        "inject": web.seeds, "generate": [], "fetch": reach(web), "parse": WORDS, "updatedb": [],
        "dedup": [], "compact": ["--full", "true"], "crawl": [*web.seeds, *reach(web), *WORDS],
    }  # fmt: skip
    for before in JOBS[: JOBS.index(job)]:
        assert nutbeam(before, table, *jobs[before]) == 0
    files, made = tree(table) if table.exists() else {}, len(manifests_of(table))
    code, error = run(small, job, table, *jobs[job], "--progress", "false")
    if job in ("parse", "crawl"):
        assert (code, error) == (3, f"nutbeam {job}: {full(small)}")
    else:
        assert (code, error) == (0, "")
    after = tree(table)
    assert {name: after[name] for name in files} == files
    assert [path.name for path in small.iterdir()] == ["ballast"]
    if code:
        assert len(manifests_of(table)) <= made + 2  # a crawl has injected, and generated
        (small / "ballast").unlink()
        assert run(tmp_path, job, table, *jobs[job], "--progress", "false")[0] == 0
    assert nutbeam("fsck", table) == 0


@pytest.mark.long
def test_a_full_tmpdir_of_sql(web, small, tmp_path):
    pytest.importorskip("duckdb")
    table = tmp_path / "table"
    assert nutbeam("inject", table, *web.seeds) == 0
    query = "SELECT count(*) FROM (SELECT range r, md5(range::varchar) m FROM range(2000000) ORDER BY m)"
    words = ("sql", table, query, "--memory_limit", 64_000_000)
    assert run(small, *words) == (3, f"nutbeam sql: {full(small)}")
    assert run(tmp_path, *words) == (0, "")
    assert [path.name for path in small.iterdir()] == ["ballast"]


@pytest.mark.long
def test_a_quota_is_a_full_tmpdir(web, tmp_path):
    """Of files in TMPDIR; here of all files, and only what is parsed is as large."""
    table, temporary = tmp_path / "table", tmp_path / "tmp"
    temporary.mkdir()
    for job, words in (("inject", web.seeds), ("generate", []), ("fetch", reach(web))):
        assert nutbeam(job, table, *words) == 0
    limit = 2_000

    def quota():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    code, error = run(temporary, "parse", table, *WORDS, "--progress", "false", preexec_fn=quota)
    # gRPC of this process may complain in its copy, before that becomes the command.
    error = re.sub(r"^E\d{4} .*\n", "", error)
    assert (code, error) == (3, f"nutbeam parse: {full(temporary)}")


@pytest.mark.few(1)
@pytest.mark.parametrize("command", ["crawl", "generate", "sql", "parsechecker"])
def test_a_missing_tmpdir_is_reported_at_once(tmp_path, command):
    agent = ["--agent_name", "a", "--agent_email", "a@b.example"]
    words = {
        "crawl": ["http://example.com/", *agent], "sql": ["SELECT 1"], "parsechecker": agent,
    }  # fmt: skip
    missing = tmp_path / "missing"
    place = "http://example.com/" if command == "parsechecker" else tmp_path / "table"
    code, error = run(missing, command, place, *words.get(command, []))
    said = f"TMPDIR must be a folder that may be written, got {str(missing)!r}: Not a directory\n"
    assert (code, error) == (2, f"nutbeam {command}: {said}")
    assert list(tmp_path.iterdir()) == []
