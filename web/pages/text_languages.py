"""The language of a text that declares none: by its small words, else by a library."""

import importlib.util

import polars as pl

from .language import detect_language


def text_languages(texts: pl.Series) -> pl.Series:
    """Returns the code of the language of each text; null where neither way is sure.

    The small words of 18 languages decide. Where they do not, py3langid does, if it is installed
    (``nutbeam[language]``).
    """
    guesses = guessed_languages(texts)
    if importlib.util.find_spec("py3langid") is None:
        return guesses
    return pl.Series(
        [
            detect_language(text) if guess is None and text else guess
            for guess, text in zip(guesses, texts, strict=True)
        ],
        dtype=pl.String,
    )


# Words of the languages with a stemmer, each among the most frequent of its language. None is a
# single letter: in tables and code these are often no words.
_SMALL_WORDS = {
    "ar": "في من على إلى أن التي الذي هذا هذه عن مع ما لا كان",
    "da": "og at det er en til af på for ikke med der den fra",
    "de": "der die und das ist nicht ein eine mit von zu den auf für",
    "el": "και το να του της τα με για είναι που από στο δεν την",  # noqa: RUF001
    "en": "the of and to is in that for it with are be this or",
    "es": "de la que el en los las por con una para del es se",
    "fi": "ja on ei se että oli ovat mutta kun tai myös joka hän ole",
    "fr": "le la les des et est une dans pour que qui du pas sur",
    "hu": "az és hogy nem is egy van volt meg de ez csak mint",
    "it": "il di che la per un una non con del della sono",
    "nl": "de het een en van is dat op niet zijn voor met te die",
    "no": "og det er en til på som ikke med av for et den fra",
    "pt": "de que do da em um para com não uma os",
    "ro": "și de în la că este nu cu pe din care sau mai",
    "ru": "на что не по это как для из он от но так его",  # noqa: RUF001
    "sv": "och att det är en som på för inte med av den till ett",
    "ta": "ஒரு என்று மற்றும் இந்த என அந்த உள்ள இது",
    "tr": "ve bir bu da de için ile olarak çok ne daha gibi en olan",
}
_FIRST_CHARS = 2_000
_LEAST, _LEAST_SHARE = 2, 0.05  # small words that a text must have


def guessed_languages(texts: pl.Series) -> pl.Series:
    """Returns the code of the language that most small words of each text belong to; else null.

    Only the beginning of a text counts. A text with few such words, or with as many of two
    languages, has no guess.

    >>> guessed_languages(pl.Series(["The end of a story is in the book", "Das Haus und die Katze", "x"])).to_list()
    ['en', 'de', None]
    """
    words = (
        texts.str.slice(0, _FIRST_CHARS).str.to_lowercase().str.extract_all(r"\p{L}[\p{L}\p{M}]+")
    )
    rows = pl.DataFrame({"word": words}).with_row_index("row")
    rows = rows.with_columns(words=pl.col("word").list.len()).explode("word")
    counted = rows.join(_small_words(), on="word").group_by("row", "language")
    counts = counted.agg(pl.first("words"), found=pl.len())
    best = counts.filter(pl.col("found") == pl.col("found").max().over("row"))
    enough = (pl.col("found") >= _LEAST) & (pl.col("found") >= _LEAST_SHARE * pl.col("words"))
    sure = best.filter(enough, pl.len().over("row") == 1).select("row", "language")
    every = pl.DataFrame({"row": pl.int_range(len(texts), dtype=pl.UInt32, eager=True)})
    return every.join(sure, on="row", how="left", maintain_order="left").get_column("language")


def _small_words() -> pl.DataFrame:
    pairs = [(word, code) for code, words in _SMALL_WORDS.items() for word in words.split()]
    return pl.DataFrame(pairs, schema={"word": pl.String, "language": pl.String}, orient="row")
