import itertools
import json
import os
import pathlib
import re
import subprocess
import sys

import pyarrow.parquet as pq
import pytest
from crawling import manifest_of, nutbeam
from frames import table_of
from here import ROOT
from plugins import EXAMPLE, install, install_example
from simulated_web import SimWeb

from nutbeam.io.parsing.parse_pool import ParsePool
from nutbeam.io.parsing.parse_worker import Job
from nutbeam.policy.components.schema import PAGES, ParseStatus
from nutbeam.policy.parsing.documents import DocumentOptions
from nutbeam.transforms.parsing import parse_task
from nutbeam.web.base.errors import UsageError
from nutbeam.web.exchange.status import FETCH_SUCCESS
from nutbeam.web.plugins.plugins import PARSE_FILTERS, installed_plugins, load_plugins
from nutbeam.web.urls.row_keys import from_key, to_key

GUIDE = ROOT / "docs" / "guides" / "plugins.md"
NUMBERS = itertools.count()
FILTERS = """
import os, re, sys

class Mute(Exception):
    def __repr__(self):
        raise ValueError

def title(page):
    page.title = page.title.upper()
    page.metadata["from"] = f"{page.url} {page.content_type} {page.language} {page.text}"

def again(page):
    page.title += "!"
    page.metadata["seen"] = page.metadata["from"][:4]

def links(page):
    for link in page.links:
        link.anchor = link.anchor.upper()
    page.links = [link for link in page.links if "bad" not in link.url]
    page.links.append(type(page.links[0])("http://b.com/new", "new"))

def soup(page):
    assert page.soup is page.soup
    page.metadata["h1"] = page.soup.h1.get_text()
    page.metadata["half"] = "a\\ud800b"

def drop(page):
    if "no" in page.text:
        return page.drop("says_no")

def never(page):
    raise AssertionError("what is dropped goes no further")

def picky(page):
    if page.title == "bad":
        raise ValueError("two\\nlines")
    if page.title == "number":
        page.metadata["price"] = 5
    if page.title == "reason":
        page.drop("more than a word")
    if page.title == "slow":
        re.match("(a+)+b", "a" * 60)
    if page.title == "exit":
        sys.exit(1)
    if page.title == "interrupt":
        raise KeyboardInterrupt
    if page.title == "base":
        raise BaseException("none of mine")
    if page.title == "mute":
        raise Mute
    if page.title == "half":
        raise ValueError("\\ud800")
    if page.title == "close":
        os.closerange(3, 4096)
    if page.title == "elsewhere":
        os.chdir("/")
    if page.title == "hungry":
        page.text = "x" * (1 << 40)

nothing = 5
"""
NAMES = ("title", "again", "links", "soup", "drop", "never", "picky", "nothing")


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    """A pool whose children find the filters."""
    folder = tmp_path_factory.mktemp("filters")
    targets = {name: f"my_filters:{name}" for name in NAMES}
    install(folder, "my-filters", {"my_filters.py": FILTERS}, targets)
    install(folder, "broken-filters", {}, {"broken": "broken_filters:it"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(folder))
        patch.syspath_prepend(str(folder))
        pool = ParsePool(1, 4 << 30)
        yield pool
        pool.close()


def parsed(pool, tmp_path, pages, *filters, **options):
    """Returns the documents of pages (name: body) after filters, and the counts."""
    rows = [
        {"key": to_key(f"http://a.com/{name}"), "fetch_status": FETCH_SUCCESS,
         "content_type": "text/html", "body": body.encode()}
        for name, body in pages.items()
    ]  # fmt: skip
    name = f"{next(NUMBERS)}.parquet"
    pq.write_table(table_of(PAGES, *rows), tmp_path / name)
    chosen = DocumentOptions(parse_filters=filters, scope="any", **options)
    (done,) = pool.parse([Job(str(tmp_path), name, (0,), "", parse_task(chosen))])
    return done.documents.to_pylist(), done.counts


def test_filters_work_one_after_the_other_on_the_stored_document(pool, tmp_path):
    body = "<html lang=en><meta name=description content=D><title>t</title><p>words"
    ((one,), counts) = parsed(pool, tmp_path, {"a": body}, "title", "again")
    assert one["title"] == "T!"
    assert dict(one["metadata"]) == {
        "description": "D", "from": "http://a.com/a text/html en words", "seen": "http",
    }  # fmt: skip
    assert counts["parsed"] == 1


def test_filters_run_in_the_order_of_the_option(pool, tmp_path):
    ((one,), counts) = parsed(pool, tmp_path, {"a": "<title>t</title>"}, "again", "title")
    assert (one["parse_status"], one["title"]) == (ParseStatus.FAILED, None)
    assert one["parse_message"] == "filter_again: KeyError('from')"
    assert counts["failed/filter_again"] == 1


def test_links_are_absolute_and_may_be_changed(pool, tmp_path):
    body = "<base href=/d/><a href=x>one</a> <a href=bad>two</a> <a href='http://['>three</a>"
    ((one,), counts) = parsed(pool, tmp_path, {"a": body}, "links")
    found = [(from_key(link["key"]), link["anchor"]) for link in one["outlinks"]]
    assert found == [("http://a.com/d/x", "ONE"), ("http://b.com/new", "new")]
    assert counts["dropped/no_http_url"] == 1  # it is still counted


def test_soup_is_the_whole_page_and_texts_are_mended(pool, tmp_path):
    ((one,), _) = parsed(pool, tmp_path, {"a": "<h1>H<b>1</b></h1>"}, "soup")
    assert dict(one["metadata"]) == {"h1": "H1", "half": "a?b"}


def test_a_page_may_be_dropped(pool, tmp_path):
    pages = {"a": "yes", "b": "no <a href=x>x</a>"}
    (kept, counts) = parsed(pool, tmp_path, pages, "drop", "title")
    assert [from_key(document["key"]) for document in kept] == ["http://a.com/a"]
    assert (counts["parsed"], counts["skipped/says_no"], counts["outlinks"]) == (1, 1, 0)
    (kept, counts) = parsed(pool, tmp_path, {"b": "no"}, "drop", "never")
    assert (kept, counts["skipped/says_no"]) == ([], 1)


def test_a_filter_that_fails_costs_one_page(pool, tmp_path, capfd):
    names = ["good", "bad", "number", "reason", "slow", "exit", "interrupt", "base", "mute",
             "half", "close", "hungry", "fine"]  # fmt: skip
    pages = {name: f"<title>{name}</title>" for name in names}
    (documents, counts) = parsed(pool, tmp_path, pages, "picky", parser_timeout=3.0)
    assert {d["title"] for d in documents if d["parse_status"] == ParseStatus.SUCCESS} == {
        "good", "fine",
    }  # fmt: skip
    said = {from_key(d["key"])[13:]: d["parse_message"] for d in documents if d["parse_message"]}
    assert said == {
        "bad": "filter_picky: ValueError('two\\nlines')",
        "number": "filter_picky: TypeError(\"metadata 'price' must be a text, got 5\")",
        "reason": "filter_picky: ValueError(\"a reason must be one word of letters, digits, "
        "_.-, got 'more than a word'\")",
        "exit": "filter_picky: SystemExit(1)", "interrupt": "filter_picky: KeyboardInterrupt()",
        "base": "filter_picky: BaseException('none of mine')", "mute": "filter_picky: Mute",
        "half": "filter_picky: ValueError('\\ud800')",
        "slow": "filter_picky: timeout", "hungry": "filter_picky: out_of_memory",
        "close": "filter_picky: crashed: its pipe was closed",
    }  # fmt: skip
    assert (counts["failed/filter_picky"], counts["parsed"]) == (11, 2)
    assert capfd.readouterr().err == ""


def test_a_filter_that_goes_elsewhere_leaves_the_paths_of_later_jobs(pool, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    own = ParsePool(1, 0)  # its children begin here
    try:
        for title in ("elsewhere", "fine"):
            ((one,), _) = parsed(own, pathlib.Path(), {"a": f"<title>{title}"}, "picky")
            assert one["title"] == title
    finally:
        own.close()


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        (("nope",), "no parse filter 'nope' is installed: there are again, broken, drop, "),
        (("title", "title"), "parse filter 'title' is given twice"),
        (("broken",), "parse filter 'broken' cannot be imported: ModuleNotFoundError: No module"),
        (("nothing",), "parse filter 'nothing' is no function: 'my_filters:nothing'"),
    ],
)  # fmt: skip
def test_a_filter_that_does_not_do_is_bad_usage_here_and_in_children(
    pool, tmp_path, filters, message
):
    with pytest.raises(UsageError, match=re.escape(message)) as here:
        load_plugins(PARSE_FILTERS, filters)
    with pytest.raises(UsageError) as there:
        parsed(pool, tmp_path, {"a": "a"}, *filters)
    assert str(there.value) == str(here.value)


