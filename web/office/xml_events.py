"""XML of documents, as events: nothing is kept, no entity is declared, nothing outside is loaded."""

import functools
from collections.abc import Callable, Iterable
from xml.parsers import expat

from ..pages.page import ParseFailed

MAX_DEPTH = 500
# Between a namespace and a name; no URL holds one.
_GAP = " "

Attributes = dict[str, str]


class Handler:
    """What takes the events. Names are local: ``p`` of ``w:p``."""

    def start(self, name: str, attributes: Attributes) -> None:
        """An element begins; its attributes are by local name, ``r:id`` of relationships by that."""

    def end(self, name: str) -> None:
        """It ends."""

    def text(self, text: str) -> None:
        """Text, in pieces."""


class Enough(Exception):
    """Raised by a handler that needs no more."""


def read_xml(chunks: Iterable[bytes], handler: Handler) -> None:
    """Reads XML.

    Args:
        chunks: The parts of the document; read no further than need be.
        handler: Takes what is there.

    Raises:
        ParseFailed: ``malformed``, ``xml_entities`` (it declares entities), ``too_complex``
            (over 500 elements are open at once).
    """
    parser = expat.ParserCreate(namespace_separator=_GAP)
    parser.buffer_text = True
    depth = 0

    def start(name: str, attributes: Attributes) -> None:
        nonlocal depth
        depth += 1
        if depth > MAX_DEPTH:
            raise ParseFailed("too_complex")
        handler.start(_local(name), {_named(key): value for key, value in attributes.items()})

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        handler.end(_local(name))

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = handler.text
    parser.StartDoctypeDeclHandler = _refuse_subset
    parser.EntityDeclHandler = _refuse
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
    try:
        for chunk in chunks:
            parser.Parse(chunk, False)
        parser.Parse(b"", True)
    except Enough:
        return
    except (expat.ExpatError, ValueError) as error:
        raise ParseFailed("malformed") from error
    finally:
        _let_go(parser)


@functools.lru_cache(maxsize=1024)
def _local(name: str) -> str:
    return name.rpartition(_GAP)[2]


@functools.lru_cache(maxsize=1024)
def _named(attribute: str) -> str:
    # Slides have both id and r:id.
    namespace, _, local = attribute.rpartition(_GAP)
    return f"r:{local}" if namespace.endswith("/relationships") else local


def _refuse_subset(*declared: object) -> None:
    if declared[-1]:  # has_internal_subset
        _refuse()


def _refuse(*_: object) -> None:
    raise ParseFailed("xml_entities")


def _let_go(parser: expat.XMLParserType) -> None:
    """Ends the circle of parser and handlers, which else waits for the collector."""
    nothing: Callable[..., None] | None = None
    parser.StartElementHandler = nothing
    parser.EndElementHandler = nothing
    parser.CharacterDataHandler = nothing
