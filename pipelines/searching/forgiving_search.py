"""Searches as people type: names words that no page has, corrects them, and says what it did."""

import dataclasses
import itertools
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ...io.indexing.shard_documents import analyzers
from ...policy.searching.search_query import (
    OPERATORS,
    QUESTION_WORDS,
    Clause,
    TypedWord,
    foreign_operators,
    parse_search,
    replace_words,
    typed_words,
    unknown_operators,
)
from ...policy.searching.spelling import (
    Correction,
    correct_word,
    is_correctable,
    split_word,
    usual_spelling,
)
from .index_search import RESULT_ORDERS, FoundPages, SearchNote, ShardSearch
from .question_vectors import QuestionVectors

_MOST_WORDS = 8  # of a query that are corrected
_MOST_NAMED, _LONGEST = 8, 40  # words or values that a line names, and characters of each
_FEW = 2  # pages that are found: then another spelling is suggested
_LETTERS = re.compile(r"[^\W_]+")
# Operators whose values are named if no page has the given one. Hosts may be too many.
_VALUES = {"lang": "languages", "type": "types"}


class _Changed(NamedTuple):
    """A word of a query, or two that were one, and what was probably meant."""

    word: TypedWord
    correction: Correction


class ForgivingSearch:
    """Searches an index for what a person has typed.

    Args:
        index: The index.
        questions: Makes vectors of queries, so that pages are ranked by their meaning, too; None:
            by their words alone.
    """

    def __init__(self, index: ShardSearch, questions: QuestionVectors | None = None) -> None:
        self._index, self._questions = index, questions

    def search(
        self,
        query: str,
        top_n: int = 10,
        offset: int = 0,
        *,
        order: str = RESULT_ORDERS[0],
        facets: bool = False,
    ) -> FoundPages:
        """Returns the best pages of a query, and what a person should know of it.

        Of a word that no page has, the sure correction is searched. Another one is searched only if
        nothing else is found, else it is suggested. Short words, words with digits, and what stands
        in quotation marks are never corrected.

        Args:
            query: The query.
            top_n: Most pages to return.
            offset: Number of pages to leave out before.
            order: One of ``RESULT_ORDERS``.
            facets: Whether to count values of all pages.

        Raises:
            ValueError: The query is wrong.
        """

        def find(text: str) -> FoundPages:
            clauses = parse_search(text)
            return self._index.search(clauses, top_n, offset, order=order, facets=facets)

        clauses = parse_search(query)
        missing = self._missing_words(query)
        changes = self._changes(query, missing)
        searched = [change for change in changes if change.correction.is_sure]
        results = find(_changed_query(query, searched))
        if not results.total and len(searched) < len(changes):
            searched = changes
            results = find(_changed_query(query, searched))
        if not results.total and searched:
            searched, results = [], find(query)
        quoted = self._missing_in_phrases(clauses)
        names = [*(word.text for word in missing), *quoted]
        notes = [*self._notes_of_operators(query, clauses), *_notes_of_symbols(clauses)]
        notes += _notes_of_words(query, names, searched, changes)
        if quoted and not changes:
            notes[-1:] = [self._note_of_phrases(query, quoted, notes[-1])]
        if not names and results.total <= _FEW and not offset:
            notes += self._notes_of_usual_words(query)
        corrected = _changed_query(query, searched) if searched else ""
        # What words find decides what was meant; pages with near chunks there are for any query.
        asked = parse_search(corrected or query)
        if order == RESULT_ORDERS[0] and self._questions is not None:
            question = self._questions.of(asked, self._index.vector_maker)
            if question is not None:
                results = self._index.search(asked, top_n, offset, facets=facets, question=question)
        return dataclasses.replace(results, searched=corrected, notes=tuple(notes))

    def _missing_words(self, query: str) -> list[TypedWord]:
        """Returns the words of a query that no page has."""
        words = (word for word in typed_words(query) if word.text.lower() not in QUESTION_WORDS)
        return [word for word in words if self._is_missing(word.text)]

    def _is_missing(self, word: str) -> bool:
        parts = _LETTERS.findall(word)
        if len(parts) > 1 and self._index.pages_with(word):
            return not self._follows(word)  # pages have the parts, but not one after the other
        return bool(parts) and not self._index.pages_with(word)

    def _missing_in_phrases(self, clauses: Iterable[Clause]) -> list[str]:
        words = (
            word
            for clause in clauses
            if (clause.phrase or clause.name == "intitle") and not clause.excluded
            for word in _LETTERS.findall(clause.text)
        )
        return [word for word in words if not self._index.pages_with(word)]

    def _note_of_phrases(self, query: str, words: Sequence[str], note: SearchNote) -> SearchNote:
        """Returns a note with the query as it may be meant, if words in quotation marks are misspelt."""
        meant = query
        for word in words:
            correction = self._correction(word)
            if correction is not None:
                meant = re.sub(rf"\b{re.escape(word)}\b", correction.text, meant)
        return note if meant == query else SearchNote(f"{note.text}; did you mean:", meant)

    def _changes(self, query: str, missing: Sequence[TypedWord]) -> list[_Changed]:
        changes, joined = list[_Changed](), set[TypedWord]()
        words = typed_words(query)
        for word, following in itertools.pairwise(words):
            if word in joined or not {word, following} & {*missing[:_MOST_WORDS]}:
                continue
            together = (word.text + following.text).lower()
            if is_correctable(together) and self._index.pages_with_spelling(together):
                span = TypedWord(word.begin, following.end, f"{word.text} {following.text}")
                changes.append(_Changed(span, Correction(together, is_sure=True)))
                joined |= {word, following}
        for word in missing[:_MOST_WORDS]:
            correction = None if word in joined else self._correction(word.text)
            if correction is not None:
                changes.append(_Changed(word, correction))
        return sorted(changes)

    def _correction(self, word: str) -> Correction | None:
        """Returns the correction of a word; of one with signs inside, that of its parts."""
        text, is_sure, changed = word.lower(), True, False
        for part in dict.fromkeys(_LETTERS.findall(text)):
            if self._index.pages_with(part):
                continue
            correction = correct_word(part, self._forms(part), self._index)
            if correction is None or not correction.is_sure:
                correction = self._split(part) or correction
            if correction is None:
                return None
            text, changed = text.replace(part, correction.text), True
            is_sure = is_sure and correction.is_sure
        return Correction(text, is_sure) if changed else None

    def _split(self, word: str) -> Correction | None:
        return split_word(word, self._index, self._follows, self._are_together)

    def _are_together(self, words: str) -> bool:
        clauses = [Clause("", word, phrase=True) for word in words.split()]  # each is required
        return bool(self._index.search(clauses, 1).total)

    def _forms(self, word: str) -> list[str]:
        """Returns a word without accents, and without the letter of a plural, as stems are."""
        names = ("plain", *(f"text_{analyzer}" for analyzer in self._index.present))
        forms = [form for name in names for form in analyzers()[name].analyze(word)]
        return [form for form in forms if len(form) >= len(word) - 1]

    def _follows(self, words: str) -> bool:
        return bool(self._index.search([Clause("", words, phrase=True)], 1).total)

    def _notes_of_usual_words(self, query: str) -> Iterable[SearchNote]:
        """Yields the query with words that far more pages have than those which were typed."""
        changes = [
            (word, usual)
            for word in typed_words(query)[:_MOST_WORDS]
            if self._index.pages_with(word.text) <= _FEW
            and (usual := usual_spelling(word.text.lower(), self._index))
        ]
        if changes:
            yield SearchNote("did you mean:", replace_words(query, changes))

    def _notes_of_operators(self, query: str, clauses: Sequence[Clause]) -> Iterable[SearchNote]:
        """Yields a line about operators that are none, and about values that no page has."""
        names = [
            *foreign_operators(query),
            *(
                name
                for text, name in unknown_operators(clauses).items()
                if not self._index.search([Clause("", text)], 1).total
            ),
        ]
        if names:
            every = " ".join(f"{name}:" for name in OPERATORS)
            yield SearchNote(
                f"there is no operator {_listed(f'{name}:' for name in names)}, what follows is "
                f"searched as words; there are {every}"
            )
        for clause in clauses:
            if clause.name not in ("site", *_VALUES) or clause.excluded:
                continue
            if not self._index.pages_of_value(clause.name, clause.text):
                there = ""
                if clause.name in _VALUES:
                    values = self._index.values(clause.name, _MOST_NAMED)
                    there = f"; {_VALUES[clause.name]} there are: {_listed(values)}"
                yield SearchNote(f"no page has {clause.name}:{clause.text}{there}")


