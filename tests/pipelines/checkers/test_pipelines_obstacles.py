"""A crawl names all options that its seeds need at once, before anything runs."""

import shlex

import pytest
from crawling import nutbeam
from web_servers import reply, serve

LOCAL = "--allow_addresses 127.0.0.0/8,::1/128"
PORTS = "--allowed_ports 80,443,8000-8999"


@pytest.mark.parametrize(
    ("seeds", "options", "reason", "added"),
    [
        (["http://localhost:9999/"], [],
         "the address of localhost is private or special; the port 9999 is not allowed; this",
         f"{LOCAL} {PORTS},9999"),
        (["http://[::1]:22/"], [], "the address of ::1 is private", f"--allow_addresses ::1/128 {PORTS},22"),
        (["http://10.1.2.3/"], ["--allow_addresses", "10.0.0.0/16"], "the address of 10.1.2.3",
         "--allow_addresses 10.0.0.0/16,10.1.2.3/32"),
        (["http://a.example.com:99/"], [], "the port 99 is not allowed; sites must be able to tell who",
         f"{PORTS},99 --agent_name NAME --agent_url URL"),
        (["file:///srv/my%20site/a.html"], [], "the scheme file is not allowed; no folder may be read",
         "--schemes http,https,file --file_roots '/srv/my site'"),
        (["ftp://localhost/x"], [], "the scheme ftp", f"--schemes http,https,ftp {LOCAL} {PORTS},21"),
    ],
)  # fmt: skip
def test_all_that_is_missing_is_named_with_a_command(
    tmp_path, capsys, seeds, options, reason, added
):
    table = tmp_path / "table"
    assert nutbeam("crawl", table, *seeds, *options) == 2
    line = capsys.readouterr().err
    assert f"cannot be crawled: {reason}" in line
    typed = shlex.join(["nutbeam", "crawl", str(table), *seeds])
    assert line.partition("this works: ")[2].startswith(typed)
    assert line.endswith(f" {added}\n") or f" {added} " in line
    assert not table.exists()


@pytest.mark.long
def test_the_command_works(tmp_path, capsys):
    answers = {"/": reply(b"<p>x", "200 OK", "Content-Type: text/html")}
    with serve(lambda path, _: answers.get(path, reply(b"", "404 Not Found"))) as server:
        seed = f"http://localhost:{server.port}/"
        assert nutbeam("crawl", tmp_path / "table", seed) == 2
        words = shlex.split(capsys.readouterr().err.partition("this works: nutbeam ")[2])
        words = [word for word in words if word not in ("--progress", "false")]
        assert nutbeam(*words) == 0


def test_the_command_keeps_the_other_options(tmp_path, capsys):
    words = ["--rounds", "5", "--allow_addresses", "10.0.0.0/8"]
    assert nutbeam("crawl", tmp_path / "table", "http://localhost/", *words) == 2
    line = capsys.readouterr().err
    assert " --rounds 5 " in line
    assert line.count("--allow_addresses") == 1
    assert line.endswith("--allow_addresses 10.0.0.0/8,127.0.0.0/8,::1/128\n")


def test_a_new_table_needs_seeds(tmp_path, capsys):
    assert nutbeam("crawl", tmp_path / "table", "--connect_to", "a:80:127.0.0.1:1") == 2
    line = capsys.readouterr().err
    assert f"a first crawl needs seeds: nutbeam crawl {tmp_path / 'table'} URL" in line


def test_no_login_is_shown(tmp_path, capsys):
    assert nutbeam("crawl", tmp_path / "table", "http://me:secret@localhost/") == 2
    assert "secret" not in capsys.readouterr().err


def test_one_seed_that_can_be_requested_is_enough(tmp_path, capsys):
    seeds = ["http://localhost:9999/", "http://a.example.com/"]
    assert nutbeam("crawl", tmp_path / "table", *seeds) == 2
    assert "sites must be able to tell who crawls them: add --agent_name" in capsys.readouterr().err


@pytest.mark.long
def test_local_files_need_no_agent(tmp_path):
    (tmp_path / "a.html").write_text("<p>x")
    words = [f"file://{tmp_path}/a.html", "--schemes", "http,file", "--file_roots", tmp_path]
    assert nutbeam("crawl", tmp_path / "table", *words) == 0
