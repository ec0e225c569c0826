"""Kills of extract: its file or table is as before or whole, and the next run has each row once."""

import os
import signal
import subprocess
import sys

import duckdb
import polars as pl
import pytest

import nutbeam

PAGES = 6
RULES = '[[rule]]\nname = "p"\neach = "b"\n[rule.fields]\nname = "css:b"\n'
# Runs a command, and kills the process when it opens, makes, renames or removes the n-th file in a folder.
PROGRAM = """
import os, signal, sys
from nutbeam.pipelines.command_line.cli import main

folder, left, pid = sys.argv[1], [int(sys.argv[2])], os.getpid()

def watch(event, args):
    if event in ("open", "os.mkdir", "os.rename", "os.remove") and folder in str(args[0]) and os.getpid() == pid:
        left[0] -= 1
        if left[0] == 0:
            os.kill(pid, signal.SIGKILL)

sys.addaudithook(watch)
code = main(sys.argv[3:])
print(left[0])
sys.exit(code)
"""


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    for n in range(PAGES):
        (folder / f"{n}.html").write_text(f"<b>{n}</b><b>x{n}</b><a href={n + 1}.html>next</a>")
    (folder / "rules.toml").write_text(RULES)
    return nutbeam.crawl(
        folder / "table",
        f"file://{folder}/0.html",
        schemes=["file"],
        file_roots=folder,
        rounds=PAGES,
    )


def run_killed(at, folder, *words):
    """Returns (exit code, calls that were left); the process is killed at a call to the system."""
    command = [sys.executable, "-c", PROGRAM, str(folder), str(at), *map(str, words)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ.copy()
    )
    return done.returncode, done.stdout.split()[-1] if done.stdout else ""


def names_in(output):
    if output.suffix == ".duckdb":
        with duckdb.connect(str(output), read_only=True) as connection:
            return sorted(
                name for (name,) in connection.execute("select name from rules").fetchall()
            )
    return sorted(pl.read_ndjson(output)["name"])


@pytest.mark.long
@pytest.mark.parametrize("name", ["rows.jsonl", "rows.duckdb"])
def test_a_kill_at_any_moment_loses_and_doubles_no_row(table, tmp_path, name):
    rules = f"{table.address}/../rules.toml"
    wanted = sorted([*(str(n) for n in range(PAGES)), *(f"x{n}" for n in range(PAGES))])
    folder = tmp_path.parent
    code, left = run_killed(
        10_000, folder, "extract", table.address, rules, "-o", tmp_path / f"all_{name}"
    )
    assert (code, names_in(tmp_path / f"all_{name}")) == (0, wanted)
    calls = 10_000 - int(left)
    output = tmp_path / name
    for part in (0.3, 0.7, 0.9, 1.0):
        code, _ = run_killed(
            round(part * calls), folder, "extract", table.address, rules, "-o", output
        )
        assert code in (0, -signal.SIGKILL)
        if output.suffix == ".jsonl":
            assert not output.exists() or names_in(output) == wanted
    assert nutbeam.open(table.address).extract(rules, output=output).rows in (0, len(wanted))
    assert names_in(output) == wanted
