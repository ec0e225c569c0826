"""The language of a document: as it is declared, or else as its text looks."""

import functools
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

_TAG = re.compile(r"[A-Za-z]{2,8}(?:[-_][A-Za-z0-9]{1,8}){0,8}")
_MAX_TAG_CHARS = 35

# Nutch's lang.analyze.max.length; less than a line tells nothing.
_MAX_CHARS = 2_048
_MIN_CHARS = 20
_MIN_CONFIDENCE = 0.9


def declared_language(*declarations: str | None) -> str | None:
    """Returns the first declaration that is the tag of one language.

    A list of languages says for whom a document is, not what it is written in.

    >>> declared_language(None, "", "de, en", "<?= $lang ?>", " pt_BR ", "fr")
    'pt-BR'
    """
    for declared in declarations:
        tag = declared.strip()[: _MAX_TAG_CHARS + 1] if declared else ""
        if _TAG.fullmatch(tag) and len(tag) <= _MAX_TAG_CHARS:
            return tag.replace("_", "-")
    return None


def detect_language(text: str) -> str | None:
    """Returns the language that a text is probably in, by its two letters, or None.

    Needs py3langid.
    """
    if len(text) < _MIN_CHARS:
        return None
    language, _ = _identifier().classify(text[:_MAX_CHARS])
    return None if language == "und" else str(language)


@functools.cache
def _identifier() -> "LanguageIdentifier":
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # its model takes 0.5 s

    return LanguageIdentifier.from_model_file(
        MODEL_FILE, norm_probs=True, min_confidence=_MIN_CONFIDENCE
    )
