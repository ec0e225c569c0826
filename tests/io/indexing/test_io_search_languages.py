"""Guesses at the language of texts."""

import polars as pl
import pytest

from nutbeam.io.indexing.shard_documents import index_terms, searched_rows
from nutbeam.web.content.searched_forms import guessed_languages


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
    assert rows["lang"].to_list() == documents["lang"].to_list()
