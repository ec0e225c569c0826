"""Every command on a terminal, over a table full of what strangers would like the terminal to obey."""

import contextlib
import json
import re
import shutil
import signal
import sys
import urllib.error
import urllib.parse
import urllib.request

import pytest
from crawling import json_lines, manifest_of
from ftp_servers import ftp_mapping, scripted_server
from plugins import install
from terminals import EVIL, WORD, obeyed, process, typed
from waiting import wait_until
from web_servers import connect_to, reply, serve

from nutbeam.pipelines.base.toml_text import toml_value
from nutbeam.pipelines.command_line.cli import main
from nutbeam.pipelines.command_line.commands import COMMANDS
from nutbeam.web.content.control_characters import without_controls

SITE = "http://site.example.com"
PAGE = f"""<html lang="en{EVIL}"><head><title>Title [red]{EVIL}[/red] :cat:</title>
<meta name="description" content="{EVIL}"><meta name="{EVIL}" content="x">
<meta name="keywords" content="{EVIL}"><meta name="robots" content="{EVIL}"></head>
<body>Text {EVIL}<a href="/a?{EVIL}">[link=http://x.org/]{EVIL}[/link]</a><a href="/moved">m</a>
<a href="/gone">g</a><a href="/odd">o</a><a href="/busy">b</a><a href="/feed">f</a>
<a href="/x:cat:[red]%1b">x</a><a href="http://{EVIL}/">h</a></body></html>""".encode()
FEED = f"<rss><channel><title>&#x9b;{WORD}\u202e</title><item><title>\u202e{WORD}</title></item></channel></rss>"
ROBOTS = (
    f"User-agent: *\nDisallow: /{EVIL}\nAllow: /{EVIL}$\nDisallow: /private{EVIL}\n"
    f"Sitemap: http://site.example.com/{EVIL}\nCrawl-delay: {EVIL}\n{EVIL}\nContent-Usage: {EVIL}\n"
)


RULES = """[[rule]]
name = "page"
url = "/"
[rule.fields]
title = {css = "title", required = true}
links = {css = "a", type = "list"}
tags = {css = "meta::attr(content)", type = "number"}
"""
PROGRAM = "from nutbeam.pipelines.command_line.cli import script; script()"


def head(line, kind, *more):
    """Returns the head of an answer, in which everything has an escape."""
    lines = [f"HTTP/1.1 {line} {EVIL}", f"Content-Type: {kind}{EVIL}", f"ETag: \"{EVIL}\"",
             f"Last-Modified: {EVIL}", f"Set-Cookie: {EVIL}={EVIL}", f"{EVIL}: {EVIL}",
             f"Content-Language: {EVIL}", *more]  # fmt: skip
    return "\r\n".join(lines).encode() + b"\r\n"


def answer(path, connection):
    """Returns an answer full of escapes to any request."""
    body, first = b"", head("200", "text/html; charset=utf-8;")
    if path == "/robots.txt":
        return reply(ROBOTS.encode())
    if path == "/":
        body = PAGE
    elif path == "/moved":
        first = head("302", "text/html; ", f"Location: /to{EVIL}")
    elif path == "/gone":
        body, first = PAGE, head("404", "text/html; ")
    elif path == "/odd":
        body, first = b"\x00\x01\x02" * 99, head("200", "application/x-odd")
    elif path == "/feed":
        body, first = FEED.encode(), head("200", "application/rss+xml; charset=utf-8; ")
    elif path == "/busy":
        first = head("500", "text/html; ")
    return first + f"Content-Length: {len(body)}\r\n\r\n".encode() + body


@pytest.fixture(scope="module")
def web():
    with serve(answer) as server:
        yield server


def reached(web):
    mapping = [word for mapping in connect_to(web.port) for word in ("--connect_to", mapping)]
    return [*mapping, "--server_delay", "0"]


def forge(table, change):
    """Changes the newest manifest of a table; one without a digest is taken."""
    newest = max((table / "manifest").glob("*.json"))
    record = json.loads(newest.read_text())
    del record["digest"]
    change(record)
    newest.write_text(json.dumps(record))


