"""What of a text is shown as it is, and what as an escape."""

import json
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nutbeam.web.base.visible import visible, visible_lines

NEVER = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
CONTROLS = [*range(0x20), 0x7F, *range(0x80, 0xA0), 0x2028, 0x2029]
REORDERING = [*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C]
UNSEEN = [0x00AD, 0x200B, 0x2060, 0x2064, 0xFEFF, 0x180E, 0xFFF9, 0x115F, 0x3164, 0xFFA0, 0xE0100]
OTHERS = [*range(0xE0000, 0xE0080), 0xE000, 0xF8FF, 0x10FFFD, 0xD800, 0xDFFF, 0xFFFF, 0x1FFFE]


@pytest.mark.parametrize("code", [*CONTROLS, *REORDERING, *UNSEEN, *OTHERS], ids=hex)
def test_characters_that_a_terminal_obeys_or_hides_become_escapes(code):
    shown = visible(f"a{chr(code)}b", keep="")
    assert shown.isascii()
    assert shown.isprintable()
    assert len(shown) > 3
    if code >= 0x20:
        restored = json.loads(f'"{shown}"')
        assert restored == f"a{chr(code)}b"


@pytest.mark.parametrize(
    "text",
    [
        "Größe, naïve café, cafe\u0301, Œuvre - «Prix\xa0: 3\u202f€»",
        "日本語　タイトル",
        "한국어 제목",
        "שלום עולם, مرحب، ١٢٣",
        "م\u200cخ",
        "क\u094d\u200dष हिन्दी",
        "👩\u200d🚀 ❤\ufe0f\u200d🔥 🇫🇷",
        "Ελληνικά, Кириллица, ไทย, አማርኛ",
        r"C:\new\x1b \u202e",
    ],
)
def test_ordinary_text_is_shown_as_it_is(text):
    assert visible(text) == text


@pytest.mark.parametrize(
    "text", ["a\u200db", "\u200d", "\u0628\u200c", "م\u200c\u200dم", "a\u200cم"]
)
def test_a_joiner_that_joins_nothing_is_an_escape(text):
    assert "\u200c" not in visible(text)
    assert "\u200d" not in visible(text)


def test_kept_characters_stay_and_lines_stay_lines():
    assert visible("a\tb\nc\rd") == "a\tb\\nc\\rd"
    assert visible("a\tb\nc\rd\x1b", keep="\n\t") == "a\tb\nc\\rd\\x1b"
    assert visible_lines(["a\nb", "c\x85d", "e\u2028f"]) == "a\\nb\nc\\u0085d\ne\\u2028f"


@given(st.text(st.characters(exclude_categories=())))
def test_no_character_that_counts_is_left_and_again_changes_nothing(text):
    shown = visible(text, keep="")
    assert {c for c in shown if unicodedata.category(c) in NEVER} <= {"\u200c", "\u200d"}
    assert visible(shown, keep="") == shown


@settings(max_examples=30)
@given(st.dictionaries(st.text(), st.lists(st.text())))
def test_json_stays_the_same_json(value):
    line = json.dumps(value, ensure_ascii=False)
    assert json.loads(visible(line)) == json.loads(line)


def test_every_such_character_of_the_first_plane():
    hidden = [chr(code) for code in range(1 << 16) if unicodedata.category(chr(code)) in NEVER]
    assert len(hidden) > 6400 + 2048
    assert visible("".join(hidden), keep="").isascii()
