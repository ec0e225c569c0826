"""The search page: facets, order, dates, numbers of pages, lines above the results, completion."""

import json
import re
import threading
import urllib.error
import urllib.request
from html.parser import HTMLParser

import jsonschema
import pytest
from crawling import nutbeam
from index_shards import commit_shards, page, write_shards

from nutbeam.pipelines.base.served_address import ServedAddress
from nutbeam.pipelines.searching.index_search import FoundPages, Hit, SearchNote
from nutbeam.pipelines.searching.search_page import SERVED_FILES, ResultsView, search_page
from nutbeam.pipelines.searching.search_serving import SearchServer
from nutbeam.pipelines.searching.searched_table import SearchedTable

DAY = 86_400_000
HTML, PDF = ["text/html", "text", "html"], ["application/pdf", "application", "pdf"]
PAGES = [
    *(page(f"http://www.a.com/{n}", f"Pear {n}", "green pears grow here", type=HTML,
           tstamp=(20_000 + n) * DAY) for n in range(24)),
    page("http://shop.b.com/1", "Pear shop", "pears to sell", type=PDF, lang="de",
         tstamp=20_500 * DAY, lastModified=18_000 * DAY),
    page("http://shop.b.com/2", "Old pear", "a pear of old", type=HTML,
         tstamp=20_500 * DAY, published="2001-02-03"),
    page("http://undated.c.com/", "Apples", "apples and a plum"),
]  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    assert nutbeam("inject", folder / "table", "http://a.com/") == 0
    commit_shards(folder / "table", write_shards(folder / "table", PAGES), "first")
    searched = SearchedTable(str(folder / "table"), "main", str(folder / "cache"))
    with SearchServer(searched, ServedAddress(), 10, "Fruit") as serving:
        thread = threading.Thread(target=serving.serve_forever, args=(0.05,))
        thread.start()
        yield serving
        serving.shutdown()
        thread.join()


@pytest.fixture
def get(server):
    def fetch(path):
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{server.port}{path}", timeout=10
            ) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    return fetch


@pytest.fixture
def ask(get):
    return lambda path: json.loads(get(f"/search.json?{path}")[1])


class Texts(HTMLParser):
    """The address of each link by its text, and all text of the body."""

    def __init__(self, html):
        super().__init__()
        self.links, self.text, self._address, self._label = {}, "", None, ""
        self.feed(html.partition("<body>")[2])

    def handle_starttag(self, tag, attrs):
        if tag == "a":
            self._address, self._label = dict(attrs)["href"], ""

    def handle_endtag(self, tag):
        if tag == "a":
            self.links[self._label] = self._address

    def handle_data(self, data):
        self.text += data
        self._label += data


def counts(answer):
    return {
        one["name"]: {value["query"]: value["count"] for value in one["values"]}
        for one in answer["facets"]
    }


def test_facets_count_all_pages_of_a_result(ask):
    assert counts(ask("q=pear")) == {
        "host": {"site:www.a.com": 24, "site:shop.b.com": 2},
        "type": {"type:text/html": 25, "type:application/pdf": 1},
        "language": {"lang:en": 25, "lang:de": 1},
        "year": {
            "after:2024 before:2025": 24,
            "after:2019 before:2020": 1,
            "after:2001 before:2002": 1,
        },
    }


def test_the_operators_of_a_facet_find_as_many_pages_as_it_counts(ask):
    for facet in ask("q=pear")["facets"]:
        for value in facet["values"]:
            query = urllib.parse.quote(f"pear {value['query']}")
            assert ask(f"q={query}")["total"] == value["count"], value


def test_a_chosen_value_has_a_link_without_it(get):
    links = Texts(get("/?q=pear+site:www.a.com")[1]).links
    assert links["www.a.com ×"] == "/?q=pear"  # noqa: RUF001 - the sign that removes it
    assert "German" not in links  # no page has both


def test_a_facet_with_one_value_is_no_choice(get):
    assert "Narrow" not in get("/?q=apples")[1]


def test_the_newest_pages_come_first_in_the_order_of_dates(ask):
    first = ask("q=pear&order=date")["pages"]
    assert [one["url"] for one in first[:2]] == ["http://www.a.com/23", "http://www.a.com/22"]
    last = ask("q=pear&order=date&start=20")["pages"][-2:]
    assert [one["url"] for one in last] == ["http://shop.b.com/1", "http://shop.b.com/2"]


def test_a_page_without_a_date_is_last_and_shows_none(ask, get):
    (only,) = ask("q=plum&order=date")["pages"]
    assert (only["date"], only["date_kind"]) == (None, "")
    assert "<time" not in get("/?q=plum")[1]


def test_the_page_says_which_date_it_shows(get):
    html = get("/?q=pear+site:b.com")[1]
    assert re.sub("<[^>]*>", "", html).count("published 2001-02-03") == 1
    assert re.sub("<[^>]*>", "", html).count("modified 2019-04-14") == 1
    assert "fetched 2024-" in re.sub("<[^>]*>", "", get("/?q=green")[1])


