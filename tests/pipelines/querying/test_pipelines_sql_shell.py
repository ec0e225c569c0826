"""The shell of sql: statements from standard input, and typed on a terminal."""

import contextlib
import io
import json
import os
import pty
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from crawling import nutbeam
from waiting import wait_until

from nutbeam.pipelines.querying.sql import duckdb_errors
from nutbeam.pipelines.querying.sql_shell import is_complete
from nutbeam.policy.components.views import views

duckdb = pytest.importorskip("duckdb")
TICKS = os.sysconf("SC_CLK_TCK")  # in a second of CPU time


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shell") / "table"
    assert nutbeam("inject", folder, "http://a.example.com/", "http://b.example.com/") == 0
    return folder


@pytest.fixture
def piped(table, monkeypatch, capsys):
    def run(text, *words):
        capsys.readouterr()
        monkeypatch.setattr(sys, "stdin", io.StringIO(text))
        code = nutbeam("sql", table, *words)
        return code, *capsys.readouterr()

    return run


def test_statements_of_standard_input(piped):
    text = "select 1 as a;\n\nselect ';' as b,\n 2 as c; select 3 as d;\nselect 4 as e"
    code, out, _ = piped(text, "--format", "json")
    assert code == 0
    rows = [json.loads(line) for line in out.splitlines()]
    assert rows == [{"a": 1}, {"b": ";", "c": 2}, {"d": 3}, {"e": 4}]


def test_the_first_error_ends_it(piped):
    code, out, error = piped("select 1 as a;\nselect nothing;\nselect 2 as b;", "--format", "json")
    assert (code, out) == (2, '{"a": 1}\n')
    assert error.count("\n") == 1


def test_an_empty_input_is_an_error(piped):
    assert piped("")[0] == 2
    assert "missing argument QUERY" in piped("")[2]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (".tables", "batch_documents      a page that was fetched"),
        (".schema pages", "last_fetch_time  When it was last requested"),
        (".schema state", "One of db_unfetched, db_fetched"),
        (".schema state", "Time from one fetch to the next. (s)"),
        (".help", ".quit"),
    ],
)
def test_dot_commands(piped, command, expected):
    code, out, _ = piped(f"{command}\n")
    assert code == 0
    assert expected in out


def test_schema_has_each_column(piped):
    lines = piped("".join(f".schema {name}\n" for name in views()))[1].splitlines()
    names = [column.name for view in views().values() for column in view.columns]
    assert [line.split()[0] for line in lines] == names


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (".schema nowhere", "no view 'nowhere': the views are state"),
        (".schema", ".schema needs the name of a view"),
        (".fields", "unknown command '.fields'"),
    ],
)
def test_dot_commands_that_are_wrong(piped, command, message):
    code, _, error = piped(f"{command}\n")
    assert code == 2
    assert message in error


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("select 1;", True),
        ("select 1", False),
        ("select ';", False),
        ("select ';' -- ;\n", False),
        ("select ';' /* ; */ ;\n", True),
        ('select ";" as ";', False),
        ("select $$;$$;", True),
        ("select $a$;$$;", False),
    ],
)
def test_a_statement_is_complete_at_a_semicolon_outside_quotes_and_comments(text, complete):
    assert is_complete(text) == complete


def cpu_ticks(process):
    """Returns the CPU time of a process, in ticks."""
    words = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return int(words[11]) + int(words[12])


def test_a_terminal(table, tmp_path):
    """Several lines, an error, Ctrl-C at the prompt and in a query, and the end by Ctrl-D."""
    seen = bytearray()
    ours, theirs = pty.openpty()

    def read():
        with contextlib.suppress(OSError):  # the other end is closed
            while chunk := os.read(ours, 1 << 16):
                seen.extend(chunk)

    def type_in(text, answer, prompt=b"sql> "):
        seen.clear()
        os.write(ours, text)
        wait_until(lambda: answer in seen and seen.endswith(prompt), process)
        assert answer in seen

    def interrupt():
        seen.clear()
        process.send_signal(signal.SIGINT)
        wait_until(lambda: seen.endswith(b"sql> "), process)

    words = [sys.executable, "-P", "-m", "nutbeam", "sql", str(table)]
    process = subprocess.Popen(
        words, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        env=os.environ | {"TERM": "dumb", "NUTBEAM_DEBUG": "1", "XDG_STATE_HOME": str(tmp_path / "state")},
    )  # fmt: skip
    os.close(theirs)
    threading.Thread(target=read, daemon=True).start()
    wait_until(lambda: seen.endswith(b"sql> "), process)
    type_in(b"select count(*) as n\n", b"n\r\n", b"...> ")
    type_in(b"from state;\n", b" 2 ")
    type_in(b"select nothing;\n", b'"nothing"')
    type_in(b"select 1,\n", b"1,\r\n", b"...> ")
    interrupt()
    type_in(b"select 7 as again;\n", b" 7 ")
    for begun in (False, True):  # at once, and when the query works
        seen.clear()
        os.write(ours, b"select count(*) from range(100000000000) t(n) where n % 7 = 3;\n")
        wait_until(lambda: seen.endswith(b"3;\r\n"), process)
        if begun:
            enough = cpu_ticks(process) + TICKS // 2
            wait_until(lambda enough=enough: cpu_ticks(process) > enough, process)
        interrupt()
    os.write(ours, b"\x04")
    assert process.wait(60) == 0, seen.decode()
    os.close(ours)
    assert "select 7 as again;" in (tmp_path / "state/nutbeam/sql_history").read_text()


def test_a_signal_while_the_main_thread_is_in_duckdb_is_an_interrupt():
    """DuckDB would replace it by a RuntimeError, and the shell would end."""

    def interrupt(*_):
        raise KeyboardInterrupt

    query = "select count(*) from range(500000000) t(n) where n % 7 = 3"  # a second
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGUSR1))
    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with duckdb.connect() as connection:
            timer.start()
            with pytest.raises(KeyboardInterrupt), duckdb_errors(duckdb, "table", []):
                connection.execute(query)
    finally:
        signal.signal(signal.SIGUSR1, before)
