import dataclasses
import functools
import operator
from pathlib import Path

import apache_beam as beam
import polars as pl
import pyarrow as pa
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.util import assert_that, equal_to
from crawling import answer
from hostile_files import SLOW_HTML
from plugins import install
from running import apply, run
from simulated_web import SimWeb

from nutbeam.io.parsing.parse_pool import Parsed, ParsePool, ParserDied
from nutbeam.io.parsing.parser_limits import workers_here
from nutbeam.policy.components.document_schema import DOCUMENTS as STORED
from nutbeam.policy.components.schema import conform, to_frame
from nutbeam.policy.parsing.documents import DocumentOptions
from nutbeam.transforms import parsing as module
from nutbeam.transforms.elements.chunks import Chunk
from nutbeam.transforms.elements.records import DeadLetter, ParsedPage
from nutbeam.transforms.fetch_pages import FetchPages
from nutbeam.transforms.fetching import DEAD_LETTERS_OUTPUT
from nutbeam.transforms.parse_pages import DOCUMENTS_OUTPUT, ParsePages
from nutbeam.transforms.parsing import PARSED, ParsePagesOptions, parse_pages
from nutbeam.web.pages.page import Source
from nutbeam.web.parsers.dispatch import parse_document
from nutbeam.web.rules.url_rules import UrlRules, absolute_urls

HTML = b"""<html lang=en><head><title> The  title </title><meta name=description content=About>
<link rel=canonical href=/canon><meta http-equiv=refresh content="5; url=next"></head>
<body>Some <b>text</b><script>no</script><a href="b#x" rel=me>B</a><a href="/p.png">P</a>
<a href=c rel=nofollow>C</a><a href="https://other.test/">O</a></body>"""


def table(*rows):
    return pa.Table.from_pylist(list(rows))


def page(**more):
    return {"url": "http://a.test/dir/", "body": HTML, "content_type": "text/html"} | more


def parsed(pool, *rows, **options):
    """Returns (documents, dead letters) as dicts."""
    documents, dead, _ = parse_pages(table(*rows), ParsePages(**options).options, pool)
    return documents.to_dicts(), dead.to_dicts()


def links_of(document):
    return [(link["url"], link["anchor"], link["rel"]) for link in document["links"]]


def test_a_parsed_page_has_its_links_text_and_metadata(pool):
    ((document,), dead) = parsed(pool, page(key="k", score=2.0, fetch_time=7))
    assert dead == []
    assert links_of(document) == [
        ("http://a.test/canon", "", "canonical"),
        ("http://a.test/dir/b", "B", "me"),
        ("https://other.test/", "O", ""),
    ]
    marked = {"strong": "text", "link": "B"}
    assert (
        marked.items()
        <= {
            block["kind"]: document["text"][block["start"] : block["end"]]
            for block in reversed(document["blocks"])
        }.items()
    )
    others = {"links", "signature", "blocks"}
    got = {name: document[name] for name in PARSED.names if name not in others}
    assert got == {
        "url": "http://a.test/dir/",
        "host": "a.test",
        "key": "k",
        "score": 2.0,
        "title": "The title",
        "text": document["text"],
        "language": "en",
        "content_type": "text/html",
        "charset": "utf-8",
        "directives": [],
        "refresh": "http://a.test/dir/next",
        "canonical": "http://a.test/canon",
        "metadata": got["metadata"],
        "fetch_time": 7,
        "part_of": None,
        "main": [],
        "structured_data": [],
        "extracted": [],
    }
    assert "Some text" in document["text"]
    assert dict(got["metadata"])["description"] == "About"
    assert len(document["signature"]) == 16


def test_links_as_the_options_say(pool):
    ((document,), _) = parsed(pool, page(), no_filter=True)
    assert "http://a.test/p.png" in [url for url, _, _ in links_of(document)]
    ((document,), _) = parsed(pool, page(), scope="host")
    assert [url for url, _, _ in links_of(document)] == [
        "http://a.test/canon",
        "http://a.test/dir/b",
    ]
    ((document,), _) = parsed(pool, page(), max_outlinks=0)
    assert links_of(document) == []


