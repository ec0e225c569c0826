"""Queries as people type them: misspelt, with operators of other search engines, and of no sense."""

import time

import pytest
from crawling import nutbeam
from index_shards import commit_shards, page, searched, write_shards

from nutbeam.pipelines.indexing.forgiving_search import ForgivingSearch

PAGES = [
    page("http://a.com/vacuum", "VACUUM", "Vacuum the table. It frees space of the database server."),
    page("http://a.com/index", "CREATE INDEX", "To create index and table of the database."),
    page("http://a.com/database", "Databases", "A database has tables. The weather has none."),
    page("http://a.com/typo", "Notes", "It was a databse once, with one zebra."),
    page("http://a.com/es", "Información", "Toda la información sobre las canciones", lang="es",
         type=["text/html", "text", "html"]),
    *(page(f"http://b.com/{n}", f"Part {n}", "the database of rivers") for n in range(25)),
]  # fmt: skip


@pytest.fixture(scope="module")
def find(tmp_path_factory):
    folder = tmp_path_factory.mktemp("forgiving")
    search = ForgivingSearch(
        searched(folder / "t", write_shards(folder / "t", PAGES), folder / "c")
    )
    return search.search


def notes(results):
    return [f"{note.text} {note.query}".rstrip() for note in results.notes]


@pytest.mark.parametrize(
    ("query", "corrected", "first"),
    [
        ("vacum", "vacuum", "vacuum"), ("VACUMM Table", "vacuum Table", "vacuum"), ("vACUM", "vacuum", "vacuum"),
        ("vacums", "vacuum", "vacuum"), ("intitle:vacum", "intitle:vacuum", "vacuum"),
        ("vacum tabel site:a.com -rivers", "vacuum table site:a.com -rivers", "vacuum"),
        ("spacedatabase", "space database", "vacuum"), ("createindex", "create index", "index"), ("vac uum", "vacuum", "vacuum"),
        ("informaccion", "informacion", "es"),  ("databasse_servre", "database_server", "vacuum"),
        ("wether", "weather", "database"),
    ],
)  # fmt: skip
def test_a_misspelt_query_is_searched_as_it_was_meant(find, query, corrected, first):
    results = find(query)
    assert results.searched == corrected
    if first:
        assert results.hits[0].url == f"http://a.com/{first}"


def test_notes_name_the_searched_query_and_offer_the_typed_one(find):
    results = find("vacum tabel full")
    assert notes(results) == [
        "no page has: vacum, tabel, full; searched for: vacuum table full",
        'to search for what was typed: "vacum" "tabel" full',
    ]
    typed = find(results.notes[1].query)
    assert (typed.total, typed.searched) == (0, "")
    assert notes(typed) == ['no page has: full, vacum, tabel; did you mean: "vacuum" "table" full']


@pytest.mark.parametrize(
    "query", ['"vacum"', "vac", "vacuum2", "-vacum river", "inurl:vacum", "utf9"]
)
def test_quoted_and_short_words_numbers_and_exclusions_stay_as_typed(find, query):
    assert find(query).searched == ""


def test_an_unsure_correction_is_a_question_where_other_words_find_pages(find):
    results = find("datbsae rivers table space")  # two mistakes
    assert (results.searched, results.total > 0) == ("", True)
    assert notes(results) == ["no page has: datbsae; did you mean: database rivers table space"]
    assert find("datbsae").searched == "database"  # nothing else is found


def test_a_rare_word_is_searched_and_a_far_more_usual_one_is_offered(find):
    results = find("databse")
    assert [hit.url for hit in results.hits] == ["http://a.com/typo"]
    assert notes(results) == ["did you mean: database"]
    assert notes(find("zebra")) == []


def test_words_that_no_page_has_are_named_without_a_correction(find):
    assert notes(find("qqqqqq wwwwww")) == ["no page has: qqqqqq, wwwwww"]
    assert notes(find("how is the table")) == []