@pytest.fixture(scope="module")
def folder(web, tmp_path_factory):
    """A table crawled on a terminal, one with escapes in its manifest, a damaged one, and files."""
    folder = tmp_path_factory.mktemp("terminal")
    with pytest.MonkeyPatch.context() as patch:
        words = ("crawl", folder / "table", f"{SITE}/", *reached(web), "--rounds", "2")
        code, output = typed(patch, *words, term="xterm")
    assert (code, obeyed(output, "xterm")) == (0, [])
    assert "✓ round 1 of 2, fetch: ".encode() in output.replace(b"\x1b[32m", b"").replace(
        b"\x1b[0m", b""
    )
    shutil.copytree(folder / "table", folder / f"table {EVIL}")
    for name in ("forged", "damaged"):
        shutil.copytree(folder / "table", folder / name)
    forge(folder / "forged", lambda record: record.update(job=EVIL, counts={EVIL: 1}))
    forge(folder / "damaged", lambda record: record["components"]["state"].update(list=EVIL))
    (folder / "robots.txt").write_text(ROBOTS)
    (folder / "seeds.txt").write_text(f"{SITE}/new{EVIL}\n{EVIL}\n{SITE}/s\tx={EVIL}\n")
    (folder / "pages.toml").write_text(RULES)
    (folder / "hosts.txt").write_text(f"site.example.com note={WORD}\n")
    for name, rule in (("rules", EVIL.replace("[", ".")), ("bad_rules", f"({EVIL}")):
        (folder / name).mkdir()
        (folder / name / "regex-urlfilter.txt").write_text(f"-{rule}\n+.\n")
    key = json.dumps(EVIL).replace("\\udb40\\udc41", "")  # no escapes of toml
    (folder / "evil.toml").write_text(f"[crawl]\n{key} = 1\n")
    (folder / "words.toml").write_text(f"agent_description = {toml_value(EVIL)}\n")
    (folder / "files").mkdir()
    (folder / "files" / f"name {EVIL}.html").write_bytes(PAGE)
    return folder


