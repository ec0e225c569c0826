"""Pages that a search finds by the vectors of their chunks, and when it must not."""

import json

import numpy as np
import pytest
from crawling import nutbeam
from index_shards import page as shard_page
from index_shards import searched, write_shards
from indexed_tables import page, put
from plugins import install

from nutbeam.io.indexing.page_vectors import pack_vectors
from nutbeam.pipelines.base.served_address import ServedAddress
from nutbeam.pipelines.searching.meaning_ranks import Question
from nutbeam.pipelines.searching.question_vectors import QuestionVectors
from nutbeam.pipelines.searching.search_serving import SearchServer
from nutbeam.pipelines.searching.searched_table import SearchedTable
from nutbeam.policy.searching.search_query import parse_search
from nutbeam.web.plugins.plugins import forget_plugins

MODEL = '''
import re
import numpy as np

GROUPS = [("car", "automobile"), ("doctor", "physician"), ("boat", "ferry")]
WORDS = {word: number for number, group in enumerate(GROUPS) for word in group}


class Synonyms:
    """How often each group of synonyms is in a text."""

    size = len(GROUPS)

    def __call__(self, chunks):
        vectors = np.zeros((len(chunks), self.size))
        for vector, text in zip(vectors, chunks["text"]):
            for word in re.findall(r"\\w+", text.lower()):
                if word in WORDS:
                    vector[WORDS[word]] += 1
        return vectors


class Wider(Synonyms):
    size = 7


def no_questions(chunks):
    if chunks["url"].null_count():
        raise LookupError("no questions")
    return Synonyms()(chunks)


def no_ferries(chunks):
    if any("ferry" in text for text in chunks["text"]):
        raise LookupError("no ferries")
    return Synonyms()(chunks)


def never(chunks):
    raise LookupError("no model")

'''
PAGES = {
    "com.a:http/yard": page("The automobile stands in the yard"),
    "com.a:http/both": page("A car is one automobile, and another car is one"),
    "com.b:http/far": page("An automobile in another town"),
    "com.a:http/noon": page("The ferry leaves at noon"),
    "com.a:http/long": page("words of no group. " * 200 + "Each physician of the town is here."),
}


@pytest.fixture
def model(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "model.py").write_text(MODEL)
    return f"{tmp_path}/model.py:"


@pytest.fixture
def table(tmp_path, model):
    table = str(tmp_path / "table")
    put(table, "17-1", PAGES)
    assert nutbeam("index", table, "--embedding", f"{model}Synonyms") == 0
    return table


@pytest.fixture
def find(capsys, caplog, model):
    """Searches with the embedding; returns the paths that it finds."""

    def run(table, query, *words, embedding="Synonyms"):
        capsys.readouterr()
        caplog.clear()
        named = ("--embedding", model + embedding) if embedding else ()
        nutbeam("search", table, query, "--format", "json", *named, *words)
        run.lines = caplog.messages
        lines = capsys.readouterr().out.splitlines()
        return [json.loads(line)["url"].partition("//")[2] for line in lines]

    return run


def test_a_page_is_found_by_a_word_that_it_does_not_have(table, find):
    assert find(table, "car") == ["a.com/both", "a.com/yard", "b.com/far"]
    assert find(table, "doctor") == ["a.com/long"]  # by its last chunk
    assert find(table, "zebra") == []
    assert find(table, "car doctor", "--least_cosine", "0.8") == ["a.com/both"]
    assert len(find(table, "car doctor")) == 4


def test_operators_hold_for_pages_that_are_found_by_their_vectors(table, find):
    assert find(table, "car site:b.com") == ["b.com/far"]
    assert find(table, "car -yard") == ["a.com/both", "b.com/far"]
    assert find(table, 'car "another town"') == ["b.com/far"]
    assert find(table, "car inurl:both") == ["a.com/both"]
    assert find(table, "site:b.com") == ["b.com/far"]


