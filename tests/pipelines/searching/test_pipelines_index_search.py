"""What queries find, in several languages."""

# ruff: noqa: RUF001 - letters that look alike are what is tested

import pytest
from index_shards import page, searched, urls, write_shards

from nutbeam.policy.searching.search_query import parse_search

PAGES = [
    page("http://en.example.com/runner", "Running houses", "The houses were running on the hill",
         date=1_780_000_000_000, type=["text/html", "text", "html"]),
    page("http://es.example.com/", "Las noticias", "Toda la información sobre canciones", lang="es"),
    page("http://de.example.com/", "Häuser", "Die Häuser stehen am Fluß", lang="de",
         anchor=["schöne Bücher"], type=["application/pdf", "application", "pdf"]),
    page("http://fr.example.com/", "Été", "Nous avons mangé avec des élèves", lang="fr"),
    page("http://ru.example.org/", "Река", "Красивые дома стоят у реки", lang="ru"),
    page("http://ja.example.org/", "東京", "東京都の天気は晴れです。今日は暑い。", lang="ja"),
    page("http://ja2.example.org/", "本", "これは図書（としょ）館です。私は食(た)べる。", lang="ja"),
    page("http://zh.example.org/", "北京", "北京是中华人民共和国的首都", lang=None),
    page("http://ko.example.org/", "서울", "서울은 대한민국의 수도이다", lang="ko"),
    page("http://ta.example.org/", "சென்னை", "சென்னை தமிழ்நாட்டின் தலைநகரம்", lang="ta"),
]  # fmt: skip


@pytest.fixture(scope="module")
def search(tmp_path_factory):
    folder = tmp_path_factory.mktemp("search")
    return searched(folder / "t", write_shards(folder / "t", PAGES), folder / "c")


@pytest.mark.parametrize(
    ("query", "host"),
    [
        ("house", "en"), ("runs", "en"), ("RUNNING hill", "en"), ('"were running"', "en"),
        ("informacion", "es"), ("información", "es"), ("cancion", "es"),
        ("haus", "de"), ("hauser", "de"), ("fluss", "de"), ("bucher", "de"), ("Häusern", "de"),
        ("mange", "fr"), ("mangée", "fr"), ("eleve", "fr"), ("élève", "fr"),
        ("дом", "ru"), ("река", "ru"),
        ("天気", "ja"), ("東京都の天気", "ja"), ("東京の天気", "ja"),
        ("図書館", "ja2"), ("食べる", "ja2"), ("としょ", "ja2"),
        ("首都", "zh"), ("中华人民共和国", "zh"), ("수도", "ko"), ("சென்னை", "ta"),
        ("site:de.example.com", "de"), ("lang:fr", "fr"), ("type:pdf", "de"),
        ("type:html", "en"), ("after:2026", "en"), ("inurl:runner", "en"),
        ("intitle:été", "fr"), ("intitle:houses", "en"), ("house zzz yyy xxx", "en"),
        ("what is the weather of houses", "en"),
    ],
)  # fmt: skip
def test_a_query_finds_its_page(search, query, host):
    assert urls(search, query)[0].split("/")[2].split(".")[0] == host


@pytest.mark.parametrize(
    "query",
    ["house -hill", '"running were"', "before:2020", "intitle:hill", "site:ample.com", "!!!"],
)
def test_a_query_that_nothing_matches_finds_nothing(search, query):
    assert urls(search, query) == []


def test_a_domain_has_the_pages_of_its_hosts(search):
    assert len(urls(search, "site:example.com")) == 4
    assert len(urls(search, "site:example.org -lang:ja")) == 4


def test_words_are_marked_in_the_snippet(search):
    (hit,) = search.search(parse_search("fluss")).hits
    assert [hit.snippet[begin:end] for begin, end in hit.marks] == ["Fluß"]
    (hit,) = search.search(parse_search("天気")).hits
    assert [hit.snippet[begin:end] for begin, end in hit.marks] == ["天気"]


@pytest.mark.parametrize(
    ("query", "text", "marked"),
    [
        ("libraries", "the library of the town", ["library"]),
        ("hauser fluss", "die Häuser am Fluß", ["Häuser", "Fluß"]),
        ("river old stones", "an old stone by the river", ["old", "stone", "river"]),
    ],
)
def test_the_snippet_of_a_long_text_is_where_the_words_are(tmp_path, query, text, marked):
    far = "clouds over green hills. " * 800
    language = "de" if "Fluß" in text else "en"
    pages = [page("http://a.com/", "t", f"{far}{text}. {far}", lang=language)]
    search = searched(tmp_path / "t", write_shards(tmp_path / "t", pages), tmp_path / "c")
    (hit,) = search.search(parse_search(query)).hits
    assert [hit.snippet[begin:end] for begin, end in hit.marks] == marked


