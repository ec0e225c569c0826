import json
import re

import pytest
from crawling import nutbeam
from plugins import install

from nutbeam.web.plugins.plugins import forget_plugins

RULES = """
def no(urls):
    return ~urls.str.contains("/no")

def one(urls):
    return ["a" not in urls[0]]

def longer(urls, scope):
    return urls + "x"

def odd(urls):
    return [len(url) / (len(url) - 12) > 0 for url in urls]

def loop(urls):
    while True:
        pass

def shorter(urls, scope):
    return urls.str.strip_suffix(f"#{scope}") if scope != "inject" else urls.set(urls != "", None)

def title(page):
    page.title = page.title.upper()
    if "drop" in page.text:
        page.drop("unwanted")
    page.metadata["n"] = str(1 // len(page.links))

def misspelt(page):
    page.titel = "T"

def links(source):
    from nutbeam.web.parsers.parser_plugins import ParsedDocument
    return ParsedDocument("T", source.body.decode(), ["/a"]) if source.body != b"none" else None

def hard(source):
    import os
    if source.body == b"exit":
        os._exit(7)
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass

def answer(request):
    from nutbeam.web.clients.protocol_plugins import ProtocolAnswer
    return ProtocolAnswer(body=b"hello", headers=[("X-Of", request.host)])

answer.connects = False

def ends(urls, scope=""):
    import os
    if urls[0].endswith("/end"):
        os._exit(7)
    return urls if scope else [True for url in urls]

def dies(request):
    import os
    os.abort()

dies.connects = False

import polars as pl
from nutbeam.policy.scoring.scoring import Scoring

def weekly(visits, context):
    days = pl.when("modified").then(1).otherwise(7)
    due = pl.col("event.fetch_time") + days.cast(pl.Int64) * 86_400_000
    return visits.with_columns(fetch_interval=days * 86_400, fetch_time=due)

def never(visits, context):
    return visits.with_columns(fetch_time=pl.lit(None, pl.Int64))

class Halves(Scoring):
    name = "halves"

    def injected(self, rows):
        return rows.with_columns(score=pl.col("score") / 2)

    def share(self, pages):
        return pages.with_columns(share=pl.col("score") / (2 * pl.col("links")))

    def arrived(self, rows, now):
        if rows["key"].str.ends_with("/odd").any():
            raise ZeroDivisionError("odd")
        return rows.with_columns(score=pl.col("score") + pl.col("inlink_score"))
"""
ME = ("--agent_name", "me", "--agent_email", "me@example.com")


