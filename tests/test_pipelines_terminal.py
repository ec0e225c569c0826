"""Every command on a terminal, over a table full of what strangers would like the terminal to obey."""

import contextlib
import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from crawling import manifest_of, nutbeam
from ftp_servers import ftp_door, told_server
from terminals import COLOUR, EVIL, WORD, obeyed, process, typed
from web_servers import doors, reply, serve

from nutbeam.pipelines.cli import COMMANDS

SITE = "http://site.example.com"
RAW = EVIL.replace("\r", "").encode()
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
    door = [word for door in doors(web.port) for word in ("--connect_to", door)]
    return [*door, "--server_delay", "0"]


@pytest.fixture(scope="module")
def folder(web, tmp_path_factory):
    """A crawled table; a copy whose manifest says escapes, one that is damaged, and other files."""
    folder = tmp_path_factory.mktemp("terminal")
    assert nutbeam("crawl", folder / "table", f"{SITE}/", *reached(web), "--rounds", "2") == 0
    shutil.copytree(folder / "table", folder / f"table {EVIL}")
    for name in ("forged", "damaged"):
        shutil.copytree(folder / "table", folder / name)
    newest = max((folder / "forged" / "manifest").glob("*.json"))
    newest.write_text(newest.read_text().replace('"dedup"', json.dumps(f"dedup{EVIL}")))
    (folder / "damaged" / "manifest" / newest.name).write_text("{" + EVIL)
    (folder / "robots.txt").write_text(ROBOTS)
    (folder / "seeds.txt").write_text(f"{SITE}/new{EVIL}\n{EVIL}\n{SITE}/s\tx={EVIL}\n")
    (folder / "rules").mkdir()
    (folder / "rules" / "regex-urlfilter.txt").write_text(f"-{EVIL.replace('[', '.')}\n+.\n")
    (folder / "bad_rules").mkdir()
    (folder / "bad_rules" / "regex-urlfilter.txt").write_text(f"-({EVIL}\n")
    (folder / "evil.toml").write_text(f"[crawl]\n{json.dumps(EVIL)} = 1\n".replace("\\udb40\\udc41", ""))
    (folder / "files").mkdir()
    (folder / "files" / f"name {EVIL}.html").write_bytes(PAGE)
    return folder


def uses(folder, web):
    """Returns uses of every command on a table full of escapes, in the order of the jobs.

    Those that only show are on the table, the others on ``work``, which a crawl makes.
    """
    table, work, there = folder / "table", folder / "work", reached(web)
    evil = folder / f"table {EVIL}"
    rules = ("--url_rules_dir", folder / "rules")
    info = ("--log_level", "info")
    return {
        "crawl": [
            (work, f"{SITE}/", *there, "--rounds", "1"),
            (work, folder / "seeds.txt", *there, "--rounds", "1", *info),
            (work, "--config", folder / "evil.toml"),
            (folder / "ofile", f"file://{folder}/files/", "--schemes", "file", "--file_roots", folder),
            (folder / "no", f"/no/{EVIL}"),
        ],
        "inject": [(work, folder / "seeds.txt", *info), (work, f"/no/{EVIL}"), (work, SITE, "--url_rules_dir", folder / "bad_rules")],
        "generate": [(work, *info), (work, "--operation", EVIL)],
        "fetch": [(work, *there, *info), (work, "--batch", EVIL)],
        "parse": [(work, *info), (work, "--parse_filters", EVIL)],
        "updatedb": [(work, *info)],
        "dedup": [(work, *info)],
        "compact": [(work, *info), (folder / "damaged",)],
        "round": [(work, *there, *info)],
        "next": [(work, *there, *info)],
        "readdb": [
            (table, "--url", f"{SITE}/busy"),
            (table, "--url", f"{SITE}/"),
            (table, "--url", f"{SITE}/gone", "--format", "json"),
            (table, "--url", f"{SITE}/no{EVIL}"),
            (table, "--url", EVIL),
            (table, "--dump", "-"),
            (table, "--top", "9"),
            (evil, "--stats"),
            (folder / "damaged", "--stats"),
        ],
        "pages": [(table,), (evil, "-o", folder / f"pages{EVIL}.jsonl")],
        "export": [
            (table, "--what", what, "--format", form)
            for what in ("state", "pages", "documents", "hosts", "outcome")
            for form in ("csv", "jsonl")
        ],
        "copy": [(table, folder / f"copy{EVIL}"), (folder / "damaged", folder / "copied")],
        "sql": [
            (table, f"select *, '{EVIL}' as \"{EVIL}\" from {view}", "--format", form, "--max_rows", "0")
            for view in ("state", "documents", "links")
            for form in ("text", "csv", "json")
        ] + [(table, f"select '{EVIL}"), (table, f"select * from '{EVIL}'")],
        "history": [
            (folder / "forged", "--counts"),
            (folder / "forged", "--format", "json"),
            (folder / "damaged",),
        ],
        "rollback": [(folder / "forged", "--to", "2"), (folder / f"no{EVIL}", "--to", "1")],
        "fsck": [(folder / "damaged",), (folder / "damaged", "--format", "json"), (evil,),
                 (folder / "damaged", "--repair")],
        "purge": [(work, "--url", f"{SITE}/x{EVIL}"), (work, "--host", EVIL)],
        "table": [("describe", f"bigtable://{EVIL}/b/c"), (EVIL, "bigtable://a/b/c")],
        "filterchecker": [(EVIL, *rules), (f"{SITE}/{EVIL}", *rules, "--format", "json")],
        "normalizerchecker": [(f"{SITE}/{EVIL}",), (EVIL, "--normalizer", "querystring"),
                              (f"{SITE}/{EVIL}", "--format", "json")],
        "robotsparser": [
            (folder / "robots.txt", f"{SITE}/{EVIL}"),
            (f"{SITE}/", f"{SITE}/{EVIL}", "--format", "json", *there[:-2]),
        ],
        "explain": [
            (table, f"{SITE}/private{EVIL}", f"{SITE}/busy", f"{SITE}/gone", *rules),
            (table, f"{SITE}/private{EVIL}", "--format", "json"),
        ],
        "parsechecker": [
            (f"{SITE}/", f"{SITE}/busy", f"{SITE}/moved", f"{SITE}/odd", f"{SITE}/feed", "--dump_text", *there),
            (f"{SITE}/", "--format", "json", *there),
            (f"file://{folder}/files/", "--schemes", "file", "--file_roots", folder),
        ],
        "simweb": [("--list",), ("--port", EVIL)],
    }  # fmt: skip


# What these print is the job's counts, and no stranger has a say in it but by names of files.
SILENT = ("generate", "updatedb", "dedup", "round", "next", "simweb")


def test_every_command_shows_escapes_and_obeys_none(folder, web, monkeypatch):
    found, wrong = uses(folder, web), []
    assert list(found) == list(COMMANDS)  # a new command comes in with its uses
    for command, lines in found.items():
        arrived = 0
        for number, words in enumerate([*lines, (EVIL, f"--{EVIL}", EVIL)]):
            term = ("dumb", "xterm")[number % 2]
            import time; t0=time.time()
            code, output = typed(monkeypatch, command, *words, term=term)
            open("/tmp/term_out.txt","a").write(f"### {time.time()-t0:.2f} {command} {words!r} -> {code}\n{output!r}\n")
            assert b"internal error" not in output, output
            wrong += [(command, words, bad)] if (bad := obeyed(output, term)) else []
            arrived += WORD in output.decode() if number < len(lines) else 0
        #assert arrived or command in SILENT, command
    assert wrong == []