def test_a_page_with_a_larger_boost_is_first(tmp_path):
    pages = [page(f"http://a.com/{n}", "t", "the same words", boost=b) for n, b in enumerate(
        (0.1, 1.0, 10.0, 1000.0, None, -1.0))]  # fmt: skip
    search = searched(tmp_path / "t", write_shards(tmp_path / "t", pages), tmp_path / "c")
    assert urls(search, "words")[:2] == ["http://a.com/3", "http://a.com/2"]
    assert urls(search, "words")[-1] == "http://a.com/0"
    assert urls(search, "lang:en")[0] == "http://a.com/3"  # a filter alone: by boost
    scores = {hit.url: hit.score for hit in search.search(parse_search("words")).hits}
    assert scores["http://a.com/3"] == pytest.approx(1.75 * scores["http://a.com/1"], rel=1e-3)


def test_an_empty_index_finds_nothing(tmp_path):
    assert urls(searched(tmp_path / "t", [], tmp_path / "c"), "x") == []
    files = write_shards(tmp_path / "t", [], ["http://a.com/"])
    assert urls(searched(tmp_path / "t", files, tmp_path / "c"), "x") == []


def test_the_language_of_a_page_that_declares_none_is_guessed(tmp_path):
    pages = [
        page("http://a.com/en", "t", "How to rebuild the index of a database in parts", lang="unknown"),
        page("http://a.com/de", "t", "Die Häuser und die Gärten sind nicht in der Stadt", lang=None),
        page("http://a.com/no", "t", "x = 1", lang="unknown"),
    ]  # fmt: skip
    search = searched(tmp_path / "t", write_shards(tmp_path / "t", pages), tmp_path / "c")
    assert urls(search, "rebuilding indexes") == ["http://a.com/en"]
    assert urls(search, "Haus") == ["http://a.com/de"]
    assert urls(search, "lang:de") == ["http://a.com/de"]
    assert urls(search, "lang:en") == ["http://a.com/en"]


def test_a_text_without_spaces_is_found_by_words_in_any_declared_language(tmp_path):
    pages = [
        page("http://a.com/ja", "天気予報", "Home News 東京都の天気は晴れです。今日は暑い。"),
        page("http://a.com/zh", "Home", "北京是中华人民共和国的首都", lang="de"),
        page("http://a.com/en", "Running", f"The houses were running {'on the hill ' * 9} (東京)"),
    ]
    search = searched(tmp_path / "t", write_shards(tmp_path / "t", pages), tmp_path / "c")
    assert urls(search, "天気") == ["http://a.com/ja"]
    assert urls(search, "news") == ["http://a.com/ja"]
    assert urls(search, "首都") == ["http://a.com/zh"]
    assert urls(search, "house runs") == ["http://a.com/en"]
    assert sorted(urls(search, "lang:en")) == ["http://a.com/en", "http://a.com/ja"]


# What a page has, and what its readers type.
FORMS = [
    ("Cafe\u0301 noir", "café"), ("Café noir", "cafe\u0301"), ("ＡＢＣ Ｇｕｉｄｅ", "abc"), ("abc guide", "ＡＢＣ"),
    ("an o\ufb03ce", "office"), ("a hyphen\u00adation", "hyphenation"), ("a hyphenation", "hyphen\u00adation"),
    ("İSTANBUL", "istanbul"), ("İstanbul", "İSTANBUL"), ("istanbul", "İstanbul"), ("ｶﾞｲﾄﾞ", "ガイド"),
    ("カ\u3099イト\u3099", "ガイド"), ("\u1112\u1161\u11ab글", "한글"), ("за\u0301мок", "замок"), ("5 ㎏", "kg"),
    ("a word\u2060joined", "wordjoined"), ("и\u0306од", "йод"),
]  # fmt: skip


@pytest.mark.few(2)
@pytest.mark.parametrize("language", ["en", "tr", None])
@pytest.mark.parametrize("field", ["title", "text", "anchor"])
def test_texts_and_queries_have_one_form_of_unicode(tmp_path, field, language):
    pages = [
        page(f"http://a.com/{n}", **{field: [text] if field == "anchor" else text}, lang=language)
        for n, (text, _) in enumerate(FORMS)
    ]
    search = searched(tmp_path / "t", write_shards(tmp_path / "t", pages), tmp_path / "c")
    for n, (_, query) in enumerate(FORMS):
        assert f"http://a.com/{n}" in urls(search, query)


