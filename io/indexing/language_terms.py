"""Terms of texts in the embedded index: stems, each after the language of its page.

One field has the texts of all languages, so that the length of a text and the number of pages with a
word count alike in all of them. Stems of two languages that look alike are different terms.
"""

from ...web.content.searched_forms import OTHER
from .shard_documents import analyzers


def language_terms(text: str, analyzer: str) -> list[str]:
    """Returns the terms of a text in TEXT_FIELDS.

    >>> language_terms("The houses", "en"), language_terms("Häuser", "de")
    (['en:the', 'en:hous'], ['de:haus'])
    """
    mark = term_mark(analyzer)
    return [mark + term for term in analyzers()[f"text_{analyzer}"].analyze(text)]


def term_mark(analyzer: str) -> str:
    """Returns what stands before each term of a language."""
    return ":" if analyzer == OTHER else f"{analyzer}:"


def joined_terms(text: str, analyzer: str, most: int = 0) -> str:
    """Returns the terms of a text with spaces between, as they are indexed.

    Args:
        text: The text.
        analyzer: Its language.
        most: How often a term counts, so that a title with a word 30 times is not worth 30 words;
            0: as often as it is there. Later ones keep their places.

    >>> joined_terms("Tea, tea, tea and tea", "en", most=2)
    'en:tea en:tea en: en:and en:'
    """
    terms = analyzers()[f"text_{analyzer}"].analyze(text)
    if most and len(terms) > most:
        counts = dict[str, int]()
        for at, term in enumerate(terms):
            counts[term] = counts.get(term, 0) + 1
            if counts[term] > most:
                terms[at] = ""
    mark = term_mark(analyzer)
    return mark + f" {mark}".join(terms) if terms else ""