def uses(folder, web, port):
    """Returns uses of every command on a table full of escapes, in the order of the jobs.

    Those that only show are on the table, the others on ``work``, which a crawl makes.

    Args:
        folder: Where the tables are.
        web: The server.
        port: Of an FTP server.
    """
    table, work, there = folder / "table", folder / "work", reached(web)
    evil, damaged, info = folder / f"table {EVIL}", folder / "damaged", ("--log_level", "info")
    rules, bad_rules = (("--url_rules_dir", folder / name) for name in ("rules", "bad_rules"))
    files = (f"file://{folder}/files/", "--schemes", "file", "--file_roots", folder)
    (folder / "plugin.py").write_text("def echo(urls, *_):\n    raise ValueError(urls[0])\n")
    plugin = f"{folder}/plugin.py:echo"
    ftp = (f"ftp://ftp.example.com/{EVIL}", "--schemes", "ftp", "--connect_to", ftp_mapping(port))
    aio = ("--http_client", "asyncio")
    query = f"select *, '{EVIL}' as \"{EVIL}\" from"
    segment = f"{table}/batches/{min(manifest_of(table).batches)}"
    dummy = ("--writer", "dummy", "--writer_parameters", f"path={folder}/indexed")
    return {
        "crawl": [
            (work, f"{SITE}/", folder / "seeds.txt", *there, *aio, "--rounds", "1", *info),
            (work, "--config", folder / "evil.toml"),
            (folder / "files_of", *files, "--rounds", "2"),
            (folder / "no", f"/no/{EVIL}"),
        ],
        "inject": [(work, folder / "seeds.txt", *info), (work, f"/no/{EVIL}"), (work, *bad_rules)],
        "sitemap": [(work, f"{SITE}/{EVIL}.xml", *there, *info), (work, "--sitemap_hosts", EVIL)],
        "generate": [(work, *info), (work, "--operation", EVIL)],
        "freegen": [(folder / "seeds.txt", work, *info), (f"/no/{EVIL}", work)],
        "fetch": [(work, *there, *info), (work, *there, "--batch", EVIL)],
        "parse": [(work, *info), (work, "--parse_filters", EVIL)],
        "updatedb": [(work, *info)],
        "invertlinks": [(work, *info), (work, "--batch", EVIL)],
        "dedup": [(work, *info)],
        "round": [(work, *there, *info), (work, *there, *aio)],
        "next": [(work, *there, *info)],
        "readdb": [
            (table, "--url", f"{SITE}/busy"),
            (table, "--dump", "-"),
            (table, "--url", f"{SITE}/"),
            (table, "--url", f"{SITE}/gone", "--format", "json"),
            (table, "--url", f"{SITE}/no{EVIL}"),
            (table, "--url", EVIL),
            (table, "--top", "9"),
            (evil, "--stats"),
            (damaged, "--stats"),
        ],
        "domainstats": [(work, "--mode", EVIL), (evil,), (damaged,)],
        "protocolstats": [(work, "--format", EVIL), (evil,), (damaged,)],
        "crawlcomplete": [(work, "--mode", EVIL), (evil,), (damaged,)],
        "readlinkdb": [
            (work, "--dump", "-"), (work, f"{SITE}/busy"), (table, f"{SITE}/no{EVIL}"),
            (damaged, "--top", "9"), (table, "--dump", "-", "--regex", f"({EVIL}"),
        ],
        "readhostdb": [(work, EVIL), (work, "site.example.com"), (evil,), (damaged,)],
        "pages": [(table,), (evil, "-o", folder / f"pages{EVIL}.jsonl")],
        "export": [
            (table, "--what", what, "--format", form)
            for form in ("csv", "jsonl")
            for what in ("state", "hosts", "batch_documents", "batch_pages", "batch_outcome")
        ],
        "readseg": [
            (segment, f"{SITE}/", "--get_record"), (segment, f"{SITE}/no{EVIL}", "--get_record"),
            (segment, f"{SITE}/", "--get_record", "--format", "json"),
            (table, "--list_batches"), (f"{table}/batches/{EVIL}", "--list_batches"),
            (segment, folder / f"segment{EVIL}", "--dump_batch"),
        ],
        **{
            command: [(table, "--output_dir", folder / command),
                      (f"{table}/batches/{EVIL}", "--output_dir", folder / command),
                      (table, "--output_dir", folder / f"{command}{EVIL}")]
            for command in ("dump", "commoncrawldump")
        },
        "warc": [
            (table, folder / f"archive{EVIL}", "--warc_operator", EVIL), (table, evil),
            (table, folder / "archive", "--batch", EVIL), (evil, folder / "archive", "--expr", EVIL),
            (table, folder / "archive", "--warc_prefix", EVIL),
        ],
        "import_warc": [
            (folder / "imported", folder / f"archive{EVIL}", *info),
            (folder / "imported", folder / f"{EVIL}.warc.gz"),
            (folder / "imported", folder / "seeds.txt", *info),
        ],
        "export_nutch": [
            (table, folder / f"nutch{EVIL}"), (table, folder), (evil, folder / "nutch"),
            (table, folder / "nutch", "--parts", EVIL),
        ],
        "import_nutch": [
            (folder / "imported", folder / f"nutch{EVIL}"),
            (folder / "imported", folder / "seeds.txt", "--time_zone", EVIL),
            (folder / "imported", folder / "seeds.txt"),
        ],
        "replay": [(folder / f"no{EVIL}",), (damaged,), (folder / f"{EVIL}.warc.gz",)],
        "files": [
            (evil, "state"),
            (evil, "batch_documents", "--query"),
            (evil, "hosts", "--format", "json"),
            (table, EVIL),
        ],
        "sql": [
            *((table, f"{query} state", "--format", form) for form in ("csv", "text", "json")),
            *((table, f"{query} {view}") for view in ("batch_documents", "links", f"'{EVIL}'")),
        ],
        "history": [(folder / "forged", "--counts"), (damaged,),
                    (folder / "forged", "--format", "json")],
        "status": [(folder / "forged",), (damaged,), (evil,), (folder / f"no{EVIL}",)],
        "console": [
            (evil,), (folder / f"no{EVIL}",), (damaged,), (table, "--host", EVIL), (table, "--allowed_hosts", EVIL),
            (table, "--token_file", f"/no/{EVIL}"),
        ],
        "report": [(evil, "-o", folder / "r.html"), (damaged,), (evil, "--compare", f"no{EVIL}"),
                   (evil, "-o", f"r{EVIL}")],
        "updatehostdb": [(work, *info), (folder / f"no{EVIL}",)],
        "hostinject": [(work, folder / "hosts.txt"), (work, f"/no/{EVIL}")],
        "filterdb": [(work, "--dry_run"), (damaged,), (work, "--exclude", EVIL, *bad_rules), (work, *info)],
        "webgraph": [(damaged,), (work, "--ignore_internal_domain", "false", *info)],
        "linkrank": [(damaged,), (folder / f"no{EVIL}",), (work, *info)],
        "scoreupdater": [(damaged,), (folder / f"no{EVIL}",), (work, *info)],
        "nodedumper": [(damaged,), (folder / f"no{EVIL}",), (work,)],
        "graphfiles": [(damaged, "-o", folder / "g"), (work, "-o", folder / f"no{EVIL}" / "g")],
        **{
            command: [(work, "--index", "s"), (folder / f"no{EVIL}", *dummy), (damaged, *dummy),
                      (work, *dummy)]
            for command in ("index", "clean")
        },
        "search": [(work, f"x{EVIL}", "--index", "s"), (folder / f"no{EVIL}", "x"), (damaged, "x")],
        **{
            command: [(folder / f"no{EVIL}", *dummy), (damaged, *dummy), (work, *dummy)]
            for command in ("solrindex", "solrclean")
        },
        "solrdedup": [
            (work, "--writer_parameters", f"url=http://127.0.0.1:1/{end},patience=1")
            for end in ("c", EVIL)
        ],
        "compact": [(damaged,), (work, *info)],
        "copy": [(damaged, folder / "copied"), (table, folder / f"copy{EVIL}")],
        "mergelinkdb": [(work, table), (work, folder / f"no{EVIL}")],
        "mergedb": [(work, table), (work, folder / f"no{EVIL}")],
        "batches": [("merge", folder / "taken", table),
                    ("merge", folder / "no", f"{table}/batches/{EVIL}")],
        "mergesegs": [(folder / "merged", table), (folder / "no", f"{table}/batches/{EVIL}")],
        "rollback": [(folder / f"no{EVIL}", "--to", "1"), (folder / "forged", "--to", "2")],
        "fsck": [(evil,), (damaged,), (damaged, "--format", "json"), (damaged, "--repair")],
        "doctor": [(evil, *there), (folder / f"no{EVIL}",), (damaged, "--format", "json")],
        "estimate": [(work, "--add_days", "40"), (damaged,), (folder / f"no{EVIL}",)],
        "purge": [(work, "--url", f"{SITE}/x{EVIL}"), (work, "--host", EVIL)],
        "table": [("describe", evil), ("describe", f"bigtable://{EVIL}/b/c"), (EVIL, "bigtable://a/b/c")],
        "filterchecker": [(EVIL, *rules), (f"{SITE}/{EVIL}", *rules, "--format", "json")],
        "normalizerchecker": [(EVIL, "--normalizer", "querystring"),
                              (f"{SITE}/{EVIL}", "--format", "json")],
        "plugin": [
            ("try", "url_filter", plugin, f"{SITE}/{EVIL}"),
            ("try", "url_normalizer", plugin, f"{SITE}/{EVIL}", "--format", "json"),
        ],
        "robotsparser": [
            (folder / "robots.txt", f"{SITE}/{EVIL}"),
            (f"{SITE}/", f"{SITE}/{EVIL}", "--format", "json", *there[:2]),
        ],
        "parsechecker": [
            (f"{SITE}/", f"{SITE}/busy", f"{SITE}/moved", f"{SITE}/odd", f"{SITE}/feed",
             "--dump_text", *there),
            ftp,
            (f"{SITE}/", "--format", "json", *there),
            files,
        ],
        "indexchecker": [
            (f"{SITE}/", f"{SITE}/busy", f"{SITE}/odd", f"{SITE}/feed", *there),
            (f"{SITE}/", "--format", "json", *there),
        ],
        "extract": [
            (table, folder / "pages.toml"), (evil, folder / "pages.toml", "-o", folder / "e.csv"),
            (damaged, folder / "pages.toml"), (table, f"/no/{EVIL}.toml"),
        ],
        "extractchecker": [
            (f"{SITE}/", folder / "pages.toml", *there), (f"{SITE}/", f"/no/{EVIL}.toml", *there),
            (f"{SITE}/moved", folder / "pages.toml", *there),
        ],
        "mcp": [(table,), (folder / f"no{EVIL}",), (damaged,)],
        "explain": [
            (table, f"{SITE}/private{EVIL}", f"{SITE}/busy", f"{SITE}/gone", *rules),
            (table, f"{SITE}/private{EVIL}", "--format", "json"),
        ],
        "simweb": [("--list",), ("--port", EVIL)],
        "config": [("crawl", "--config", folder / "words.toml", "--changed"), (EVIL,)],
        "completion": [("bash",), (EVIL,)],
        "showproperties": [("crawl", "--config", folder / "words.toml"), (EVIL,)],
    }  # fmt: skip


