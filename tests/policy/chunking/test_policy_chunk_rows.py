"""Chunks of pages: their rows, and ids that only a change of the content changes."""

import polars as pl
from chunked_texts import parsed, prose

from nutbeam.policy.chunking.chunk_rows import (
    CHUNK_COLUMNS,
    CHUNKED_COLUMNS,
    ChunkRules,
    chunk_rows,
)
from nutbeam.policy.chunking.tokenizers import WORD_COUNTS
from nutbeam.web.urls.row_keys import to_key

SPAN = ("kind", "start", "end", "level", "of")


def chunks_of(pages, limit=64):
    """Returns the chunks of pages, which are HTML by their URL."""
    rows = []
    for url, html in pages.items():
        text, spans = (None, []) if html is None else parsed(html)
        blocks = [dict(zip(SPAN, span, strict=True)) for span in spans] or None
        rows.append(
            {
                "key": to_key(url),
                "title": url[-1],
                "text": text,
                "blocks": blocks,
                "language": "en",
                "last_fetch_time": 7,
            }
        )
    schema = {"key": pl.String, **pl.Schema(CHUNKED_COLUMNS.schema)}
    return chunk_rows(pl.DataFrame(rows, schema=schema), ChunkRules(limit, WORD_COUNTS))


def ids_of(html, url="http://a.example/a", limit=64):
    """Returns the ids of the chunks of a page."""
    return chunks_of({url: html}, limit)["chunk_id"].to_list()


def test_a_row_has_the_place_and_the_markdown_of_its_chunk():
    html = (
        "<base href=http://b.example/><h1>T</h1><p>see <a href=x>x</a><h2>U</h2><p>one <b>two</b>"
    )
    chunks = chunks_of(
        {"http://a.example/a": html, "http://a.example/b": None, "http://a.example/c": ""}
    )
    assert chunks.columns == [column.name for column in CHUNK_COLUMNS]
    assert chunks.drop("chunk_id").rows() == [
        ("http://a.example/a", "a", 0, ["T"], "T\n\nsee x", "# T\n\nsee [x](http://b.example/x)", 0, 8, 3, 7, "en"),
        ("http://a.example/a", "a", 1, ["T", "U"], "U\n\none two", "## U\n\none **two**", 10, 20, 3, 7, "en"),
    ]  # fmt: skip


def test_equal_chunks_of_a_page_and_those_of_other_pages_have_ids_of_their_own():
    html = f"<h2>A</h2><p>{prose(1, 9)}" * 3 + f"<h2>B</h2><p>{prose(1, 9)}"
    first, second = ids_of(html), ids_of(html, "http://a.example/b")
    assert len({*first, *second}) == 8
    assert {len(chunk_id) for chunk_id in first} == {32}
    assert first == ids_of(html)


def test_an_id_stays_when_other_chunks_come_and_go_and_changes_with_its_text_or_path():
    html = f"<h1>T</h1><h2>A</h2><p>{prose(1, 9)}<h2>B</h2><p>{prose(2, 9)}"
    first, second = ids_of(html)
    more = html.replace("<h2>A", f"<h2>New</h2><p>{prose(3, 50)}<h2>A")
    assert ids_of(more)[1:] != [first, second]  # the heading of the page was in the first chunk
    assert ids_of(more)[2:] == [second]
    assert ids_of(html.replace("<h2>B", "<h2>C"))[0] == first
    renamed = ids_of(html.replace("<h1>T", "<h1>U"))
    assert {*renamed}.isdisjoint({first, second})


def test_of_a_site_of_which_a_twentieth_has_changed_at_most_a_twentieth_of_the_ids_is_new():
    def page(number, changed):
        sections = [
            f"<h2>{prose(number * 10 + at, 3)}</h2>"
            + "".join(f"<p>{prose(number * 1_000 + at * 20 + n, 40)}" for n in range(2 + at * 2))
            for at in range(6)
        ]
        if changed:
            sections[2] = sections[2].replace("<p>", "<p>A sentence that is new. ", 1)
        return f"<h1>Page {number}</h1>{''.join(sections)}"

    sites = (
        {f"http://a.example/{number}": page(number, state and number % 20 == 7) for number in range(60)}
        for state in (False, True)
    )  # fmt: skip
    before, after = (chunks_of(site, 128)["chunk_id"] for site in sites)
    assert len(before) > 600
    new = len({*after} - {*before})
    assert 3 <= new <= 9 < len(after) / 20
