"""Reads XML as events, from start to end: no entities, no network, no tree.

``xml_events`` is strict. ``soup_events`` reads mark-up that no XML parser accepts, such as feeds with
tags left open or crossed. ``repair_pieces`` and ``repair_text`` make text acceptable to a strict
parser: its references, control characters and declaration.
"""

import html
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from html.entities import html5
from itertools import chain
from typing import Any
from xml.parsers import expat

from ..content.magic import BLANKS, without_junk
from .page import ParseFailed

# XML 1.0, 2.2: characters that no document may have. They are common in text from databases.
_CONTROLS = bytes({*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20)})
_CONTROL_NUMBERS = dict.fromkeys([*_CONTROLS, 0xFFFE, 0xFFFF])
# HTML reads references to these numbers as the characters of windows-1252.
_WINDOWS_1252 = {number: html.unescape(f"&#{number};") for number in range(0x80, 0xA0)}
# A reference that is surely right: of the names that XML has, or to a number from 32 to 127 or from
# 160 to 9,999.
_SUSPECT = re.compile(
    rb"&(?!(?:amp|lt|gt|quot|apos);"
    rb"|#(?:3[2-9]|[4-9][0-9]|1(?:[01][0-9]|2[0-7]|[6-9][0-9])|[2-9][0-9]{2}|[1-9][0-9]{3});)"
)
_NUMBER = re.compile(rb"&#(?:([0-9]{1,60})|[xX]([0-9A-Fa-f]{1,60}));?")
# The document is in UTF-8, whatever its declaration says, and however it is misspelt.
_DECLARATION = re.compile(rb"(?:\xef\xbb\xbf)?\s*<\?xml\b[^<>]*>")
_Replacement = Callable[[re.Match[bytes]], bytes]
_DOCTYPE, _PROLOGUE_BYTES = b"<!DOCTYPE", 8_192
_CDATA, _CDATA_END = b"<![CDATA[", b"]]>"
_CDATA_SECTION = re.compile(rb"<!\[CDATA\[.*?(?:\]\]>|\Z)", re.DOTALL)
_BARE = re.compile(rb"&(?!#[0-9]|#[xX][0-9A-Fa-f]|[A-Za-z_:][\w.:-]{0,63};)")
_REFERENCE = re.compile(
    rb"(?P<numbers>(?:&#(?:[0-9]{1,60}|[xX][0-9A-Fa-f]{1,60});?)+)"
    rb"|&(?!(?:amp|lt|gt|quot|apos);)(?P<name>[A-Za-z_:][\w.:-]{0,63};)"
)
_NAMES = {
    name.encode(): html.escape(text).encode() for name, text in html5.items() if name[-1] == ";"
}
# No reference, and no mark of CDATA, is longer than the end of a piece that waits for the next one.
_TAIL_BYTES = 80
_TAIL = re.compile(rb"[&<\]]")
_HIGH_SURROGATE = re.compile(rb"&#(?:5529[6-9]|55[3-9]..|56[0-2]..|5631.|[xX][Dd][89ABab]..);\Z")
_REFERENCE_BYTES = 8
_HALVES = re.compile(
    r"(?i)&#(xd[89ab][0-9a-f]{2}|5[5-7][0-9]{3});&#(xd[c-f][0-9a-f]{2}|5[67][0-9]{3});"
)


def drop_xml_controls(piece: bytes) -> bytes:
    """Returns text in UTF-8 without the characters that no XML may have (XML 1.0, 2.2)."""
    piece = piece.translate(None, _CONTROLS)
    if b"\xef\xbf" in piece:  # U+FFFE and U+FFFF
        piece = piece.replace(b"\xef\xbf\xbe", b"").replace(b"\xef\xbf\xbf", b"")
    return piece


