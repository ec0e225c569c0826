"""What is wrong is one clear line or a counted reason, and nothing that is stored changes."""

import io
import json
import logging
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import polars as pl
import pytest
from bad_input import AGENT, COMMANDS, batch_in, words_for
from crawling import (
    files_of,
    manifest_of,
    manifests_of,
    nutbeam,
    reach,
    state_of,
    statuses_of,
    tree,
)
from dropping import NOBODY, as_nobody
from free_ports import free_port
from waiting import PATIENCE

from nutbeam.pipelines.running.runner import make_pipeline
from nutbeam.web.rules import url_rules as regex_rules

# Seeds.


@pytest.mark.parametrize("command", ["inject", "crawl"])
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("missing.txt", None, "No such file or directory"),
        ("www.example.com", None, "write https://www.example.com if it is a URL"),
        ("binary.txt", bytes(range(256)) * 9, "is binary, expected lines of text"),
        ("folder", "folder", "no seed files in folder"),
    ],
)
def test_seeds_that_cannot_be_read(tmp_path, monkeypatch, refuse, command, name, content, message):
    monkeypatch.chdir(tmp_path)
    if content == "folder":
        Path(name).mkdir()
    elif content is not None:
        Path(name).write_bytes(content)
    error = refuse(command, "table", name, *words_for(command))
    assert message in error
    assert repr(name) in error
    assert not Path("table").exists()  # nothing was begun


@pytest.mark.few(1)
@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n"])
def test_seed_files_without_seeds_are_no_error(tables, tmp_path, capsys, text):
    table = tables(tmp_path / "table")
    (tmp_path / "seeds.txt").write_text(text)
    words = ["inject", table, tmp_path / "seeds.txt"]
    assert nutbeam(*words) == 0
    assert capsys.readouterr().out == "inject: nothing changed\n"
    assert nutbeam("crawl", *words[1:], *AGENT) == 1


def test_bad_lines_are_counted_shown_with_their_numbers_and_not_fatal(
    tables, tmp_path, caplog, capsys
):
    table = tables(tmp_path / "table")
    lines = ["http://a.example.com/", "", "no url", "# comment", "ftp://a.example.com/",
             "http://b.example.com:99999/", f"http://{'c' * 70}.example.com/", "http://" + "d" * 5000,
             "\ufeffhttp://e.example.com/", "http://f.example.com/\tnutch.score=much",
             "\udcff\udcfe", "  http://g.example.com/  "]  # fmt: skip
    seeds = tmp_path / "seeds.txt"
    seeds.write_bytes("\r\n".join(lines).encode(errors="surrogateescape"))
    with caplog.at_level(logging.WARNING):
        assert nutbeam("inject", table, seeds, "--format", "json") == 0
    counts = json.loads(capsys.readouterr().out)["counts"]
    assert counts["lines"] == 10
    dropped = sum(n for name, n in counts.items() if name.startswith("dropped/"))
    assert counts["injected"] + dropped == counts["lines"]
    assert counts["bad_values"] == 1
    assert {"http://a.example.com/", "http://f.example.com/", "http://g.example.com/"} <= set(
        statuses_of(table)
    )
    for number in (3, 5, 6, 7, 8, 11):
        assert f"{seeds}:{number}: " in caplog.text, number
    assert f"{seeds}:1: " not in caplog.text
    assert all(len(record.getMessage()) < 400 for record in caplog.records)


def test_standard_input(tables, tmp_path, monkeypatch, refuse, capsys):
    table = tables(tmp_path / "table")

    def standard_input(data):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))

    standard_input(b"http://a.example.com/\nno url\n")
    assert nutbeam("inject", table, "-") == 0
    assert statuses_of(table) == {"http://a.example.com/": "db_unfetched"}
    files = tree(table, ignore=("operations", "seeds"))
    standard_input(bytes(range(256)))
    assert "is binary" in refuse("inject", table, "-")
    assert tree(table, ignore=("operations", "seeds")) == files


