"""One rule of exit codes for all jobs: 1 only if nothing waited for the job, and the line says so."""

import json

import pytest
from crawling import crawl, manifest_of, nutbeam, reach
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
    "mergelinkdb": ("other",), "mergedb": ("other",), "freegen": ("seeds.txt",),
    "import_warc": ("a.warc",), "import_nutch": ("nutch",),
    "purge": ("--url", "http://gone.example.com/"),
    "clean": (), "solrclean": ("--writer", "tantivy"),
    "solrdedup": ("--writer", "tantivy"),
}  # fmt: skip
# Their records are summaries, of which no field says whether something changed.
CRAWLS = {"round", "crawl"}
# A copy is a new table, and a list of URLs a new batch. An index on a server is no part of a table. Hosts record each request.
NEVER_THE_SAME = {"copy", "freegen", "import_warc", "solrdedup", "sitemap"}
READERS = {
    "readdb",
    "doctor",
    "domainstats",
    "protocolstats",
    "crawlcomplete",
    "pages",
    "extract",
    "export",
    "warc",
}
ONE_PAGE = (
    b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://h0.example.com/archived\r\n"
    b"WARC-Date: 2026-01-02T03:04:05Z\r\nContent-Type: application/http\r\n"
    b"Content-Length: 22\r\n\r\nHTTP/1.1 200 OK\r\n\r\n<p>\r\n\r\n"
)


@pytest.fixture(scope="module")
def table(web, tmp_path_factory):
    """A table on which each job has done its work: tests repeat them."""
    folder = tmp_path_factory.mktemp("codes") / "table"
    assert crawl(folder, web, *web.seeds, "--links", "--index", "main") == 0
    assert nutbeam("copy", folder, folder.parent / "other") == 0
    (folder.parent / "seeds.txt").write_text("\n".join(web.seeds))
    (folder.parent / "a.warc").write_bytes(ONE_PAGE)
    assert nutbeam("export_nutch", folder, folder.parent / "nutch") == 0
    (folder.parent / "hosts.txt").write_text("h0.example.com\tnutch.fetch.delay=1\n")
    return folder


def words_of(job, words, table, web):
    """Returns a command line; its words may stand for others."""
    other = {
        "reach": reach(web), "seeds": web.seeds, "copy": [table.parent / "copy"],
        "other": [table.parent / "other"], "hosts.txt": [table.parent / "hosts.txt"],
        "nutch": [table.parent / "nutch"],
    }  # fmt: skip
    if job == "import_warc":  # so that its batch waits for parse elsewhere
        return [job, table.parent / "other", table.parent / "a.warc"]
    if job == "freegen":  # elsewhere, because its batches would wait for fetch
        return [job, table.parent / "seeds.txt", table.parent / "other"]
    # A purge waits for jobs that have begun and not committed, as a ranking without a graph.
    at = table.parent / "other" if job == "purge" else table
    return [job, at, *(part for word in words for part in other.get(word, [word]))]


def rows_of(table):
    """Returns the lists of files of a table's components, without the journals of indexes."""
    components = manifest_of(table).components
    return {name: c.list for name, c in components.items() if not name.endswith("index_runs")}


@pytest.mark.few(8)
@pytest.mark.parametrize("job", [*WAITS, *LOOKS_AT_ALL])
def test_a_job_without_work_says_so_by_its_code_its_line_and_json(job, table, web, capsys):
    words, code = words_of(job, {**WAITS, **LOOKS_AT_ALL}[job], table, web), DONE
    if job in WAITS:
        code = NOTHING_TO_DO
    elif job != "copy":
        assert nutbeam(*words) == DONE
    capsys.readouterr()
    assert nutbeam(*words) == code
    printed = capsys.readouterr()
    said = "".join(printed)
    assert ("nothing to do" in said or "nothing is due" in said) == (code == NOTHING_TO_DO), said
    if job in CRAWLS | NEVER_THE_SAME:
        return
    assert job in WAITS or printed.out.endswith("nothing changed\n")
    before = rows_of(words[1])
    assert nutbeam(*words, "--format", "json") == code
    record = json.loads(capsys.readouterr().out)
    assert record["changed"] is False, record
    assert rows_of(words[1]) == before


def test_json_says_that_something_changed(table, web, tmp_path, capsys):
    words = ["inject", table, "http://new.example.com/"]
    capsys.readouterr()
    assert nutbeam(*words, "--format", "json") == DONE
    assert json.loads(capsys.readouterr().out)["changed"] is True
    assert nutbeam("copy", table, tmp_path / "copy", "--format", "json") == DONE
    assert json.loads(capsys.readouterr().out)["changed"] is True


def test_every_job_follows_the_rule():
    jobs = {name for name, command in COMMANDS.items() if command.beam} - READERS
    assert jobs | {"solrdedup"} == {*WAITS, *LOOKS_AT_ALL}
