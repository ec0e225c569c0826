"""Reads mark-up that no XML parser accepts, as events: for feeds with tags left open or crossed."""

import html
import re
from collections import Counter
from collections.abc import Iterator

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
    r"|(?P<text>[^<]++|<)",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(
    r"(?<![\w:.-])([A-Za-z_][\w:.-]{0,199}+)\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\s\"'>]++))"
)
_ENTITY = "<!entity"


def soup_events(text: str) -> Iterator[Event]:
    """Yields the events of a decoded document, whatever its mistakes are.

    An end tag ends the elements within its element, too. One without a start tag is left out.
    What no tag can be is text. Names keep their prefixes.

    Raises:
        ParseFailed: ``xml_entities``: the document declares entities. ``too_complex``: over 5,000
            elements are open at once.

    >>> [event[:2] for event in soup_events("<a><B>x & y</a></c>")]
    [(1, 'a'), (1, 'B'), (0, 'x & y'), (-1, 'B'), (-1, 'a')]
    """
    names: list[str] = []
    open_names: Counter[str] = Counter()
    for token in _TOKEN.finditer(repaired_text(text)):
        if token["text"]:
            yield CHARACTERS, html.unescape(token["text"]), NO_ATTRIBUTES
        elif token["cdata"]:
            yield CHARACTERS, token["cdata"], NO_ATTRIBUTES
        elif name := token["start"]:
            yield START, name, _attributes(token["attributes"])
            if token["empty"]:
                yield END, name, NO_ATTRIBUTES
                continue
            names.append(name)
            open_names[name.lower()] += 1
            if len(names) > MAX_DEPTH:
                raise ParseFailed("too_complex")
        elif token["end"]:
            end = token["end"].lower()
            while open_names[end]:
                open_names[(name := names.pop()).lower()] -= 1
                yield END, name, NO_ATTRIBUTES
                if name.lower() == end:
                    break
        elif token["declaration"] and token[0].lower().startswith(_ENTITY):
            raise ParseFailed("xml_entities")
    for name in reversed(names):
        yield END, name, NO_ATTRIBUTES


def _attributes(text: str) -> Attributes:
    return {
        name: html.unescape(double or single or bare)
        for name, double, single, bare in _ATTRIBUTE.findall(text)
    }
