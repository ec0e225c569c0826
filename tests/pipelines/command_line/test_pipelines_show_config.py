"""config, showproperties and the profiles: where the values of options come from."""

import json
import re
import tomllib

import pytest
from crawling import nutbeam
from web_servers import connect_to, reply, serve

from nutbeam.pipelines.command_line.cli import main
from nutbeam.pipelines.command_line.show_config import _PROFILES

SITE, OTHER = "http://site.example.com", "http://other.example.org"
HOSTS = ("site.example.com", "other.example.org")
PROFILES = sorted(path.stem for path in _PROFILES.glob("*.toml"))
FILE = """\
server_delay = "2s"
[fetch]
threads = 7
http_proxy = "http://me:secret@proxy.example:3128"
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nutbeam.toml").write_text(FILE)
    monkeypatch.setenv("NUTBEAM_AGENT_NAME", "bot")


def shown(capsys, *words):
    assert main(list(words)) == 0
    return capsys.readouterr().out


def records(capsys, *words):
    lines = shown(capsys, *words, "--format", "json").splitlines()
    return {record["option"]: record for record in map(json.loads, lines)}


def test_each_value_has_its_source(here, capsys):
    options = records(capsys, "config", "fetch")

    assert options["server_delay"] | {"help": ""} == {
        "option": "server_delay", "value": 2.0, "unit": "s", "source": "nutbeam.toml, line 1",
        "file": "nutbeam.toml", "line": 1, "default": 5.0, "nutch": ["fetcher.server.delay"],
        "help": "", "commands": ["fetch"],
    }  # fmt: skip
    assert options["threads"]["source"] == "[fetch] of nutbeam.toml, line 3"
    assert options["agent_name"]["source"] == "NUTBEAM_AGENT_NAME"
    assert options["timeout"]["source"] == "default"
    assert options["timeout"]["help"].startswith("Longest wait")


def test_changed_options_are_a_file_without_secrets(here, capsys):
    text = shown(capsys, "config", "--changed")

    assert tomllib.loads(text) == {
        "server_delay": 2.0,
        "agent_name": "bot",
        "fetch": {"threads": 7, "http_proxy": "http://***@proxy.example:3128"},
    }
    assert "secret" not in text


def test_defaults_are_comments(here, capsys, tmp_path):
    text = shown(capsys, "config", "generate")

    assert tomllib.loads(text) == {}
    assert "# top_n = 50000  # default; Nutch: generate -topN, crawl --size-fetchlist" in text


def test_properties_are_sorted_by_their_names_in_nutch(here, capsys):
    lines = shown(capsys, "showproperties", "fetch").splitlines()

    assert lines == sorted(lines)
    assert "fetcher.server.delay = 2 s\t--server_delay, nutbeam.toml, line 1" in lines
    assert "http.timeout = 10 s\t--timeout, default" in lines
    updates = shown(capsys, "showproperties", "updatedb").splitlines()
    assert "db.fetch.schedule.mime.file = \t--mime_rates, default" in updates  # no unit of nothing


def test_a_bad_file_and_an_unknown_command_are_one_line(here, capsys, tmp_path):
    assert main(["config", "fecth"]) == 2
    assert capsys.readouterr().err == (
        "nutbeam config: unknown command 'fecth'; did you mean 'fetch'?\n"
    )
    (tmp_path / "nutbeam.toml").write_text("[fetch]\nthreads = 'many'\n")
    assert main(["config", "fetch"]) == 2
    assert "(from [fetch] of nutbeam.toml, line 2)" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["config", "showproperties"])
def test_the_faults_that_all_commands_find_in_a_file_are_named_at_once(
    here, capsys, tmp_path, command
):
    (tmp_path / "nutbeam.toml").write_text(
        "timeout = 'soon'\n[fetch]\nthreads = 'many'\n[fetch.sub]\na = 1\n[generate]\ntop_n = 'y'\n"
    )
    assert main([command]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"nutbeam {command}: 4 errors in nutbeam.toml: (1) --timeout must be ")
    for place in (
        "(from nutbeam.toml, line 1) (2)",
        "(from [fetch] of nutbeam.toml, line 3) (3)",
        "unknown option 'sub' in [fetch] of nutbeam.toml, line 4 (4)",
        "(from [generate] of nutbeam.toml, line 7)\n",
    ):
        assert said.count(place) == 1, said


@pytest.mark.parametrize("name", PROFILES)
def test_each_line_of_a_profile_says_why(name, capsys):
    text = shown(capsys, "config", "--profile", name)
    keys = re.findall(r"^(?:# )?[a-z_]+ = .*$", text, re.MULTILINE)

    assert len(keys) > 10
    assert [line for line in keys if not re.search(r"\S +# \S", line.removeprefix("# "))] == []


def answer(path, head):
    links = ("/a", "/photo.png", f"{OTHER}/")
    page = "".join(f"<a href={link}>x</a>" for link in links if path == "/")
    kind = "image/png" if path.endswith("png") else "text/html"
    return reply(b"<title>x</title>" + page.encode(), "200 OK", f"Content-Type: {kind}")


@pytest.mark.long
@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("one-site", {"/", "/a"}),
        ("intranet", {"/", "/a"}),
        ("broad-crawl", {"/", "/a", f"{OTHER}/"}),
        ("archive", {"/", "/a", "/photo.png"}),
    ],
)
def test_a_profile_crawls(name, wanted, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nutbeam.toml").write_text(shown(capsys, "config", "--profile", name))
    with serve(answer) as server:
        there = ",".join(connect_to(server.port, *HOSTS))
        words = ("--connect_to", there, "--server_delay", "0", "--rounds", "2")
        archive = ("--warc", "archive") if name == "archive" else ()
        assert nutbeam("crawl", "table", f"{SITE}/", *words, *archive) == 0
        asked = set()
        for path, head, *_ in server.requests:
            is_other = b"other.example.org" in (head if isinstance(head, bytes) else head.encode())
            asked.add(f"{OTHER}{path}" if is_other else path)

    pages = {url for url in asked if not url.endswith((".txt", ".xml"))}
    assert pages == wanted
    assert list((tmp_path / "archive").rglob("*.warc.gz")) or not archive
