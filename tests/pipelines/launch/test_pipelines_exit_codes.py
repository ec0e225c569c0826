"""One rule of exit codes for all jobs: 1 only if nothing waited for the job, and the line says so."""

import json

import pytest
from crawling import crawl, nutbeam, reach
from simulated_web import served_web

from nutbeam.pipelines.base.command import DONE, NOTHING_TO_DO
from nutbeam.pipelines.command_line.commands import COMMANDS

web = served_web(hosts=2, pages=3, scope="module")

# The words of each job on a table where all work is done. "reach" is for those that send requests.
WAITS = {
    "generate": (), "fetch": ("reach",), "parse": (), "updatedb": (), "invertlinks": (),
    "index": (), "solrindex": ("--writer", "tantivy"),
    "next": ("reach",), "round": ("reach",), "crawl": ("reach",),
    "linkrank": ("--level", "host"), "scoreupdater": ("--rank", "hub"),
}  # fmt: skip
LOOKS_AT_ALL = {
    "inject": ("seeds",), "sitemap": ("seeds", "reach"), "dedup": (), "updatehostdb": (),
    "hostinject": ("hosts.txt",), "filterdb": (), "webgraph": (), "compact": (), "copy": ("copy",),
    "mergelinkdb": ("other",), "purge": ("--url", "http://gone.example.com/"),
    "clean": (), "solrclean": ("--writer", "tantivy"),
    "solrdedup": ("--writer", "tantivy"),
}  # fmt: skip
READERS = {"readdb", "domainstats", "protocolstats", "crawlcomplete", "pages", "export"}


@pytest.fixture(scope="module")
def table(web, tmp_path_factory):
    """A table on which each job has done its work: tests repeat them."""
    folder = tmp_path_factory.mktemp("codes") / "table"
    assert crawl(folder, web, *web.seeds, "--links", "--index", "main") == 0
    assert nutbeam("copy", folder, folder.parent / "other") == 0
    (folder.parent / "hosts.txt").write_text("h0.example.com\tnutch.fetch.delay=1\n")
    return folder


def words_of(job, words, table, web):
    """Returns a command line; its words may stand for others."""
    other = {
        "reach": reach(web), "seeds": web.seeds, "copy": [table.parent / "copy"],
        "other": [table.parent / "other"], "hosts.txt": [table.parent / "hosts.txt"],
    }  # fmt: skip
    # A purge waits for jobs that have begun and not committed, as a ranking without a graph.
    at = table.parent / "other" if job == "purge" else table
    return [job, at, *(part for word in words for part in other.get(word, [word]))]


@pytest.mark.parametrize("job", [*WAITS, *LOOKS_AT_ALL])
def test_exit_code_1_and_nothing_to_do_go_together(job, table, web, capsys):
    words = words_of(job, WAITS.get(job) or LOOKS_AT_ALL.get(job) or (), table, web)
    if job in LOOKS_AT_ALL and job != "copy":
        assert nutbeam(*words) == DONE
    capsys.readouterr()
    code = nutbeam(*words)
    said = "".join(capsys.readouterr())
    assert code == (NOTHING_TO_DO if job in WAITS else DONE), said
    assert ("nothing to do" in said or "nothing is due" in said) == (code == NOTHING_TO_DO), said


@pytest.mark.parametrize("job", ["generate", "fetch", "parse", "updatedb", "invertlinks", "index"])
def test_json_says_that_nothing_changed(job, table, web, capsys):
    capsys.readouterr()
    assert nutbeam(*words_of(job, WAITS[job], table, web), "--format", "json") == NOTHING_TO_DO
    assert json.loads(capsys.readouterr().out)["changed"] is False


def test_every_job_follows_the_rule():
    jobs = {name for name, command in COMMANDS.items() if command.beam} - READERS
    assert jobs | {"solrdedup"} == {*WAITS, *LOOKS_AT_ALL}
