"""Cuts a text and its spans to the main content of the page."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import TypeAlias

from . import spans
from .spans import Span

# The first character, and the one after it, of each part that is main content, in their order.
TextParts: TypeAlias = Sequence[tuple[int, int]]

_GAP = "\n\n"


def cut_text(text: str, parts: TextParts) -> str:
    """Returns the main content of a text, with an empty line between its parts; all of it if there are none.

    >>> cut_text("Home\\n\\nA text\\nOne more\\nImprint", [(6, 12), (13, 21)])
    'A text\\n\\nOne more'
    """
    return _GAP.join(text[start:end] for start, end in parts) if parts else text


def cut_spans(text_spans: Sequence[Span], parts: TextParts) -> list[Span]:
    """Returns the spans of what ``cut_text`` returns: those that are left are cut, too.

    >>> cut_spans([("paragraph", 0, 4, 0, ""), ("paragraph", 6, 12, 1, "")], [(6, 12)])
    [('paragraph', 0, 6, 1, '')]
    """
    if not parts:
        return list(text_spans)
    starts, ends = [start for start, _ in parts], [end for _, end in parts]
    places, length = list[int](), 0
    for start, end in parts:
        places.append(length)
        length += end - start + len(_GAP)
    left = list[Span]()
    for kind, start, end, level, of in text_spans:
        if kind == spans.BASE:
            left.append((kind, start, end, level, of))
            continue
        if start == end:  # a rule, or an empty cell
            first = last = bisect_right(starts, start) - 1
            if first < 0 or start > ends[first] or (kind == spans.RULE and start in parts[first]):
                continue
        else:
            first, last = bisect_right(ends, start), bisect_left(starts, end) - 1
            if last < first:
                continue
        new_start = places[first] + max(start - starts[first], 0)
        new_end = places[last] + min(end, ends[last]) - starts[last]
        left.append((kind, new_start, new_end, level, of))
    return left