@pytest.mark.parametrize(
    ("row", "reason", "message"),
    [
        (page(fetch_status="gone", http_code=404, body=None), "http_404", None),
        (page(fetch_status="retry", http_code=503, body=None), "http_503", None),
        (
            page(fetch_status="redir_perm", redirect="http://b.test/"),
            "redirected",
            "http://b.test/",
        ),
        (page(fetch_status="notmodified", http_code=304, body=None), "notmodified", None),
        (page(truncated="length"), "truncated", "length"),
        (page(body=None), "no_body", None),
        (page(url="nonsense"), "malformed", None),
        (page(url=None), "malformed", None),
        (page(url="ftp://a.test/"), "scheme_not_allowed", None),
        (
            page(body=b"\x89PNG\r\n\x1a\n" + bytes(50), content_type="image/png"),
            "no_parser",
            "no_parser: image/png",
        ),
    ],
)
def test_rows_without_a_page_to_parse_are_dead_letters(pool, row, reason, message):
    chunk = conform(table(row), pa.schema([*module._TAKEN]))
    documents, dead, _ = parse_pages(chunk, ParsePages().options, pool)
    assert documents.is_empty()
    assert dead.drop("parse").rows() == [(row["url"], None, reason, message)]


def test_truncated_pages_are_parsed_if_that_is_wanted(pool):
    ((document,), dead) = parsed(pool, page(truncated="length"), skip_truncated=False)
    assert (document["title"], dead) == ("The title", [])


def test_pages_that_are_whole_although_their_answer_broke_off_are_parsed(pool):
    for mark in ("frame", "checksum"):
        ((document,), dead) = parsed(pool, page(truncated=mark))
        assert (document["title"], dead) == ("The title", [])


def test_url_and_body_are_enough(pool):
    ((document,), _) = parsed(pool, {"url": "http://a.test/", "body": HTML})
    assert (document["title"], document["score"], document["fetch_time"]) == (
        "The title",
        0.0,
        None,
    )


def test_robots_headers_hold(pool):
    headers = [{"name": "X-Robots-Tag", "value": "noindex, nofollow"}]
    ((document,), _) = parsed(pool, page(headers=headers))
    assert document["directives"] == ["nofollow", "noindex"]
    assert (document["title"], links_of(document)) == ("", [])


def test_several_pages_of_one_url_stay_apart(pool):
    rows = [page(body=b"<title>%d" % n, key=str(n)) for n in range(5)]
    documents, dead = parsed(pool, *rows[:2], page(body=None, key="x"), *rows[2:])
    assert [(d["key"], d["title"]) for d in documents] == [(str(n), str(n)) for n in range(5)]
    assert [d["key"] for d in dead] == ["x"]


def test_agrees_with_the_parser_page_by_page(pool):
    with SimWeb(hosts=3, pages=10, crawl_delay=0) as web:
        urls = sorted(web.site.urls("page"))
        rows = [
            {"url": url, "body": answer(web.site, url).body, "content_type": "text/html"}
            for url in urls
        ]
        documents, dead = parsed(pool, *rows)
    assert dead == []
    options = DocumentOptions(scope="any")
    for row, document in zip(rows, documents, strict=True):
        right = parse_document(Source(row["url"], row["body"], row["content_type"]), options)
        bases = pl.Series([right.base] * len(right.hrefs), dtype=pl.String)
        targets = absolute_urls(bases, pl.Series(right.hrefs, dtype=pl.String))
        admitted = UrlRules(options).admit(targets, "outlink")["url"].to_list()
        kept = [
            (url, anchor, rel)
            for url, anchor, rel in zip(admitted, right.anchors, right.rels, strict=True)
            if url not in (None, row["url"])
        ]
        assert (document["url"], document["title"]) == (row["url"], right.title)
        assert document["text"] == right.text
        assert links_of(document) == kept
        assert document["directives"] == sorted(right.directives)


def test_a_page_that_stalls_its_parser_costs_one_dead_letter(pool):
    rows = [page(key="a"), page(key="slow", body=SLOW_HTML), page(key="c")]
    documents, dead = parsed(pool, *rows, parser_timeout=4.0)
    assert [document["key"] for document in documents] == ["a", "c"]
    assert [(letter["key"], letter["reason"]) for letter in dead] == [("slow", "timeout")]