def _ask_console(server, chunks):
    """Opens the pages of a console as soon as it serves, then ends it as Ctrl-C does."""
    pattern = rb"http://127\.0\.0\.1:\d+/"
    if address := wait_until(lambda: re.search(pattern, b"".join(chunks)), server):
        for page in ("", "live", "report", f"explain?url={urllib.parse.quote(f'{SITE}/x{EVIL}')}"):
            try:
                urllib.request.urlopen(address[0].decode() + page, timeout=60).close()
            except urllib.error.HTTPError as error:  # of a damaged table
                error.close()
        server.send_signal(signal.SIGINT)


def _ask_tools(server, chunks):
    """Asks a server of MCP for what strangers wrote, and ends it by the end of its input."""
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": EVIL, "version": "1"},
    }
    asked = [
        ("explain", {"url": f"{SITE}/x{EVIL}"}),
        ("sql", {"query": "select title, url from pages"}),
    ]
    messages = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        *({"id": number, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
          for number, (name, arguments) in enumerate(asked, 2)),
    ]  # fmt: skip
    lines = [EVIL, *(json.dumps({"jsonrpc": "2.0", **message}) for message in messages)]
    with contextlib.suppress(BrokenPipeError):  # it has refused its words
        server.stdin.write("".join(f"{line}\n" for line in lines).encode())
        server.stdin.flush()
    answers = [f'"id":{number}'.encode() for number in (2, 3)]
    wait_until(lambda: all(answer in b"".join(chunks) for answer in answers), server)


