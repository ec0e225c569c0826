"""Crawls, choices and seeds with scorings that are not the default."""

import json

import polars as pl
import pytest
from crawling import assert_whole, crawl, distances, nutbeam, reach, state_of
from plugins import install

from nutbeam.web.plugins.plugins import forget_plugins

SCORING = """
import polars as pl

from nutbeam.policy.scoring.scoring import Scoring

class Short(Scoring):
    '''Prefers short URLs; a link brings one point.'''

    name = "short"

    def sort_value(self, rows):
        return rows.with_columns(sort_value=pl.col("sort_value") / pl.col("key").str.len_bytes())

    def links(self, links):
        return links.with_columns(inlink_score=1.0)

    def arrived(self, rows, now):
        return rows.with_columns(score=pl.col("score") + pl.col("inlink_score").fill_null(0.0))
"""


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """An installed package with a scoring."""
    folder = tmp_path / "site"
    targets = {"short": "my_scorings:Short", "broken": "no_such_module:it"}
    install(folder, "my-scorings", {"my_scorings.py": SCORING}, targets, group="nutbeam.scorings")
    monkeypatch.syspath_prepend(str(folder))
    forget_plugins()
    yield
    forget_plugins()


def assert_conserved(table, web):
    """Checks that all cash is there that the seeds have brought, and that pages have given it."""
    rows = state_of(table)
    assert rows["cash"].sum() == pytest.approx(len(web.seeds), rel=1e-5)
    assert rows["cash"].min() >= 0
    assert rows.filter(pl.col("cash") > pl.col("score") + 1e-5).is_empty()
    assert len(rows.filter(pl.col("cash") < pl.col("score") / 2)) > len(web.seeds)


@pytest.mark.long
def test_a_crawl_conserves_cash(web, tmp_path):
    table = tmp_path / "table"
    assert crawl(table, web, *web.seeds, "--scoring", "opic_cash") == 0
    assert_whole(table, web.site)
    assert_conserved(table, web)


@pytest.mark.long
@pytest.mark.bigtable
def test_a_crawl_into_bigtable_conserves_cash(table, web, tmp_path):
    words = (*web.seeds, "--scoring", "opic_cash")
    assert crawl(table, web, *words) == 0
    assert_conserved(table, web)
    assert crawl(tmp_path / "table", web, *words) == 0
    columns = ("url", "status", "score", "cash", "distance")
    both = [state_of(each).select(columns).sort("url") for each in (table, tmp_path / "table")]
    assert both[0].equals(both[1])


@pytest.mark.long
def test_a_crawl_ends_at_a_depth(web, tmp_path):
    table = tmp_path / "table"
    words = ("--scoring", "depth,opic", "--depth_max", "3")
    assert crawl(table, web, *web.seeds, *words) == 0
    right = distances(web.site, web.seeds)
    assert max(right.values()) > 2
    found = dict(state_of(table).select("url", "distance").rows())
    assert found == {url: distance for url, distance in right.items() if distance <= 2}
    assert set(state_of(table)["max_depth"]) == {None}


@pytest.mark.long
def test_a_seed_has_its_own_depth(web, tmp_path):
    table, seeds = tmp_path / "table", tmp_path / "seeds.txt"
    first, *_ = web.seeds
    seeds.write_text(f"{first}\t_maxdepth_=2\n")
    assert nutbeam("inject", table, seeds, "--scoring", "depth,opic") == 0
    assert crawl(table, web, "--scoring", "depth,opic") == 0
    rows = state_of(table)
    assert set(rows["max_depth"]) == {2}
    assert set(rows["distance"]) == {0, 1}


def seeds_in(table, tmp_path, *words):
    """A table with three seeds; their scores are 1, 2 and 4."""
    path = tmp_path / "seeds.txt"
    path.write_text("".join(
        f"http://example.com/{name}\tnutch.score={score}\n"
        for name, score in (("news/1", 1), ("a/long/name", 2), ("archive/1", 4))
    ))  # fmt: skip
    assert nutbeam("inject", table, path, *words) == 0
    return table