def test_a_page_without_a_document_has_been_dropped():
    part = module._admit_pages(table(page(key="a"), page(key="b")), ParsePages().options)
    one = {"key": "test.a:http/dir/", "distance": 1, "parse_status": 1, "title": "t", "text": "x"}
    stored = pa.Table.from_pylist([one | {"metadata": []}], schema=STORED)
    rows = part.with_row_index("row")
    for counts, reason in (
        ({"skipped/ads": 1}, "ads"),
        ({"skipped/x": 1, "skipped/y": 1}, "skipped"),
    ):
        documents, dead = module._divide(rows, Parsed(stored, 2, counts))
        assert documents["key"].to_list() == ["b"]
        assert dead.rows() == [("http://a.test/dir/", "a", reason, None, None)]


def test_parts_of_pages_are_rows_of_their_own(tmp_path, monkeypatch):
    code = "def it(page):\n    page.add_part('/part', page.title + ' part', 'text')\n"
    install(tmp_path, "parts", {"parts_filter.py": code}, {"parts": "parts_filter:it"})
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    pool = ParsePool(1, 0)
    rows = [page(key="a", body=b"<title>A"), page(key="x", body=None),
            page(key="b", url="http://b.test/", body=b"<title>B")]  # fmt: skip
    try:
        documents, dead = parsed(pool, *rows, parse_filters=("parts",))
    finally:
        pool.close()
    shown = ("url", "host", "key", "title", "part_of", "score")
    assert [tuple(document[name] for name in shown) for document in documents] == [
        ("http://a.test/dir/", "a.test", "a", "A", None, 0.0),
        ("http://b.test/", "b.test", "b", "B", None, 0.0),
        ("http://a.test/part", "a.test", None, "A part", "http://a.test/dir/", 0.0),
        ("http://b.test/part", "b.test", None, "B part", "http://b.test/", 0.0),
    ]
    assert documents[2]["fetch_time"] == rows[0].get("fetch_time")
    assert [letter["key"] for letter in dead] == ["x"]


class DyingPool:
    """Stands for a machine on which a process dies of a job, whichever it is."""

    def submit(self, job, pages):
        return 1

    def result(self, number):
        raise ParserDied("parser process failed twice at a chunk of pages, row group 0")

    def abandon(self, numbers):
        pass


def test_pages_of_a_job_that_kills_its_process_are_dead_letters():
    documents, dead = parsed(DyingPool(), page(), page())
    assert documents == []
    assert {letter["reason"] for letter in dead} == {"parser_failed"}
    assert "failed twice" in dead[0]["message"]
    assert len(dead) == 2


def test_many_pages_are_several_jobs(pool, monkeypatch):
    monkeypatch.setattr(module, "JOB_BYTES", 2 * len(HTML))
    rows = module._admit_pages(table(*(page(key=str(n)) for n in range(10))), ParsePages().options)
    assert sorted(len(part) for part in module.parts_of_pages(rows)) == [1, 1, 2, 2, 2, 2]
    documents, _ = parsed(pool, *(page(key=str(n)) for n in range(10)))
    assert [document["key"] for document in documents] == [str(n) for n in range(10)]


def plain(element):
    if isinstance(element, pa.Table):
        return element.to_pylist(maps_as_pydicts="strict")
    row = element._asdict() if hasattr(element, "_asdict") else element.as_dict()
    for column in {"links", "blocks", "main", "structured_data"} & row.keys():
        row[column] = [{name: getattr(each, name) for name in each._fields} for each in row[column]]
    return row


def fetched_and_parsed(web, elements, **options):
    def build(p):
        fetch = FetchPages(connect_to=list(web.connect_to), server_delay=0)
        found = (p | beam.Create(elements) | fetch)["pages"] | ParsePages(**options)
        return {tag: part | tag >> beam.Map(plain) for tag, part in found.items()}

    return run(build)