def test_unknown_filters_are_refused_before_anything_is_written(tmp_path, capsys):
    known = ", ".join(sorted(installed_plugins(PARSE_FILTERS))) or "none"
    words = ("--connect_to", "a.com:80:127.0.0.1:1", "--parse_filters", "nope")
    assert nutbeam("crawl", tmp_path / "table", "http://a.com/", *words) == 2
    there = f"there are {known}" if known != "none" else "there is none"
    line = f"nutbeam crawl: no parse filter 'nope' is installed: {there}\n"
    assert capsys.readouterr().err == line
    assert not (tmp_path / "table").exists()


def test_a_package_of_a_plug_in_must_be_installed(tmp_path, capsys):
    words = ("--connect_to", "a.com:80:127.0.0.1:1", "--plugin_package", "no-such-package")
    assert nutbeam("crawl", tmp_path / "table", "http://a.com/", *words) == 2
    assert capsys.readouterr().err == (
        "nutbeam crawl: package 'no-such-package' is not installed here: "
        "install it, or give the file of its wheel\n"
    )
    assert not (tmp_path / "table").exists()


@pytest.mark.long
def test_the_example_of_the_guide_in_a_crawl(tmp_path):
    install_example(tmp_path / "site")
    clean = {name: v for name, v in os.environ.items() if not name.startswith("NUTBEAM_")}
    environment = {**clean, "PYTHONPATH": str(tmp_path / "site")}

    def command(*words):
        return subprocess.run(
            [sys.executable, "-m", "nutbeam", *words], cwd=tmp_path, env=environment,
            capture_output=True, text=True, timeout=300, check=True,
        ).stdout  # fmt: skip

    with SimWeb(hosts=2, pages=4, seed=7, crawl_delay=0) as web:
        connect_to = [word for mapping in web.connect_to for word in ("--connect_to", mapping)]
        command("crawl", "table", *web.seeds, "--parse_filters", "headings", "--rounds", "-1",
                "--server_delay", "0", "--plugin_package", "headings-filter", *connect_to)  # fmt: skip
    pages = [json.loads(line) for line in command("pages", "table").splitlines()]
    counts = manifest_of(tmp_path / "table").counts
    assert len(pages) > 5, counts
    assert all(page["metadata"]["headings"] for page in pages)


@pytest.mark.skipif(not GUIDE.exists(), reason="docs/ is not part of the wheel")
def test_the_guide_shows_the_package_of_the_tests():
    shown = re.findall(
        r"^```(?:python|toml)\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL
    )
    files = [(EXAMPLE / name).read_text() for name in ("headings_filter.py", "pyproject.toml")]
    assert shown[: len(files)] == files  # a schedule follows, which test_io_schedules.py uses
