"""Guesses at the language of texts."""

import itertools

import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from nutbeam.io.indexing.document_terms import content_terms
from nutbeam.io.indexing.language_terms import language_terms
from nutbeam.io.indexing.shard_documents import index_terms, searched_rows
from nutbeam.web.pages import text_languages as text_languages_module
from nutbeam.web.pages.text_languages import guessed_languages, text_languages


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The catalog stores information about the tables of a database.", "en"),
        ("Der Katalog enthält die Tabellen, und das ist nicht alles.", "de"),
        ("Le catalogue est dans la base avec les tables et des vues.", "fr"),
        ("El catálogo de las tablas se guarda en la base por los usuarios.", "es"),
        ("Il catalogo è nella base, e non si deve leggere che una volta per le prove.", "it"),
        ("Каталог не для чтения, но это не так для всех, как он сказал.", "ru"),
        ("东京的天气很好", None), ("int main(void) { return 0; }", None), ("", None),
        ("E.1 E.2 E.3 a b c", None),
    ],
)  # fmt: skip
def test_a_text_has_the_language_of_its_small_words(text, language):
    assert guessed_languages(pl.Series([text])).to_list() == [language]


def test_guesses_keep_the_order_of_texts():
    texts = ["The end of the road", None, "x", "Die Stadt und das Haus"] * 50
    found = guessed_languages(pl.Series(texts, dtype=pl.String))
    assert found.to_list() == ["en", None, None, "de"] * 50


def test_only_an_unknown_language_is_guessed():
    documents = pl.DataFrame(
        {
            "id": [f"http://a.com/{n}" for n in range(4)],
            "content": ["The end of the road"] * 3 + [None],
            "lang": ["fr", "unknown", None, None],
        }
    )
    rows = index_terms(searched_rows(documents))
    assert rows["analyzer"].to_list() == ["fr", "en", "en", "other"]
    assert rows["lang"].to_list() == ["fr", "en", "en", None]


def test_a_library_decides_where_small_words_do_not():
    text = "Zwei Katzen schlafen gemütlich draußen, während Hunde nebenan laut bellen"
    assert guessed_languages(pl.Series([text])).to_list() == [None]
    assert text_languages(pl.Series([text, "x", ""])).to_list() == ["de", None, None]


def test_without_the_library_small_words_decide_alone(monkeypatch, caplog):
    monkeypatch.setattr(text_languages_module.importlib.util, "find_spec", lambda name: None)
    texts = pl.Series(["The end of the road", "Zwei Katzen schlafen gemütlich draußen nebenan"])
    assert text_languages(texts).to_list() == ["en", None]
    assert caplog.records == []


@pytest.mark.parametrize(
    ("lang", "title", "analyzer"),
    [("pl", "Czaple", "other"), (None, "Herons", "en"), (None, "Цапли", "other"), ("de-AT", "Reiher", "de"),
     (None, "東京 guide", "other"), (None, "", "other")],
)  # fmt: skip
def test_a_text_in_latin_letters_without_a_language_is_read_as_english(lang, title, analyzer):
    documents = pl.DataFrame(
        {"id": ["http://a.com/"], "title": [title], "lang": [lang]},
        {"id": pl.String, "title": pl.String, "lang": pl.String},
    )
    assert index_terms(searched_rows(documents))["analyzer"].to_list() == [analyzer]


PIECES = st.sampled_from(
    ["house", "Houses,", "(running)", "a-b", "Fluß", "été.", "天気は", "இது", "x\u0301", "\u00a0", "\u3000", "\n", "\x1c",
     "“quoted”", "12.5", "_", "e\u200bf", "ⓐ", "क्या", "don't"]
)  # fmt: skip


@given(
    st.lists(PIECES | st.text(max_size=6), max_size=12).map(" ".join),
    st.sampled_from(["en", "de", "ta", "other"]),
)
def test_terms_of_a_text_are_those_of_its_analyzer(text, language):
    terms = language_terms(text, language)
    chunks = filter(None, (tuple(language_terms(chunk, language)) for chunk in text.split()))
    assume(all(len([*run]) < 4 for _, run in itertools.groupby(chunks)))  # else it counts once
    assert content_terms(text, language) == content_terms(text, language) == " ".join(terms)