def repair_pieces(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yields the pieces of a document in UTF-8, with references that a strict parser accepts.

    The XML declaration is dropped, if the first piece holds all of it: it may be misspelt.
    An ``&`` that begins no reference stands for itself, as does one before a name that HTML does not
    know, if there is no DTD, which might declare it. Two references to surrogates (an emoji, as some
    languages write it) become their letter. References to numbers that are no characters, and control
    characters, are dropped. References to the numbers 128 to 159 become the characters of
    windows-1252, as in HTML.

    >>> b"".join(repair_pieces([b"<a>R&D &#55357;&#", b"56832;&#0; &nbsp;&lt;</a>"])).decode()
    '<a>R&amp;D 😀 \\xa0&lt;</a>'
    """
    unfinished, in_cdata, replacement = b"", False, _replacement
    for piece in _without_declaration(iter(pieces)):
        text = unfinished + drop_xml_controls(piece)
        if _DOCTYPE in text[:_PROLOGUE_BYTES]:
            replacement = _replacement_with_dtd
        cut = _end_of_whole(text)
        text, unfinished = text[:cut], text[cut:]
        yield _repair(text, in_cdata, replacement)
        in_cdata = _ends_in_cdata(text, in_cdata)
    yield _repair(unfinished, in_cdata, replacement)


def repair_text(text: str) -> str:
    """Returns a document as ``repair_pieces`` yields it."""
    return b"".join(repair_pieces([text.encode("utf-8", "replace")])).decode("utf-8", "replace")


def join_surrogates(text: str) -> str:
    """Returns HTML in which two references to the halves of a character are that character.

    >>> join_surrogates("&#55357;&#56832; &#xD83D;&#xDE00; &#55357; &lt;")
    '😀 😀 &#55357; &lt;'
    """
    return _HALVES.sub(_join_halves, text) if "&#" in text else text


def _without_declaration(pieces: Iterator[bytes]) -> Iterator[bytes]:
    first = next(pieces, b"")
    declaration = _DECLARATION.match(first)
    yield first[declaration.end() :] if declaration else first
    yield from pieces


def _join_halves(match: re.Match[str]) -> str:
    high, low = (int(half[1:], 16) if half[0] in "xX" else int(half) for half in match.groups())
    if 0xD800 <= high < 0xDC00 <= low < 0xE000:
        return chr(0x10000 + (high - 0xD800 << 10) + low - 0xDC00)
    return match[0]


def _end_of_whole(text: bytes) -> int:
    """Returns where the last reference or mark begins that may go on in the next piece."""
    tail = _TAIL.search(text, max(0, len(text) - _TAIL_BYTES))
    if tail is None:
        return len(text)
    cut = tail.start()
    if text[max(0, cut - 1) : cut + 1] == b"]]":
        cut -= 1
    high = _HIGH_SURROGATE.search(text, max(0, cut - _REFERENCE_BYTES), cut)
    return high.start() if high else cut


def _ends_in_cdata(text: bytes, in_cdata: bool) -> bool:
    begin, end = text.rfind(_CDATA), text.rfind(_CDATA_END)
    return in_cdata if begin == end == -1 else begin > end


def _repair(text: bytes, in_cdata: bool, replacement: _Replacement) -> bytes:
    start = 0
    if in_cdata:
        end = text.find(_CDATA_END)
        start = len(text) if end < 0 else end
    if b"&" not in text or not _SUSPECT.search(text, start):
        return text
    parts = [text[:start]]
    for section in _CDATA_SECTION.finditer(text, start):
        parts += [_with_references(text[start : section.start()], replacement), section[0]]
        start = section.end()
    return b"".join([*parts, _with_references(text[start:], replacement)])


def _with_references(text: bytes, replacement: _Replacement) -> bytes:
    """Returns a text outside of CDATA with all its references repaired."""
    return _REFERENCE.sub(replacement, _BARE.sub(b"&amp;", text))


def _replacement(match: re.Match[bytes]) -> bytes:
    if match.lastgroup == "numbers":
        return _characters(match[0])
    return _NAMES.get(match["name"]) or b"&amp;" + match["name"]


def _replacement_with_dtd(match: re.Match[bytes]) -> bytes:
    is_unknown = match.lastgroup == "name" and match["name"] not in _NAMES
    return match[0] if is_unknown else _replacement(match)


def _characters(numbers: bytes) -> bytes:
    """Returns the characters that a run of references stands for, escaped where they must be."""
    points = (int(hexa, 16) if hexa else int(number) for number, hexa in _NUMBER.findall(numbers))
    letters = "".join(
        _WINDOWS_1252.get(point) or chr(point) for point in points if point <= 0x10FFFF
    )
    whole = letters.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return html.escape(whole.translate(_CONTROL_NUMBERS)).encode()


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
    ``repair_pieces``.

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
