"""XML, read once from start to end: no entities, no network, no tree."""

from collections.abc import Callable
from html.entities import html5
from typing import Any
from xml.parsers import expat

from ..pages.page import ParseFailed

# Expat counts its own open elements, at some bytes each; what we keep for one may be more.
MAX_DEPTH = 5000


class _Enough(Exception):
    """Stops expat."""


def read_xml(
    text: str,
    start: Callable[[str, dict[str, str]], bool | None],
    end: Callable[[str], Any],
    data: Callable[[str], Any],
) -> bool:
    """Reads XML; names are without prefix and namespace.

    Entities that the document does not declare are those of HTML, else left out.
    External ones are left out, too: they are never looked up.

    Args:
        text: The document; what its XML declaration says of its encoding is not looked at.
        start: Is told the name and attributes of an element; it ends the reading if it
            returns True.
        end: Is told the name of an element that ends.
        data: Is told text, in pieces.

    Returns:
        Whether the document is well-formed to where the reading ended; if not, all before the
        first mistake has been read.

    Raises:
        ParseFailed: ``xml_entities``: the document declares entities, with which it
            could grow without limit. ``too_complex``: over 5,000 elements are open at once.
    """
    depth = 0

    def on_start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > MAX_DEPTH:
            raise ParseFailed("too_complex")
        if start(name.rpartition(":")[2], attributes):
            raise _Enough

    def on_end(name: str) -> None:
        nonlocal depth
        depth -= 1
        end(name.rpartition(":")[2])

    # A document in another encoding has become UTF-8 here, whatever it says.
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.StartElementHandler = on_start
    parser.EndElementHandler = on_end
    parser.CharacterDataHandler = data
    parser.EntityDeclHandler = _refuse
    parser.SkippedEntityHandler = lambda name, _: data(html5.get(f"{name};", ""))
    # Without it an entity of a DTD that is not read would be a mistake.
    parser.UseForeignDTD(True)
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
    try:
        # In one piece: expat is quadratic on long tokens that come in several.
        parser.Parse(text.lstrip().encode("utf-8", "replace"), True)
    except expat.ExpatError:
        parser.buffer_text = False  # gives the text that has come so far
        return False
    except _Enough:
        pass
    return True


def _refuse(name: str, is_parameter: bool, value: str | None, *rest: Any) -> None:
    # One without a value is external: it is not looked up, and stands for nothing.
    if value is not None:
        raise ParseFailed("xml_entities")
