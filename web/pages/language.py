"""Determines the language of a document, from its declarations or from its text."""

import functools
import pathlib
import re
from typing import TYPE_CHECKING

from ..base.imports import import_library
from .page import Page

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

_TABLE = pathlib.Path(__file__).parent / "languages.txt"
_MAX_DECLARED_CHARS = 100
# Separators of words, as in Nutch, and of the parts of a language tag.
_BETWEEN = re.compile(r"[\s,;.()=]+")
_SUBTAGS = re.compile("[-_]")

# Nutch's lang.analyze.max.length; a shorter text is not enough.
_MAX_CHARS = 2_048
_MIN_CHARS = 20
_MIN_CONFIDENCE = 0.9


def declared_language(*declarations: str | None) -> str | None:
    """Returns the first declaration that names one language, else the first that is not empty.

    >>> declared_language(None, "", "de, en", "<?= $lang ?>", " pt_BR ", "fr")
    'pt_BR'
    >>> declared_language(None, " ", "de, en")
    'de, en'
    """
    names = [
        name for declared in declarations if declared and (name := _short_declaration(declared))
    ]
    return next(filter(language_code, names), names[0] if names else None)


def language_code(declared: str) -> str | None:
    """Returns the ISO 639-1 code of the language that a declaration names, or None.

    A list of languages describes the audience of a document, not its own language.

    >>> [language_code(name) for name in ("sv_SE", "SWE", "Swedish", "(SCHEME=RFC1766) sv-FI")]
    ['sv', 'sv', 'sv', 'sv']
    >>> [language_code(name) for name in ("xx", "de, en", "tlh", "Norsk Nynorsk")]
    [None, None, None, 'nn']
    """
    if len(declared) > _MAX_DECLARED_CHARS:
        return None
    codes, name = _codes(), " ".join(declared.lower().split())
    if name in codes:
        return codes[name]
    tags = (_SUBTAGS.split(word, maxsplit=1)[0] for word in _BETWEEN.split(name))
    codes_of_tags = {codes[tag] for tag in tags if tag in codes}
    return codes_of_tags.pop() if len(codes_of_tags) == 1 else None


def three_letter_code(code: str) -> str | None:
    """Returns the ISO 639-3 code of a language with an ISO 639-1 code; None if it is unknown.

    >>> three_letter_code("de"), three_letter_code("xx")
    ('deu', None)
    """
    names = _names_of_codes().get(code)
    return None if names is None else names[0]


def settle_language(page: Page) -> None:
    """Makes a page's language an ISO 639-1 code or None; keeps the declaration as metadata."""
    declared = page.language
    page.language = language_code(declared) if declared else None
    if declared and declared != page.language:
        page.metas["language_declared"] = _short_declaration(declared)


def _short_declaration(declared: str) -> str:
    return " ".join(declared[: 2 * _MAX_DECLARED_CHARS].split())[: _MAX_DECLARED_CHARS + 1]


@functools.cache
def _names_of_codes() -> dict[str, list[str]]:
    """Returns the names of each language by its code; the first one is its code in ISO 639-3."""
    lines = (line for line in _TABLE.read_text("utf-8").splitlines() if not line.startswith("#"))
    return {code: row.split(", ") for code, row in (line.split(": ") for line in lines)}


@functools.cache
def _codes() -> dict[str, str]:
    """Returns codes by all names of a language, in lower case; codes go before names."""
    names = _names_of_codes()
    return {name: code for code in names for name in names[code]} | {code: code for code in names}


def detect_language(text: str) -> str | None:
    """Returns the ISO 639-1 code of the likely language of a text, or None.

    Needs py3langid; without it there is none.
    """
    identifier = _identifier() if len(text) >= _MIN_CHARS else None
    if identifier is None:
        return None
    language, _ = identifier.classify(text[:_MAX_CHARS])
    return None if language == "und" else str(language)


@functools.cache
def _identifier() -> "LanguageIdentifier | None":
    langid = import_library("py3langid.langid", "--detect_language")
    if langid is None:
        return None
    identifier: LanguageIdentifier = langid.LanguageIdentifier.from_model_file(  # takes 0.5 s
        langid.MODEL_FILE, norm_probs=True, min_confidence=_MIN_CONFIDENCE
    )
    return identifier
