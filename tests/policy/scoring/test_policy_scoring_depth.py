import pytest
from scored_web import ScoredWeb, key, scorings

from nutbeam.policy.generating.selection import GenerateOptions, add_ranks, drop_low_scores

# Nutch: seeds have depth 1; pages at the limit lose their links.


def seed(name, limit):
    return {"key": key(name), "metadata": [("_maxdepth_", limit)]}


def test_links_end_at_the_limit_of_their_seed():
    web = ScoredWeb("depth", "opic", depth_max=4)
    web.inject(seed("a", "2"), "b")
    web.fetch({"a": ["a1"], "b": ["b1"]})
    assert web.column("max_depth") == {"a": 2, "a1": 2, "b": None, "b1": None}
    web.fetch({"a1": ["a2"], "b1": ["b2"]})  # depth 2
    assert web.counts["dropped/too_deep"] == 1
    assert "a2" not in web.column("distance")
    web.fetch({"b2": ["b3"]})
    web.fetch({"b3": ["b4"]})
    assert web.counts["dropped/too_deep"] == 1
    assert max(web.column("distance").values()) == 3


def test_the_largest_of_several_depth_limits_counts():
    web = ScoredWeb("depth", "opic")
    web.inject(seed("a", "3"), seed("b", "7"), "c")
    web.fetch({"a": ["ab"], "b": ["ab", "bc"], "c": ["bc"]})
    assert web.column("max_depth") == {"a": 3, "b": 7, "c": None, "ab": 7, "bc": None}


def test_known_pages_keep_their_limit():
    web = ScoredWeb("depth", "opic")
    web.inject(seed("a", "3"), seed("b", "7"))
    web.fetch({"b": ["a"]})
    assert web.column("max_depth") == {"a": 3, "b": 7}


def test_a_page_of_unknown_depth_keeps_its_links():
    web = ScoredWeb("depth", "opic", depth_max=1)
    web.inject("a")
    web.rows = web.rows.with_columns(distance=None)
    web.fetch({"a": ["b"]})
    assert set(web.column("score")) == {"a", "b"}


def test_the_target_of_a_redirect_gets_the_limit():
    web = ScoredWeb("depth", "opic")
    web.inject(seed("a", "2"))
    web.fetch({"a": "http://example.com/b"})
    assert web.column("max_depth")["b"] == 2


@pytest.mark.parametrize("value", ["", "0", "-1", "1.5", "many", "99999999999"])
def test_a_limit_that_is_no_depth_is_ignored(value):
    web = ScoredWeb("depth")
    web.inject(seed("a", value))
    assert web.column("max_depth") == {"a": None}


def test_an_updated_seed_gets_a_new_limit():
    web = ScoredWeb("depth")
    web.inject(seed("a", "2"))
    web.inject(seed("a", "5"))
    assert web.column("max_depth") == {"a": 2}
    web.inject(seed("a", "5"), update_known=True)
    assert web.column("max_depth") == {"a": 5}


def test_a_pattern_overrides_the_limit_of_a_page():
    given = {"depth_override_pattern": "/[ab]$", "depth_max_override": 3}
    web = ScoredWeb("depth", depth_max=9, **given)
    web.inject(seed("a", "1"), seed("c", "2"))
    web.fetch({"a": ["b"], "c": ["d"]})
    web.fetch({"b": ["e"], "d": ["f"]})
    web.fetch({"e": ["g"]})
    # Pages that the pattern does not match keep their limits, unlike in Nutch.
    assert web.column("max_depth") == {"a": 1, "b": 3, "c": 2, "d": 2, "e": 3}
    with pytest.raises(ValueError, match=r"^--depth_override_pattern must be .*, got '\('"):
        ScoredWeb("depth", depth_override_pattern="(")


def test_pages_near_the_seeds_come_first():
    web = ScoredWeb("depth", "opic", depth_max=10)
    web.inject("a")
    web.rows = web.rows.with_columns(score=0.5)
    web.fetch({"a": ["b"]})
    web.rows = web.rows.with_columns(score=1.0)
    sorted_rows = drop_low_scores(web.rows, GenerateOptions(min_score=9.5), web.scorings)
    assert sorted_rows.get_column("sort_value").to_list() == [10.0]
    both = drop_low_scores(web.rows, GenerateOptions(), web.scorings)
    assert both.get_column("sort_value").to_list() == [10.0, 9.0]
    rank = add_ranks(both.with_columns(score=2.0), GenerateOptions()).get_column("rank")
    assert rank[0] > rank[1]


def test_only_scores_are_sorted_as_before():
    for names in (("opic",), ("opic_cash",), ("orphan", "link"), ("opic", "orphan")):
        assert scorings(*names).sorts_by_score, names
    for names in (("depth", "opic"), ("depth",), ("orphan",), ("opic", "link")):
        assert not scorings(*names).sorts_by_score, names