@pytest.mark.long
@pytest.mark.folder_first
def test_a_million_lines(tables, tmp_path, capsys):
    table = tables(tmp_path / "table")
    seeds = tmp_path / "seeds.txt"
    with seeds.open("w") as file:
        file.writelines(f"http://h{n % 1000}.example.com/{n // 2}\n" for n in range(1_000_000))
    assert nutbeam("inject", table, seeds, "--format", "json") == 0
    counts = json.loads(capsys.readouterr().out)["counts"]
    assert counts["lines"] == 1_000_000
    distinct = len({(n % 1000, n // 2) for n in range(1_000_000)})
    assert counts["added"] == distinct == manifest_of(table).components["state"].rows


# The address of the table.


@pytest.mark.parametrize("command", COMMANDS)
def test_no_table(tmp_path, refuse, command):
    (tmp_path / "empty").mkdir()
    for name, why in (("missing", "it does not exist"), ("empty", "it has no manifest")):
        error, _, hint = refuse(command, tmp_path / name, *words_for(command)).partition("; ")
        assert error == f"no web table at {str(tmp_path / name)!r}: {why}"
        assert hint.startswith("a first crawl needs seeds: nutbeam crawl ") == (command == "crawl")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["empty"]


@pytest.mark.parametrize("command", ["crawl", "fetch", "round"])
def test_no_table_comes_before_no_agent(tmp_path, refuse, command):
    assert "no web table at" in refuse(command, tmp_path / "missing")


@pytest.mark.parametrize("command", ["inject", *COMMANDS])
def test_something_else_is_no_table(tmp_path, refuse, command):
    (tmp_path / "music").mkdir()
    (tmp_path / "music" / "song.mp3").write_bytes(b"la")
    (tmp_path / "file").touch()
    seeds = ["http://a.example.com/"] if command == "inject" else []
    for name in ("music", "file"):
        error = refuse(command, tmp_path / name, *seeds, *words_for(command))
        assert repr(str(tmp_path / name)) in error
    assert "local folder" in refuse(command, "ftp://host/table", *seeds, *words_for(command))
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "music", "song.mp3"]


AS_NOBODY = """
    import contextlib, io, json, os, sys, warnings
    from nutbeam.io.storage.processes import remove_scratch
    from nutbeam.pipelines.command_line.cli import main
    from nutbeam.web.clients import aio_client, other_clients  # fetch imports them late

    warm, nobody, *commands = json.loads(sys.argv[1])
    def run(words):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main([*words, "--progress", "false"])
        return code, out.getvalue(), err.getvalue()

    for words in warm:  # imports all that is needed, which nobody else might read
        code = run(words)
        assert code[0] == 0, code
    remove_scratch()  # nobody gets one of their own
    if os.geteuid() == 0:
        os.setgroups([]); os.setresgid(nobody, nobody, nobody); os.setresuid(nobody, nobody, nobody)
    json.dump([run(words) for words in commands], sys.stdout)
"""


@pytest.mark.long
@pytest.mark.files
def test_tables_without_write_permission_can_be_read_but_not_written(original, tmp_path_factory):
    # Not below tmp_path, which only its owner may enter. Root may write anywhere.
    import tempfile

    rules = Path(regex_rules.__file__).with_name("regex-urlfilter.txt")
    if isinstance(as_nobody(rules.read_text), OSError):
        pytest.skip(f"nutbeam lies where only its owner may read: {rules.parent}")

    folder = Path(tempfile.mkdtemp(prefix="nutbeam-test-"))
    try:
        table = shutil.copytree(original, folder / "table")
        (folder / "warm").mkdir()
        for path in [folder, *folder.rglob("*")]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        files = tree(folder, ignore=())
        warm_table = str(tmp_path_factory.mktemp("warm") / "table")
        warm = [
            ["inject", warm_table, "http://a.example.com/"],
            ["generate", warm_table],
            ["dedup", warm_table],
            ["readdb", warm_table, "--stats"],
            ["readdb", warm_table, "--top", "1"],
            ["pages", str(original), "-o", f"{warm_table}.parquet"],
            ["rollback", warm_table, "--to", "1"],
            ["purge", warm_table, "--host", "a.example.com"],
            ["fsck", warm_table],
        ]
        commands = [
            ["inject", str(folder / "new"), "http://a.example.com/"],
            ["inject", str(table), "http://a.example.com/"],
            ["generate", str(table)],
            ["fetch", str(table), *AGENT],
            ["dedup", str(table)],
            ["pages", str(table), "-o", str(folder / "pages.jsonl")],
            ["readdb", str(table), "--dump", str(folder / "dump.csv")],
            ["rollback", str(table), "--to", "1"],
            ["purge", str(table), "--host", "h0.example.com", "--now"],
            ["export", str(table), "-o", str(folder / "state.parquet")],
            # Who may only read may do that.
            ["history", str(table)],
            ["fsck", str(table)],
            ["readdb", str(table), "--stats"],
        ]
        argument = json.dumps([warm, NOBODY, *commands])
        done = subprocess.run(
            [sys.executable, "-P", "-c", textwrap.dedent(AS_NOBODY), argument],
            capture_output=True, text=True, timeout=PATIENCE, check=True,
        )  # fmt: skip
        *refused, seen, whole, (code, out, err) = json.loads(done.stdout)
        assert (seen[0], seen[2], whole[0], whole[2]) == (0, "", 0, "")
        for words, (failed, said, error) in zip(commands, refused, strict=False):
            assert failed in (2, 3), words
            assert said == ""
            assert error.count("\n") == 1, error
            assert "ermission denied" in error
            assert str(folder) in error
        assert (code, err) == (0, "")
        assert out.startswith("TOTAL urls: ")
        assert tree(folder, ignore=()) == files
    finally:
        for path in [folder, *folder.rglob("*")]:
            path.chmod(0o755)
        shutil.rmtree(folder)


# Configuration.


@pytest.mark.few(8)
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["crawl", "3"], "got '3'; the number of rounds is --rounds 3"),
        (["crawl", "no-such-file.txt"], "cannot read seeds 'no-such-file.txt'"),
        (["crawl"], "sites must be able to tell who crawls them: add --agent_name"),
        (["fetch"], "--agent_name"),
        (["crawl", "--agent_name", "me"], "--agent_url"),
        (["crawl", "--agent_name", "(x)", "--agent_email", "me@example.com"], "'(x)'"),
        (["crawl", *AGENT, "--connect_to", "nonsense"], "'nonsense'"),
        (["crawl", *AGENT, "--allow_addresses", "10.0.0.0/99"], "'10.0.0.0/99'"),
        (["crawl", *AGENT, "--allowed_ports", "9-1"], "'9-1'"),
        (["crawl", *AGENT, "--scope", "web"], "'web'"),
        (["crawl", *AGENT, "--rounds", "-2"], "-2"),
        (["crawl", *AGENT, "--url_filter_file", "/no/such"], "'/no/such'"),
        (["crawl", *AGENT, "--url_normalizer_file", "/no/such"], "'/no/such'"),
        (["crawl", *AGENT, "--ca_file", "/no/such"], "'/no/such'"),
        (["crawl", *AGENT, "--ca_file", __file__], repr(__file__)),
        (["crawl", *AGENT, "--overwrite_known", "--update_known"], "contradict each other"),
        (["inject", "http://a.example.com/", "--operation", "a/b"], "'a/b'"),
        (["inject"], "missing argument SEEDS: URLs, files or folders; only --filter_normalize_all"),
        (["generate", "--top_n", "0"], "0"),
        (["generate", "--restrict_status", "db_fine"], "'db_fine'"),
        (["generate", "--runner", "Nobody"], "Nobody"),
        (["generate", "--direct_num_workers", "two"], "two"),
        (["readdb", "--stats", "--top", "3"], "--stats and --top contradict each other"),
        (["readdb", "--dump", "table.xls"], "'table.xls'"),
        (["readdb", "--regex", "("], "'('"),
        (["readdb", "--top", "1", "--sort"], "--sort is only for --stats"),
        (["readdb", "--sample", "2"], "--sample must be at most 1"),
        (["readdb", "--min_score", "1"], "--min_score is only for --top NUMBER"),
        (["readdb", "--url", "no url"], "'no url'"),
        (["readdb", "--top", "1", "--url", "http://a/"], "stands alone"),
        (["pages", "-o", "pages.xls"], "'pages.xls'"),
        (["pages", "-o", "/no/such/pages.jsonl"], "no folder '/no/such'"),
        (["readdb", "--dump", "/no/such/dump.csv"], "no folder '/no/such'"),
    ],
)
def test_configuration(table, refuse, words, message):
    files = tree(table, ignore=())
    command, *options = words
    assert message in refuse(command, table, *options)
    assert tree(table, ignore=()) == files