# Commands that serve until they are told to end, each with what does so.
SERVING = {"console": _ask_console, "mcp": _ask_tools}


def run_to_its_end(monkeypatch, command, *words, term):
    """Runs a command on a terminal; returns its exit code, and the bytes that came."""
    if command not in SERVING:
        return typed(monkeypatch, command, *words, term=term)
    program = (sys.executable, "-c", PROGRAM, command, *words)
    return process(*program, term=term, talk=SERVING[command])


# What these print is counts: no stranger has a say in them.
COUNTS = {"crawlcomplete", "dedup", "domainstats", "generate", "next", "protocolstats", "round",
          "simweb", "updatedb"}  # fmt: skip


@pytest.fixture
def ftp():
    with scripted_server({"RETR": f"550 {EVIL}\r\n".encode(), "CWD": b"550 no\r\n"}) as server:
        yield server.port


@pytest.mark.long
@pytest.mark.parametrize("most", [2, 99])
def test_every_command_shows_escapes_and_obeys_none(folder, web, ftp, monkeypatch, most):
    found, wrong, silent = uses(folder, web, ftp), [], []
    assert found.keys() == COMMANDS.keys()  # a new command comes in with its uses
    for command, lines in found.items():
        codes, arrived = set(), False
        for number, words in enumerate([*lines[:most], (EVIL, f"--{EVIL}", EVIL)]):
            term = ("dumb", "xterm")[number % 2]
            code, output = run_to_its_end(monkeypatch, command, *words, term=term)
            bad = obeyed(output, term) + [b"internal error"] * (b"internal error" in output)
            wrong += [(command, words, bad)] if bad else []
            if number < len(lines[:most]):
                codes.add(code)
                arrived |= WORD in output.decode()
        assert codes != {2} or command == "table", command
        silent += [] if arrived else [command]
    assert wrong == []
    assert set(silent) <= COUNTS


