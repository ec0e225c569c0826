import hashlib
from collections import Counter
from types import MappingProxyType

import polars as pl
import pytest
from frames import frame_of, table_of

from nutbeam.policy.components.document_schema import DOCUMENTS, ParseMinor
from nutbeam.policy.components.host_rows import Seeds, seeds_of
from nutbeam.policy.components.rule_counts import cap_rule_counts
from nutbeam.policy.components.schema import PAGES, ParseStatus, empty
from nutbeam.policy.parsing import documents as module
from nutbeam.policy.parsing.documents import DocumentOptions, ParseRules, documents_of
from nutbeam.policy.parsing.parse_results import status_text
from nutbeam.web.content.signature import md5
from nutbeam.web.exchange.status import FETCH_GONE, FETCH_NOTMODIFIED, FETCH_SUCCESS
from nutbeam.web.pages.page import ParseFailed
from nutbeam.web.urls.row_keys import from_key, to_key

URL = "http://www.example.com/dir/page"
KEY = to_key(URL)


def page(body="", url=URL, status=FETCH_SUCCESS, content_type="text/html", **columns):
    return {
        "key": to_key(url),
        "score": 0.5,
        "distance": 3,
        "fetch_status": status,
        "fetch_time": 7,
        "content_type": content_type,
        "body": body if isinstance(body, bytes) else body.encode(),
        **columns,
    }


def documents(*pages, skip=MappingProxyType({}), at_row=lambda row: None, seeds=Seeds(), **options):  # noqa: B008
    table, counts = documents_of(
        table_of(PAGES, *pages), ParseRules(DocumentOptions(**options), seeds), skip, at_row
    )
    assert table.schema == DOCUMENTS
    return table.to_pylist(), counts


def status_of(document):
    return status_text(*(document[f"parse_{name}"] for name in ("status", "minor", "message")))


def links(body, **options):
    """The targets of a page, as URLs, and what was counted."""
    (document,), counts = documents(page(body), **options)
    return [from_key(link["key"]) for link in document["outlinks"] or []], counts


def test_a_document_has_all_columns_of_its_page():
    (document,), counts = documents(
        page(
            """<html lang=de><title> A  title </title><meta name=description content="in short">
            <link rel=canonical href=/canon><meta http-equiv=refresh content="3; url=../next">
            <body>Some <b>text</b> <a href="a?b#c" rel=Author>An  anchor</a>"""
        )
    )
    assert document == {
        "key": KEY,
        "score": 0.5,
        "distance": 3,
        "fetch_time": 7,
        "parse_status": ParseStatus.SUCCESS,
        "parse_message": None,
        "title": "A title",
        "text": "Some text An anchor",
        "outlinks": [
            {"key": to_key("http://www.example.com/canon"), "anchor": "", "rel": "canonical"},
            {"key": to_key("http://www.example.com/dir/a?b"), "anchor": "An anchor",
             "rel": "author"},
        ],
        "refresh": "http://www.example.com/next",
        "refresh_seconds": 3,
        "directives": [],
        "language": "de",
        "charset": document["charset"],
        "content_type": "text/html",
        "signature": document["signature"],
        "metadata": [("description", "in short"), ("canonical", "http://www.example.com/canon")],
        "parse_minor": ParseMinor.REDIRECT,
        "part_of": None,
        "usage": None,
        "nofollow_links": None,
        "main": None,  # one block without a sentence
        "structured_data": None, "extracted": None,
        "blocks": [
            {"kind": "paragraph", "start": 0, "end": 19, "level": 0, "of": ""},
            {"kind": "strong", "start": 5, "end": 9, "level": 0, "of": ""},
            {"kind": "link", "start": 10, "end": 19, "level": 0, "of": "a?b#c"},
        ],
    }  # fmt: skip
    assert (counts["parsed"], counts["outlinks"]) == (1, 2)


