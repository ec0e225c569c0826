"""Says which writers of an index have refused documents, and what to do about it."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import polars as pl

from ...web.base.wording import format_count
from ..components.index_schema import DEAD_LETTERS
from ..components.reasons import counted_reasons
from ..components.schema import conform_frame

_REFUSED = "refused"


class Refusal(NamedTuple):
    """What a writer has refused in a run.

    Attributes:
        writer: Its name; empty: it is the only one.
        number: How many documents.
        every: Whether it has taken no other.
    """

    writer: str
    number: int
    every: bool

    @property
    def line(self) -> str:
        """One line for people."""
        who = f"index writer {self.writer!r}" if self.writer else "the index writer"
        quantity = "all " if self.every and self.number > 1 else ""
        return f"{who} refused {quantity}{format_count(self.number, 'documents')}: {_advice()}"


def refusals(counts: Mapping[str, int]) -> Iterator[Refusal]:
    """Yields which writers have refused documents, by the counts of runs of ``index``.

    >>> [refusal[:] for refusal in refusals({"indexed": 1, "refused": 2})]
    [('', 2, False)]
    >>> [refusal[:] for refusal in refusals({"indexed": 1, "a/added": 1, "b/refused": 1})]
    [('b', 1, True)]
    """
    for name, number in counts.items():
        writer, _, reason = name.rpartition("/")
        if reason == _REFUSED and number:
            taken = f"{writer}/added" if writer else "indexed"  # one writer alone has no name there
            yield Refusal(writer, number, not counts.get(taken))


def refused_before(number: int) -> str:
    """Returns the line about documents that were refused before, and are not sent again.

    >>> refused_before(2).partition(":")[0]
    'writers refused 2 documents in earlier runs'
    """
    return f"writers refused {format_count(number, 'documents')} in earlier runs: {_advice()}"


def _advice() -> str:
    return counted_reasons("index -")[_REFUSED].advice


def letters_of(rows: pl.DataFrame, refused: pl.DataFrame, writer: str, time: int) -> pl.DataFrame:
    """Returns DEAD_LETTERS rows of documents that a writer has refused.

    Args:
        rows: Pages that were sent: ``key``, ``id``.
        refused: Refused documents: ``id``, ``reason``, ``document``.
        writer: Name of the writer.
        time: When they were sent, ms.
    """
    letters = refused.unique("id", keep="last").join(rows.select("id", "key"), on="id", how="inner")
    letters = letters.with_columns(writer=pl.lit(writer), time=pl.lit(time))
    return conform_frame(letters.select(DEAD_LETTERS.names), DEAD_LETTERS)
