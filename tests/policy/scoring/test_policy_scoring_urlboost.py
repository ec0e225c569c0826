import polars as pl
import pytest
from scored_web import ScoredWeb, scorings

from nutbeam.policy.base.key_columns import from_keys
from nutbeam.policy.generating.selection import GenerateOptions, drop_low_scores
from nutbeam.policy.scoring.urlboost import factors, read_boosts
from nutbeam.web.rule_files.rule_files import RuleFile
from nutbeam.web.urls.row_keys import from_key, to_key

RULES = """
# archives last, news first
0.1 /archive/
2.5 ^https?://[^/]+/news/
3 (?<!old)/a$
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "boosts.txt"
    path.write_text(RULES)
    return str(path)


def test_the_first_pattern_that_is_found_decides():
    names = ["news/1", "news/archive/1", "a", "old/a", ""]
    keys = pl.Series([to_key(f"http://example.com/{name}") for name in names])
    found = factors(keys, read_boosts(RuleFile("boosts.txt", RULES)))
    assert found.to_list() == [2.5, 0.1, 3.0, 1.0, 1.0]
    assert factors(keys.clear(), read_boosts(RuleFile("x", RULES))).to_list() == []


def test_a_pattern_that_takes_too_long_is_not_found():
    keys = pl.Series([to_key("http://example.com/" + "a" * 40)])
    assert factors(keys, read_boosts(RuleFile("x", r"2 (a+)+\1\1\1b$"))).to_list() == [1.0]


@pytest.mark.parametrize("line", ["news", "x news", "-1 news", "inf news", "nan news", "2", "2 ("])
def test_bad_lines(line):
    with pytest.raises(ValueError, match=r"boosts.txt:2: a (line|pattern) must be .*got '"):
        read_boosts(RuleFile("boosts.txt", f"1 a\n{line}"))


def test_generate_prefers_boosted_urls(file):
    web = ScoredWeb("opic", "urlboost", url_boost_file=file)
    web.inject("archive/1", "news/1", "x")
    assert web.column("score") == dict.fromkeys(("archive/1", "news/1", "x"), 1.0)
    values = drop_low_scores(web.rows, GenerateOptions(min_score=0.5), web.scorings)
    assert values.get_column("sort_value").to_list() == [2.5, 1.0]


def test_new_urls_get_their_factor_once(file):
    web = ScoredWeb("opic", "urlboost", url_boost_file=file, url_boost_of="new")
    web.inject("news/1", "x")
    assert web.column("score") == {"news/1": 2.5, "x": 1.0}
    web.fetch({"x": ["archive/1"]})
    assert web.column("score")["archive/1"] == pytest.approx(0.1)
    web.fetch({"x": ["archive/1"]})
    assert web.column("score")["archive/1"] == pytest.approx(1.1)
    assert web.scorings.sorts_by_score


def test_scores_of_new_urls_are_multiplied_after_all_others_are_given(file):
    with pytest.raises(ValueError, match=r"urlboost after opic .* got 'depth,urlboost,opic'"):
        scorings("depth", "urlboost", "opic", url_boost_file=file, url_boost_of="new")
    assert scorings("urlboost", "opic", url_boost_file=file)
    assert scorings("opic", "urlboost", "depth", url_boost_file=file, url_boost_of="new")


def test_cash_is_not_multiplied(file):
    web = ScoredWeb("opic_cash", "urlboost", url_boost_file=file, url_boost_of="new")
    web.inject("x")
    web.fetch({"x": ["archive/1", "news/1"]})
    assert web.column("score") == pytest.approx({"x": 1.0, "archive/1": 0.05, "news/1": 1.25})
    assert web.column("cash") == {"x": 0.0, "archive/1": 0.5, "news/1": 0.5}


def test_it_needs_a_file():
    with pytest.raises(ValueError, match="give --url_boost_file"):
        scorings("urlboost")


def test_keys_become_urls_as_one_by_one():
    urls = ["http://www.example.com:8080/a?b=c:d", "https://example.com/", "http://[::1]/x",
            "http://[::1]:81/x", "http://192.168.0.1/x", "ftp://example.com/x"]  # fmt: skip
    keys = [*map(to_key, urls), ":file/home/x"]
    assert from_keys(pl.Series(keys)).to_list() == [from_key(key) for key in keys]


@pytest.mark.parametrize("line", ["2.5 /news/", "2.5\t/news/", "2.5   /news/"])
def test_any_white_space_may_follow_the_factor(line):
    boosts = read_boosts(RuleFile("boosts", line))
    assert factors(pl.Series(["com.a:http/news/1"]), boosts).to_list() == [2.5]
