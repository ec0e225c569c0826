"""Reads mark-up that no XML parser accepts, as events: for feeds with tags left open or crossed."""

import html
import re
from collections import Counter
from collections.abc import Collection, Iterator

from .page import ParseFailed
from .xml_events import CHARACTERS, END, MAX_DEPTH, NO_ATTRIBUTES, START, Attributes, Event
from .xml_repair import repaired_text

# Possessive and bounded: one pass, however broken the mark-up is.
_TOKEN = re.compile(
    r"<!\[CDATA\[(?P<cdata>.*?)(?:\]\]>|\Z)"
    r"|<!--.*?(?:-->|\Z)|<\?.*?(?:\?>|\Z)"
    r"|(?P<declaration><!)[^<>]*+>?"
    r"|</(?P<end>[A-Za-z_][\w:.-]{0,199}+)[^<>]*+>"
    r"|<(?P<start>[A-Za-z_][\w:.-]{0,199}+)"
    r"(?P<attributes>(?:[^<>\"'/]|\"[^\"<]{0,4096}\"|'[^'<]{0,4096}'|/(?!>))*+)(?P<empty>/?)>"
    r"|(?P<text>[^<]++|<+(?=<)|<)",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(
    r"(?<![\w:.-])([A-Za-z_][\w:.-]{0,199}+)\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\s\"'>]++))"
)
_ENTITY = "<!entity"


def soup_events(
    text: str, ends_at_next: Collection[str] = (), next_names: Collection[str] = ()
) -> Iterator[Event]:
    """Yields the events of a decoded document, whatever its mistakes are.

    An end tag ends the elements within its element, too. One without a start tag is left out.
    What no tag can be is text. Names keep their prefixes.

    Args:
        text: The document.
        ends_at_next: Names in lower case of elements that end at the start of one of
            ``next_names``, if they are still open.
        next_names: Names in lower case.

    Raises:
        ParseFailed: ``xml_entities``: the document declares entities. ``too_complex``: over 5,000
            elements are open at once.

    >>> [event[:2] for event in soup_events("<a><B>x & y</a></c>")]
    [(1, 'a'), (1, 'B'), (0, 'x & y'), (-1, 'B'), (-1, 'a')]
    """
    names: list[tuple[str, str]] = []  # of open elements: in lower case, and as they stand there
    open_names: Counter[str] = Counter()
    for token in _TOKEN.finditer(repaired_text(text)):
        kind = token.lastgroup
        if kind == "text":
            piece = token[0]
            yield CHARACTERS, html.unescape(piece) if "&" in piece else piece, NO_ATTRIBUTES
        elif kind == "empty":  # the last group of a start tag
            _, _, _, name, said, empty, _ = token.groups()
            lower = name.lower()
            if names and names[-1][0] in ends_at_next and lower in next_names:
                open_names[names[-1][0]] -= 1
                yield END, names.pop()[1], NO_ATTRIBUTES
            yield START, name, _attributes(said) if said else NO_ATTRIBUTES
            if empty:
                yield END, name, NO_ATTRIBUTES
                continue
            names.append((lower, name))
            open_names[lower] += 1
            if len(names) > MAX_DEPTH:
                raise ParseFailed("too_complex")
        elif kind == "end":
            end = token["end"].lower()
            while open_names[end]:
                lower, name = names.pop()
                open_names[lower] -= 1
                yield END, name, NO_ATTRIBUTES
                if lower == end:
                    break
        elif kind == "cdata":
            yield CHARACTERS, token["cdata"], NO_ATTRIBUTES
        elif kind == "declaration" and token[0].lower().startswith(_ENTITY):
            raise ParseFailed("xml_entities")
    for _, name in reversed(names):
        yield END, name, NO_ATTRIBUTES


def _attributes(text: str) -> Attributes:
    return {
        name: html.unescape(double or single or bare)
        for name, double, single, bare in _ATTRIBUTE.findall(text)
    }