def test_signatures_are_of_bodies_or_of_urls():
    bodies = ["<p>same", "<p>same", "", ""]
    found, _ = documents(*(page(b, f"http://a.com/{n}") for n, b in enumerate(bodies)))
    signatures = [document["signature"] for document in found]
    assert signatures[0] == signatures[1] == md5(b"<p>same", "")
    assert signatures[2] != signatures[3]


@pytest.mark.parametrize(
    ("body", "profile"),
    [
        # By hand: red 2, fish 3, blue 1 are rounded down to multiples of 2.
        ("<title>Red&nbsp;fish</title><p>Blue fish, red fish!", b"fish 2\nred 2"),
        ("<p>Blue fish, red fish!", b"fish 2"),
        # Many pages that only scripts fill have this title.
        ("<title>Wait, wait</title><script>fill()</script>", b"<title>Wait, wait</title><script>fill()</script>"),
    ],
)  # fmt: skip
def test_the_title_counts_in_signatures_of_texts(body, profile):
    (found,), _ = documents(page(body), signature="text_profile")
    assert found["signature"] == hashlib.md5(profile).digest()


def test_mark_up_and_lines_do_not_count_in_signatures_of_texts():
    bodies = [
        "<title>T</title><p>one<p>two",
        "<title>T</title><div>one\n <b>two</b></div>",
        "T one two",
    ]
    found, _ = documents(*map(page, bodies), signature="text_md5")
    assert [document["signature"] for document in found] == [md5(b"T one two", "")] * 3


@pytest.mark.parametrize("status", [FETCH_GONE, FETCH_NOTMODIFIED])
def test_only_pages_that_were_fetched_are_parsed(status):
    found, counts = documents(page(status=status), page("<p>x"))
    assert [document["text"] for document in found] == ["x"]
    assert counts["parsed"] == 1


def test_truncated_pages_are_skipped_unless_wanted():
    cut = page("<p>x", truncated="length")
    (found,), counts = documents(cut)
    assert status_of(found) == "notparsed(0,202): truncated: length"
    # Without a signature, the next answer is not taken for the same page.
    assert (found["text"], found["signature"], found["outlinks"]) == (None, None, None)
    assert counts == {"skipped/truncated": 1, "outlinks": 0}
    for mark in ("frame", "checksum"):  # these are whole
        (found,), counts = documents(page("<p>x", truncated=mark))
        assert status_of(found).startswith("success")
    found, counts = documents(cut, skip_truncated=False)
    assert ([document["text"] for document in found], counts["parsed"]) == (["x"], 1)


def test_links_that_are_not_taken_are_counted_with_a_reason():
    targets, counts = links(
        """<a href=ok>1</a> <a href=mailto:a@b.c>2</a> <a href=http://elsewhere.org/>3</a>
        <a href=page#top>4</a> <a href=logo.png>5</a> <a href=no rel=nofollow>6</a>
        <a href=https://cdn.example.com/>7</a> <a href='http://'>8</a>"""
    )
    assert targets == ["http://www.example.com/dir/ok", "https://cdn.example.com/"]
    assert {name: n for name, n in counts.items() if name.startswith("dropped/")} == {
        "dropped/no_http_url": 2,
        "dropped/out_of_scope": 1,
        "dropped/own_url": 1,
        "dropped/filtered": 1,
        "dropped/nofollow": 1,
    }


def test_links_that_say_nofollow_are_beside_the_others():
    body = """<a href=ok rel=ugc>1</a> <a href=no rel="UGC nofollow">2</a> <a href=logo.png
        rel=nofollow>3</a> <a href=n#top rel=nofollow,sponsored><img alt=4></a>"""
    (found,), counts = documents(page(body))
    rels = {link["key"].rpartition("/")[2]: link["rel"] for link in found["nofollow_links"]}
    assert rels == {"no": "ugc nofollow", "n": "nofollow,sponsored"}
    assert [link["anchor"] for link in found["nofollow_links"]] == ["2", "4"]
    assert [link["anchor"] for link in found["outlinks"]] == ["1"]
    assert {n: c for n, c in counts.items() if "link" in n or "/" in n} == {
        "outlinks": 1, "dropped/nofollow": 3,
    }  # fmt: skip
    (closed,), _ = documents(page(f"<meta name=robots content=nofollow>{body}"))
    assert (closed["outlinks"], closed["nofollow_links"]) == (None, None)


