"""Terms of texts in the embedded index: stems, each after the language of its page.

One field has the texts of all languages, so that the length of a text and the number of pages with a
word count alike in all of them. Stems of two languages that look alike are different terms.
"""

from ...web.content.searched_forms import term_mark
from .shard_documents import analyzers


def language_terms(text: str, analyzer: str) -> list[str]:
    """Returns the terms of a text in TEXT_FIELDS.

    >>> language_terms("The houses", "en"), language_terms("Häuser", "de")
    (['en:the', 'en:hous'], ['de:haus'])
    """
    mark = term_mark(analyzer)
    return [mark + term for term in analyzers()[f"text_{analyzer}"].analyze(text)]
