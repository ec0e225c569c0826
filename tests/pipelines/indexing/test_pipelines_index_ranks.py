"""Ranks of the web graph are boosts: from links over linkrank and index to the order of search."""

import json

import pytest
from crawling import nutbeam
from indexed_tables import page, put
from linked_web import fill_links

pytest.importorskip("tantivy")
PAGES = [f"http://a.com/{n}" for n in range(4)]
LOVED = PAGES[2]


@pytest.fixture
def table(tmp_path):
    """Four pages with the same text, one of which has most links to it."""
    table = str(tmp_path / "table")
    put(table, "17-1", {f"com.a:http/{n}": page("the same words", score=1.0) for n in range(4)})
    others = [f"http://s{n}.org/" for n in range(30)]
    links = {(LOVED, source): ("loved", None, 1.0) for source in others}
    links |= {(url, others[0]): ("linked", None, 1.0) for url in PAGES}
    fill_links(table, links)
    return table


@pytest.fixture
def found(table, tmp_path, capsys):
    def search(index):
        capsys.readouterr()
        words = ("--format", "json", "--index", index, "--cache_folder", tmp_path / "cache")
        assert nutbeam("search", table, "words", *words) == 0
        records = map(json.loads, capsys.readouterr().out.splitlines())
        return {record["url"]: (record["score"], record["fields"]["boost"]) for record in records}

    return search


def assert_first(found):
    (best, (score, boost)), *rest = found.items()
    assert best == LOVED
    assert all(boost > 1.5 * other and score > lower for _, (lower, other) in rest)


@pytest.mark.long
def test_a_page_with_a_higher_rank_is_found_first(table, found):
    filters = ("--index_filters", "basic")  # without the texts of links
    assert nutbeam("index", table, *filters) == 0
    assert len(set(found("main").values())) == 1
    assert nutbeam("webgraph", table) == nutbeam("linkrank", table) == 0
    # Pages that have not changed get their rank with --full.
    assert nutbeam("index", table, *filters, "--full", "true") == 0
    assert_first(found("main"))
    # scoreupdater writes ranks as scores, and a page without a rank has its score as the boost.
    assert nutbeam("scoreupdater", table) == 0
    assert nutbeam("index", table, "--index", "two", *filters) == 0
    assert_first(found("two"))
