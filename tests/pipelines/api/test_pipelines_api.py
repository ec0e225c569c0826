"""nutbeam.crawl, nutbeam.Table, nutbeam.fetch and nutbeam.parse, in this process."""

import dataclasses
import datetime
import gc
import inspect
import json
import logging
import os
import re
import signal
import sys
import tempfile
import threading
import time
import warnings

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from simulated_web import served_web

import nutbeam
from nutbeam.pipelines.api.calls import PRINTING, call_command, read_call
from nutbeam.pipelines.api.python_wording import in_python
from nutbeam.pipelines.command_line.arguments import command_options
from nutbeam.pipelines.command_line.cli import load, main
from nutbeam.pipelines.command_line.commands import COMMANDS
from nutbeam.policy.components.views import views
from nutbeam.policy.components.vocabulary import CHANGE_COLUMNS

web = served_web(hosts=2, pages=5, scope="module")


@pytest.fixture(scope="module")
def reach(web):
    """Options with which the simulated web is crawled at once."""
    return {"connect_to": web.connect_to, "server_delay": 0}


@pytest.fixture(scope="module")
def table(web, reach, tables, tmp_path_factory):
    """A table after a crawl of one round: most URLs are due."""
    address = tables(tmp_path_factory.mktemp("api") / "table")
    return nutbeam.crawl(address, *web.seeds, rounds=1, **reach)


def settings_of_process():
    """Returns what a library must leave as it was."""
    names = ("", "nutbeam", "apache_beam", "grpc", "asyncio")
    loggers = [logging.getLogger(name) for name in names]
    return {
        "signals": [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)],
        "wakeup": signal.set_wakeup_fd(-1),
        "logs": [(logger.level, logger.propagate, [*logger.handlers]) for logger in loggers],
        "garbage": gc.get_threshold(),
        "environment": dict(os.environ),
        "temporary": tempfile.tempdir,
        "warnings": [*warnings.filters],
        "hooks": (sys.excepthook, threading.excepthook),
        "streams": (sys.stdout, sys.stderr),
        "folder": os.getcwd(),  # noqa: PTH109
    }


@pytest.mark.long
def test_a_crawl_prints_nothing_and_the_same_call_again_fetches_nothing(
    web, reach, tmp_path, capfd
):
    load("crawl")  # Beam, when it is imported, changes the filters of warnings
    before = settings_of_process()
    table = nutbeam.crawl(tmp_path / "table", *web.seeds, rounds=-1, **reach)
    assert settings_of_process() == before
    with pytest.raises(nutbeam.NothingToDo, match="no batch is generated"):
        table.fetch(**reach)  # Beam logs this error, too
    assert settings_of_process() == before
    assert capfd.readouterr() == ("", "")
    again = nutbeam.crawl(tmp_path / "table", *web.seeds, rounds=-1, progress=True, **reach)
    first, second = table.last_crawl, again.last_crawl
    assert (first.ending, first.requests > 5) == ("done", True)
    assert (second.ending, second.requests, second.urls) == ("nothing_due", 0, first.urls)
    printed = capfd.readouterr()
    assert (printed.out, "inject" in printed.err) == ("", True)
    assert nutbeam.open(tmp_path / "table").stats().urls == first.urls


def test_readers_agree(table):
    pages, frame = [*table.pages()], table.frame("pages")
    assert [page.url for page in pages] == frame["url"].to_list() != []
    assert [[link.url for link in page.links] for page in pages] == [
        [link["url"] for link in links] for links in frame["links"].to_list()
    ]
    (narrow,) = table.pages(columns=["url", "markdown"])
    assert narrow.markdown.startswith("[")
    assert narrow.title is None
    assert_frame_equal(frame, nutbeam.read(table, "pages"))
    assert_frame_equal(pl.from_arrow(table.arrow("hosts")), table.frame("hosts"))
    new, newest = table.frame("pages", since=0), table.stats().snapshot
    assert_frame_equal(new.drop("change", "snapshot"), frame, check_row_order=False)
    assert {page.change for page in table.pages(since=0)} == set(new["change"]) == {"new"}
    assert table.frame("pages", since=newest).is_empty()
    counts = table.sql("SELECT status, count(*) AS n, sum(distance) AS d FROM state GROUP BY 1")
    assert dict(counts.select("status", "n").iter_rows()) == table.stats().status
    assert counts.schema["d"] == pl.Int64
    assert table.stats().urls == len(table.frame()) == counts["n"].sum()
    with pytest.raises(nutbeam.UsageError, match="'tilte'"):
        table.pages(columns=["tilte"])
    assert table.chunks(64).height >= len(pages)
    newest, *_, first = table.history()
    assert (first.job, newest.job, newest.snapshot) == ("inject", "dedup", table.stats().snapshot)