def test_hash_bangs_of_links_are_kept_for_the_normalizer_that_wants_them():
    body = (
        "<a href='/a#!k=v&w'>x</a><a href='?q#!'>y</a><a href=#top>z</a><a href='mailto:a#!b'>n</a>"
    )
    found, _ = links(body, url_normalizers=("ajax", "basic"))
    assert found == [
        "http://www.example.com/a?_escaped_fragment_=k=v%26w",
        "http://www.example.com/dir/page?q&_escaped_fragment_=",
    ]
    assert links(body)[0] == ["http://www.example.com/a", "http://www.example.com/dir/page?q"]


def test_links_keep_their_order_and_repeat():
    targets, _ = links("".join(f"<a href={name}></a>" for name in "zaza"))
    assert [target[-1] for target in targets] == list("zaza")


@pytest.mark.parametrize(
    ("most", "taken"), [(-1, "abcd"), (0, ""), (2, "ab"), (4, "abcd"), (100, "abcd")]
)
def test_max_outlinks_counts_valid_links_only(most, taken):
    # Between any two good links one that does not count.
    body = "".join(f"<a href=logo.png>x</a><a href={name}>x</a>" for name in "abcd")
    targets, counts = links(body, max_outlinks=most)
    assert [target[-1] for target in targets] == list(taken)
    assert counts.get("dropped/max_outlinks", 0) == 4 - len(taken)
    assert counts["dropped/filtered"] == 4


def test_max_outlinks_is_per_page():
    body = "<a href=/a>a</a><a href=/b>b</a><a href=/c>c</a>"
    found, _ = documents(page(body), page("", f"{URL}2"), page(body, f"{URL}3"), max_outlinks=2)
    assert [[link["anchor"] for link in d["outlinks"] or []] for d in found] == [
        ["a", "b"], [], ["a", "b"]
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("scope", "expected"),
    [("host", "sx"), ("domain", "sox"), ("any", "sonx")],
)
def test_scope(scope, expected):
    body = """<a href=http://www.example.com/s></a><a href=http://other.example.com/o></a>
        <a href=http://elsewhere.org/n></a><a href=http://seed.org/x></a>"""
    seeds = seeds_of(pl.Series(["org.seed"]))
    targets, counts = links(body, scope=scope, seeds=seeds)
    assert [target[-1] for target in targets] == list(expected)
    assert counts.get("dropped/out_of_scope", 0) == 4 - len(expected)


def test_pages_that_stopped_a_parser_are_records_with_a_reason():
    pages = [page(f"<p>{n}<a href=/{n}></a>", f"http://a.com/dir{n}/") for n in range(4)]
    found, counts = documents(*pages, skip={1: "timeout", 2: "crashed exit code 3"})
    reasons = [None, "timeout", "crashed: exit code 3", None]
    assert [document["parse_message"] for document in found] == reasons
    assert [document["text"] for document in found] == ["0", None, None, "3"]
    assert [len(document["outlinks"] or []) for document in found] == [1, 0, 0, 1]
    assert found[1]["parse_status"] == ParseStatus.FAILED
    assert found[1]["signature"] is not None
    assert (counts["parsed"], counts["failed/timeout"], counts["failed/crashed"]) == (2, 1, 1)