@pytest.mark.parametrize(
    ("query", "url"),
    [
        ("title:vacuum", "vacuum"), ("url:typo", "typo"), ("language:es", "es"), ("filetype:html", "es"),
        ("host:a.com vacuum", "vacuum"), ("domain:a.com zebra", "typo"), ("intext:zebra", "typo"),
        ("text:zebra content:once", "typo"), ("ext:html", "es"), ("table since:1999", None), ('title:"create index"', "index"),
    ],
)  # fmt: skip
def test_operators_of_other_search_engines_work(find, query, url):
    results = find(query)
    assert [hit.url for hit in results.hits[:1]] == ([f"http://a.com/{url}"] if url else [])
    assert notes(results) == []


def test_unknown_operators_and_values_get_one_line(find):
    operators = "site: type: lang: after: before: inurl: intitle:"
    for query, names in (("author:smith zebra", "author:"), ("related:a.com link:b zebra", "related:, link:"),
                         ("colour:red zebra", "colour:")):  # fmt: skip
        assert notes(find(query))[0] == (
            f"there is no operator {names}, what follows is searched as words; there are {operators}"
        )
    assert notes(find("lang:xx table")) == ["no page has lang:xx; languages there are: en, es"]
    assert notes(find("type:pdf table")) == [
        "no page has type:pdf; types there are: html, text, text/html"]  # fmt: skip
    assert notes(find("site:c.com")) == ["no page has site:c.com"]
    for query in ("12:30 zebra", "std::vector zebra", "http://a.com/typo zebra", "title: zebra"):
        assert not [line for line in notes(find(query)) if "operator" in line]


@pytest.mark.parametrize(
    ("query", "line"),
    [
        ("😀 🎉", "the query has no words: letters and digits are searched"),
        ("!!!", "the query has no words: letters and digits are searched"),
        ("zqx\x00\x07jkq", "no page has: zqx, jkq"),
        ("x" * 999, f"no page has: {'x' * 40}…"),
        ("天" * 900, f"no page has: {'天' * 40}…"),
        ("a-" * 450, f"no page has: {('a-' * 20)}…"),
    ],
)
def test_a_query_of_no_sense_has_a_clear_answer_soon(find, query, line):
    start = time.process_time()
    results = find(query)
    assert time.process_time() - start < 2
    assert (results.total, notes(results)) == (0, [line])


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("word " * 10_000, "a query has at most 1,000 characters, got 50,000"),
        ("wort " * 40, "a query has at most 32 words and phrases, got 40"),
        ("\x00\x01\x1b", "a query must say what to find"),
        ('vacuum "table', "a quotation mark is not closed in the query 'vacuum \"table'"),
        ("site:", "site: needs a value, as in site:example.com"),
        ("-vacuum -table", "a query must say what to find"),
    ],
)
def test_a_wrong_query_is_one_clear_line(find, query, message):
    with pytest.raises(ValueError, match="^" + message.replace("?", ".")):
        find(query)


def test_thirty_two_misspelt_words_are_answered_soon(find):
    query = " ".join(f"{'abcdefghij'[n % 10]}vakuumm{'abcdefghijk'[n // 10]}" for n in range(32))
    start = time.process_time()
    find(query)
    assert time.process_time() - start < 3


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("forgiving") / "table"
    assert nutbeam("inject", folder, "http://a.com/") == 0
    commit_shards(folder, write_shards(folder, PAGES), "first")
    return folder


def test_the_command_prints_the_notes_and_no_score(table, tmp_path, capsys):
    words = ("search", table, "vacum", "--cache_folder", tmp_path / "cache")
    assert nutbeam(*words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:5] == [
        "no page has: vacum; searched for: vacuum",
        'to search for what was typed: "vacum"',
        "",
        "VACUUM",
        "http://a.com/vacuum",
    ]
    assert nutbeam(*words, "--explain") == 0
    assert " = words " in capsys.readouterr().out.splitlines()[4]
    assert nutbeam(*words, "--format", "json") == 0
    captured = capsys.readouterr()
    assert captured.err.splitlines() == lines[:2]
    assert len(captured.out.splitlines()) == 1
