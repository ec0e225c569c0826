"""Commands that run no pipeline load no Beam, and only what they declare, in a real run on a crawled table."""

import json
import subprocess
import sys

import pytest
from crawling import nutbeam
from waiting import PATIENCE

from nutbeam.pipelines.command_line.commands import COMMANDS
from nutbeam.web.simweb.server import SimWeb

# Those of Beam's commands that read in this process without arguments for Beam.
READ_HERE = ("readdb", "domainstats", "protocolstats", "crawlcomplete", "export", "doctor")
RULES = """
[[rule]]
name = "page"
[rule.fields]
title = {css = "title"}
"""
# They end only by a signal: their imports alone are looked at.
SERVE = ("replay", "console", "mcp", "simweb")
# Each runs in a process of its own, which has these modules already: other commands take their time, too.
WALK = """
import contextlib, io, json, os, sys
import numpy, polars, pyarrow.parquet
from nutbeam.pipelines.command_line import cli
for command in sys.argv[2].split():
    if not os.fork():
        cli.load(command)
        print(json.dumps([command, 0, [*sys.modules], ""]), flush=True)
        os._exit(0)
    os.wait()
for words in json.loads(sys.argv[1]):
    if not os.fork():
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            code = cli.main(words)
        print(json.dumps([words[0], code, [*sys.modules], printed.getvalue()[-300:]]), flush=True)
        os._exit(0)
    os.wait()
"""
# Modules that take long to import, and the commands of those that run no pipeline which may import them.
SLOW = {
    "apache_beam": "",
    "grpc": "",
    "pyarrow.compute": "explain sql",
    "duckdb": "sql",
    "pygal": "report",
    "asyncio": "doctor extractchecker indexchecker parsechecker plugin",
    "tantivy": "console indexchecker mcp search solrdedup",
    "requests": "domainstats estimate explain readhostdb report solrdedup",
    "tldextract": "domainstats estimate explain readhostdb report",
    "selectolax": (
        "config console doctor export extractchecker indexchecker mcp parsechecker plugin "
        "report search showproperties solrdedup sql"
    ),
    "regex": (
        "batches console doctor estimate explain export_nutch extractchecker filterchecker "
        "fsck graphfiles indexchecker mergesegs nodedumper normalizerchecker parsechecker "
        "plugin readlinkdb readseg report robotsparser rollback solrdedup table"
    ),
}


def uses(folder, table, url):
    """Returns a use of each command that runs no pipeline and ends by itself, on a crawled table."""
    segments, out = f"{table}/batches", str(folder)
    (folder / "rules.toml").write_text(RULES)
    (folder / "robots.txt").write_text("User-agent: *\nDisallow: /private/\n")
    nobody = ("--writer_parameters", "url=http://127.0.0.1:1/solr/x")
    agent = ("--agent_name", "x", "--agent_email", "x@example.com")
    return {
        "readdb": (table,),
        "domainstats": (table,),
        "protocolstats": (table,),
        "crawlcomplete": (table,),
        "export": (table, "--what", "hosts", "-o", f"{out}/hosts.parquet"),
        "doctor": (table, "--look_seconds", "0.1"),
        "readlinkdb": (table, url),
        "readhostdb": (table,),
        "export_nutch": (table, f"{out}/nutch"),
        "readseg": ("--list_batches", segments),
        "dump": (segments, "--output_dir", f"{out}/bodies"),
        "commoncrawldump": (segments, "--output_dir", f"{out}/cbor"),
        "files": (table, "state"),
        "sql": (table, "select count(*) from state"),
        "history": (table,),
        "report": (table, "-o", f"{out}/report.html"),
        "nodedumper": (table, "--top", "3"),
        "graphfiles": (table, "-o", f"{out}/graph"),
        "search": (table, "the", "--index", "search"),
        "solrdedup": (table, *nobody),
        "status": (table,),
        "batches": ("copy", f"{out}/copied", segments),
        "mergesegs": (f"{out}/merged", "--all_of", segments),
        "rollback": (table, "--to", "1"),
        "fsck": (table,),
        "estimate": (table,),
        "table": ("describe", table),
        "filterchecker": (url,),
        "normalizerchecker": (url,),
        "plugin": (),
        "robotsparser": (f"{out}/robots.txt", url, *agent),
        "parsechecker": ("http://127.0.0.1/", *agent),
        "extractchecker": ("http://127.0.0.1/", f"{out}/rules.toml", *agent),
        "indexchecker": ("http://127.0.0.1/", *agent),
        "explain": (table, url),
        "completion": ("bash",),
        "config": ("sql",),
        "showproperties": ("sql",),
    }


@pytest.fixture(scope="module")
def crawled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("crawled")
    table = str(folder / "table")
    with SimWeb(hosts=1, pages=3, seed=7, crawl_delay=0) as web:
        there = [word for one in web.connect_to for word in ("--connect_to", one)]
        words = ("--server_delay", 0, "--rounds", 2, "--links", "true", "--index", "search")
        assert nutbeam("crawl", table, *web.seeds, *there, *words) == 0
        return folder, table, web.seeds[0]


def test_commands_without_a_pipeline_import_only_the_slow_modules_that_are_declared(
    crawled,
):
    folder, table, url = crawled
    lines = uses(folder, table, url)
    plain = {name for name, command in COMMANDS.items() if not command.beam}
    assert lines.keys() | set(SERVE) == plain | set(
        READ_HERE
    )  # a new command comes in with its use
    runs = [[command, *rest] for command, rest in lines.items()] + [["help", "crawl"]]
    words = json.dumps(runs)
    done = subprocess.run(
        [sys.executable, "-c", WALK, words, " ".join(SERVE)],
        capture_output=True, text=True, timeout=PATIENCE, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    ran = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stderr
    assert len(ran) == len(runs) + len(SERVE), done.stderr
    wrong = [
        (name, code, text) for name, code, _, text in ran if code == 2 or "internal error" in text
    ]
    assert wrong == [], wrong
    too_many = {
        slow: {name for name, _, modules, _ in ran if slow in modules} - {*commands.split()}
        for slow, commands in SLOW.items()
    }
    assert {slow: names for slow, names in too_many.items() if names} == {}


LEAST = """
import sys
from nutbeam.pipelines.command_line import cli
assert cli.main(["crawl", "--help"]) == 0
heavy = {"apache_beam", "polars", "pyarrow", "requests"}
assert not heavy & sys.modules.keys()
assert cli.main(["readdb", sys.argv[1]]) == 0
heavy = {"pyarrow.compute", "regex", "requests", "tldextract", "duckdb",
         "nutbeam.transforms.wiring.plugin_groups", "nutbeam.web.rules.url_rules"}
assert not heavy & sys.modules.keys(), heavy & sys.modules.keys()
"""


def test_commands_load_no_module_that_they_do_not_use(crawled):
    subprocess.run(
        [sys.executable, "-c", LEAST, crawled[1]],
        check=True, timeout=PATIENCE, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
    )  # fmt: skip