def test_a_type_without_a_parser_is_counted_and_not_failed():
    picture = b"\x89PNG\r\n\x1a\n"
    odd = page("{", f"{URL}2", content_type="x-made-up/by.me")
    found, counts = documents(page(picture, content_type="image/png"), odd)
    assert [status_of(document) for document in found] == [
        "notparsed(0,0): no_parser: image/png",
        "notparsed(0,0): no_parser: x-made-up/by.me",
    ]
    # Its signature says whether it has changed.
    assert found[0]["signature"] == md5(picture, URL)
    assert counts == {
        "skipped/no_parser": 2, "no_parser/image/png": 1, "no_parser/x-made-up/by.me": 1,
        "outlinks": 0,
    }  # fmt: skip


def test_types_that_servers_make_up_are_few_names():
    kinds = [f"x/{n}" for n in range(60)] + ["x/0"] * 2 + ["x/'", f"x/{'y' * 200}"]
    pages = [page("{", f"{URL}{n}", content_type=kind) for n, kind in enumerate(kinds)]
    _, counts = documents(*pages)
    named = {name: n for name, n in counts.items() if name.startswith("no_parser/")}
    assert len(named) == 51
    assert (named["no_parser/x/0"], named["no_parser/other"]) == (3, 12)
    assert counts["skipped/no_parser"] == sum(named.values()) == len(kinds)
    assert cap_rule_counts(Counter(named) + Counter({"no_parser/x/0": 1, "no_parser/x/59": 9})) == {
        **{name: n for name, n in named.items() if name != "no_parser/x/53"},
        "no_parser/x/0": 4, "no_parser/x/59": 9, "no_parser/other": 13,
    }  # fmt: skip


def caused(error):
    failed = ParseFailed("malformed")
    failed.__cause__ = error
    return failed


@pytest.mark.parametrize(
    ("raised", "columns", "status", "name"),
    [
        (ParseFailed("too_complex"), {}, "failed(2,200): too_complex", "too_complex"),
        (ParseFailed("malformed_feed"), {}, "failed(2,203): malformed_feed", "malformed_feed"),
        (ParseFailed("malformed"), {"truncated": "length"}, "failed(2,202): malformed",
         "malformed"),
        (ValueError("x"), {}, "failed(2,200): parser_error: ValueError('x')", "parser_error"),
        (caused(KeyError("no entry")), {}, "failed(2,203): malformed: no entry", "malformed"),
        (caused(EOFError()), {}, "failed(2,203): malformed: EOFError()", "malformed"),
    ],
)  # fmt: skip
def test_failures_have_their_codes(monkeypatch, raised, columns, status, name):
    def fail(source, options):
        raise raised

    monkeypatch.setattr(module, "parse_document", fail)
    (found,), counts = documents(page("x", **columns), skip_truncated=False)
    assert status_of(found) == status
    assert found["signature"] == md5(b"x", URL)
    assert (counts[f"failed/{name}"], counts["outlinks"]) == (1, 0)


@pytest.mark.parametrize("refresh", ["3; url=/next", "3"])
def test_a_meta_refresh_is_a_success_of_its_own_kind(refresh):
    (found,), _ = documents(page(f"<meta http-equiv=refresh content='{refresh}'>"))
    assert status_of(found) == "success(1,100)"
    assert status_of(documents(page("x"))[0][0]) == "success(1,0)"


def test_signatures_as_the_options_say():
    bodies = ["<p>Same old text here", "<b>Same  old</b> text here", "<p>Text here same old", "<p>"]
    for kind, alike in (("md5", 4), ("text_md5", 3), ("text_profile", 2), ("simhash", 3)):
        found, _ = documents(*(page(b, f"{URL}{n}") for n, b in enumerate(bodies)), signature=kind)
        signatures = [document["signature"] for document in found]
        assert len(set(signatures)) == alike, kind
        assert signatures[3] == md5(b"<p>", "")  # it has no text
        assert (signatures[0] == md5(bodies[0].encode(), "")) == (kind == "md5")