def test_a_page_has_the_columns_of_the_view_of_pages():
    fields = [field.name for field in dataclasses.fields(nutbeam.TablePage)]
    columns = (*views()["pages"].columns, *CHANGE_COLUMNS)
    assert fields == [column.name for column in columns]


def test_each_job_is_a_method_with_its_result(table, reach, tables, tmp_path):
    target = tables(tmp_path / "copy")
    assert table.copy(target).job == "copy"
    table = nutbeam.open(target)
    pages_before, first = {page.url for page in table.pages()}, table.stats().snapshot
    chosen = table.generate(top_n=4)
    assert (chosen.phase, chosen.counts["chosen"], chosen.changed) == ("generated", 4, True)
    fetched = table.fetch(**reach)
    assert (fetched.batch, fetched.counts["pages"]) == (chosen.batch, 4)
    parsed = table.parse().counts["parsed"]
    assert parsed > 0
    assert table.parse(reparse=True).counts["parsed"] == parsed + 1  # of two batches
    assert table.update().phase == "updated"
    assert table.update.__name__ == "update"
    changes = {(page.url, page.change) for page in table.pages(since=first)}
    assert changes == {(page.url, "new") for page in table.pages() if page.url not in pages_before}
    assert len(changes) > 0
    written = table.write_pages(output=tmp_path / "new.jsonl", since=first)
    assert written.rows == len(changes)
    assert table.dedup().job == "dedup"
    again = table.generate(restrict_status="db_gone")
    assert (again.nothing_to_do, again.changed, again.batch) == (True, False, None)
    table.index()
    (best,) = table.search("home", top=1).hits
    assert best.url in {page.url for page in table.pages()}
    assert table.fsck(quick=True).clean
    assert table.explain(best.url).row["status"] == "db_fetched"
    assert table.explain("http://elsewhere.example/").verdict == "dropped: out_of_scope"
    undone = table.rollback(to=1)
    assert (undone.restores, table.stats().urls) == (1, 12)


WRONG = [
    (["crawl", "t", "http://a.example/", "--ruonds", "3"], {"ruonds": 3}),
    (["crawl", "t", "http://a.example/", "--rounds", "three"], {"rounds": "three"}),
    (["crawl", "t", "http://a.example/", "--rounds", "-5"], {"rounds": -5}),
    (["crawl", "t", "http://a.example/", "--scope", "web"], {"scope": "web"}),
    (["crawl", "t", "http://a.example/", "--server_delay", "soon"], {"server_delay": "soon"}),
    (["crawl", "t", "http://a.example/", "--include", "("], {"include": "("}),
    (["crawl", "t", "http://a.example/"], {}),  # nobody says who crawls
    (["crawl", "https://a.example/"], {}),
    (["crawl", "t", "no-such-file.txt"], {"agent_name": "x", "agent_url": "http://x.example/"}),
    (["fetch", "nowhere"], {}),
    (["generate", "nowhere", "--rounds", "3"], {"rounds": 3}),
]


