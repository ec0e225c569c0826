"""What pages become by each index filter."""

import pytest
from frames import frame_of

from nutbeam.policy.components.index_schema import INDEX_PAGES
from nutbeam.policy.indexing.index_documents import (
    BUILT_IN,
    DocumentRules,
    chosen_filters,
    documents_of_pages,
)
from nutbeam.policy.indexing.index_filter import BUILT_IN_FILTERS, IndexFilterOptions

DAY = 86_400_000
NOW = 1_700_000_000_000
PAGE = {
    "key": "com.example.www:https/a",
    "title": "A title that is long",
    "text": "The text.",
    "score": 4.0,
    "signature": b"\x01\xff",
    "batch_id": "1700000000-1",
    "fetch_time": NOW,
    "modified_time": NOW - DAY,
    "content_type": "Text/HTML; charset=utf-8",
    "language": "de",
    "headers": [
        {"name": "Last-Modified", "value": "Wed, 25 Jun 2025 15:00:00 GMT"},
        {"name": "Content-Length", "value": "1234"},
        {"name": "X-Cache", "value": "hit"},
    ],
    "metadata": [("h1", "One\nTwo"), ("description", "About")],
    "row_metadata": [("topic", "news")],
    "outlinks": [
        {"key": "com.example.www:https/b", "anchor": "B", "rel": ""},
        {"key": "org.other:http/", "anchor": "O", "rel": ""},
    ],
    "directives": ["noarchive"],
}
BARE = {"key": "org.other:http/x"}


def made(*names, pages=(PAGE, BARE), **options):
    chosen = IndexFilterOptions(index_filters=names, **options)
    frame = frame_of(INDEX_PAGES, *pages)
    found = documents_of_pages(frame, DocumentRules(chosen_filters(chosen), chosen))
    return [{k: v for k, v in row.items() if v is not None} for row in found.to_dicts()]


def test_the_names_of_built_in_filters_are_known_without_them():
    assert tuple(BUILT_IN) == BUILT_IN_FILTERS


def test_each_document_has_id_digest_and_boost():
    assert made() == [
        {
            "id": "https://www.example.com/a",
            "segment": "1700000000-1",
            "digest": "01ff",
            "boost": 2.0,
        },
        {"id": "http://other.org/x", "boost": 0.0},
    ]
    ranked = made(pages=[PAGE | {"rank": 7.5}, PAGE | {"rank": float("nan")}])
    assert [document["boost"] for document in ranked] == [7.5, 2.0]


def test_basic():
    first, bare = made("basic", max_title_length=7, max_content_length=3, add_domain=True)
    assert first["title"] == "A title"
    assert first["content"] == "The"
    assert (first["host"], first["domain"]) == ("www.example.com", "example.com")
    assert (first["cache"], first["tstamp"]) == ("content", NOW)
    assert "title" not in bare
    assert bare["content"] == ""
    assert made("basic", pages=[PAGE | {"title": ""}])[0].get("title") is None
    # Half a word would be searched, and completed, as a word.
    assert made("basic", max_title_length=9)[0]["title"] == "A title"


def test_a_representative_url_is_shown_and_the_id_stays():
    shown = PAGE | {"repr_url": "https://example.org/"}
    first, bare = made("basic", pages=[shown, BARE], add_domain=True)
    assert (first["id"], first["url"]) == ("https://www.example.com/a", "https://example.org/")
    # As in Nutch, host and domain are those of the URL that is shown.
    assert (first["host"], first["domain"]) == ("example.org", "example.org")
    assert (bare["url"], bare["host"]) == ("http://other.org/x", "other.org")
    # In expressions doc.url is the field, url the column.
    for expr in ("doc.url == 'https://example.org/'", "doc['url'] == 'https://example.org/'",
                 "doc.getFieldValue('url') == 'https://example.org/'",
                 "url == 'https://www.example.com/a'"):  # fmt: skip
        first, bare = made("basic", "expr", pages=[shown, BARE], index_expr=expr)
        assert (first.get("dropped_by"), bare["dropped_by"]) == (None, "expr")