def test_signatures_are_of_the_text_after_filters():
    def cut(page):
        page.text = page.text[:4]

    rows = table_of(PAGES, page("<p>Same and more"), page("<p>Same but other", f"{URL}2"))
    table, _ = documents_of(
        rows, ParseRules(DocumentOptions(signature="text_md5"), Seeds(), [("cut", cut)])
    )
    assert table["signature"].to_pylist() == [md5(b"Same", "")] * 2


def test_a_page_that_trips_a_parser_up_costs_one_record(monkeypatch):
    def trip(source, options):
        if source.url.endswith("1"):
            raise RecursionError("too deep")
        return real(source, options)

    real = module.parse_document
    monkeypatch.setattr(module, "parse_document", trip)
    found, counts = documents(*(page("<a href=/x>x</a>", f"http://a.com/{n}") for n in range(3)))
    assert found[1]["parse_message"] == "parser_error: RecursionError('too deep')"
    assert [len(document["outlinks"] or []) for document in found] == [1, 0, 1]
    assert (counts["parsed"], counts["failed/parser_error"]) == (2, 1)


def test_out_of_memory_is_not_the_pages_fault(monkeypatch):
    def fail(*args, **kwargs):
        raise MemoryError

    monkeypatch.setattr(module, "parse_document", fail)
    with pytest.raises(MemoryError):
        documents(page("x"))


def test_at_row_is_called_before_each_parsed_row_and_at_the_end():
    told = []
    documents(
        page(status=FETCH_GONE), page("a"), page("b"), skip={2: "timeout"}, at_row=told.append
    )
    assert told == [1, 2, 3]


def test_directives_of_the_header_count_without_any_in_the_page():
    headers = [{"name": "X-Robots-Tag", "value": "noindex"},
               {"name": "x-robots-tag", "value": "nofollow"}]  # fmt: skip
    (document,), counts = documents(page("<p>x<a href=/y>z</a>", headers=headers))
    assert document["directives"] == ["nofollow", "noindex"]
    assert (document["text"], document["outlinks"]) == ("", None)
    assert counts["dropped/page_nofollow"] == 1


@pytest.mark.parametrize(
    "body",
    [b"", b"\xff\xfe\x00\xd8", b"<title>&#xD800;\x00</title>", "<a href='\ud800'>".encode("utf-8", "surrogatepass"),
     b"<a href='//[::1'>x</a>", b"<base href='::'><a href=x>y</a>", b"<meta name=a content='\xed\xa0\x80'>"],
)  # fmt: skip
def test_nonsense_is_a_page_too(body):
    found, _ = documents(page(body))
    assert len(found) == 1


def test_no_pages():
    assert documents() == ([], {"outlinks": 0})
    assert frame_of(DOCUMENTS).equals(empty(DOCUMENTS))


def test_max_outlinks_is_not_for_sitemaps():
    entries = "".join(f"<url><loc>/{i}</loc></url>" for i in range(9))
    (row, *_), counts = documents(
        page(f"<urlset>{entries}</urlset>", content_type="text/xml"), max_outlinks=3
    )
    assert len(row["outlinks"]) == 9
    assert counts == {"parsed": 1, "outlinks": 9}


def test_items_of_a_feed_elsewhere_are_counted():
    items = "".join(
        f"<item><title>T</title><link>{link}</link></item>"
        for link in ("/1", "http://other.org/2", "http://other.org/3")
    )
    feed = page(f"<rss><channel>{items}</channel></rss>", content_type="text/xml")
    _, counts = documents(feed, feed_documents=True)
    assert counts["dropped/foreign_item"] == 2


def test_a_stored_bot_wall_is_no_content():
    wall = "<title>Just a moment...</title><a href='/next'>x</a><script>_cf_chl_opt={}</script>"
    (document,), counts = documents(page(wall))
    assert counts == {"failed/bot_wall_cloudflare": 1, "outlinks": 0}
    assert document["parse_message"] == "bot_wall_cloudflare"
    names = ("title", "text", "signature", "outlinks")
    assert [document[name] for name in names] == [None] * 4
