"""The passage of a long text from which a snippet is made."""

import random

import pytest

from nutbeam.policy.searching.best_passage import _WINDOW, best_passage

FILL = "grass and hills and clouds. " * 400


def worth(text, counts):
    """Returns how much the best window of a text counts, place by place."""
    low = text.lower()
    windows = (low[at : at + _WINDOW + 8] for at in range(0, len(low), 3))
    return max(sum(n for word, n in counts.items() if word in window) for window in windows)


@pytest.mark.parametrize("seed", range(5))
def test_the_part_has_the_best_window_of_the_text(seed):
    dice, counts = random.Random(seed), {"river": 1.0, "stone": 2.5, "wood": 4.0}
    words = ["grass", "hill", "cloud", "sky"] * 40 + ["River", "stones", "woods"]
    text = " ".join(dice.choices(words, k=4_000))
    passage = best_passage(text, counts)
    assert passage in text
    assert len(passage) < 1_300
    assert worth(passage, counts) >= worth(text, counts)


@pytest.mark.parametrize(
    ("words", "beginning"),
    [
        ("Häuser am Fluß", "häus"),
        ("東京の天気", "天"),
        ("Реки и дома", "рек"),
        ("a stone", "stone"),
    ],
)
def test_words_of_any_script_are_found_in_a_long_text(words, beginning):
    passage = best_passage(FILL + words + " " + FILL, {beginning: 1.0})
    assert words in passage
    assert len(passage) < 1_300


@pytest.mark.parametrize("text", ["", "a stone", FILL], ids=["empty", "short", "none of the words"])
def test_a_text_stays_whole(text):
    assert best_passage(text, {"river": 1.0}) == text


def test_a_part_of_another_word_is_no_word():
    passage = best_passage("millstones " + FILL + "a stone " + FILL, {"stone": 1.0})
    assert " stone " in passage
    assert "millstones" not in passage


def test_a_text_without_spaces_is_cut_between_characters():
    passage = best_passage("晴" * 5_000 + "天" + "晴" * 5_000, {"天": 1.0})
    assert "天" in passage
    assert set(passage) == {"晴", "天"}