def _changed_query(query: str, changes: Sequence[_Changed]) -> str:
    """Returns a query with corrections."""
    pairs = [(change.word, change.correction.text) for change in changes]
    return replace_words(query, pairs) if pairs else query


def _notes_of_words(
    query: str, names: Sequence[str], searched: Sequence[_Changed], changes: Sequence[_Changed]
) -> Iterable[SearchNote]:
    missing = f"no page has: {_listed(names)}; " if names else ""
    if searched:
        yield SearchNote(f"{missing}searched for:", _changed_query(query, searched))
        quoted = [(word, f'"{word.text}"') for word, _ in searched]
        yield SearchNote("to search for what was typed:", replace_words(query, quoted))
    elif changes:
        yield SearchNote(f"{missing}did you mean:", _changed_query(query, changes))
    elif missing:
        yield SearchNote(missing.removesuffix("; "))


def _notes_of_symbols(clauses: Sequence[Clause]) -> Iterable[SearchNote]:
    if not any(_LETTERS.search(clause.text) for clause in clauses):
        yield SearchNote("the query has no words: letters and digits are searched")


def _listed(values: Iterable[str]) -> str:
    values = [*dict.fromkeys(values)]
    cut = (value if len(value) <= _LONGEST else f"{value[:_LONGEST]}…" for value in values)
    more = ", …" if len(values) > _MOST_NAMED else ""
    return ", ".join(itertools.islice(cut, _MOST_NAMED)) + more
