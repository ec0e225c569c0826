import random

import polars as pl
import pytest
from scored_web import ScoredWeb, key, random_pages, scorings

from nutbeam.policy.scoring.scoring import BoostOptions, ScoringOptions
from nutbeam.policy.scoring.scorings import OPIC

# Nutch: the page's score divided among its links; the page loses nothing.


def test_opic_scores_only_grow():
    web = ScoredWeb("opic")
    web.inject("a")
    web.fetch({"a": ["b", "c"]})
    assert web.column("score") == {"a": 1.0, "b": 0.5, "c": 0.5}
    web.fetch({"a": ["b", "c"], "b": ["a"]})
    assert web.column("score") == {"a": 1.5, "b": 1.0, "c": 1.0}
    assert set(web.column("cash").values()) == {None}


def test_cash_is_given_away_once():
    web = ScoredWeb("opic_cash")
    web.inject("a", {"key": key("d"), "score": 4.0})
    assert web.column("cash") == {"a": 1.0, "d": 4.0}
    web.fetch({"a": ["b", "c"]})
    assert web.column("score") == {"a": 1.0, "b": 0.5, "c": 0.5, "d": 4.0}
    assert web.column("cash") == {"a": 0.0, "b": 0.5, "c": 0.5, "d": 4.0}
    web.fetch({"a": ["b", "c"], "b": ["a"]})
    assert web.column("score") == {"a": 1.5, "b": 0.5, "c": 0.5, "d": 4.0}
    assert web.column("cash") == {"a": 0.5, "b": 0.0, "c": 0.5, "d": 4.0}


def test_a_page_without_links_keeps_its_cash():
    web = ScoredWeb("opic_cash")
    web.inject("a", "r")
    web.fetch({"a": [], "r": "http://example.com/b"})
    assert web.column("cash") == {"a": 1.0, "r": 1.0, "b": 0.0}


def test_a_row_of_another_scoring_starts_with_its_score_as_cash():
    before = ScoredWeb("opic")
    before.inject("a")
    web = ScoredWeb("opic_cash")
    web.rows = before.rows
    web.fetch({"a": ["b"]})
    assert web.column("cash") == {"a": 0.0, "b": 1.0}


def test_a_page_that_the_fetch_followed_has_nothing_to_give_yet():
    web = ScoredWeb("opic_cash")
    web.inject("a")
    web.fetch({"a": ["b"], "b": ["c"]})
    assert web.column("cash") == {"a": 0.0, "b": 1.0, "c": 0.0}


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "names",
    [
        ("opic_cash",),
        ("opic_cash", "similarity"),
        ("similarity", "opic_cash"),
        ("opic_cash", "depth"),
        ("depth", "opic_cash", "similarity", "orphan"),
    ],
)
@pytest.mark.parametrize("seed", range(5))
def test_cash_is_conserved_in_every_order_of_scorings(names, seed, tmp_path):
    (tmp_path / "gold.txt").write_text("apple pear")
    dice = random.Random(seed)
    web = ScoredWeb(*names, goldstandard_file=str(tmp_path / "gold.txt"), depth_max=3)
    web.inject(*(f"p{n}" for n in range(4)))
    for _ in range(6):
        pages = random_pages(dice, 12)
        texts = dice.choices(["apple", "apple pear", "plum", None], k=len(pages))
        web.fetch(pages, text=dict(zip(pages, texts, strict=True)))
        cash = web.column("cash")
        assert sum(value or 0.0 for value in cash.values()) == pytest.approx(4.0, rel=1e-6)
        assert min(value or 0.0 for value in cash.values()) >= 0


def test_a_result_that_comes_too_late_gives_cash_and_pays_for_it():
    web = ScoredWeb("opic_cash")
    web.inject("a")
    late = web.changes({"a": ["b"]})
    web.now += 1
    web.update(web.changes({"a": []}))
    assert web.column("cash") == {"a": 1.0}
    web.update(late)
    assert web.counts["stale_results"] == 1
    assert web.column("cash") == {"a": 0.0, "b": 1.0}


def test_a_page_in_two_files_of_an_update_pays_for_both():
    web = ScoredWeb("opic_cash")
    web.inject("a")
    web.update(web.changes({"a": ["b"]}), web.changes({"a": ["c"]}, order=1))
    assert web.column("cash") == {"a": -1.0, "b": 1.0, "c": 1.0}
    web.fetch({"a": ["d"], "b": ["a"]})  # a owes, and gives nothing
    assert web.column("cash") == {"a": 0.0, "b": 0.0, "c": 1.0, "d": 0.0}


@pytest.mark.parametrize("name", ["opic", "opic_cash"])
def test_factors_of_links(name):
    web = ScoredWeb(name, internal_link_factor=0.5)
    web.inject("a")
    web.fetch({"a": ["b"]})
    assert web.column("score")["b"] == 0.5


@pytest.mark.parametrize("names", [("opic",), ("opic_cash",)])
@pytest.mark.parametrize("score", [float("nan"), 3e38, -3e38])
def test_scores_stay_finite(names, score):
    web = ScoredWeb(*names, internal_link_factor=1e6, external_link_factor=1e6)
    web.inject("a", "b")
    bad = pl.lit(score, pl.Float32)
    web.rows = web.rows.with_columns(score=bad, cash=bad if "opic_cash" in names else None)
    for _ in range(3):
        web.fetch({"a": ["b", "c"], "b": ["a"]})
    assert len(web.rows) == 3
    assert web.rows.select(pl.col("score", "cash").drop_nulls().is_finite().all()).row(0) == (
        True,
        True,
    )


@pytest.mark.parametrize("names", [("opic",), ("opic_cash",), ("depth", "opic", "orphan")])
def test_a_rerun_in_pieces_gives_the_same_bits(names):
    dice = random.Random(5)
    first = ScoredWeb(*names)
    first.inject(*({"key": key(f"p{n}"), "score": dice.random()} for n in range(40)))
    files = [random_pages(dice, 40) for _ in range(4)]
    second = ScoredWeb(*names)
    second.rows = first.rows
    some = [first.changes(pages, order) for order, pages in enumerate(files)]
    first.update(*some)
    second.update(*(part for file in reversed(some) for part in file.iter_slices(7)))
    assert second.rows.equals(first.rows)


def test_boosts():
    rows = pl.DataFrame({"score": [4.0, 0.0, -1.0, None]})
    boosts = OPIC.index_boost(rows, BoostOptions()).get_column("boost").to_list()
    assert boosts == [2.0, 0.0, 0.0, 0.0]
    link = scorings("link").index_boost(rows, BoostOptions(normalize_score=3.0))
    assert link.get_column("boost").to_list() == [12.0, 0.0, 0.0, 0.0]
    plain = scorings("depth").index_boost(rows, BoostOptions())
    assert plain.get_column("boost").to_list() == [1.0] * 4


def test_link_leaves_scores_as_they_are():
    web = ScoredWeb("link")
    web.inject("a")
    web.fetch({"a": ["b"], "b": ["a"]})
    assert web.column("score") == {"a": 1.0, "b": 0.0}


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("opic", "opic_cash"), "--scoring must have one of opic and opic_cash, got both"),
        (("opic", "opic"), "--scoring may name a scoring once, got 'opic' twice"),
        (("metadata",), "--scoring metadata needs names: give --metadata_to_links"),
    ],
)
def test_scorings_that_do_not_fit(names, message):
    with pytest.raises(ValueError, match=message):
        ScoringOptions(scoring=names)