def best(table, folder, capsys, *options):
    """The path of the URL that generate chooses from a copy of a table."""
    urls = [f"http://example.com/{name}" for name in ("news/1", "a/long/name", "archive/1")]
    assert nutbeam("copy", table, folder) == 0
    assert nutbeam("generate", folder, "--top_n", "1", *options) == 0
    capsys.readouterr()
    assert nutbeam("explain", folder, *urls, *options, "--format", "json") == 0
    records = map(json.loads, capsys.readouterr().out.splitlines())
    (found,) = [record["url"] for record in records
                if any(why["reason"] == "in_batch" for why in record["generate"])]  # fmt: skip
    return found.removeprefix("http://example.com/")


@pytest.mark.long
def test_generate_chooses_by_the_sort_value(tmp_path, capsys):
    boosts = tmp_path / "boosts.txt"
    boosts.write_text("9 /news/\n0.1 /archive/\n")
    table = seeds_in(tmp_path / "table", tmp_path)
    words = ("--scoring", "opic,urlboost", "--url_boost_file", boosts)
    assert best(table, tmp_path / "1", capsys) == "archive/1"
    assert best(table, tmp_path / "2", capsys, *words) == "news/1"
    assert best(table, tmp_path / "3", capsys, *words, "--max_count", "1") == "news/1"
    limit = ("--min_score", "0.5")
    assert nutbeam("explain", table, "http://example.com/archive/1", *words, *limit) == 0
    assert "score 0.4, min_score is 0.5" in capsys.readouterr().out


@pytest.mark.long
def test_a_scoring_of_a_plugin(plugin, web, tmp_path, capsys):
    table = seeds_in(tmp_path / "table", tmp_path)
    assert best(table, tmp_path / "1", capsys, "--scoring", "short") == "news/1"
    assert best(table, tmp_path / "2", capsys, "--scoring", "short,opic") == "archive/1"
    crawled = tmp_path / "crawled"
    words = (*web.seeds, "--scoring", "short", "--rounds", "1")
    assert nutbeam("crawl", crawled, *words, *reach(web)) == 0
    scores = state_of(crawled).filter(pl.col("distance") > 0)["score"]
    assert set(scores) == {1.0}


@pytest.mark.parametrize("command", ["inject", "generate", "updatedb", "crawl"])
def test_an_unknown_scoring_is_refused_with_those_that_there_are(command, tmp_path, refuse):
    table = seeds_in(tmp_path / "table", tmp_path)
    seed = ["http://example.com/"] if command in ("inject", "crawl") else []
    message = refuse(command, table, *seed, "--scoring", "opic,pagerank")
    assert message.startswith(
        "no scoring 'pagerank' is installed: there are opic, opic_cash, depth,"
    )


def test_a_plugin_that_cannot_be_imported(plugin, tmp_path, refuse):
    table = seeds_in(tmp_path / "table", tmp_path)
    message = refuse("generate", table, "--scoring", "broken")
    assert message.startswith("scoring 'broken' cannot be imported: ModuleNotFoundError")


def test_a_file_that_is_missing_fails_before_anything_is_done(tmp_path, refuse):
    table = seeds_in(tmp_path / "table", tmp_path)
    words = ("--scoring", "urlboost", "--url_boost_file", tmp_path / "none.txt")
    assert "none.txt" in refuse("generate", table, *words)


@pytest.mark.long
def test_explain_names_the_depth(web, tmp_path, capsys):
    table = tmp_path / "table"
    words = ("--scoring", "depth,opic", "--depth_max", "2")
    assert nutbeam("inject", table, web.seeds[0], *words) == 0
    assert crawl(table, web, *words) == 0
    near = state_of(table).filter(pl.col("distance") == 1)["url"][0]
    capsys.readouterr()
    assert nutbeam("explain", table, near, *words) == 0
    assert "its links: dropped: too_deep" in capsys.readouterr().out
    assert nutbeam("explain", table, near) == 0
    assert "too_deep" not in capsys.readouterr().out
