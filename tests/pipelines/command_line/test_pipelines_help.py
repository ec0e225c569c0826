"""The help: one screen with an example that works, all options on request, the commands by group."""

import os
import re
import shlex
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from simulated_web import SimWeb

from nutbeam.pipelines.command_line.arguments import command_options
from nutbeam.pipelines.command_line.cli import load, main
from nutbeam.pipelines.command_line.commands import COMMANDS, GROUPS
from nutbeam.pipelines.command_line.usage import usual_options

# The commands that send requests to sites.
AGENT_FIRST = ("crawl", "fetch", "round", "next", "parsechecker")
# Not run here: a table in Bigtable, and servers that run until they are stopped.
# The web of this test has one host, and there is no search server.
NOT_RUN = (
    "table",
    "status",
    "console",
    "simweb",
    "doctor",
    "replay",
    "graphfiles",
    "solrindex",
    "solrclean",
    "solrdedup",
)

# Options with another text in each command, but one meaning: which rows, how many, to which file.
ONE_MEANING = {"batch", "columns", "dump", "embedding", "expr", "full", "host", "index", "level", "min_score", "output",
               "pages", "port", "regex", "sort", "status", "top", "what"}  # fmt: skip


@pytest.fixture
def shown(capsys):
    """Runs a command that must print its help; returns it."""

    def run(*words):
        assert main(list(words)) == 0
        captured = capsys.readouterr()
        assert captured.err == ""
        return captured.out

    return run


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_one_screen_with_an_example_and_the_usual_options(shown, name):
    text = shown(name, "--help")
    lines = text.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith(f"usage: nutbeam {name} ")
    assert lines[2] == COMMANDS[name].help
    assert f"example:\n  nutbeam {name} " in text
    assert len(usual_options(COMMANDS[name], load(name))) <= 13
    assert f"nutbeam {name} --help_all" in " ".join(text.split())
    assert "Nutch:" not in text


@pytest.mark.parametrize("name", COMMANDS)
def test_the_whole_help_has_every_option(shown, name):
    options = command_options(load(name))
    text = shown(name, "--help_all")
    assert set(re.findall(r"^  (?:-\w \S+, )?--(\w+)", text, re.MULTILINE)) == set(options)
    assert f"All {len(options)} options" in shown(name, "-h")


def test_an_option_means_the_same_in_each_command():
    """A file for --config sets it for all of them."""
    meanings = defaultdict(set)
    for command in COMMANDS:
        for name, option in command_options(load(command)).items():
            meanings[name].add(option.help)
    assert {name for name, texts in meanings.items() if len(texts) > 1} == ONE_MEANING


@pytest.mark.parametrize("name", AGENT_FIRST)
def test_the_agent_comes_first_where_it_is_needed(shown, name):
    usual_names = [option.name for option in usual_options(COMMANDS[name], load(name))]
    assert usual_names[:2] == ["agent_name", "agent_email"]
    text = shown(name, "--help_all")
    assert re.findall("^options: (.*):$", text, re.MULTILINE)[0] == "agent"


def test_help_of_help(shown):
    text = shown("help")
    assert text == shown("--help") == shown("-h") == shown("--help_all")
    assert max(map(len, text.splitlines())) <= 80
    assert len(text.splitlines()) <= len(COMMANDS) + 16
    assert [line for line in text.splitlines() if line.endswith(":")] == [f"{g}:" for g in GROUPS]
    assert sorted(re.findall(r"^  (\w+) ", text, re.MULTILINE)) == sorted(COMMANDS)
    for words in (("help", "generate"), ("generate", "-h"), ("generate", "table", "--help")):
        assert shown(*words) == shown("generate", "--help")
    for words in (("help", "generate", "--help_all"), ("generate", "--help-all", "--help")):
        assert shown(*words) == shown("generate", "--help_all")


@pytest.mark.long
def test_the_examples_work(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "seeds.txt").write_text("http://h0.example.com/other\nhttp://h0.example.com/\n")
    (tmp_path / "robots.txt").write_text("User-agent: *\nDisallow: /private/\n")
    (tmp_path / "hosts.txt").write_text("h0.example.com delay=0\n")
    (tmp_path / "shop.toml").write_text('[[rule]]\n[rule.fields]\nheading = "css:h1"\n')
    (tmp_path / "rules.py").write_text(
        "def no_ads(urls):\n    return ['/ads/' not in url for url in urls]\n"
    )
    monkeypatch.setenv("NUTBEAM_SERVER_DELAY", "0")
    monkeypatch.setenv("NUTBEAM_ADD_DAYS", "40")  # there is something to do again
    codes = {}
    with (
        SimWeb(hosts=1, pages=4, seed=7, crawl_delay=0) as web,
        Path(os.devnull).open() as stdin,  # mcp ends with it
    ):
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setenv("NUTBEAM_CONNECT_TO", ",".join(web.connect_to))
        # import_warc reads the archive that warc writes, and purge removes the pages in it; import_nutch reads
        # what export_nutch writes.
        late = ["import_warc", "import_nutch"]
        names = [name for name in COMMANDS if name not in {*NOT_RUN, *late}]
        names[names.index("purge") : names.index("purge")] = late
        # Later all URLs are in batches.
        names.remove("estimate")
        names.insert(names.index("crawl") + 1, "estimate")
        for name in names:
            example = COMMANDS[name].example.replace(
                "https://www.your-site.org", "http://h0.example.com"
            )
            codes[name] = main([name, *shlex.split(example)])
    assert codes == dict.fromkeys(codes, 0), capfd.readouterr().err