@pytest.fixture
def tried(tmp_path, monkeypatch, capsys):
    """Runs ``plugin try`` in a folder with the rules; returns (exit code, records)."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules.py").write_text(RULES)

    def run(kind, name, *words):
        code = nutbeam("plugin", "try", kind, f"./rules.py:{name}", *words, "--format", "json")
        printed = capsys.readouterr()
        return code, [json.loads(line) for line in printed.out.splitlines()] or printed.err

    return run


def test_a_url_filter_is_tried_on_a_url_and_on_a_list_of_them(tried, tmp_path):
    (tmp_path / "urls.txt").write_text("http://a.com/no\nhttp://a.com/yes\n")
    code, records = tried("url_filter", "no", "urls.txt")
    assert code == 0
    assert [record["accepted"] for record in records] == [False, True]
    assert all(0 <= record["ms"] < 60_000 and record["fault"] is None for record in records)


def test_a_fault_has_the_line_of_the_code(tried):
    code, (record,) = tried("url_filter", "odd", "http://a.com")
    assert (code, record["accepted"]) == (1, None)
    assert record["fault"].startswith("ZeroDivisionError: ")
    assert record["fault"].endswith(
        "(rules.py:12: return [len(url) / (len(url) - 12) > 0 for url in urls])"
    )


def test_a_url_filter_that_works_for_one_url_at_a_time_only_is_named(tried):
    code, (alone, at_once) = tried("url_filter", "one", "http://b.com/")
    assert (code, alone["accepted"], alone["fault"]) == (1, True, None)
    said = "with 2 URLs at once: ValueError: expected a value for each of 2 URLs, got 1"
    assert (at_once["url"], at_once["fault"]) == (None, said)


def test_a_url_normalizer_that_changes_its_own_results_is_named(tried):
    code, (record,) = tried("url_normalizer", "longer", "http://b.com/")
    assert code == 1
    assert "makes 'http://b.com/xx' of 'http://b.com/x'" in record["fault"]


def test_a_plug_in_that_never_ends_is_stopped_and_named_with_its_line(tried):
    code, (record,) = tried("url_filter", "loop", "http://a.com/", "--parser_timeout", "0.1")
    assert code == 1
    assert "took longer than 0.1 s (--parser_timeout) (rules.py:" in record["fault"]


def test_a_url_normalizer_is_tried_in_a_scope(tried):
    words = ("http://a.com/#outlink", "--url_scope")
    assert (
        tried("url_normalizer", "shorter", *words, "outlink")[1][0]["normalized"] == "http://a.com/"
    )
    code, (record,) = tried("url_normalizer", "shorter", *words, "inject")
    assert (code, record["normalized"], record["fault"]) == (0, None, None)


@pytest.mark.long
def test_a_parser_and_a_parse_filter_are_tried_on_a_file(tried, tmp_path):
    (tmp_path / "a.html").write_text("<title>t</title><a href=/x>drop</a>")
    (tmp_path / "b.html").write_text("<title>t</title>no link")
    (tmp_path / "none.txt").write_text("none")
    _, (record,) = tried("parser", "links", "a.html")
    assert (record["title"], record["links"]) == ("T", [{"url": "/a", "anchor": ""}])
    code, (record,) = tried("parser", "links", "none.txt")
    assert (code, record["fault"]) == (1, "it cannot read the document: its result is None")
    code, (record,) = tried("parse_filter", "title", "a.html")
    assert (code, record["dropped"], record["title"]) == (0, "unwanted", "T")
    code, (record,) = tried("parse_filter", "title", "b.html")
    assert code == 1
    assert "ZeroDivisionError" in record["fault"]


def test_a_misspelt_attribute_of_a_page_is_a_fault(tried, tmp_path):
    (tmp_path / "a.html").write_text("<title>t</title>")
    code, (record,) = tried("parse_filter", "misspelt", "a.html")
    assert (code, record["fault"].partition(" (")[0]) == (
        1,
        "AttributeError: 'FilteredPage' object has no attribute 'titel'",
    )


@pytest.mark.long
def test_a_parser_that_ends_its_process_or_catches_its_end_is_a_fault_in_one_line(tried, tmp_path):
    (tmp_path / "exit.txt").write_text("exit")
    (tmp_path / "loop.txt").write_text("loop")
    code, (record,) = tried("parser", "hard", "exit.txt")
    assert (code, record["fault"]) == (1, "it ended its process: exit code 7")
    code, (record,) = tried("parser", "hard", "loop.txt", "--parser_timeout", "0.1")
    assert (code, record["fault"]) == (1, "it took longer than 0.1 s (--parser_timeout)")


@pytest.mark.long
@pytest.mark.parametrize("kind", ["url_filter", "url_normalizer"])
def test_a_plug_in_that_ends_its_process_at_one_url_is_named_for_it(tried, tmp_path, kind):
    (tmp_path / "urls.txt").write_text("http://a.com/1\nhttp://a.com/end\nhttp://a.com/2\n")
    code, records = tried(kind, "ends", "urls.txt")
    assert (code, [record["url"][-2:] for record in records]) == (1, ["/1", "nd", "/2"])
    faults = [record["fault"] for record in records]
    assert faults == [None, "it ended its process: exit code 7", None]


def test_a_scoring_is_tried_on_a_seed_and_on_the_target_of_a_link(tried, tmp_path):
    (tmp_path / "urls.txt").write_text("http://a.com/1\nhttp://a.com/odd\n")
    code, (record, odd) = tried("scoring", "Halves", "urls.txt")
    assert code == 1
    assert record["score_as_a_seed"] == 0.5
    assert record["score_as_the_target_of_a_link"] == pytest.approx(0.05)
    assert odd["fault"].startswith("scoring 'halves' of file ./rules.py: ")
    assert "arrived: ZeroDivisionError: odd" in odd["fault"]
    assert "(rules.py:" in odd["fault"]


def test_a_schedule_is_tried_on_three_visits_of_a_page(tried):
    code, (record,) = tried("schedule", "weekly", "http://a.com/")
    days = {name: value for name, value in record.items() if name.startswith("days_")}
    assert (code, list(days.values())) == (0, [7, 1, 7])
    code, (record,) = tried("schedule", "never", "http://a.com/")
    assert code == 1
    assert "schedule './rules.py:never' of file ./rules.py: " in record["fault"]


def test_a_protocol_that_ends_its_process_is_named_for_it(tried):
    code, (record,) = tried("protocol", "dies", "memo://a.example/x", *ME)
    assert (code, record["fault"]) == (1, "it ended its process: SIGABRT")


def test_a_protocol_is_tried_on_a_url(tried):
    code, (record,) = tried("protocol", "answer", "memo://A.example/x", *ME)
    assert (code, record["status"], record["bytes"], record["url"]) == (
        0,
        200,
        5,
        "memo://a.example/x",
    )
    assert ["X-Of", "a.example"] in record["headers"]
    assert "add --agent_name" in tried("protocol", "answer", "memo://a.example/x")[1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("try", "url_filter"), "expected nutbeam plugin, or nutbeam plugin try KIND NAME URL|FILE"),
        (
            ("urlfilter-regex", "org.apache.nutch.X"),
            "nutbeam runs no Java class: expected nutbeam plugin, or nutbeam plugin try",
        ),
        (("try", "filter", "x", "y"), "there is no kind 'filter' of plug-ins: there are url_filter, "),
        (("try", "url_filter", "x", "http://a.com/"), "no url filter 'x' is installed: there are regex"),
        (("try", "url_filter", "regex", "http://a.com/"), "'regex' is built in"),
        (("try", "index_filter", "x", "y"), "a plug-in of kind index_filter is tried by: nutbeam indexchecker "),
        (("try", "url_filter", "no.py:x", "http://a.com/"), "'no.py' cannot be read: no such file"),
        (("try", "parser", "./rules.py:links", "no.html"), "expected a URL or a file, got 'no.html'"),
        (("try", "parser", "./rules.py:nope", "rules.py"), "'./rules.py' defines no 'nope'"),
        (("try", "protocol", "./rules.py:answer", "no url", *ME), "'no url' is no URL that can be"),
    ],
)  # fmt: skip
def test_bad_usage_is_one_line(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules.py").write_text(RULES)
    assert nutbeam("plugin", *words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


def test_packages_with_the_same_name_for_a_plug_in_are_named(tmp_path, monkeypatch, capsys):
    module = {"same_name.py": "def f(urls): return urls.is_not_null()\n"}
    for package in ("one", "two"):
        points = {"mine": "same_name:f", "regex": "same_name:f"}
        install(tmp_path, package, module, points, group="nutbeam.url_filters")
    monkeypatch.syspath_prepend(str(tmp_path))
    forget_plugins()
    assert nutbeam("filterchecker", "http://a.com/", "--url_filters", "mine") == 2
    said = "url filter 'mine' is in the packages one and two: uninstall one"
    assert said in capsys.readouterr().err
    assert nutbeam("plugin") == 0
    assert "same_name:f (not used: nutbeam has one of this name)\n" in capsys.readouterr().out


def test_files_whose_plug_ins_would_be_counted_as_one_are_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.py").write_text(RULES)
    filters = "./a/x.py:no,./b/x.py:no"
    assert nutbeam("filterchecker", "http://a.com/", "--url_filters", filters) == 2
    said = "'./a/x.py:no' and './b/x.py:no' would both be counted as x.no: rename one"
    assert said in capsys.readouterr().err


def test_a_toml_file_that_is_only_found_names_no_file_with_code(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules.py").write_text(RULES)
    (tmp_path / "nutbeam.toml").write_text('url_filters = ["./rules.py:no"]\n')
    assert nutbeam("filterchecker", "http://a.com/no") == 2
    assert "add --config nutbeam.toml" in capsys.readouterr().err
    assert nutbeam("filterchecker", "http://a.com/no", "--config", "nutbeam.toml") == 0
    assert capsys.readouterr().out.startswith("-http://a.com/no\trules.no")


CHUNK_RULES = """
def quarters(texts):
    return [-(-len(text) // 4) for text in texts]
def lengths(chunks):
    return [[len(text), 0.5] for text in chunks["text"]]
def odd(chunks):
    return [[1], [1, 2]]
def loops(chunks):
    while True: pass
"""


@pytest.mark.long
def test_a_tokenizer_and_an_embedding_are_tried_on_a_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules.py").write_text(CHUNK_RULES)
    (tmp_path / "page.html").write_text(
        "<title>T</title><h1>A</h1><p>one two</p><h2>B</h2><p>three"
    )

    def run(kind, name, *words):
        code = nutbeam("plugin", "try", kind, f"./rules.py:{name}", "page.html", *words)
        return code, re.sub(r"time: [\d.]+ ms\n", "", capsys.readouterr().out)

    assert run("tokenizer", "quarters") == (0, "characters: 20\nwords: 5\ntokens: 5\n")
    assert run("embedding", "lengths") == (
        0,
        "2 chunks\nvectors of 2 numbers, the first one: 10, 0.5\n",
    )
    code, printed = run("embedding", "odd")
    assert code == 1
    assert printed.startswith(
        "fault: ValueError: expected an array or lists of numbers, all of one length"
    )
    code, printed = run("embedding", "loops", "--parser_timeout", "1")
    assert code == 1
    assert printed.startswith(
        "fault: TookTooLong: it took longer than 1 s (--parser_timeout) (rules.py:9: "
    )