def test_anchor():
    pages = frame_of(INDEX_PAGES, PAGE | {"anchors": ["Home", "", "home", "B"]}, BARE)
    for deduplicate, texts in ((False, ["Home", "home", "B"]), (True, ["Home", "B"])):
        options = IndexFilterOptions(index_filters=("anchor",), anchor_deduplicate=deduplicate)
        found = documents_of_pages(pages, DocumentRules(chosen_filters(options), options))
        assert found["anchor"].to_list() == [texts, None]


def test_the_type_is_that_of_the_bytes(tmp_path):
    found = PAGE | {"metadata": [("type_found", "application/pdf")]}
    assert made("more", pages=[found])[0]["type"] == ["application/pdf", "application", "pdf"]
    (tmp_path / "types").write_text("-\napplication/pdf\n")
    only = made("mimetype", pages=[found, PAGE], mimetype_file=str(tmp_path / "types"))
    assert [document.get("dropped_by") for document in only] == [None, "mimetype"]


def test_more():
    first, bare = made("basic", "more")
    assert first["lastModified"] == first["date"] == 1_750_863_600_000
    assert first["contentLength"] == 1234
    assert first["type"] == ["text/html", "text", "html"]
    assert {"lastModified", "contentLength", "type", "title"} & bare.keys() == set()
    assert made("more", mime_type_parts=False)[0]["type"] == ["text/html"]
    old = PAGE | {"headers": [{"name": "Content-Disposition", "value": 'inline; filename="x.pdf"'}]}
    (document,) = made("more", pages=[old])
    assert (document["date"], document["title"]) == (NOW - DAY, "x.pdf")
    (document,) = made("more", pages=[old | {"modified_time": 0}])
    assert document["date"] == NOW


@pytest.mark.parametrize("length", ["-1", "1e3", "9" * 30, "", "x"])
def test_a_strange_content_length_is_no_field(length):
    page = PAGE | {"headers": [{"name": "content-length", "value": length}]}
    assert "contentLength" not in made("more", pages=[page])[0]


def test_metadata_headings_language_and_suffix():
    first, bare = made(
        "metadata", "headings", "language", "tld",
        index_parse_md=("description",), index_content_md=("X-Cache",), index_db_md=("topic",),
    )  # fmt: skip
    assert (first["description"], first["X-Cache"], first["topic"]) == ("About", "hit", "news")
    assert (first["h1"], first.get("h2")) == (["One", "Two"], None)
    assert (first["lang"], bare["lang"], first["tld"]) == ("de", "unknown", "com")


def test_links():
    page = PAGE | {"inlinks": ["http://other.org/", "https://www.example.com/c"]}
    (document,) = made("links", pages=[page])
    assert document["outlinks"] == ["https://www.example.com/b", "http://other.org/"]
    assert (document["outlink_count"], document["inlink_count"]) == (2, 2)
    (document,) = made(
        "links", pages=[page], links_hosts_only=True, links_outlinks_host_ignore=True
    )
    assert document["outlinks"] == ["other.org"]
    assert document["inlinks"] == ["other.org", "www.example.com"]


def test_parts_of_feeds():
    part = BARE | {"part_of": "org.other:http/feed", "metadata": [("author", "Ada")]}
    (document,) = made("feed", pages=[part])
    assert (document["author"], document["feed"]) == ("Ada", "http://other.org/feed")
    assert "feed" not in made("feed")[0]
    dates = [("published", "P"), ("updated", "U"), ("tag", "a b\nc")]
    (document,) = made("feed", pages=[part | {"metadata": dates}])
    assert (document["published"], document["updated"]) == ("P", "U")
    assert document["tag"] == ["a b", "c"]


