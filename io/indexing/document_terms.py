"""The terms of documents as they are indexed; a word that is repeated to be found counts little.

A word that is in a title more than three times counts once, as a word of the text; in the text of a link it
does not count. In a text a word that follows itself more than three times counts once: else a word may be
frequent there, and BM25 lets that count less and less. Words that do not count keep their places, so the
text stays as long as it is.

In scripts without spaces the reading of a word stands in brackets after it, and often within a longer word,
as in 図書(としょ)館. The terms of readings come last, so that 図書館 is found, and としょ is, too.
"""

import functools
import itertools
import operator
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from ...web.content.searched_forms import OTHER, term_mark
from .shard_documents import analyzers

_MOST_REPEATS = 3
_BETWEEN_PARTS = re.compile(r"\s*[|\u2013\u2014\u00b7\u2022\u00bb\u203a]\s*|\s+[-/]\s+|:\s+")
_MOST_PARTS, _MOST_WORDS = 6, 8
# Kana or Latin letters in brackets after Han.
_READING = re.compile(
    r"(?<=[\u3005\u3400-\u9fff\uf900-\ufaff])"
    r"\(([\u3041-\u30ff A-Za-z\u00c0-\u024f\u1e00-\u1eff'-]{1,60})\)"
)
_LONGEST_CHUNK, _MOST_CHUNKS = 30, 100_000  # of each language that are remembered


def title_terms(text: str, analyzer: str) -> tuple[str, str]:
    """Returns the terms of a title in a language, with spaces between; and those that it repeats too often.

    >>> title_terms("Tea, tea, teas and tea", "en"), title_terms("Tea, green tea", "en")
    (('en: en: en: en:and en:', 'en:tea'), ('en:tea en:green en:tea', ''))
    """
    terms = analyzers()[f"text_{analyzer}"].analyze(text)
    excess = {term: "" for term, count in Counter(terms).items() if count > _MOST_REPEATS}
    kept = [excess.get(term, term) for term in terms] if excess else terms
    return _marked(kept, analyzer), _marked(excess, analyzer)


def title_part_terms(title: str, analyzer: str) -> str:
    """Returns a term for each part of a title, so that a query which is all of the part finds it.

    Titles often name the site, too, before or after a dash or the like.

    >>> title_part_terms("Grey herons | Birds - Example", "en")
    'en:=grey=heron en:=bird en:=exampl'
    """
    parts = itertools.islice(filter(None, _BETWEEN_PARTS.split(title)), _MOST_PARTS)
    return " ".join(filter(None, (whole_title_term(part, analyzer) for part in parts)))


def whole_title_term(text: str, analyzer: str) -> str:
    """Returns the term of a part of a title, or of a query; empty if it has no words, or too many."""
    terms = analyzers()[f"text_{analyzer}"].analyze(text)
    if not 0 < len(terms) <= _MOST_WORDS or len({*terms}) < len(terms):
        return ""
    return _marked([f"={'='.join(terms)}"], analyzer)


def content_terms(text: str, analyzer: str) -> str:
    """Returns the terms of a text in a language, with spaces between.

    >>> content_terms("Tea, tea, teas, tea and tea, tea", "en"), content_terms("図書(としょ)館", "other")
    ('en:tea en: en: en: en:and en:tea en:tea', ':図 :書 :館 :と :し :ょ')
    """
    if analyzer == OTHER and "(" in text:
        readings = _READING.findall(text)
        text = " ".join((_READING.sub("", text), *readings))
    terms = [*filter(None, map(_terms_of(analyzer).__getitem__, text.split()))]
    if any(map(operator.eq, terms, itertools.islice(terms, 1, None))):
        return " ".join(_without_long_runs(terms, term_mark(analyzer)))
    return " ".join(terms)


def _without_long_runs(terms: Iterable[str], blank: str) -> Iterator[str]:
    for term, group in itertools.groupby(terms):
        run = [*group]
        yield from run if len(run) <= _MOST_REPEATS else [term, *[blank] * (len(run) - 1)]


def _marked(terms: Iterable[str], analyzer: str) -> str:
    mark = term_mark(analyzer)
    return " ".join([mark + term for term in terms])


@functools.cache
def _terms_of(analyzer: str) -> "_TermsOfChunks":
    return _TermsOfChunks(analyzer)


class _TermsOfChunks(dict[str, str]):
    """The terms of chunks of texts without white space; a chunk that is there is not cut again.

    No analyzer has terms with white space, so the terms of a text are those of its chunks. Most
    chunks are words that were there before, and to find a stem takes ten times as long.
    """

    def __init__(self, analyzer: str) -> None:
        super().__init__()
        self._analyzer = analyzer

    def __missing__(self, chunk: str) -> str:
        terms = _marked(analyzers()[f"text_{self._analyzer}"].analyze(chunk), self._analyzer)
        if len(chunk) <= _LONGEST_CHUNK:
            if len(self) >= _MOST_CHUNKS:
                self.clear()
            self[chunk] = terms
        return terms
