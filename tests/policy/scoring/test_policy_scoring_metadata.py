import polars as pl
import pytest
from file_changes import Earlier
from frames import frame_of
from scored_web import ScoredWeb, key

from nutbeam.policy.components.schema import FETCHLIST
from nutbeam.policy.scoring.metadata import overlay_maps, pick_entries

MAP = pl.Map(pl.String, pl.String)


def seed(name, score=1.0, **metadata):
    return {"key": key(name), "metadata": list(metadata.items()), "score": score}


def test_new_urls_get_the_metadata_of_the_best_link_that_brings_any():
    web = ScoredWeb("opic", "metadata", metadata_to_links=("topic", "owner"))
    web.inject(
        seed("a", topic="news", owner="x", other="1"), seed("b", 3.0, topic="sport"), seed("c", 9.0)
    )
    web.fetch({"a": ["ab", "z"], "b": ["ab", "a"], "c": ["ab", "c1"]})
    found = web.column("metadata")
    assert found["ab"] == {"topic": "sport"}
    assert found["z"] == {"topic": "news", "owner": "x"}
    assert found["c1"] is None
    assert found["a"] == {"topic": "news", "owner": "x", "other": "1"}  # known: unchanged


@pytest.mark.parametrize("size", [1, 2, 100])
def test_the_best_link_is_the_same_in_any_pieces(size):
    web = ScoredWeb("opic", "metadata", metadata_to_links=("from",))
    web.inject(*(seed(f"s{n}", (n * 7) % 5 + 1.0, **{"from": str(n)}) for n in range(10)))
    names = [f"s{n}" for n in range(10)]
    files = [
        web.changes({name: ["target"] for name in names[at : at + size]}, order=at)
        for at in range(0, 10, size)
    ]
    web.update(*reversed(files))
    assert web.column("metadata")["target"] == {"from": "2"}  # s2 and s7 have 5: s2 comes first


def test_metadata_of_documents_go_to_rows_and_links():
    web = ScoredWeb(
        "opic", "metadata", metadata_to_links=("lang", "topic"), parsemeta_to_crawldb=("lang",)
    )
    web.inject(seed("a", lang="en", topic="news", kept="1"), "b")
    documents = {"a": [("lang", "de"), ("junk", "x")], "b": [("junk", "x")]}
    web.fetch({"a": ["c"], "b": []}, metadata=documents)
    found = web.column("metadata")
    assert found["a"] == {"lang": "de", "topic": "news", "kept": "1"}
    assert found["b"] is None
    assert found["c"] == {"lang": "de", "topic": "news"}


def test_a_page_that_the_fetch_followed_has_both():
    names = ("topic", "lang")
    web = ScoredWeb("metadata", metadata_to_links=names, parsemeta_to_crawldb=("lang",))
    web.inject(seed("a", topic="news", lang="en"))
    web.fetch({"a": ["b"], "b": []}, metadata={"b": [("lang", "de")]})
    assert web.column("metadata")["b"] == {"lang": "de", "topic": "news"}


def test_the_target_of_a_redirect_keeps_the_metadata_of_its_own_document():
    web = ScoredWeb("opic", parsemeta_to_crawldb=("lang",))
    source = seed("a", topic="news", lang="en")
    web.inject(source)
    before = Earlier(frame_of(FETCHLIST, source))
    pages = {"a": "http://example.com/b", "b": []}
    web.fetch(pages, before=before, metadata={"b": [("lang", "de")]})
    assert web.column("metadata")["b"] == {"topic": "news", "lang": "de"}


def test_metadata_of_documents_need_no_scoring():
    web = ScoredWeb("opic", parsemeta_to_crawldb=("lang",))
    web.inject("a")
    web.fetch({"a": ["b"]}, metadata={"a": [("lang", "de")]})
    assert web.column("metadata") == {"a": {"lang": "de"}, "b": None}
    assert web.column("score") == {"a": 1.0, "b": 1.0}


def test_a_result_that_comes_too_late_changes_no_metadata():
    web = ScoredWeb("opic", parsemeta_to_crawldb=("lang",))
    web.inject("a")
    late = web.changes({"a": []}, metadata={"a": [("lang", "old")]})
    web.now += 1
    web.update(web.changes({"a": []}, metadata={"a": [("lang", "new")]}))
    web.update(late)
    assert web.column("metadata") == {"a": {"lang": "new"}}


def test_maps_of_all_kinds():
    some = pl.Series("m", [{"a": "1"}, {}, None, {"b": "2"}], dtype=MAP)
    over = pl.Series([None, {"c": "3"}, {"c": "3"}, {"b": "4"}], dtype=MAP)
    assert overlay_maps(some, over).to_list() == [{"a": "1"}, {"c": "3"}, {"c": "3"}, {"b": "4"}]
    assert overlay_maps(some, over.clear().extend_constant(None, 4)).to_list() == some.to_list()
    assert pick_entries([over, some], ("a", "b")).to_list() == [{"a": "1"}, None, None, {"b": "4"}]
    assert pick_entries([some.clear()], ("a",)).to_list() == []
