"""Corrections of misspelt words from the words of an index."""

import itertools
import random

import pytest

from nutbeam.policy.searching.spelling import (
    Correction,
    correct_word,
    distance,
    split_word,
    usual_spelling,
)


class Words:
    """An index of some words; counts how often it is asked."""

    def __init__(self, **pages):
        self.pages, self.questions = pages, 0

    def pages_with_spelling(self, word):
        self.questions += 1
        return self.pages.get(word, 0)

    def spellings(self, beginning):
        return [pair for pair in self.pages.items() if pair[0].startswith(beginning)]


INDEX = Words(vacuum=20, vacuums=1, postgres=90, configuration=40, create=50, index=60, table=70, database=80,
              kafka=5, kafkas=9, receive=30, house=8, mouse=50, información=4, informacion=4, таблица=3, straße=2,
              transactional=900, transaction=7, bicycles=3)  # fmt: skip


@pytest.mark.parametrize(
    ("typed", "meant", "is_sure"),
    [
        ("vacum", "vacuum", True), ("vaccuum", "vacuum", True), ("vacuun", "vacuum", True), ("vacumm", "vacuum", True),
        ("postgrse", "postgres", True), ("recieve", "receive", True),  # two letters changed places
        ("configuraton", "configuration", True), ("confguraton", "configuration", False),  # one mistake, two
        ("bycicles", "bicycles", False),  # two at the beginning
        ("databses", "database", True), ("tables", "table", True),  # a plural
        ("табица", "таблица", True), ("informaccion", "informacion", True),
        ("bouse", "mouse", False),  # another first letter; more pages than house
        ("tabel", "table", True), ("tabl", "table", False),  # a word of four letters is not sure
    ],
)  # fmt: skip
def test_a_misspelt_word_is_corrected(typed, meant, is_sure):
    assert correct_word(typed, [typed, typed.removesuffix("s")], INDEX) == Correction(
        meant, is_sure
    )


@pytest.mark.parametrize(
    "typed", ["abc", "vac", "vacuum2", "2026", "a1b2c3", "天気予報", "zzzzzzzz", "x" * 41]
)
def test_short_words_numbers_and_unlike_words_are_not_corrected(typed):
    assert correct_word(typed, [typed], INDEX) is None


def test_of_two_words_as_near_the_one_with_more_pages_is_meant():
    assert correct_word("xouse", ["xouse"], INDEX).text == "mouse"
    assert correct_word("transactionl", ["transactionl"], INDEX).text == "transactional"


def test_a_word_with_two_mistakes_that_very_many_pages_have_goes_before_a_rare_one_with_one():
    index = Words(container=900, contanier=1, contavner=1)
    assert correct_word("contanner", ["contanner"], index).text == "container"


def test_the_work_for_a_word_is_bounded():
    index = Words(vacuum=1)
    correct_word("abcdefghij" * 4, ["abcdefghij" * 4], index)
    assert index.questions < 3_000


def test_two_words_that_were_typed_as_one_are_found_where_a_page_has_them():
    def split(word, adjacent=(), together=()):
        return split_word(word, INDEX, adjacent.__contains__, together.__contains__)

    assert split("createindex", ["create index"]) == Correction("create index", True)
    assert split("createindex", [], ["create index"]) == Correction("create index", False)
    assert split("createindex") is None
    assert split("create2", ["create 2"]) is None


def test_a_rare_word_has_a_more_usual_spelling():
    assert usual_spelling("recieve", Words(recieve=1, receive=30)) == "receive"
    assert usual_spelling("recieve", Words(recieve=2, receive=30)) is None


def slow_distance(one, other):
    """The same by its definition: the fewest of all mistakes (Damerau, each letter in one of them)."""
    if not one or not other:
        return len(one) + len(other)
    ways = [slow_distance(one[1:], other) + 1, slow_distance(one, other[1:]) + 1,
            slow_distance(one[1:], other[1:]) + (one[0] != other[0])]  # fmt: skip
    if one[:2] == other[:2][::-1] and len(one) > 1 and len(other) > 1:
        ways.append(slow_distance(one[2:], other[2:]) + 1)
    return min(ways)


def test_distances_are_those_of_the_definition():
    dice = random.Random(5)
    words = ["".join(dice.choices("abc", k=dice.randrange(6))) for _ in range(25)]
    for one, other in itertools.product(words, words):
        for most in (1, 2):
            assert distance(one, other, most) == min(slow_distance(one, other), most + 1)