@pytest.mark.parametrize(
    ("address", "queries"),
    [
        ("http://a.com/K%C3%A4se", ["inurl:käse", "inurl:kase", "inurl:Ka\u0308se", "inurl:K%C3%A4se", "käse"]),
        ("http://xn--mnchen-3ya.example/x", ["inurl:münchen", "inurl:xn--mnchen-3ya", "site:münchen.example"]),
        ("http://a.com/%E6%97%A5%E6%9C%AC%E8%AA%9E", ["inurl:日本", "inurl:日本語", "日本"]),
        ("http://a.com/%D1%82%D0%B5%D1%81%D1%82?x=%F2", ["inurl:тест", "inurl:Тест"]),
    ],
)  # fmt: skip
def test_letters_beyond_ascii_are_found_in_urls(tmp_path, address, queries):
    pages = [page(address), page("http://a.com/other")]
    search = searched(tmp_path / "t", write_shards(tmp_path / "t", pages), tmp_path / "c")
    assert {query: urls(search, query) for query in queries} == {
        query: [address] for query in queries
    }


def test_a_word_that_is_common_in_one_language_of_the_index_is_not_required(tmp_path):
    pages = [
        page("http://a.com/en", "t", "transfer money: all of it, or none"),
        page("http://a.com/hu", "t", "egy ház", lang="hu"),
    ]
    search = searched(tmp_path / "t", write_shards(tmp_path / "t", pages), tmp_path / "c")
    assert urls(search, "how is the money of a bank") == ["http://a.com/en"]


def test_words_that_are_near_one_another_count_more(tmp_path):
    far = " ".join(f"w{n}" for n in range(30))
    pages = [
        page("http://a.com/far", "t", f"red {far} stone {far} house {far} river"),
        page("http://a.com/near", "t", f"red stone {far} {far} house {far} river"),
    ]
    search = searched(tmp_path / "t", write_shards(tmp_path / "t", pages), tmp_path / "c")
    assert urls(search, "red stone house river") == ["http://a.com/near", "http://a.com/far"]


def test_a_short_page_without_a_language_is_found_by_the_plural_and_the_singular(tmp_path):
    pages = [
        page("http://a.com/1", "Heron", "grey", lang=None),
        page("http://a.com/2", "Herons", "wet", lang="unknown"),
    ]
    search = searched(tmp_path / "t", write_shards(tmp_path / "t", pages), tmp_path / "c")
    assert sorted(urls(search, "heron")) == sorted(urls(search, "herons")) == [
        "http://a.com/1", "http://a.com/2"]  # fmt: skip


def test_pages_of_a_language_that_few_pages_have_are_ranked_as_all_others(tmp_path):
    words = "the queue takes records of the day, and the log keeps them in order for all readers"
    pages = [
        *(page(f"http://en.example.com/{n}", f"Notes {n}", f"{words}. Kafka is one of {n}. {words}")
          for n in range(60)),
        *(page(f"http://de.example.com/{n}", f"Kafka {n}", "Eine Einführung in die Warteschlange", lang="de")
          for n in range(3)),
        *(page(f"http://en.example.com/x{n}", f"Rivers {n}", words) for n in range(40)),
    ]  # fmt: skip
    search = searched(tmp_path / "t", write_shards(tmp_path / "t", pages), tmp_path / "c")
    assert [url.split("/")[2][:2] for url in urls(search, "kafka", 4)] == ["de", "de", "de", "en"]


def test_a_word_counts_alike_in_all_languages_of_an_index(tmp_path):
    pages = [
        *(page(f"http://a.com/{n}", "Berlin Kafka", "Berlin Kafka Roman", lang="en") for n in range(30)),
        page("http://a.com/de", "Berlin Kafka", "Berlin Kafka Roman", lang="de"),
        page("http://a.com/fr", "Berlin Kafka", "Berlin Kafka Roman", lang="fr"),
        *(page(f"http://a.com/x{n}", "Stones", "stones and rivers") for n in range(30)),
    ]  # fmt: skip
    search = searched(tmp_path / "t", write_shards(tmp_path / "t", pages), tmp_path / "c")
    for query in ("kafka", "kafka berlin", '"berlin kafka"', "roman berlin kafka"):
        scores = {hit.score for hit in search.search(parse_search(query), 40).hits}
        assert len(scores) == 1, (query, scores)


