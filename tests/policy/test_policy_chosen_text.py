"""The text that a reader of pages gets: all of it, or their main content."""

import polars as pl
import pytest

from nutbeam.policy.chosen_text import with_chosen_text
from nutbeam.policy.components.document_schema import DOCUMENTS
from nutbeam.policy.components.schema import conform, to_frame

SPAN = {"kind": "paragraph", "start": 6, "end": 10, "level": 1, "of": ""}
PART = {"start": 6, "end": 10}
ROWS = [
    {"key": "a", "text": "Menu\n\ntale", "main": [PART], "blocks": [SPAN]},
    {"key": "b", "text": "Menu\n\ntale", "main": None, "blocks": [SPAN]},
    {"key": "c", "text": None, "main": None, "blocks": None},
]


def pages(*names):
    frame = to_frame(conform(pl.DataFrame(ROWS), DOCUMENTS))
    return frame.select("key", "main", *names)


def test_the_main_content_takes_the_place_of_the_text_where_it_is_known():
    texts = with_chosen_text(pages("text"), "main").get_column("text").to_list()
    assert texts == ["tale", "Menu\n\ntale", None]


def test_the_spans_are_those_of_the_main_content():
    first, second, third = (
        with_chosen_text(pages("text", "blocks"), "main").get_column("blocks").to_list()
    )
    assert (first, second, third) == ([SPAN | {"start": 0, "end": 4}], [SPAN], None)


@pytest.mark.parametrize("rows", [slice(0, 3), slice(1, 3), slice(0, 0)])
def test_all_text_stays_as_it_is_stored(rows):
    stored = pages("text", "blocks")[rows]
    assert with_chosen_text(stored, "all").equals(stored, null_equal=True)
    assert with_chosen_text(stored[1:], "main").equals(stored[1:], null_equal=True)
