"""The spans of parts of a text, so that each part is Markdown of its own."""

from collections.abc import Iterable, Iterator, Sequence

from . import spans
from .spans import Span

# Of the spans that a part begins within; of the spans that hold these, the outer ones are left out.
_MOST_OPEN = 32
# Longest row of headings, in characters and in spans, that is repeated in each part of a table.
_LONGEST_HEADINGS = 1_000


class _Open:
    """A span that reaches beyond the place that was reached.

    Attributes:
        at: Its number among the spans.
        span: It.
        number: Of a list, that of its last item.
    """

    __slots__ = ("at", "number", "span")

    def __init__(self, at: int, span: Span) -> None:
        self.at, self.span = at, span
        self.number = int(span[4]) - 1 if span[0] == spans.LIST and span[4] else 0


def spans_of_ranges(
    text_spans: Sequence[Span], ranges: Iterable[tuple[int, int]]
) -> Iterator[list[Span]]:
    """Yields the spans of each range of a text, cut at its ends.

    A list goes on with the number that it has reached. The first row of a table is repeated if it has
    headings.

    Args:
        text_spans: The spans of the text.
        ranges: Starts and ends; they ascend, and do not overlap.

    >>> some = [("list", 0, 7, 1, "1"), ("item", 0, 3, 1, ""), ("item", 4, 7, 1, "")]
    >>> [list(part) for part in spans_of_ranges(some, [(0, 3), (4, 7)])][1]
    [('list', 4, 7, 1, '2'), ('item', 4, 7, 1, '')]
    """
    open_spans: list[_Open] = []
    at, last = 0, len(text_spans)
    for start, end in ranges:
        while at < last and text_spans[at][1] < start:
            _open_span(open_spans, at, text_spans[at])
            at += 1
        _close_spans(open_spans, start)
        within: list[Span] = []
        for number, entry in enumerate(
            open_spans[-_MOST_OPEN:], max(0, len(open_spans) - _MOST_OPEN)
        ):
            within += _rest_of(entry, open_spans[number + 1 :], (start, end), text_spans)
        while at < last and text_spans[at][1] < end:
            kind, first, after, level, of = text_spans[at]
            within.append((kind, first, min(after, end), level, of))
            _open_span(open_spans, at, text_spans[at])
            at += 1
        yield within


def _open_span(open_spans: list[_Open], at: int, span: Span) -> None:
    _close_spans(open_spans, span[1])
    if span[0] == spans.ITEM and open_spans:
        open_spans[-1].number = int(span[4]) if span[4] else open_spans[-1].number + 1
    if span[2] > span[1]:
        open_spans.append(_Open(at, span))


def _close_spans(open_spans: list[_Open], place: int) -> None:
    while open_spans and open_spans[-1].span[2] <= place:
        open_spans.pop()


def _rest_of(
    entry: _Open, inner: Sequence[_Open], part: tuple[int, int], text_spans: Sequence[Span]
) -> list[Span]:
    """Returns the rest of an open span, cut at the ends of a part; of a table with its headings."""
    kind, _, after, level, of = entry.span
    start, end = part
    if kind == spans.LIST and of:
        goes_on = bool(inner) and inner[0].span[0] == spans.ITEM
        of = str(entry.number + (not goes_on))
    rest = [(kind, start, min(after, end), level, of)]
    return rest + _headings_of(entry, start, text_spans) if kind == spans.DATA_TABLE else rest


def _headings_of(table: _Open, start: int, text_spans: Sequence[Span]) -> list[Span]:
    """Returns the first row of a table, if it has headings and ends before a place."""
    row: list[Span] = []
    for span in text_spans[table.at + 1 : table.at + _LONGEST_HEADINGS]:
        kind, first, after, *_ = span
        is_next_row = bool(row) and (kind == spans.ROW or first > row[0][2])
        if is_next_row or first >= table.span[2] or after > start:
            break
        if row or kind == spans.ROW:
            row.append(span)
    is_heading = any(kind == spans.CELL and level for kind, _, _, level, _ in row)
    return row if is_heading and row[0][2] - row[0][1] <= _LONGEST_HEADINGS else []
