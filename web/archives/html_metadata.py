"""What a WAT record says of an HTML page: its head, and its links as they stand in it."""

from collections.abc import Iterator
from typing import Any

from selectolax.lexbor import LexborNode

from ..content.charset import to_utf8
from ..content.content_type import HTML, XHTML
from ..html.tree import anchor_text, flatten, is_in_drawing, parse_tree, title_of

PAGE_TYPES = frozenset({HTML, XHTML})
# Links by element: the attributes with addresses, and attributes that are shown with the first one.
_LINKS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "a": (("href",), ("target", "alt", "title", "rel", "hreflang", "type")),
    "applet": (("codebase", "cdata"), ()),
    "area": (("href",), ("rel",)),
    "audio": (("src",), ()),
    "blockquote": (("cite",), ()),
    "button": (("formaction",), ()),
    "del": (("cite",), ()),
    "embed": (("src",), ()),
    "form": (("action",), ("target", "method")),
    "frame": (("src",), ()),
    "iframe": (("src",), ()),
    "img": (("src", "longdesc"), ("alt", "title")),
    "input": (("src", "formaction"), ()),
    "ins": (("cite",), ()),
    "object": (("codebase", "cdata", "data"), ()),
    "q": (("cite",), ()),
    "source": (("src",), ()),
    "track": (("src",), ()),
    "video": (("src", "poster"), ()),
}
_METAS = ("name", "rel", "content", "http-equiv", "property")
_LANGUAGES = ("lang", "xml:lang")
_ANYWHERE = ("background", "data-href", "data-uri")
_SELECTOR = ",".join(
    ["html", "base", "link", "meta", "script", *_LINKS]
    + [f"[{name}]:not({','.join(('html', *_LINKS))})" for name in _ANYWHERE]
)
_MAX_TEXT_CHARS = 128
_MAX_LINKS = 20_000


def html_metadata(body: bytes, content_type: str, url: str) -> dict[str, Any]:
    """Returns ``Head`` and ``Links`` of a page; of many links the first 20,000.

    >>> html_metadata(b"<title>T</title><a href=/b rel=me>B</a>", "text/html", "http://a/")
    {'Head': {'Title': 'T'}, 'Links': [{'path': 'A@/href', 'url': '/b', 'rel': 'me', 'text': 'B'}]}
    """
    utf8, _ = to_utf8(body, content_type, url)
    document = parse_tree(flatten(utf8))
    head: dict[str, Any] = {}
    title = title_of(document)
    if title is not None:
        head["Title"] = _short(title)
    links: list[dict[str, str]] = []
    for node in document.css(_SELECTOR):
        _add_to_head(head, node)
        if len(links) < _MAX_LINKS and (node.tag != "a" or not is_in_drawing(node)):
            links += _links_of(node)
    return {"Head": head, **({"Links": links} if links else {})}


def _add_to_head(head: dict[str, Any], node: LexborNode) -> None:
    attributes = node.attributes
    match node.tag:
        case "base" if attributes.get("href") is not None:
            head["Base"] = attributes["href"]
        case "link":
            head.setdefault("Link", []).extend(_links_in(node, "href", ("rel", "type")))
        case "script":
            head.setdefault("Scripts", []).extend(_links_in(node, "src", ("type",)))
        case "html":
            for name in _LANGUAGES:
                if (value := attributes.get(name)) is not None:
                    meta = {"name": f"HTML@/{name}", "content": value}
                    head.setdefault("Metas", []).append(meta)
        case "meta":
            if meta := _choose_attributes(attributes, _METAS):
                head.setdefault("Metas", []).append(meta)


def _links_of(node: LexborNode) -> Iterator[dict[str, str]]:
    for name in _ANYWHERE:
        yield from _links_in(node, name)
    addresses, shown_names = _LINKS.get(node.tag or "", ((), ()))
    for at, name in enumerate(addresses):
        for link in _links_in(node, name, () if at else shown_names):
            text = _short(anchor_text(node)) if node.tag == "a" else ""
            yield {**link, "text": text} if text else link


def _links_in(
    node: LexborNode, name: str, shown_names: tuple[str, ...] = ()
) -> Iterator[dict[str, str]]:
    value = node.attributes.get(name)
    if value is not None:
        path = f"{(node.tag or '').upper()}@/{name}"
        yield {"path": path, "url": value, **_choose_attributes(node.attributes, shown_names)}


def _choose_attributes(attributes: dict[str, str | None], names: tuple[str, ...]) -> dict[str, str]:
    return {name: value for name in names if (value := attributes.get(name)) is not None}


def _short(text: str) -> str:
    return " ".join(text.split())[:_MAX_TEXT_CHARS].rstrip()