def test_errors_have_the_messages_of_the_command_line_in_words_of_python(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    for line, options in WRONG:
        words = line[1 : next((n for n, w in enumerate(line) if w.startswith("--")), None)]
        with pytest.raises(nutbeam.UserError) as raised:
            call_command(line[0], words, options)
        more = [f"--{n}={v}" for n, v in options.items() if f"--{n}" not in line]
        assert main([*line, *more]) == raised.value.exit_code == 2
        printed = capsys.readouterr().err
        message = printed.removeprefix(f"nutbeam {line[0]}: ").removesuffix("\n")
        assert in_python(message, "t").replace("'--", "'") == str(raised.value), line
        assert "--" not in str(raised.value), line
    assert [path.name for path in tmp_path.iterdir()] == []


def test_a_value_of_the_wrong_type_is_one_clear_error(tmp_path):
    for options, message in (
        ({"rounds": "3"}, "rounds must be a whole number, got '3'"),
        ({"rounds": 2.5}, "rounds must be a whole number, got 2.5"),
        ({"wait": 1}, "wait must be True or False, got 1"),
        ({"include": 5}, "include must be a list, each a text, got 5"),
        ({"format": "json"}, "format is only for the command line"),
        ({"beam_args": [3]}, "an argument must be a text or a path, got 3"),
        ({"beam_args": "--runner=DirectRunner"}, "beam_args must be a list, got '--runner"),
    ):
        with pytest.raises(nutbeam.UsageError) as raised:
            nutbeam.crawl(tmp_path / "t", "http://a.example/", **options)
        assert str(raised.value).startswith(message)
    with pytest.raises(nutbeam.UsageError, match=r"got \['http://a.example/'\]: give each as"):
        nutbeam.crawl(tmp_path / "t", ["http://a.example/"])
    table = nutbeam.Table(tmp_path / "t")
    for call, message in (
        (lambda: nutbeam.Table(3), "a table is named by a text or a path, got 3"),
        (lambda: nutbeam.read("a\0b"), "a table is named by a text or a path, got "),
        (lambda: nutbeam.read(table, ["state"]), "what must be a text, got ['state']"),
        (lambda: nutbeam.read_chunks(table, "9"), "limit must be a whole number, got '9'"),
        (lambda: nutbeam.read_extracted(table, 3), "rules must be a text, got 3"),
        (lambda: table.sql(3), "query must be a text, got 3"),
        (lambda: table.sql("select 1", memory_limit=-1), "memory_limit must be"),
        (lambda: table.inject("http://a\ud800.example/"), "an argument must be UTF-8, got 'http:"),
        (lambda: table.history("x"), "last must be a whole number, got 'x'"),
        (lambda: nutbeam.parse("", 3), "url must be a text, got 3"),
        (
            lambda: nutbeam.parse("x", "shop"),
            "url must be the page's full URL, such as http://example.com/, got 'shop'",
        ),
        (lambda: nutbeam.parse("x", "javascript:1"), "url must be the page's full URL, such as"),
    ):
        with pytest.raises(nutbeam.UsageError) as raised:
            call()
        assert str(raised.value).startswith(message)
    with pytest.raises(nutbeam.NoTable, match="no web table"):
        nutbeam.open(tmp_path / "t")
    assert list(tmp_path.iterdir()) == []


def test_values_may_be_written_as_python_has_them(tmp_path):
    path, day = tmp_path / "a,b.pem", datetime.timedelta(days=1)
    for command, name, value, read in (
        ("crawl", "allowed_ports", [80, "8000-8999"], ("80", "8000-8999")),
        ("crawl", "allowed_ports", 38505, ("38505",)),
        ("crawl", "allowed_ports", range(80, 82), ("80", "81")),
        ("crawl", "file_roots", path, (str(path),)),  # one path, although a comma is in it
        ("crawl", "ca_file", path, str(path)),
        ("crawl", "fetch_interval", day, 86_400),
        ("crawl", "server_delay", day / 86_400_000, 0.001),
        ("pages", "since", 7, "7"),
        ("pages", "since", datetime.date(2026, 11, 1), "2026-11-01"),
        (
            "pages",
            "since",
            datetime.datetime(2026, 11, 1, 2, tzinfo=datetime.UTC),
            "2026-11-01T02:00:00+00:00",
        ),
    ):
        options = read_call(command, ("t",), {name: value})[1].options
        assert getattr(options, name) == read, (name, value)
    for name, value in (
        ("allowed_ports", [True]),
        ("agent_name", 3),
        ("since", 1.5),
        ("include", {"a": 1}),
    ):
        with pytest.raises(nutbeam.UsageError, match=name):
            read_call("pages" if name == "since" else "crawl", ("t",), {name: value})


def test_a_parsed_page_has_the_records_of_rules_and_its_faults(tmp_path):
    rules = tmp_path / "shop.toml"
    rules.write_text(
        '[[rule]]\n[rule.fields]\nname = "css:h1"\nprice = {css = "b", type = "decimal"}\n'
    )
    html = "<h1>Tea</h1><b>4,20 €</b><script type=application/ld+json>{broken: [}</script>"
    content = nutbeam.parse(html, "http://a.example/", extract=rules)
    (record,) = content.records
    assert (record.rules, record.rule, record.fields) == (
        "shop",
        "rule1",
        {"name": "Tea", "price": "4.2"},
    )
    assert content.faults == {"json_ld_malformed": 1}


def test_wrong_names_have_a_hint(tmp_path):
    table = nutbeam.Table(tmp_path / "t")
    for call, error, words in (
        (lambda: table.genrate, AttributeError, "did you mean 'generate'?"),
        (lambda: table.updatedb, AttributeError, "it is update"),
        (lambda: nutbeam.crwal, AttributeError, "did you mean 'crawl'?"),
        (lambda: table.frame("product"), nutbeam.UsageError, "did you mean 'products'?"),
        (lambda: nutbeam.read(table, columns=["ur"]), nutbeam.UsageError, "did you mean 'url'?"),
    ):
        with pytest.raises(error, match=re.escape(words)):
            call()


def test_a_crawl_without_a_page_raises_its_message_with_the_result(web, reach, tmp_path):
    with pytest.raises(nutbeam.NothingFetched, match="no page was fetched: dns 1 ") as raised:
        nutbeam.crawl(
            tmp_path / "t", "http://nowhere.invalid/", agent_name="x", agent_email="x@x.org"
        )
    assert raised.value.result.ending == "nothing_fetched"


def test_strict_rules_that_find_nothing_raise_their_warnings_with_the_result(tmp_path):
    page, rules = tmp_path / "a.html", tmp_path / "shop.toml"
    page.write_text("<h1>Tea</h1>")
    rules.write_text('[[rule]]\nname = "tea"\n[rule.fields]\nprice = "css:b"\n')
    table = nutbeam.crawl(tmp_path / "t", page.as_uri(), schemes="file", file_roots=[tmp_path])
    with pytest.raises(nutbeam.RulesFailed, match=r"tea\.price finds nothing") as raised:
        table.extract(rules, output=tmp_path / "tea.csv", strict=True)
    assert raised.value.result.rows == 1


def test_the_environment_counts_as_for_the_command_line(tmp_path, monkeypatch):
    monkeypatch.setenv("NUTBEAM_ROUNDS", "many")
    with pytest.raises(nutbeam.UsageError, match=r"rounds .* 'many' \(from NUTBEAM_ROUNDS\)"):
        nutbeam.crawl(tmp_path / "t", "http://a.example/")


def test_signatures_show_the_options_with_their_defaults():
    for function, command in ((nutbeam.crawl, "crawl"), (nutbeam.Table("t").fetch, "fetch")):
        parameters = inspect.signature(function).parameters.values()
        shown = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
        declared = command_options(load(command)).values()
        assert shown == {o.name: o.default for o in declared if o.name not in PRINTING}
    methods = {command.method for command in COMMANDS.values()} - {""}
    assert {"crawl", "fetch", "update", "index", "fsck"} <= methods <= set(dir(nutbeam.Table))


def test_a_single_page_is_fetched_as_politely_as_by_a_crawl(web, reach):
    page = nutbeam.fetch(web.seeds[0], **reach)
    assert (page.http_code, page.ok, page.url) == (200, True, web.seeds[0])
    content = page.parse()
    assert content.links[0].url.startswith("http://h")
    assert (nutbeam.fetch(f"{web.seeds[0]}no/such/page", **reach).http_code, page.redirects) == (
        404,
        (),
    )
    start = time.monotonic()
    nutbeam.fetch(web.seeds[0], **(reach | {"server_delay": "300ms"}))
    assert time.monotonic() - start > 0.25  # the request before was at once
    for url, reason in (
        (next(iter(web.site.urls("denied"))), "robots_denied"),
        ("http://127.0.0.1/", "address_denied"),
        ("gopher://a.example/", "scheme_not_allowed"),
    ):
        with pytest.raises(nutbeam.NotFetched, match=reason) as raised:
            nutbeam.fetch(url, **reach)
        assert raised.value.reason == reason
    with pytest.raises(nutbeam.UsageError, match="agent_name"):
        nutbeam.fetch("http://a.example/")


def test_a_page_is_parsed_without_a_request():
    html = "<title>Tea é</title><p>A <a href='/x'>pot</a></p>"
    content = nutbeam.parse(html, "http://a.example/y")
    assert (content.title, content.text, content.markdown) == (
        "Tea é", "A pot", "A [pot](http://a.example/x)",
    )  # fmt: skip
    assert [(link.url, link.anchor) for link in content.links] == [("http://a.example/x", "pot")]
    offer = '<script type="application/ld+json">{"@type": "Product", "name": "Pot"}</script>'
    (item,) = nutbeam.parse(html + offer, "http://a.example/y").structured_data
    assert (item.syntax, item.type, json.loads(item.properties)["name"]) == (
        "json-ld", "Product", "Pot",
    )  # fmt: skip
    assert (
        nutbeam.parse(html.encode("latin-1"), "http://a.example/", content_type=None).title
        == "Tea é"
    )
    with pytest.raises(nutbeam.NotParsed, match="was not parsed") as raised:
        nutbeam.parse(b"\x89PNG\r\n\x1a\n", "http://a.example/p.png", content_type="image/png")
    assert raised.value.reason
    with pytest.raises(nutbeam.UsageError, match="html must be a text or bytes, got 5"):
        nutbeam.parse(5, "http://a.example/")
    with pytest.raises(nutbeam.UsageError, match="did you mean 'max_outlinks'"):
        nutbeam.parse("", "http://a.example/", max_outlink=5)