def test_feed_keeps_the_metadata_of_pages_that_are_no_items():
    item = BARE | {"part_of": "org.other:http/feed", "metadata": [("author", "Ada"), ("tag", "t")]}
    page = PAGE | {"metadata": [("author", "Bo"), ("tag", "one")]}
    first, second, bare = made(
        "metadata", "feed", pages=[page, item, item | {"metadata": []}],
        index_parse_md=("author", "tag"),
    )  # fmt: skip
    assert (first["author"], first["tag"]) == ("Bo", ["one"])
    assert (second["author"], second["tag"]) == ("Ada", ["t"])
    assert {"author", "tag"} & bare.keys() == set()
    assert "feed" not in first


def test_static_and_replace():
    (document,) = made(
        "basic", "static", "replace",
        pages=[PAGE],
        index_static=("site:a b", "one:x"),
        index_replace="title=/(T)ITLE/$1one/2\nhost:name=/www\\.//\nhostmatch=other\ncontent=/T/X/",
    )  # fmt: skip
    assert (document["site"], document["one"]) == (["a", "b"], ["x"])
    assert (document["title"], document["name"]) == ("A tone that is long", "example.com")
    assert document["content"] == "The text."


def test_filters_leave_documents_out(tmp_path):
    types = tmp_path / "types"
    types.write_text("# only text\n-\ntext/\n")
    first, bare = made("mimetype", mimetype_file=str(types))
    assert (first.get("dropped_by"), bare["dropped_by"]) == (None, "mimetype")
    for expr in (
        "doc.lang == 'de' and len(text) > 3",
        "title =~ 'A.*'",
        "score > 1 && url ne null",
    ):
        first, bare = made("basic", "language", "expr", index_expr=expr)
        assert (first.get("dropped_by"), bare["dropped_by"]) == (None, "expr")


def test_subcollections(tmp_path):
    file = tmp_path / "subcollections.xml"
    file.write_text(
        "<subcollections><subcollection><name>ours</name><whitelist>\nexample.com\n</whitelist>"
        "<blacklist>/b</blacklist></subcollection><subcollection><name>all</name><key>part</key>"
        "<whitelist>http</whitelist></subcollection></subcollections>"
    )
    first, other = made("subcollection", subcollections_file=str(file))
    assert (first["subcollection"], first["part"]) == (["ours"], ["all"])
    assert ("subcollection" in other, other["part"]) == (False, ["all"])


@pytest.mark.parametrize(
    ("names", "options", "message"),
    [
        (("basci",), {}, "index_filters: unknown filter 'basci'; did you mean 'basic'?"),
        (
            ("static",),
            {"index_static": ("x",)},
            "index_static must be of the form name:value, got 'x'",
        ),
        (
            ("replace",),
            {"index_replace": "a=b"},
            "index_replace:1: a line must be field=/regex/text/",
        ),
        (("replace",), {"index_replace": "a=/(/b/"}, "index_replace:1: bad regular expression"),
        (("expr",), {}, "the index filter expr needs --index_expr"),
    ],
)
def test_mistakes_are_named(names, options, message):
    with pytest.raises(ValueError, match="^" + __import__("re").escape(message)):
        chosen_filters(IndexFilterOptions(index_filters=names, **options))


def test_a_filter_of_a_user_must_keep_the_rows():
    class Broken(type(chosen_filters(IndexFilterOptions(index_filters=("basic",)))[0])):
        name = "broken"

        def apply(self, documents, pages):
            return documents.head(1)

    options = IndexFilterOptions(index_filters=("broken",))
    filters = chosen_filters(options, {"broken": Broken})
    with pytest.raises(ValueError, match="index filter 'broken' must keep the rows"):
        documents_of_pages(frame_of(INDEX_PAGES, PAGE, BARE), DocumentRules(filters, options))


def test_no_pages_are_no_documents():
    names = ("basic", "anchor", "more", "links", "language", "headings", "feed", "tld")
    assert made(*names, pages=[]) == []
