"""How texts of each language are cut into terms of an index."""

import polars as pl

# Languages with a stemmer of their own, by the code of the language.
STEMMERS = {
    "ar": "arabic", "da": "danish", "de": "german", "el": "greek", "en": "english",
    "es": "spanish", "fi": "finnish", "fr": "french", "hu": "hungarian", "it": "italian",
    "nl": "dutch", "no": "norwegian", "pt": "portuguese", "ro": "romanian", "ru": "russian",
    "sv": "swedish", "ta": "tamil", "tr": "turkish",
}  # fmt: skip
OTHER = "other"
UNKNOWN_LANGUAGE = "unknown"  # what the index filter writes where a page declares none
ANALYZERS = (*STEMMERS, OTHER)
_SAME = {"nb": "no", "nn": "no"}
# Scripts that are written without spaces: each character is a term.
SPACELESS = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
SPACELESS_TERM = rf"[{SPACELESS}]|[\w&&[^{SPACELESS}]]+"
# Words that questions have, and that pages which answer them need not have.
_QUESTION_WORDS = """
a about all am an and any are as at be been but by can could did do does for from get had has have
how i if in into is it its me my no not of on or our should so such that the their then there these
they this to us was we were what when where which who why will with would you your
"""
QUESTION_WORDS = frozenset(_QUESTION_WORDS.split())
# A Latin word with at least one letter that is not ASCII.
_ACCENTED = r"\p{Latin}*[\u{00C0}-\u{024F}\u{1E00}-\u{1EFF}]\p{Latin}*"


def analyzers_of(languages: pl.Series) -> pl.Series:
    """Returns the analyzer of each language code; without a stemmer, or without a code: ``other``.

    >>> analyzers_of(pl.Series(["de-AT", "nb", "ja", None])).to_list()
    ['de', 'no', 'other', 'other']
    """
    codes = languages.cast(pl.String).str.to_lowercase().str.replace(r"[-_].*$", "")
    analyzer_of = {**{code: code for code in STEMMERS}, **_SAME}
    return codes.replace_strict(analyzer_of, default=OTHER, return_dtype=pl.String).fill_null(OTHER)


def accented_words(text: pl.Expr) -> pl.Expr:
    """Returns the words of each text that have accents, each once, with spaces between.

    >>> pl.DataFrame({"t": ["Le café, un café noir"]}).select(accented_words(pl.col("t"))).item()
    'café'
    """
    words = text.str.extract_all(_ACCENTED)
    return words.list.unique(maintain_order=True).list.join(" ")
