"""What Nutch's parser wrote becomes the documents of a batch, whatever the files it is in."""

import polars as pl
import pytest
from command_output import printed
from crawling import manifest_of, nutbeam, rows_of, state_of
from nutch_crawls import DAY_MS, NOW, datum, page, parse

from nutbeam import read as nutbeam_read
from nutbeam.io.batches.batches import batch_component
from nutbeam.io.nutch import ordered_records

FETCHED = NOW - 10 * DAY_MS
HOME, LINKED = "http://a.com/", "http://a.com/b"


def documents_of(table):
    (batch,) = manifest_of(table).batches
    return rows_of(table, batch_component(batch, "documents")).sort("key")


def test_documents_have_the_texts_and_headers_of_nutchs_parser(crawl, table, capsys):
    digest = "0f" * 16
    headers = {"Content-Type": "text/plain", "ETag": '"e"', "Content-Usage": "train-ai=n",
               "nutch.content.digest": digest}  # fmt: skip
    noted = {"OriginalCharEncoding": "latin1", "language": "de", "robots": "NoArchive, nofollow",
             "metatag.author": "Ann"}  # fmt: skip
    links = [(HOME, "home"), (LINKED, "to b"), ("gopher://a.com/", "x"), (LINKED, "again")]
    crawl.segment(
        "20261022000000",
        fetched=[datum(url, 33, FETCHED) for url in (HOME, LINKED, f"{HOME}c", f"{HOME}d")],
        parsed={
            HOME: parse("the text", "Title", links, noted=noted, headers=headers),
            LINKED: parse("", status=(2, 200, "no luck")),
            f"{HOME}c": parse("moved", status=(1, 100, f"{HOME}next", "5")),
            "http://a.com/item": parse("an item of a feed"),
        },
    )
    line = printed(capsys, "import_nutch", table, crawl.folder)
    for count in ("documents 3", "outlinks 2", "dropped/own_url 1", "dropped/no_fetch 1",
                  "dropped/scheme_not_allowed 1", "pages_without_body 4"):  # fmt: skip
        assert count in line
    home, linked, moved = documents_of(table).to_dicts()
    expected = {
        "title": "Title", "text": "the text", "parse_status": 1, "parse_minor": 0, "fetch_time": FETCHED,
        "parse_message": None, "language": "de", "charset": "latin1", "usage": "train-ai=n",
        "directives": ["noarchive", "nofollow"], "content_type": "text/plain",
        "signature": bytes.fromhex(digest),
        "outlinks": [
            {"key": "com.a:http/b", "anchor": anchor, "rel": None} for anchor in ("to b", "again")
        ],
    }  # fmt: skip
    assert {name: home[name] for name in expected} == expected
    assert dict(home["metadata"]) == noted
    assert (linked["parse_status"], linked["parse_minor"]) == (2, 200)
    assert linked["parse_message"] == "no luck"
    assert (moved["refresh"], moved["refresh_seconds"]) == (f"{HOME}next", 5)
    (batch,) = manifest_of(table).batches
    pages = rows_of(table, batch_component(batch, "pages")).sort("key")
    assert pages["etag"].to_list() == ['"e"', None, None, None]
    assert nutbeam("updatedb", table, "--scope", "any") == 0
    assert state_of(table).filter(url=HOME)["usage"].to_list() == ["train-ai=n"]
    assert nutbeam("fsck", table) == 0


@pytest.mark.few(2)
@pytest.mark.parametrize("has_contents", [True, False])
@pytest.mark.parametrize("parts", [1, 3])
def test_pages_and_texts_meet_whatever_parts_their_files_have(
    crawl, table, monkeypatch, parts, has_contents
):
    """The parser may have had another number of reducers than the fetcher."""
    monkeypatch.setattr(ordered_records, "_STEP_BYTES", 4096)
    urls = [f"http://h.com/{number:04d}" for number in range(900)]
    texts = {url: parse(f"text of {url} " + 20 * "x") for url in urls if int(url[-4:]) % 3}
    first = dict(list(texts.items())[::parts])
    folder = crawl.segment(
        "20261022000000",
        fetched=[datum(url, 33, FETCHED) for url in urls],
        contents={url: page(b"b" * 500) for url in urls[::2]} if has_contents else None,
        parsed=first,
    )
    for part in range(1, parts):
        texts_of_part = dict(list(texts.items())[part::parts])
        crawl.parses(f"segments/{folder.name}", texts_of_part, f"part-r-{part:05d}")
    words = ("--part_size", "65536", "--direct_num_workers", "1")
    assert nutbeam("import_nutch", table, crawl.folder, *words) == 0
    (batch,) = manifest_of(table).batches
    assert rows_of(table, batch_component(batch, "pages"))["key"].n_unique() == 900
    documents = documents_of(table)
    assert documents["key"].is_unique().all()
    parsed = documents.filter(pl.col("parse_status") == 1)
    assert parsed["text"].str.slice(0, 25).to_list() == [f"text of {url}"[:25] for url in texts]
    unparsed = documents.filter(pl.col("parse_status") == 0)
    assert len(unparsed) == (len([u for u in urls[::2] if u not in texts]) if has_contents else 0)


def test_parsing_again_replaces_the_texts_of_bodies_and_leaves_those_without(crawl, table):
    crawl.segment(
        "20261022000000",
        fetched=[datum(url, 33, FETCHED) for url in (HOME, LINKED)],
        contents={HOME: page(b"<title>Own</title>")},
        parsed={url: parse("text", "Title") for url in (HOME, LINKED)},
    )
    assert nutbeam("import_nutch", table, crawl.folder) == 0
    assert documents_of(table)["title"].to_list() == ["Title", "Title"]
    assert nutbeam("updatedb", table) == 0
    assert nutbeam("parse", table, "--reparse") == 0
    assert documents_of(table)["title"].to_list() == ["Own", "Title"]
    assert nutbeam_read(table, "pages").sort("url")["title"].to_list() == ["Own", "Title"]
    assert nutbeam("fsck", table) == 0


def test_a_segment_whose_parser_did_not_end_waits_for_parse(crawl, table):
    folder = crawl.segment(
        "20261022000000",
        fetched=[datum(HOME, 33, FETCHED)],
        contents={HOME: page(b"<title>Own</title>")},
        parsed={HOME: parse("text", "Title")},
    )
    (folder / "crawl_parse/part-r-00000").unlink()
    assert nutbeam("import_nutch", table, crawl.folder) == 0
    (batch,) = manifest_of(table).batches.values()
    assert batch.phase == "fetched"
    assert nutbeam("parse", table) == 0
    assert documents_of(table)["title"].to_list() == ["Own"]
