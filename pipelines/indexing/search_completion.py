"""Completes what a person types: words of the index, and titles of pages with these words."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import tantivy

from ...io.indexing.shard_documents import analyzers, shard_schema
from ...web.content.searched_forms import searched_form

_MOST_CHARS = 100  # of a text to complete; a longer one has no completions
_SHORTEST = 2  # characters of a beginning in ASCII; in other scripts one is enough
_READ_TERMS = 20_000  # that begin so; some ms
_MOST_ENDINGS = 20  # of the last word of a title
_MOST_WORDS = 5
_MOST_TITLES = 5


class TitleCompletion(NamedTuple):
    """A page whose title has the words of a text.

    Attributes:
        title: Its title.
        url: Its URL to show.
    """

    title: str
    url: str


class Completions(NamedTuple):
    """How a text may go on.

    Attributes:
        words: The text with its last word completed, most frequent words first.
        pages: Pages with the words of the text in their titles.
    """

    words: tuple[str, ...] = ()
    pages: tuple[TitleCompletion, ...] = ()


def complete_text(searcher: Any, text: str) -> Completions:
    """Returns how a text may go on.

    Reads at most ``_READ_TERMS`` words that begin as the last one, twice, and ``_MOST_TITLES`` pages.

    Args:
        searcher: tantivy's searcher.
        text: What was typed.
    """
    stored = (searcher.doc(place).to_dict() for place in _titled_places(searcher, text))
    return Completions(_complete_words(searcher, text), tuple(map(_title_completion, stored)))


def _title_completion(stored: Mapping[str, Any]) -> TitleCompletion:
    (document,) = stored["document"]
    fields = json.loads(document)
    return TitleCompletion(
        bytes(stored["title_text"][0]).decode(), str(fields.get("url") or fields["id"])
    )


def _complete_words(searcher: Any, text: str) -> tuple[str, ...]:
    start, beginning = _last_word(text)
    if not beginning:
        return ()
    terms = searcher.terms_with_prefix("words", beginning.lower(), limit=_READ_TERMS)
    terms = [(term, pages) for term, pages in terms if term != beginning.lower()]
    best = sorted(terms, key=lambda pair: (-pair[1], len(pair[0]), pair[0]))[:_MOST_WORDS]
    return tuple(start + term for term, _ in best)


def _titled_places(searcher: Any, text: str) -> Sequence[Any]:
    """Returns where the index has the best pages with all words of a text in their titles.

    The last word may be the beginning of one.
    """
    _, beginning = _last_word(text)
    terms = analyzers()["plain"].analyze(searched_form(text)) if beginning else []
    if not terms:
        return ()
    query, schema = tantivy.Query, shard_schema()
    endings = searcher.terms_with_prefix("title_words", terms[-1], limit=_READ_TERMS)
    endings = sorted(endings, key=lambda pair: -pair[1])[:_MOST_ENDINGS]
    words = [query.term_query(schema, "title_words", term, "position") for term in terms[:-1]]
    last = [query.term_query(schema, "title_words", term, "position") for term, _ in endings]
    if not last:
        return ()
    ended = query.boolean_query([(tantivy.Occur.Should, one) for one in last])
    both = query.boolean_query([(tantivy.Occur.Must, one) for one in (*words, ended)])
    hits = searcher.search(both, _MOST_TITLES, count=False, weight_by_field="weight").hits
    return [place for _, place in hits]


def _last_word(text: str) -> tuple[str, str]:
    """Returns what stands before the last word, and the last word, if it can be completed.

    An operator such as ``site:`` has no completions, and neither has a text that ends with a space.

    >>> _last_word("vacuum full ta"), _last_word("a "), _last_word("site:a")
    (('vacuum full ', 'ta'), ('', ''), ('', ''))
    """
    text = searched_form(text)
    at = max(text.rfind(mark) for mark in ' "-') + 1
    word = text[at:]
    if len(text) > _MOST_CHARS or ":" in word or (word.isascii() and len(word) < _SHORTEST):
        return "", ""
    return text[:at], word
