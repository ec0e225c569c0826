import math
import random
import re
from collections import Counter

import polars as pl
import pytest
from file_changes import Earlier
from frames import frame_of
from scored_web import ScoredWeb, key, scorings

from nutbeam.policy.components.schema import FETCHLIST
from nutbeam.policy.scoring import similarity
from nutbeam.policy.scoring.similarity import gold_words, similarities


def plain(text, gold, stop=()):
    """The cosine of two texts, word by word."""
    one, other = (Counter(word for word in re.findall(r"[^\W_]+", each.lower()) if word not in stop)
                  for each in (text, gold))  # fmt: skip
    lengths = math.sqrt(sum(n * n for n in one.values()) * sum(n * n for n in other.values()))
    return sum(n * other[word] for word, n in one.items()) / lengths if lengths else 0.0


@pytest.fixture
def gold(tmp_path):
    path = tmp_path / "gold.txt"
    path.write_text("red apple, green apple")
    return str(path)


def test_cosines_are_those_of_plain_python(monkeypatch):
    monkeypatch.setattr(similarity, "_BYTES", 200)  # several pieces
    dice, words = random.Random(3), ["apple", "Pear", "ÄPFEL", "x1", "the", "苹果", "-", "_"]
    texts = [" ".join(dice.choices(words, k=dice.randint(0, 30))) for _ in range(60)]
    model, stop = " ".join(words * 2 + words[:3]), frozenset({"the"})
    found = similarities(pl.Series(texts), gold_words(model, stop), stop).to_list()
    assert found == pytest.approx([plain(text, model, stop) for text in texts])
    assert min(found) >= 0
    assert max(found) <= 1 + 1e-12


def test_no_texts():
    none = frozenset()
    assert similarities(pl.Series([], dtype=pl.String), gold_words("a", none), none).to_list() == []


def test_a_page_gets_its_similarity_and_hands_it_on(gold):
    web = ScoredWeb("similarity", goldstandard_file=gold)
    web.inject("a", "b")
    texts = {"a": "green apple", "b": "pear"}
    web.fetch({"a": ["c", "d"], "b": ["c"]}, text=texts)
    alike = pytest.approx(plain("green apple", "red apple, green apple"))
    assert web.column("score") == {"a": alike, "b": 0.0, "c": alike, "d": alike}
    web.fetch({"c": [], "b": ["d"]}, text={"c": "pears", "b": "red apple green apple"})
    assert web.column("score") == {"a": alike, "b": pytest.approx(1.0), "c": 0.0, "d": pytest.approx(1.0)}  # fmt: skip


def test_the_title_counts(gold):
    web = ScoredWeb("similarity", goldstandard_file=gold)
    web.inject("a")
    web.fetch({"a": []}, text={"a": "green apple"}, title={"a": "Red"})
    expected = plain("red green apple", "red apple, green apple")
    assert web.column("score")["a"] == pytest.approx(expected)


def test_a_page_without_text_keeps_its_score(gold):
    web = ScoredWeb("similarity", goldstandard_file=gold)
    web.inject("a")
    web.fetch({"a": []})
    assert web.column("score") == {"a": 1.0}


def test_opic_divides_the_similarity(gold):
    web = ScoredWeb("similarity", "opic", goldstandard_file=gold)
    web.inject("a")
    web.fetch({"a": ["b", "c"]}, text={"a": "red apple green apple"})
    assert web.column("score")["b"] == pytest.approx(1.0 + 0.5)  # similarity, then a share


def test_an_unchanged_page_gives_no_score_again(gold):
    web = ScoredWeb("similarity", "opic", goldstandard_file=gold)
    web.inject("a")
    text, signature = {"a": "red apple green apple"}, {"a": b"s"}
    web.fetch({"a": ["b", "c"]}, text=text, signature=signature)
    before = web.column("score")
    pages = {"a": ["b", "c"]}
    listed = Earlier(frame_of(FETCHLIST, {"key": key("a"), "signature": b"s"}))
    web.update(web.changes(pages, before=listed, text=text, signature=signature))
    assert web.column("score") == before


def test_title_and_text_are_read_only_if_they_are_needed(gold):
    assert scorings("similarity", goldstandard_file=gold).document_columns == ("title", "text")
    assert scorings("opic", "depth", "orphan").document_columns == ()


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "needs a text: give --goldstandard_file"), ("?!", "must have words")],
)
def test_a_text_is_needed(content, message, tmp_path):
    path = tmp_path / "gold.txt"
    path.write_text(content or "")
    with pytest.raises(ValueError, match=message):
        scorings("similarity", goldstandard_file="" if content is None else str(path))


def test_stop_words(tmp_path, gold):
    stop = tmp_path / "stop.txt"
    stop.write_text("# frequent\nRED\n\ngreen\n")
    web = ScoredWeb("similarity", goldstandard_file=gold, stopword_file=str(stop))
    web.inject("a")
    web.fetch({"a": []}, text={"a": "an apple is green"})
    assert web.column("score")["a"] == pytest.approx(plain("an apple is", "apple apple"))