def test_a_filter_looks_beyond_the_nearest_pages(tmp_path):
    def vector(*numbers):
        return pack_vectors("x", np.array([numbers], np.float32))

    pages = [
        shard_page(f"http://a.com/{n}", "t", "river", page_vectors=vector(1, 0)) for n in range(700)
    ]
    pages += [
        shard_page(f"http://b.com/{n}", "t", "river", page_vectors=vector(1, 1)) for n in range(2)
    ]
    pages += [shard_page("http://b.com/none", "t", "stone", page_vectors=None),
              shard_page("http://b.com/other", "t", "stone", page_vectors=vector(0, 1))]  # fmt: skip
    search = searched(
        tmp_path / "t", write_shards(tmp_path / "t", pages, at_once=100), tmp_path / "c"
    )
    question = Question(np.array([1, 0], np.float32))
    near = search.search(parse_search("lake site:b.com"), question=question)
    assert [hit.url for hit in near.hits] == ["http://b.com/0", "http://b.com/1"]
    assert near.total == 2
    every = search.search(parse_search("lake"), 100, question=question)
    assert (every.total, {hit.url[:12] for hit in every.hits}) == (50, {"http://a.com"})
    strict = search.search(
        parse_search("lake site:b.com"), question=question._replace(least_cosine=0.8)
    )
    assert strict.total == 0
    mixed = search.search(parse_search("river"), 60, 195, question=question)
    assert (mixed.total, len({hit.url for hit in mixed.hits})) == (702, 60)


def test_the_search_page_and_its_answers_for_programs_rank_by_vectors(table, model):
    questions = QuestionVectors(f"{model}Synonyms")
    with SearchServer(SearchedTable(table, "main"), ServedAddress(), 2, "", questions) as server:
        results, _ = server.search_pages.search("car", 0, "relevance")
        later, first = server.search_pages.search("car", 2, "relevance")
        dated, _ = server.search_pages.search("car", 0, "date")
    assert [hit.url for hit in results.hits] == ["http://a.com/both", "http://a.com/yard"]
    assert ([hit.url for hit in later.hits], first) == (["http://b.com/far"], 2)
    assert (results.total, dated.total) == (3, 1)
    (hosts,) = (facet for facet in results.facets if facet.name == "host")
    assert {value.label: value.pages for value in hosts.values} == {"a.com": 2, "b.com": 1}


def test_the_number_of_pages_and_the_scores_are_those_of_both_ranks(table, model, capsys):
    words = ("search", table, "car", "--explain", "--embedding", f"{model}Synonyms", "--top", "2")
    assert nutbeam(*words) == 0
    printed = capsys.readouterr().out
    assert "3 pages" in printed
    assert printed.count("of its ranks by words and by meaning") == 2


@pytest.mark.long
def test_changed_deleted_and_merged_pages_have_the_vectors_of_their_newest_text(table, find, model):
    assert len(find(table, "car")) == 3  # the next view has the files of this one
    changes = {"com.a:http/yard": page("Now a ferry"), "com.b:http/far": None}
    put(table, "17-2", changes)
    assert nutbeam("index", table, "--embedding", f"{model}Synonyms") == 0
    for _ in range(2):
        assert find(table, "car") == ["a.com/both"]
        assert sorted(find(table, "boat")) == ["a.com/noon", "a.com/yard"]
        assert nutbeam("compact", table, "--full") == 0


def test_vectors_are_of_the_text_that_the_index_has(tmp_path, find, model):
    table, text = str(tmp_path / "table"), "Each physician\n\nA ferry leaves"
    put(table, "17-1", {"com.a:http/menu": page(text, main=[{"start": 16, "end": len(text)}])})
    for words, paths in (((), []), (("--text_of", "all"), ["a.com/menu"])):
        assert nutbeam("index", table, "--full", "--embedding", f"{model}Synonyms", *words) == 0
        assert find(table, "doctor") == paths
        assert find(table, "boat") == ["a.com/menu"]


@pytest.mark.long
def test_a_purged_page_is_not_found_by_its_vector(table, find):
    assert len(find(table, "car")) == 3
    assert nutbeam("purge", table, "--url", "http://a.com/yard") == 0
    assert find(table, "car") == ["a.com/both", "b.com/far"]


