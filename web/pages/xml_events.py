"""Reads XML as events, from start to end: no entities, no network, no tree.

``xml_events`` is strict. ``soup_events`` reads mark-up that no XML parser accepts, such as feeds with
tags left open or crossed.
"""

import html
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from html.entities import html5
from itertools import chain
from typing import Any
from xml.parsers import expat

from ..content.xml_start import BLANKS, without_junk
from .page import ParseFailed
from .xml_repair import repair_pieces, repair_text

# Expat keeps some bytes for each open element; a reader may keep more.
MAX_DEPTH = 5_000
# Small pieces need little memory for events. Expat scans an unfinished token again with each piece,
# so these grow while there are no events.
XML_READ_BYTES = 64 << 10
_MOST_BYTES = 1 << 20
START, END, CHARACTERS = 1, -1, 0  # the change of the depth

Attributes = dict[str, str]
# START, name, attributes; END, name, nothing; TEXT, a piece of text, nothing.
Event = tuple[int, str, Attributes]
NO_ATTRIBUTES: Attributes = {}
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


class MalformedXml(ParseFailed):
    """A document is not well-formed; all events before the first mistake have come."""

    def __init__(self) -> None:
        super().__init__("malformed_xml")


def text_events(text: str, prefixes: bool = False) -> Iterator[Event]:
    """Yields the events of a decoded document from the web; see ``xml_events``.

    What stands before its declaration is dropped, and its references are repaired; see
    ``xml_repair``.

    Args:
        text: The document. The encoding in its XML declaration does not count.
        prefixes: Whether names keep their prefixes.

    >>> [name for kind, name, _ in text_events("<a><x:b/>text</a>") if kind != END]
    ['a', 'b', 'text']
    """
    body = without_junk(text.lstrip(BLANKS).encode("utf-8", "replace"))
    pieces = (body[at : at + XML_READ_BYTES] for at in range(0, len(body), XML_READ_BYTES))
    return xml_events(repair_pieces(pieces), "utf-8", prefixes)


def xml_events(
    pieces: Iterable[bytes], encoding: str | None = None, prefixes: bool = False
) -> Iterator[Event]:
    """Yields the events of a document: elements, usually without their prefixes, and text.

    Entities that the document does not declare are those of HTML; others are left out. External
    entities are never looked up, and are left out, too.

    Args:
        pieces: The bytes of the document; they are read no further than the events are.
        encoding: The encoding, if it is not the one that the document declares.
        prefixes: Whether names keep their prefixes.

    Raises:
        MalformedXml: There is a mistake.
        ParseFailed: ``xml_entities``: the document declares entities or default attributes, with
            which it could grow without limit. ``too_complex``: over 5,000 elements are open at
            once.
    """
    return chain.from_iterable(_batches(pieces, encoding, prefixes))


def _batches(
    pieces: Iterable[bytes], encoding: str | None, prefixes: bool
) -> Iterator[list[Event]]:
    """Yields lists of the next events: a step for each of them would cost more than the parser."""
    events: list[Event] = []
    parser = _parser(events, encoding, prefixes)
    unparsed, batch_bytes = b"", XML_READ_BYTES
    for piece in chain(pieces, (None,)):
        unparsed += piece or b""
        if piece is not None and len(unparsed) < batch_bytes:
            continue
        mistake = _feed(parser, unparsed, piece is None)
        unparsed, batch_bytes = b"", XML_READ_BYTES if events else min(2 * batch_bytes, _MOST_BYTES)
        yield events
        events.clear()
        if mistake:
            raise MalformedXml from mistake


def _parser(events: list[Event], encoding: str | None, prefixes: bool) -> expat.XMLParserType:
    """Returns a parser that adds to a list of events."""
    depth = 0

    def start(name: str, attributes: Attributes) -> None:
        nonlocal depth
        depth += 1
        if depth > MAX_DEPTH:
            raise ParseFailed("too_complex")
        events.append((START, name if prefixes else name.rpartition(":")[2], attributes))

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        events.append((END, name if prefixes else name.rpartition(":")[2], NO_ATTRIBUTES))

    def text(piece: str) -> None:
        events.append((CHARACTERS, piece, NO_ATTRIBUTES))

    parser = expat.ParserCreate(encoding)
    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text
    parser.EntityDeclHandler = _refuse_entity
    parser.AttlistDeclHandler = _refuse_default
    parser.SkippedEntityHandler = lambda name, _: text(html5.get(f"{name};", ""))
    # Without it an entity of a DTD that is not read would be a mistake.
    parser.UseForeignDTD(True)
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
    return parser


def _feed(parser: expat.XMLParserType, piece: bytes, is_last: bool) -> Exception | None:
    """Parses the next piece; returns the error in it, or None."""
    try:
        parser.Parse(piece, is_last)
    except (expat.ExpatError, ValueError, LookupError) as error:  # or an encoding it does not know
        parser.buffer_text = False  # passes on the text before the mistake
        return error
    return None


def _refuse_entity(name: str, is_parameter: bool, value: str | None, *_: Any) -> None:
    # One without a value is external.
    if value is not None:
        raise ParseFailed("xml_entities")


def _refuse_default(element: str, name: str, kind: str, default: str | None, *_: Any) -> None:
    if default is not None:
        raise ParseFailed("xml_entities")


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
    for token in _TOKEN.finditer(repair_text(text)):
        kind = token.lastgroup
        if kind == "text":
            piece = token[0]
            yield CHARACTERS, html.unescape(piece) if "&" in piece else piece, NO_ATTRIBUTES
        elif kind == "empty":  # the last group of a start tag
            _, _, _, name, attributes_text, empty, _ = token.groups()
            lower = name.lower()
            if names and names[-1][0] in ends_at_next and lower in next_names:
                open_names[names[-1][0]] -= 1
                yield END, names.pop()[1], NO_ATTRIBUTES
            yield START, name, _attributes(attributes_text) if attributes_text else NO_ATTRIBUTES
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
