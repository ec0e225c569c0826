"""The expressions of dk.brics: their syntax, and that no text makes them slow."""

import itertools
import random

import polars as pl
import pytest

from nutbeam.web.filters.regex_filter import RegexFilter
from nutbeam.web.patterns import languages
from nutbeam.web.patterns.brics import Automaton, compile_automaton


@pytest.mark.parametrize(
    ("text", "matched", "not_matched"),
    [
        ("", [""], ["a"]),
        ("a|bc", ["a", "bc"], ["ab", "abc"]),
        ("a.c", ["abc", "a\nc"], ["ac"]),
        ("(ab)*c?", ["", "abab", "abc", "c"], ["aba"]),
        ("a{2}b{1,}c{0,2}", ["aab", "aabbcc"], ["ab", "aabccc", "aacc"]),
        ("[a-c^-]x", ["bx", "^x", "-x"], ["dx"]),
        ("[^a-c]", ["d", "\u00e9"], ["a", ""]),
        ("^a$", ["^a$"], ["a"]),
        (r"\*\.\\", [r"*.\ "[:3]], ["x"]),
        ("a@z", ["az", "abcz"], ["a"]),
        ("a#", [], ["a", "a#"]),
        ('"a.b"c', ["a.bc"], ["axbc"]),
        ("a()b", ["ab"], []),
        (".*foo.*&.*bar.*", ["foobar", "bar-foo"], ["foo", "bar"]),
        ("~(.*foo.*)", ["", "bar"], ["foo", "a foo b"]),
        ("~~a", ["a"], ["b"]),
        ("a&~a", [], ["a", ""]),
        ("<9-12>", ["9", "10", "12", "09", "0012"], ["8", "13", "1"]),
        ("<08-12>", ["08", "12"], ["8", "13", "008"]),
        ("x<5-5>", ["x5"], ["x6"]),
        ("<0-255>", ["0", "255", "99"], ["256", ""]),
    ],
)
def test_dk_brics_syntax(text, matched, not_matched):
    made = compile_automaton(text)
    for url, found in [*((u, True) for u in matched), *((u, False) for u in not_matched)]:
        assert (made.python.search(url) is not None) is found, url
        if made.column is not None:
            assert pl.Series([url]).str.contains(made.column).item() is found, url


def test_every_number_of_an_interval():
    for low, high in itertools.product([0, 7, 10, 99, 105], [0, 9, 10, 99, 100, 1234]):
        made = Automaton(f"<{low}-{high}>")
        first, last = sorted((low, high))
        for number in range(0, 1400, 7):
            assert (made.search(str(number)) is not None) is (first <= number <= last)


def test_an_automaton_that_is_small_may_stand_for_much():
    made = compile_automaton("((((a{200}){200}){200}){200}b?){200}|c")
    assert made.column is None
    assert made.python.search("c") is not None
    assert made.python.search("aac") is None


@pytest.mark.parametrize(
    "text",
    [f".*{'+' * 40}]D+.foo", "(" * 20 + "a" + "?b?)+" * 20 + "x", "(" * 12 + "a" + "{1,3}c?)" * 12],
)
def test_repeats_of_repeats_are_not_tried_in_each_way(text):
    assert compile_automaton(text).python.search("abc" * 30) is None


def test_nodes_of_past_texts_are_forgotten(monkeypatch):
    monkeypatch.setattr(languages, "_MOST_NODES", 300)
    made = compile_automaton(".*a.{20}").python
    for number in range(200):
        text = f"{number:b}".replace("1", "a") + "x" * 20
        assert (made.search(text) is not None) is (text[-21] == "a")


def test_a_text_that_needs_too_many_nodes_is_slow(monkeypatch):
    monkeypatch.setattr(languages, "_MOST_NODES", 300)
    rules = RegexFilter("-.*a.{90}&~(x)\n+.*", "f", compile_automaton)
    slow = "".join(random.Random(1).choices("ab", k=400))
    assert (rules.decide(slow).accept, rules.decide(slow).slow) == (False, True)
    assert rules.decide("http://foo.com/").accept


def test_automata_take_as_long_as_the_text_is():
    made = Automaton("((a|aa)*)*b&~(.*c.*)")
    assert made.search("a" * 20_000) is None
    assert made.search("a" * 20_000 + "b") is not None