def test_the_command_line_sorts_by_date(server, capsys):
    table = server.search_pages._searched.address
    assert nutbeam("search", table, "pear", "--sort", "date", "--top", 1) == 0
    assert "http://www.a.com/23" in capsys.readouterr().out
    assert nutbeam("search", table, "pear", "--sort", "date", "--explain") == 2
    assert "pages by --sort date have none" in capsys.readouterr().err
    assert nutbeam("search", table, "pear", "--sort", "size") == 2
    assert "--sort must be one of relevance, date, got 'size'" in capsys.readouterr().err


def test_an_order_stays_while_pages_are_turned_and_is_no_other_word(get):
    links = Texts(get("/?q=pear&order=date")[1]).links
    assert links["2"] == links["Next"] == "/?q=pear&order=date&start=10"
    assert links["Relevance"] == "/?q=pear"
    status, text = get("/?q=pear&order=size")
    assert (status, "order must be relevance or date, got &#x27;size&#x27;" in text) == (400, True)


@pytest.mark.parametrize("start", [26, 30, 999, 10**8])
def test_a_start_past_the_end_leads_back_to_the_last_page(ask, get, start):
    answer = ask(f"q=pear&start={start}")
    assert (answer["start"], len(answer["pages"]), answer["total"]) == (20, 6, 26)
    assert "21–26 of 26 pages" in get(f"/?q=pear&start={start}")[1]  # noqa: RUF001 - a range


def test_people_see_no_scores(get):
    text = Texts(get("/?q=pear")[1]).text
    assert not re.search(r"\b\d+\.\d\d\b", text)


def hit(number):
    return Hit(f"http://a.com/{number}", f"Title {number}", "", (), 1.0, {})


def shown_page(total, first=0, **found):
    view = ResultsView("/", "pear", "relevance", first, 10, 1_000)
    hits = tuple(map(hit, range(min(10, total - first))))
    return search_page("Fruit", view, FoundPages(total, hits, **found))


def test_page_numbers_are_the_first_the_near_and_the_last():
    html = shown_page(765, 300)
    labels = [*Texts(html).links][-9:]
    assert labels == ["Previous", "1", "29", "30", "31", "32", "33", "77", "Next"]
    assert html.count("<span>…</span>") == 2
    assert 'aria-current="page">31</a>' in html


def test_no_link_leads_farther_than_results_are_shown():
    html = shown_page(50_000, 1_000)
    assert "start=1000" in html
    assert not re.search(r"start=(1[1-9]\d\d|10[1-9]\d|[2-9]\d{3,})", html)
    assert "Next" not in html


def test_lines_about_a_query_stand_above_the_results_with_their_links():
    notes = (SearchNote("no page has: <i>paer</i>", '"paer"'), SearchNote("and a line"))
    texts = Texts(shown_page(1, notes=notes))
    assert texts.links['"paer"'] == "/?q=%22paer%22"
    assert "<i>paer</i>" in texts.text
    assert texts.text.index("and a line") < texts.text.index("1 page")


def test_answers_for_programs_are_as_their_schema_says(get, ask):
    schema = json.loads(get("/search.schema.json")[1])
    assert schema == json.loads(SERVED_FILES["search.schema.json"])
    jsonschema.Draft202012Validator.check_schema(schema)
    queries = ("q=pear", "q=pear&order=date&start=20", "q=nothing", "q=", "q=%22", "q=caf%E9",
               "q=pear+site:b.com", "order=size", "q=plum")  # fmt: skip
    for query in queries:
        jsonschema.validate(ask(query), schema)
    answer = ask("q=pear")
    for damaged in ({**answer, "total": "26"}, {"pages": []}, {**answer, "order": "size"}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(damaged, schema)


def complete(get, text):
    return json.loads(get(f"/complete.json?q={urllib.parse.quote(text)}")[1])


def test_words_and_titles_are_completed_as_they_are_typed(get):
    answer = complete(get, "old pe")
    assert answer["words"] == ["old pear", "old pears"]
    assert answer["pages"] == [{"title": "Old pear", "url": "http://shop.b.com/2"}]
    assert complete(get, "Gr")["words"] == ["grow", "green"]  # in as many pages: the shorter first


@pytest.mark.parametrize(
    "text", ["", "p", "pear ", "site:a", "zzz", "x" * 101, '"', "\u202e", "pe" * 600]
)
def test_a_text_that_cannot_be_completed_has_no_completions(get, text):
    assert complete(get, text) == {"words": [], "pages": []}


def test_a_completion_reads_a_bounded_number_of_words(server, monkeypatch):
    from nutbeam.pipelines.searching import search_completion

    monkeypatch.setattr(search_completion, "_READ_TERMS", 1)
    words = server.search_pages.newest().complete("gr").words
    assert words == ("green",)


def test_the_description_for_browsers_has_the_address_of_the_page(server):
    request = urllib.request.Request(f"http://127.0.0.1:{server.port}/opensearch.xml")
    request.add_header("X-Forwarded-Proto", "https")
    with urllib.request.urlopen(request, timeout=10) as answer:
        kind, text = answer.headers["Content-Type"], answer.read().decode()
    assert kind.startswith("application/opensearchdescription+xml")
    assert f'template="https://127.0.0.1:{server.port}/?q={{searchTerms}}"' in text
    assert "<ShortName>Fruit</ShortName>" in text
