"""A text and its spans, cut to the main content of the page."""

import pytest

from nutbeam.web.pages.main_part import cut_spans, cut_text
from nutbeam.web.pages.markdown import markdown_of

TEXT = "Home\n\nTitle\n\none\ntwo\nthree\n\na\tb\n\tc\n\nImprint"
SPANS = [
    ("base", 0, 0, 0, "http://example.com/"),
    ("section", 0, 4, 0, "nav"),
    ("paragraph", 0, 4, 0, ""),
    ("link", 0, 4, 0, "/"),
    ("heading", 6, 11, 1, ""),
    ("list", 13, 26, 1, ""),
    ("item", 13, 16, 1, ""),
    ("paragraph", 13, 16, 0, ""),
    ("item", 17, 20, 1, ""),
    ("paragraph", 17, 20, 0, ""),
    ("item", 21, 26, 1, ""),
    ("paragraph", 21, 26, 0, ""),
    ("rule", 26, 26, 0, ""),
    ("table", 28, 34, 0, ""),
    ("row", 28, 31, 0, ""),
    ("cell", 28, 29, 0, ""),
    ("cell", 30, 31, 0, ""),
    ("row", 32, 34, 0, ""),
    ("cell", 32, 32, 0, ""),
    ("cell", 33, 34, 0, ""),
    ("paragraph", 36, 43, 0, ""),
]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([(6, 34)], "# Title\n\n- one\n- two\n- three\n\n---\n\n|  |  |\n| --- | --- |\n| a | b |\n|  | c |"),
        ([(6, 16), (21, 26)], "# Title\n\n- one\n- three"),
        ([(17, 20), (36, 43)], "- two\n\nImprint"),
        ([(0, 4)], "[Home](http://example.com/)"),
    ],
)  # fmt: skip
def test_the_markdown_of_parts_has_their_blocks_only(parts, expected):
    assert markdown_of(cut_text(TEXT, parts), cut_spans(SPANS, parts)) == expected


def test_a_page_without_parts_stays_as_it_is():
    assert (cut_text(TEXT, ()), cut_spans(SPANS, ())) == (TEXT, SPANS)


def test_marks_are_where_they_were_in_their_words():
    text = "skip\n\nsee here now"
    spans = [("paragraph", 0, 4, 0, ""), ("paragraph", 6, 18, 1, ""), ("link", 10, 14, 0, "/x")]
    ((_, first, after, *_), (_, start, end, *_)) = cut_spans(spans, [(6, 18)])
    assert cut_text(text, [(6, 18)])[first:after] == "see here now"
    assert cut_text(text, [(6, 18)])[start:end] == "here"
