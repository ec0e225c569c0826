"""The form in which texts, URLs and queries are searched, and how each language is cut into terms."""

import re
import unicodedata
from urllib.parse import unquote

import polars as pl

from .legibility import SPACELESS_RANGES

# Inside of words: the soft hyphen and other invisible characters, and accents that no letter of
# Unicode includes. U+0130 is Turkish: in lower case it would become two characters.
_REMOVED = (
    "\u00ad\u034f\u2060\ufeff\u0300-\u036f"
    # The points of Hebrew and Arabic, and the line by which Arabic lengthens words.
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
    "\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed"
)
_REMOVED_IN_TEXT = re.compile(f"[{_REMOVED}]")
_DOTTED_I = ("\u0130", "I")
# Characters that are in this form already, whatever is next to them. Most texts have no others, and to
# look for others is ten times as fast as to convert. Latin, Greek, Cyrillic, Hebrew, Arabic, quotation
# marks and dashes, arrows and boxes, Kana, Han, Hangul.
SAME_IN_NFKC = (
    "\\x00-\x7f\xa1-\xa7\xa9\xab\xac\xae\xb0\xb1\xb6\xb7\xbb\xbf-\u012f\u0131\u0134-\u013e\u0141-\u0148"
    "\u014a-\u017e\u0386\u0388-\u03ce\u0400-\u0482\u048a-\u052f\u05d0-\u05ea\u0620-\u063f\u0641-\u064a\u0660-\u066f"
    "\u2010\u2012-\u2016\u2018-\u2023\u2027\u2039\u203a\u20ac\u2190-\u21ff\u2500-\u25ff"
    "\u3001\u3002\u3005-\u301b\u3041-\u3094\u309d\u309e\u30a1-\u30fe\u4e00-\u9fff\uac00-\ud7a3"
)
# As in the texts of an index, each of these is a word. Hangul has spaces, and is cut the same.
_SPACELESS = re.compile(f"([{SPACELESS_RANGES}\uac00-\ud7a3])")
_PUNYCODE = re.compile(r"xn--([a-z0-9-]{1,59})", re.IGNORECASE)


def searched_form(text: str) -> str:
    """Returns a text in Unicode's form NFKC, without characters that are not seen.

    >>> searched_form("Cafe\u0301 \uff21\uff22 of\ufb01ce soft\u00adhyphen \u0130zmir")
    'Café AB office softhyphen Izmir'
    """
    if text.isascii():
        return text
    return _REMOVED_IN_TEXT.sub("", unicodedata.normalize("NFKC", text).replace(*_DOTTED_I))


def searched_forms(texts: pl.Series) -> pl.Series:
    """Returns texts in the same form; lists of texts, too."""
    if isinstance(texts.dtype, pl.List):
        return texts.list.eval(_form(pl.element()))
    beyond_ascii = (texts.str.len_bytes() != texts.str.len_chars()).arg_true()
    unsettled = beyond_ascii.filter(texts.gather(beyond_ascii).str.contains(f"[^{SAME_IN_NFKC}]"))
    if not len(unsettled):
        return texts
    changed = texts.gather(unsettled).to_frame("text").select(_form(pl.col("text"))).to_series()
    return texts.clone().scatter(unsettled, changed)


def _form(texts: pl.Expr) -> pl.Expr:
    composed = texts.str.normalize("NFKC").str.replace_all(*_DOTTED_I, literal=True)
    return composed.str.replace_all(f"[{_REMOVED}]", "")


def url_words(url: str) -> str:
    """Returns a URL, or a part of one, as it is searched: without escapes.

    Letters beyond ASCII stand in the place of percent-escapes (UTF-8) and of Punycode. Letters of
    scripts without spaces are apart.

    >>> url_words("http://xn--mnchen-3ya.example/K%C3%A4se/%E6%97%A5%E6%9C%AC")
    'http://münchen.example/Käse/ 日  本 '
    """
    if "%" in url:
        url = unquote(url)
    if "xn--" in url.lower():
        url = _PUNYCODE.sub(_label, url)
    return url if url.isascii() else _SPACELESS.sub(r" \1 ", searched_form(url))


def _label(label: re.Match[str]) -> str:
    try:
        return label[1].encode().decode("punycode")
    except UnicodeError:
        return label[0]


# Languages with a stemmer of their own, by the code of the language.
STEMMERS = {
    "ar": "arabic", "da": "danish", "de": "german", "el": "greek", "en": "english",
    "es": "spanish", "fi": "finnish", "fr": "french", "hu": "hungarian", "it": "italian",
    "nl": "dutch", "no": "norwegian", "pt": "portuguese", "ro": "romanian", "ru": "russian",
    "sv": "swedish", "ta": "tamil", "tr": "turkish",
}  # fmt: skip
OTHER = "other"
ANALYZERS = (*STEMMERS, OTHER)
_SAME = {"nb": "no", "nn": "no"}
# Scripts that are written without spaces: each character is a term.
SPACELESS = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
SPACELESS_TERM = rf"[{SPACELESS}]|[\w&&[^{SPACELESS}]]+"
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


def term_mark(analyzer: str) -> str:
    """Returns what stands before each term of a language."""
    return ":" if analyzer == OTHER else f"{analyzer}:"


def accented_words(text: pl.Expr) -> pl.Expr:
    """Returns the words of each text that have accents, each once, with spaces between.

    >>> pl.DataFrame({"t": ["Le café, un café noir"]}).select(accented_words(pl.col("t"))).item()
    'café'
    """
    words = text.str.extract_all(_ACCENTED)
    return words.list.unique(maintain_order=True).list.join(" ")


_UNKNOWN = "unknown"  # what the index filter writes where a page declares none


def primary_languages(languages: pl.Series) -> pl.Series:
    """Returns the code of each language without its region, in lower case; null if it is unknown.

    >>> primary_languages(pl.Series(["de-AT", "unknown", "", None])).to_list()
    ['de', None, None, None]
    """
    codes = languages.cast(pl.String).str.to_lowercase().str.replace(r"[-_].*$", "")
    none = pl.Series(codes.name, [None], dtype=pl.String).new_from_index(0, len(codes))
    return codes.zip_with(~codes.is_in([_UNKNOWN, ""]).fill_null(True), none)