@pytest.mark.parametrize("command", [["pages", "-o"], ["readdb", "--dump"]])
def test_a_folder_is_no_output(table, refuse, tmp_path, command):
    for suffix in (".jsonl", ".parquet" if command[0] == "pages" else ".csv"):
        folder = tmp_path / f"folder{suffix}"
        folder.mkdir()
        assert repr(str(folder)) in refuse(command[0], table, command[1], folder)


# Servers.


@pytest.fixture(scope="module")
def bad_hosts(web):
    """A port that refuses, and the connect_to to it and to the hosts that answer as none should."""
    connect_to = ["--connect_to", f"refuses.example.com:80:127.0.0.1:{free_port()}"]
    return [*connect_to, *reach(web)]


@pytest.mark.long
def test_hosts_that_do_not_answer_as_they_should(tables, tmp_path, bad_hosts, web):
    folder = tables(tmp_path / "table")
    names = ("slow", "hang", "garbage", "endless", "reset", "cut", "loop")
    bad = {name: f"http://{name}.hostile.example.com/" for name in names}
    bad["refuses"] = "http://refuses.example.com/"
    bad["unknown"] = "http://no-such-host.example.com/"  # 421 of the simulated web
    limits = ["--timeout", "0.4", "--http_time_limit", "1.2", "--server_delay", "0",
              "--content_limit", "1Mi"]  # fmt: skip
    words = [*bad.values(), *web.seeds, *bad_hosts, *limits, "--rounds", "1"]
    assert nutbeam("crawl", folder, *words) == 0
    rows = {row["url"]: row for row in state_of(folder).to_dicts()}
    assert rows[web.seeds[0]]["status"] == 2  # the others are not held up
    tried = {name: rows[url] for name, url in bad.items()}
    due_again = {name for name, row in tried.items() if row["status"] == 1}
    assert due_again == {"slow", "hang", "garbage", "reset", "cut", "refuses"}
    assert {name: row["retries"] for name, row in tried.items() if row["retries"]} == dict.fromkeys(
        due_again, 1
    )
    messages = {name: tried[name]["protocol_message"] for name in due_again}
    assert all(messages.values()), messages
    assert len(set(messages.values())) > 2, messages  # each its own reason
    assert {name: tried[name]["status"] for name in ("endless", "loop", "unknown")} == {
        "endless": 2, "loop": 4, "unknown": 3,
    }  # fmt: skip
    batch = batch_in(folder, "updated")
    pages = pl.concat(pl.read_parquet(p) for p in files_of(folder, f"batches/{batch}/pages"))
    truncated = dict(pages.select("key", "truncated").drop_nulls().rows())
    assert "com.example.hostile.endless:http/" in truncated
    assert pages["body"].bin.size().max() <= 1_048_576
    counts = next(m.counts for m in manifests_of(folder) if m.job == "fetch")
    assert counts["pages"] == len(bad) + 1
    assert sum(n for name, n in counts.items() if name.startswith("protocol/")) == counts["pages"]


@pytest.mark.long
def test_a_host_that_does_not_resolve_and_addresses_that_are_not_ours(tables, tmp_path, web):
    folder = tables(tmp_path / "table")
    urls = ["http://no-such-host.invalid/", "http://127.0.0.1/", "http://[::1]/",
            "http://169.254.169.254/latest/"]  # fmt: skip
    words = [*urls, *AGENT, "--rounds", "1", "--server_delay", "0", "--timeout", "2"]
    assert nutbeam("crawl", folder, *words) == 4
    rows = {row["url"]: row for row in state_of(folder).to_dicts()}
    assert {row["status"] for row in rows.values()} <= {1, 3}
    assert all(row["protocol_message"] for row in rows.values())
    denied = {row["protocol_message"] for url, row in rows.items() if "invalid" not in url}
    assert denied == {"address_denied"}


def test_a_pipeline_without_options_is_in_process():
    assert type(make_pipeline([]).runner).__name__ == "FusedRunner"
