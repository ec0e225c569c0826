"""A page that makes its parser stall or blow up costs its time and one record; the rest goes on."""

import os
import subprocess
import sys
from pathlib import Path

import hostile_files as hostile
import polars as pl
import pytest
from crawling import files_of, manifest_of, nutbeam
from plugins import install
from small_files import TYPES, docx, epub, pdf_page
from web_servers import reply, serve

from nutbeam.web.urls.row_keys import from_key

# What a page asks for in its title, the filter does.
FILTER = """
import ctypes, os, tempfile

def evil(page):
    match page.title:
        case "for ever":
            while True:
                pass
        case "memory":
            kept = []
            while True:
                kept.append(bytes(256 << 20))
        case "exit":
            tempfile.mkstemp()
            os._exit(3)
        case "fault":
            ctypes.string_at(0)
"""
SLOW_RULE = "-^http://a\\.com/(?:x|xx)+[0-9]!(?<!!)$\n+.\n"
MEMORY = 2 << 30

HTML, WORD, PDF = "text/html", TYPES["docx"], TYPES["pdf"]
SLOW_LINKS = "".join(f'<a href="/{"x" * 40}{n}!">slow</a>' for n in range(3))


def titled(title):
    return f"<title>{title}</title><a href=/good/0.html>good</a>".encode()


# Whether memory or time ends first depends on the machine.
EITHER = "timeout or crashed"
# Content type, body, and what is said of the page: "" where it is parsed.
PAGES = {
    "filter-for-ever": (HTML, titled("for ever"), "filter_evil: timeout"),
    "filter-memory": (HTML, titled("memory"), "filter_evil: out_of_memory"),
    "filter-exit": (HTML, titled("exit"), "filter_evil: crashed: exit code 3"),
    "filter-fault": (HTML, titled("fault"), "filter_evil: crashed: SIGSEGV"),
    "url-filter-regex": (HTML, titled("slow") + SLOW_LINKS.encode(), ""),
    "html-quadratic": (HTML, hostile.SLOW_HTML, "timeout"),
    "html-nested": (HTML, hostile.NESTED_HTML, ""),
    "html-attributes": (HTML, hostile.MANY_ATTRIBUTES, ""),
    "html-huge-attribute": (HTML, hostile.HUGE_ATTRIBUTE, ""),
    "zip-zeros": (WORD, hostile.endless_docx(), "archive_size"),
    "zip-ratio": (WORD, hostile.endless_docx(size=64 << 20), "archive_ratio"),
    "zip-nested": (WORD, hostile.nested_archives(), "archive_nested"),
    "zip-overlap": (WORD, hostile.overlapping(), "archive_overlap"),
    "zip-entries": (WORD, hostile.many_entries(), "archive_entries"),
    "xml-laughs": (WORD, hostile.docx_with(hostile.BILLION_LAUGHS), "xml_entities"),
    "xml-blowup": (WORD, hostile.docx_with(hostile.BLOWUP), "xml_entities"),
    "xml-deep": (WORD, hostile.docx_with(hostile.DEEP_XML), "too_complex"),
    "feed-laughs": ("application/rss+xml", hostile.FEED_LAUGHS, "xml_entities"),
    "pdf-tree": (PDF, hostile.pdf_page_tree_loop(), "malformed: "),
    "pdf-previous": (PDF, hostile.pdf_previous_loop(), "malformed: "),
    "pdf-stream": (PDF, hostile.pdf_object_stream_in_itself(), "malformed: "),
    "pdf-count": (PDF, hostile.pdf_huge_count(), ""),
    "pdf-endless": (PDF, hostile.pdf_endless_content(), EITHER),
    "pdf-form": (PDF, hostile.pdf_form_in_itself(), EITHER),
}
GOOD = {
    **{f"good/{n}.html": (HTML, titled(f"good {n}")) for n in range(40)},
    "good/word": (WORD, docx("some words", "good word")),
    "good/book.epub": (TYPES["epub"], epub(["<html><body>a chapter</body></html>"])),
    "good/paper.pdf": (PDF, pdf_page("a paper")),
}


