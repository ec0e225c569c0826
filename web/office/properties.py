"""Dublin Core and its like: what documents of every office say of themselves."""

from collections.abc import Callable, Mapping

from .archive import Archive
from .collected import Collected
from .xml_events import Attributes, Handler, read_xml

# Of OOXML's core properties, OpenDocument's meta.xml and EPUB's package document.
_METAS = {
    "creator": "author",
    "initial-creator": "author",
    "description": "description",
    "keyword": "keywords",
    "keywords": "keywords",
    "subject": "subject",
}
_MAX_CHARS = 4_000


def read_properties(archive: Archive, part: str, collected: Collected) -> None:
    """Takes title, language, author, description and keywords, where the part is there."""
    if part in archive:
        read_xml(archive.chunks(part), Properties(collected))


class Properties(Handler):
    """Takes what elements of these names say.

    Args:
        collected: Takes it.
        metas: Name of the meta, by element.
    """

    def __init__(self, collected: Collected, metas: Mapping[str, str] = _METAS) -> None:
        self._takers: dict[str, Callable[[str], None]] = {
            "title": collected.title,
            "language": collected.language,
        }
        self._metas = metas
        self._collected = collected
        self._element: str | None = None
        self._pieces: list[str] = []
        self._room = 0

    def start(self, name: str, attributes: Attributes) -> None:
        if self._element is None and (name in self._takers or name in self._metas):
            self._element, self._room = name, _MAX_CHARS

    def text(self, text: str) -> None:
        if self._element and self._room > 0:
            self._pieces.append(text[: self._room])
            self._room -= len(text)

    def end(self, name: str) -> None:
        if name != self._element:
            return
        text = "".join(self._pieces)
        self._element, self._pieces = None, []
        if name in self._takers:
            self._takers[name](text)
        else:
            self._collected.meta(self._metas[name], text)
