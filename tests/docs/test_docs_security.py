"""The guide to security names tests that exist, and the defaults that hold."""

import re

import pytest
from crawling import nutbeam
from here import ROOT
from web_servers import connect_to, reply, serve

from nutbeam.pipelines.command_line.cli import load
from nutbeam.pipelines.command_line.commands import COMMANDS
from nutbeam.pipelines.crawl import Options
from nutbeam.web.base.options import options_of
from nutbeam.web.simweb.hostile import listing

PAGE = ROOT / "docs/guides/security.md"
GUIDE = PAGE.read_text() if PAGE.exists() else ""
pytestmark = pytest.mark.skipif(not GUIDE, reason="docs/ is not part of the wheel")


def test_every_test_that_it_names_exists():
    tests = {path.name: path.read_text() for path in (ROOT / "tests").rglob("test_*.py")}
    named = set(re.findall(r"`(test_\w+(?:\.py)?)`", GUIDE))
    assert len(named) > 30
    functions = set(re.findall(r"^def (test_\w+)", "\n".join(tests.values()), re.MULTILINE))
    assert not named - functions - set(tests)


def test_every_threat_has_its_row():
    assert re.findall(r"^\| (\d+) \|", GUIDE, re.MULTILINE) == [str(n) for n in range(1, 23)]


def test_the_defaults_that_it_names_hold():
    options = {option.flag: option.default for option in options_of(Options)}
    rows = re.findall(r"\| `(--\w+)` \| ([\d,]+) \|", GUIDE)
    assert len(rows) == 11
    assert {flag: int(text.replace(",", "")) for flag, text in rows} == {
        flag: options[flag] for flag, _ in rows
    }


def test_all_hostile_hosts_are_listed():
    assert f"```text\n{listing()}\n```\n" in GUIDE


@pytest.mark.long
def test_no_name_of_a_file_is_made_of_a_url(tmp_path):
    marked = b'<a href="/sentinel/../%2e%2e%2fsentinel?sentinel=/etc">sentinel</a>'
    table, seed = tmp_path / "table", "http://sentinel.example.com/sentinel"
    with serve(lambda path, _: reply(marked, "200 OK", "Content-Type: text/html")) as server:
        reach = [word for mapping in connect_to(server.port) for word in ("--connect_to", mapping)]
        assert nutbeam("crawl", table, seed, "--rounds", "2", "--server_delay", "0", *reach) == 0
        assert sum("sentinel" in path for path in server.paths) == 2
    names = [str(path.relative_to(table)) for path in table.rglob("*")]
    assert len(names) > 20
    assert not [name for name in names if re.search(r"sentinel|example|%|\s", name)]


def test_no_command_writes_html():
    formats = {form for command in COMMANDS for form in getattr(load(command), "FORMATS", ())}
    choices = {
        str(choice)
        for command in COMMANDS
        for option in options_of(load(command).Options)
        for choice in option.choices or ()
    }
    assert "csv" in formats | choices
    assert not [name for name in formats | choices if "htm" in name.lower()]