def test_a_word_that_is_repeated_to_be_found_does_not_win(tmp_path):
    prose = "Water, wind and old stones of the valley. "
    pages = [
        page("http://a.com/guide", "Guide to teapots", "How to choose a teapot of iron. Teapots last long."),
        page("http://spam.com/1", "teapot " * 30, "buy now"),
        page("http://spam.com/2", "Teapot, teapot sale, cheap teapot, best teapot, " * 8, "buy a teapot now"),
        page("http://spam.com/3", "teapot " * 30, "teapot " * 30 + prose),
        page("http://spam.com/4", "Sale", "Teapot! " * 200 + prose),
        page("http://a.com/kettle", "Kettles", "A kettle of copper. It is larger than a teapot."),
        *(page(f"http://a.com/{n}", "Cups", "Cups of glass, a teapot of clay. " + prose) for n in range(60)),
    ]  # fmt: skip
    search = searched(tmp_path / "t", write_shards(tmp_path / "t", pages), tmp_path / "c")
    for query in ("teapot", "teapots"):
        found = urls(search, query, 100)
        assert found[0] == "http://a.com/guide"
        assert not {"http://spam.com/3", "http://spam.com/4"} & {*found[:20]}
    assert "http://spam.com/1" in urls(search, "teapot", 100)


def test_the_page_of_a_title_is_before_pages_that_list_it(tmp_path):
    others = [f"Bird {n} of the valley" for n in range(40)]
    article = "The heron stands in the water, and waits. " + "Reed and stones. " * 300
    pages = [
        page("http://a.com/", "Birds", "Birds\n\n" + "\n".join(["Heron", *others[:20]]), boost=3.0),
        page("http://a.com/heron", "Heron", f"Heron\n\n{article}" + "A heron flies. " * 5, boost=0.02),
        *(page(f"http://a.com/{n}", title, f"{title} {article[42:]}") for n, title in enumerate(others)),
    ]  # fmt: skip
    search = searched(tmp_path / "t", write_shards(tmp_path / "t", pages), tmp_path / "c")
    assert urls(search, "heron") == ["http://a.com/heron", "http://a.com/"]


def test_a_word_that_is_common_in_one_language_is_not_rare_in_another(tmp_path):
    pages = [
        *(page(f"http://a.com/de{n}", f"Teil {n}", "Ein Zelt für die Berge und für das Tal", lang="de") for n in range(9)),
        page("http://a.com/tent", "Winterzelt", "Das Winterzelt steht im Schnee", lang="de"),
        page("http://a.com/list", "Shop", "Zelte für Familien, Winterzelt für Berge, Schuhe für alle", lang="en"),
    ]  # fmt: skip
    search = searched(tmp_path / "t", write_shards(tmp_path / "t", pages), tmp_path / "c")
    assert urls(search, "winterzelt für", 1) == ["http://a.com/tent"]


def test_a_query_of_several_words_that_few_pages_have_is_answered_by_pages_with_some(tmp_path):
    pages = [
        page("http://a.com/bridge", "Harbour bridge closed", "The harbour bridge is closed until June."),
        page("http://a.com/list", "Topics", f"{'news of the day ' * 40} harbour bridge closed, bakery open again"),
        *(page(f"http://a.com/{n}", f"Open doors {n}", "The museum is open again") for n in range(30)),
    ]  # fmt: skip
    search = searched(tmp_path / "t", write_shards(tmp_path / "t", pages), tmp_path / "c")
    assert urls(search, "when does the harbour bridge open again")[0] == "http://a.com/bridge"
    assert len(urls(search, "harbour bridge")) == 2  # two words must both be there


def test_a_word_without_its_accents_finds_all_its_forms_in_titles_first(tmp_path):
    pages = [
        page("http://a.com/list", "News", f"{'the news of the day ' * 20} sequía, embalses", lang="en"),
        page("http://a.com/es", "La sequía vacía los embalses", "Las sequías son largas en el sur", lang="es"),
        page("http://a.com/plural", "Sequías", "Hubo muchas sequías", lang="es"),
        page("http://a.com/fr", "Les élèves", "Des élèves dans la cour", lang="fr"),
        *(page(f"http://a.com/{n}", "Rivers", "rivers and stones") for n in range(9)),
    ]  # fmt: skip
    search = searched(tmp_path / "t", write_shards(tmp_path / "t", pages), tmp_path / "c")
    assert urls(search, "sequia embalse", 1) == ["http://a.com/es"]
    assert "http://a.com/plural" in urls(search, "sequia")
    assert urls(search, "eleves") == ["http://a.com/fr"]