@pytest.mark.long
def test_json_stays_json_on_a_terminal(folder, monkeypatch):
    words = ("explain", "-", f"{SITE}/{EVIL}", "--format", "json")
    (record,) = json_lines(typed(monkeypatch, *words)[1].decode().partition("\n")[2])
    assert record["url"] == f"{SITE}/{EVIL}"
    words = ("export", folder / "table", "--what", "batch_documents")
    titles = [record["title"] for record in json_lines(typed(monkeypatch, *words)[1].decode())]
    assert f"Title [red]{without_controls(EVIL)}[/red] :cat:" in titles


@pytest.mark.long
def test_records_for_scripts_are_exact_and_text_is_not(folder, capsys):
    table = str(folder / "table")
    assert main(["sql", table, f"select '{EVIL}' as a", "--format", "csv"]) == 0
    assert capsys.readouterr().out == f"a\n{EVIL}\n"
    assert main(["filterchecker", f"{SITE}/{EVIL}", "--format", "json"]) == 0
    assert EVIL[-12:] in capsys.readouterr().out
    assert main(["export", table, "--format", "csv"]) == 0
    assert EVIL[:9] in capsys.readouterr().out
    for words in (["readdb", table, "--url", f"{SITE}/busy"], ["filterchecker", f"{SITE}/{EVIL}"]):
        assert main(words) == 0
        printed = capsys.readouterr().out
        assert obeyed(printed.encode()) == []
        assert WORD in printed


PRINTS = f"""
import os, sys

def prints(page):
    print({EVIL!r}, file=sys.stderr)
    os.write(2, {EVIL!r}.encode())
"""


@pytest.mark.long
def test_output_of_plug_ins_is_shown_with_escapes(folder, web, tmp_path):
    install(
        tmp_path, "prints-filter", {"prints_filter.py": PRINTS}, {"prints": "prints_filter:prints"}
    )
    words = ("parsechecker", f"{SITE}/", *reached(web), "--parse_filters", "prints")
    code, output = process(sys.executable, "-c", PROGRAM, *words, PYTHONPATH=str(tmp_path))
    assert (code, obeyed(output)) == (0, [])
    assert output.count(f"]0;{WORD}".encode()) >= 2


@pytest.mark.long
@pytest.mark.parametrize(
    ("term", "notice"), [("xterm", b"nutbeam next: starting ...\r"), ("dumb", b"")]
)
def test_a_command_shows_at_once_that_it_starts(tmp_path, term, notice):
    code, output = process(sys.executable, "-c", PROGRAM, "next", tmp_path / "none", term=term)
    clear = b"\r\x1b[2K" if notice else b""
    assert code == 2
    # The next output replaces it, here that of the command itself.
    assert output.startswith(notice + clear + b"nutbeam next: no web table at ")
    assert output.count(b"\r\n") == 1
    # Help imports the command, too.
    code, output = process(sys.executable, "-c", PROGRAM, "help", "next", term=term)
    assert code == 0
    assert output.startswith(notice.replace(b"next", b"help next") + clear + b"usage: nutbeam next")


SAYS = f"""
import os
if "CONTROL_API_SERVICE_DESCRIPTOR" in os.environ:
    os.write(2, {EVIL!r}.encode())
"""


@pytest.mark.long
def test_output_of_beam_workers_is_shown_with_escapes(folder, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(SAYS)
    workers = ("--direct_running_mode", "multi_processing", "--direct_num_workers", "2")
    words = ("readdb", folder / "table", *workers, "--log_level", "debug")
    code, output = process(sys.executable, "-c", PROGRAM, *words, PYTHONPATH=str(tmp_path))
    assert (code, obeyed(output)) == (0, [])
    assert f"]0;{WORD}".encode() in output