@pytest.mark.long
def test_without_vectors_words_alone_count(tmp_path, find):
    table = str(tmp_path / "table")
    put(table, "17-1", PAGES)
    assert nutbeam("index", table) == 0
    assert find(table, "car") == ["a.com/both"]
    (line,) = find.lines
    assert "the index has no vectors" in line
    assert find(table, "car", embedding="") == ["a.com/both"]
    assert find.lines == []


@pytest.mark.long
def test_a_file_that_only_the_index_names_is_not_run(table, find, model, tmp_path):
    (tmp_path / "model.py").write_text("raise SystemExit('it was run')")
    assert find(table, "car", embedding="") == ["a.com/both"]
    (line,) = find.lines
    assert line.endswith(f"give --embedding {model}Synonyms")


@pytest.mark.long
def test_an_installed_embedding_that_the_index_names_is_used(tmp_path, find, monkeypatch):
    folder, table = tmp_path / "packages", str(tmp_path / "table")
    install(
        folder,
        "my-model",
        {"my_model.py": MODEL},
        {"synonyms": "my_model:Synonyms"},
        group="nutbeam.embeddings",
    )
    monkeypatch.syspath_prepend(str(folder))
    forget_plugins()
    put(table, "17-1", PAGES)
    assert nutbeam("index", table, "--embedding", "synonyms") == 0
    assert find(table, "doctor", embedding="") == ["a.com/long"]
    monkeypatch.undo()
    forget_plugins()


@pytest.mark.long
@pytest.mark.parametrize(
    ("embedding", "line"),
    [("no_questions", "LookupError: no questions"), ("Wider", "returns vectors of 7 numbers")],
)
def test_where_a_question_has_no_vector_words_alone_count(table, find, embedding, line):
    assert find(table, "car", embedding=embedding) == ["a.com/both"]
    (printed,) = find.lines
    assert line in printed


@pytest.mark.long
def test_a_page_for_which_the_embedding_fails_is_found_by_its_words(tmp_path, find, model, capsys):
    table = str(tmp_path / "table")
    put(table, "17-1", PAGES)
    assert nutbeam("index", table, "--embedding", f"{model}no_ferries") == 0
    assert "embedding_model.no_ferries 1" in capsys.readouterr().out
    assert find(table, "boat") == []
    assert find(table, "ferry") == ["a.com/noon"]
    assert find(table, "doctor") == ["a.com/long"]


@pytest.mark.long
def test_vectors_of_another_embedding_are_refused_until_the_index_is_built_again(
    table, find, model, tmp_path, capsys
):
    put(table, "17-2", {"com.c:http/": page("an automobile")})
    for words, line in (
        ((), "has vectors: give --embedding"),
        (("--embedding", f"{model}Wider"), "run nutbeam index with --full"),
    ):
        capsys.readouterr()
        assert nutbeam("index", table, *words) != 0
        assert line in capsys.readouterr().err
    (tmp_path / "model.py").write_text(MODEL.replace("size = len(GROUPS)", "size = 5"))
    assert nutbeam("index", table, "--embedding", f"{model}Synonyms") != 0
    error = capsys.readouterr().err
    assert "run nutbeam index with --full" in error
    assert "Traceback" not in error
    assert nutbeam("index", table, "--full", "--embedding", f"{model}Synonyms") == 0
    assert "c.com/" in find(table, "car")
    assert nutbeam("index", table, "--full") == 0
    assert (find(table, "car", embedding=""), find.lines) == (["a.com/both"], [])


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--embedding", "{}never"), "failed for all of"),
        (("--embedding", "{}missing"), "missing"),
        (("--embedding", "{}Synonyms", "--writer", "dummy"), "--embedding needs --writer tantivy"),
    ],
)
def test_an_index_that_can_have_no_vectors_is_refused(tmp_path, model, capsys, words, line):
    table = str(tmp_path / "table")
    put(table, "17-1", PAGES)
    assert nutbeam("index", table, *(word.format(model) for word in words)) != 0
    error = capsys.readouterr().err
    assert line in error
    assert "Traceback" not in error