def answer(path, connection):
    if path == "/robots.txt":
        return reply(status="404 Not Found")
    content_type, body = (PAGES.get(path[1:]) or GOOD[path[1:]])[:2]
    return reply(body, "200 OK", f"Content-Type: {content_type}")


def run(folder, *words):
    """Runs a command in a process of its own; returns it, done, and the processes it left."""
    temporary = folder / "tmp"
    temporary.mkdir()
    clean = {name: v for name, v in os.environ.items() if not name.startswith("NUTBEAM_")}
    paths = {"PYTHONPATH": str(folder / "site"), "TMPDIR": str(temporary)}
    done = subprocess.run(
        [sys.executable, "-m", "nutbeam", *words], env=clean | paths,
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    return done, [
        process
        for process in Path("/proc").glob("[0-9]*/environ")
        if f"TMPDIR={temporary}".encode() in read(process)
    ]


def read(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""


@pytest.fixture(scope="module")
def parsed(tmp_path_factory):
    """(documents by name, counts, what was said, processes and files that are left)."""
    folder = tmp_path_factory.mktemp("isolation")
    install(
        folder / "site", "evil-filter", {"evil_filter.py": FILTER}, {"evil": "evil_filter:evil"}
    )
    (folder / "rules.txt").write_text(SLOW_RULE)
    table = folder / "table"
    names = [*PAGES, *GOOD]
    with serve(answer) as server:
        seeds = [f"http://a.com/{name}" for name in names]
        assert nutbeam("inject", table, *seeds) == 0
        assert nutbeam("generate", table) == 0
        mapping = ("--connect_to", f"a.com:80:127.0.0.1:{server.port}", "--server_delay", "0")
        assert nutbeam("fetch", table, *mapping, "--content_limit", 32 << 20) == 0
    done, left = run(
        folder, "parse", str(table), "--parser_timeout", "6", "--parser_memory", str(MEMORY),
        "--parse_processes", "1", "--parse_filters", "evil", "--plugin_package", "evil-filter",
        "--url_filter_file", str(folder / "rules.txt"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (batch,) = manifest_of(table).batches
    rows = pl.concat(pl.read_parquet(p) for p in files_of(table, f"batches/{batch}/documents"))
    documents = {from_key(row["key"]).removeprefix("http://a.com/"): row for row in rows.to_dicts()}
    assert len(documents) == len(rows)
    return documents, manifest_of(table).counts, done, left, list((folder / "tmp").iterdir())


@pytest.mark.few(6)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_that_is_made_to_hurt_is_one_record_with_a_reason(parsed, name):
    documents, expected = parsed[0], PAGES[name][2]
    message = documents[name]["parse_message"]
    if expected == EITHER:
        assert message.startswith(("timeout", "crashed: "))
    elif expected.endswith(": "):
        assert message.startswith(expected)
    else:
        assert (message or "") == expected


def test_all_other_pages_are_parsed(parsed):
    documents = parsed[0]
    assert documents.keys() == {*PAGES, *GOOD}
    titles = {name: documents[name]["title"] for name in GOOD if name.endswith("html")}
    assert titles == {f"good/{n}.html": f"good {n}" for n in range(40)}
    assert documents["good/word"]["title"] == "good word"
    texts = [documents[f"good/{name}"]["text"] for name in ("word", "book.epub", "paper.pdf")]
    assert texts == ["some words", "a chapter", "a paper"]
    linking = [name for name in titles if documents[name]["outlinks"]]
    assert len(linking) == len(titles) - 1  # the one that is linked to is not


def test_counts_agree_with_the_outcome_of_each_page(parsed):
    counts = parsed[1]
    failed = {name: n for name, n in counts.items() if name.startswith("failed/")}
    reasons = [reason.partition(":")[0] for _, _, reason in PAGES.values() if reason]
    assert sum(failed.values()) == len(reasons)
    reasons = [reason for reason in reasons if reason != EITHER]
    assert all(failed[f"failed/{reason}"] >= reasons.count(reason) for reason in reasons)
    assert counts["dropped/filter_timeout"] == 3
    assert counts["parsed"] >= len(GOOD) + [page[2] for page in PAGES.values()].count("")


def test_nothing_is_left(parsed):
    _, _, _, processes, files = parsed
    assert (processes, files) == ([], [])
