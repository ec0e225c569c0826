"""Cuts a text and its spans to the main content of the page."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from . import spans
from .spans import Span

_GAP = "\n\n"


def main_part(text: str, text_spans: Sequence[Span]) -> tuple[str, list[Span]]:
    """Returns the main content of a text, with its spans; the whole text if none is marked in it.

    Args:
        text: The text.
        text_spans: Its spans.

    >>> main_part("Home\\n\\nA text", [("main", 6, 12, 0, ""), ("paragraph", 0, 4, 0, ""), ("paragraph", 6, 12, 1, "")])
    ('A text', [('paragraph', 0, 6, 1, '')])
    """
    parts = [(start, end) for kind, start, end, *_ in text_spans if kind == spans.MAIN]
    if not parts:
        return text, list(text_spans)
    starts, ends = [start for start, _ in parts], [end for _, end in parts]
    places, length = list[int](), 0
    for start, end in parts:
        places.append(length)
        length += end - start + len(_GAP)
    rest = list[Span]()
    for kind, start, end, level, of in text_spans:
        if kind == spans.BASE:
            rest.append((kind, start, end, level, of))
        if kind in (spans.MAIN, spans.BASE):
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
        rest.append((kind, new_start, new_end, level, of))
    return _GAP.join(text[start:end] for start, end in parts), rest