def test_rows_and_chunks_agree():
    with SimWeb(hosts=2, pages=8, crawl_delay=0) as web:
        urls = [url for url, kind in web.site.reachable().items() if kind != "denied"]
        rows = fetched_and_parsed(web, [beam.Row(url=url) for url in urls], no_filter=True)
        chunks = fetched_and_parsed(web, [pa.table({"url": urls})], no_filter=True)
        pages, duplicates = web.site.urls("page"), web.site.duplicates()
    flat = {tag: [row for chunk in some for row in chunk] for tag, some in chunks.items()}
    for tag in (DOCUMENTS_OUTPUT, DEAD_LETTERS_OUTPUT):
        for row in [*rows[tag], *flat[tag]]:
            row.pop("fetch_time", None)
        assert sorted(rows[tag], key=str) == sorted(flat[tag], key=str)
    assert {row["url"] for row in rows[DOCUMENTS_OUTPUT]} == pages
    assert {row["url"] for row in rows[DEAD_LETTERS_OUTPUT]} == set(urls) - pages
    signature = {row["url"]: row["signature"] for row in rows[DOCUMENTS_OUTPUT]}
    for copies in duplicates:
        assert len({signature[url] for url in copies}) == 1


def test_documents_and_dead_letters_have_declared_types():
    pipeline = beam.Pipeline("FnApiRunner")
    rows = pipeline | beam.Create([beam.Row(url="http://a.test/", body=b"x")])
    found = rows | ParsePages(error_handling={"output": "errors"})
    kinds = {tag: part.element_type for tag, part in found.items()}
    assert kinds == {DOCUMENTS_OUTPUT: ParsedPage, "errors": DeadLetter}
    chunks = pipeline | "Chunks" >> beam.Create([table(page())])
    assert {p.element_type for p in (chunks | "Parse" >> ParsePages()).values()} == {Chunk}


@pytest.mark.parametrize("chunks", [True, False])
def test_a_column_that_is_not_there_is_an_error_that_names_it(chunks):
    rows = [pa.table({"url": ["a"]})] if chunks else [beam.Row(url="a")]
    with pytest.raises(Exception, match="ParsePages needs the column 'body', there are 'url'"):
        apply(rows, ParsePages())


def test_a_column_of_another_type_is_an_error(pool):
    with pytest.raises(ValueError, match="column 'score' must hold double"):
        parse_pages(table(page(score="much")), ParsePages().options, pool)


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"scope": "galaxy"}, ValueError, "^scope must be one of domain, host, any, got 'galaxy'"),
        ({"include": "("}, ValueError, r"^include must be a regular expression .* got '\('"),
        (
            {"all_parsers_memory": 2_000_000},
            ValueError,
            "^all_parsers_memory must be 0 or at least 64Mi, got 2000000 bytes",
        ),
        ({"parse_processes": -1}, ValueError, "^parse_processes must be at least 0, got -1"),
        ({"url_filter_file": "/nowhere/x"}, ValueError, "must be readable, got '/nowhere/x'"),
        ({"timeout": 1}, TypeError, "unexpected keyword argument 'timeout'"),
        ({"options": ParsePagesOptions(), "scope": "any"}, TypeError, "or keywords"),
        ({"error_handling": {"output": "documents"}}, ValueError, "another name than 'documents'"),
    ],
)
def test_bad_arguments(keywords, error, message):
    with pytest.raises(error, match=message):
        ParsePages(**keywords)


def test_options_are_an_object_or_keywords():
    options = ParsePagesOptions(scope="any", max_outlinks=3)
    assert ParsePages(options).options == ParsePages(max_outlinks=3).options == options
    assert ParsePages().options.scope == "any"
    names = {field.name for field in dataclasses.fields(DocumentOptions)}
    assert names <= {field.name for field in dataclasses.fields(ParsePagesOptions)}


def test_a_chunk_of_nothing(pool):
    documents, dead, _ = parse_pages(module._TAKEN.empty_table(), ParsePages().options, pool)
    assert documents.is_empty()
    assert dead.is_empty()
    assert documents.schema == to_frame(PARSED.empty_table()).schema


@pytest.mark.long
def test_workers_on_one_machine_know_of_one_another():
    """Each parses with its share of the cores."""
    two = ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]
    with beam.Pipeline("FnApiRunner", options=PipelineOptions(two)) as pipeline:
        # Functions that workers can import. Another test may have workers, too.
        numbers = pipeline | beam.Create([Path("/")]) | beam.Map(workers_here)
        is_two = numbers | "Two" >> beam.Map(functools.partial(operator.le, 2))
        assert_that(is_two, equal_to([True]))
    assert workers_here() == 1
