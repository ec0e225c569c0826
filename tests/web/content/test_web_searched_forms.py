"""The form in which texts and queries are searched."""

import re
import unicodedata

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nutbeam.web.content.searched_forms import SAME_IN_NFKC, searched_form, searched_forms

PARTS = st.sampled_from(
    ["e", "\u0301", "\u00ad", "İ", "ﬁ", "ｶ", "ﾞ", "か", "\u3099", "각", "\u11a8", "й", "\u2013", " ",
     "\u0627", "\u0653", "\u064e", "\u0640", "ש", "\u05c1"]
)  # fmt: skip


def test_settled_characters_stay_unchanged_beside_any_others():
    settled = [chr(n) for n in range(0x10000) if re.match(f"[{SAME_IN_NFKC}]", chr(n))]
    assert len(settled) > 30_000
    assert [c for c in settled if unicodedata.combining(c) or searched_form(c) != c] == []


@pytest.mark.long
@given(st.lists(st.lists(PARTS | st.characters(codec="utf-8"), max_size=8).map("".join)))
def test_a_column_has_the_form_of_each_text(texts):
    right = [searched_form(text) for text in texts]
    assert searched_forms(pl.Series(texts, dtype=pl.String)).to_list() == right
    lists = pl.Series([texts, None], dtype=pl.List(pl.String))
    assert searched_forms(lists).to_list() == [right, None]
    assert [searched_form(text) for text in right] == right


@pytest.mark.parametrize(
    ("text", "form"),
    [("שָׁלוֹם", "שלום"), ("\ufb2a\u05b8לום", "שלום"), ("كِتَابٌ", "كتاب"), ("محـــمد", "محمد"), ("آ أ ئ", "آ أ ئ"),  # noqa: RUF001
     ("\u0627\u0653", "آ"), ("किताब หน้า", "किताब หน้า")],
)  # fmt: skip
def test_points_that_help_to_read_are_left_out_and_letters_stay(text, form):
    assert searched_form(text) == form
    assert searched_forms(pl.Series([text])).to_list() == [form]


def test_a_missing_text_stays_missing():
    texts = pl.Series(["e\u0301", None, "é"])
    assert searched_forms(texts).to_list() == ["é", None, "é"]
    assert texts.to_list()[0] == "e\u0301"
