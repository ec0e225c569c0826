"""The parts of an Office Open XML document: their references, their text, and the hyperlinks in it."""

import dataclasses
import posixpath
import re

from ..pages.page import ParseFailed
from ..pages.xml_events import CHARACTERS, START, Attributes
from .archive import Archive, entry_name
from .collector import Collector

_MAX_RELATIONS = 100_000
_MAX_FIELD_CHARS = 4_096
_MAX_OPEN = 1_000
# Text that is there twice, or that no reader sees; ``rt`` says how to read a word.
_LEFT_OUT = frozenset({"Fallback", "del", "moveFrom", "rPh", "rt"})
_GAPS = frozenset({"br", "cr", "p", "ptab", "tab", "tc"})
_LINES = frozenset({"br", "cr", "p"})
_NO_BREAK_HYPHEN = "noBreakHyphen"
_FIELD = re.compile(r'\s*HYPERLINK\s+(?:"([^"]+)"|([^\s"\\]\S*))', re.IGNORECASE)


@dataclasses.dataclass
class Relations:
    """The references of a part.

    Attributes:
        inside: Names of parts, by id.
        outside: Targets of hyperlinks that leave the document, by id.
        first: Name of the first part of each kind, by the last word of its type.
        by_kind: Names of the parts of each kind, each once.
    """

    inside: dict[str, str] = dataclasses.field(default_factory=dict)
    outside: dict[str, str] = dataclasses.field(default_factory=dict)
    first: dict[str, str] = dataclasses.field(default_factory=dict)
    by_kind: dict[str, dict[str, None]] = dataclasses.field(default_factory=dict)


def relations_of(archive: Archive, part: str) -> Relations:
    """Returns the references of a part, or of the package as a whole if ``part`` is ``""``."""
    folder, file = posixpath.split(part)
    relations = Relations()
    for name, attributes in archive.elements(posixpath.join(folder, "_rels", f"{file}.rels")):
        if name != "Relationship":
            continue
        id_, target = attributes.get("Id", ""), attributes.get("Target", "")
        kind = attributes.get("Type", "").rpartition("/")[2]
        if attributes.get("TargetMode") != "External":
            relations.inside[id_] = entry_name(part, target)
            relations.first.setdefault(kind, relations.inside[id_])
            relations.by_kind.setdefault(kind, {})[relations.inside[id_]] = None
        elif kind == "hyperlink":
            relations.outside[id_] = target
        if len(relations.inside) + len(relations.outside) > _MAX_RELATIONS:
            raise ParseFailed("too_complex")
    return relations


def read_words(archive: Archive, part: str | None, collector: Collector) -> None:
    """Takes the text and the hyperlinks of a part and its diagrams, if it exists."""
    if part is None:
        return
    relations = relations_of(archive, part)
    _read_words(archive, part, relations.outside, collector)
    for diagram in relations.by_kind.get("diagramData", ()):  # SmartArt
        collector.add_text("\n")
        _read_words(archive, diagram, {}, collector)


def _read_words(archive: Archive, part: str, outside: dict[str, str], collector: Collector) -> None:
    words = _Words(collector, outside)
    for kind, value, attributes in archive.events(part):
        if kind == CHARACTERS:
            words.text(value)
        elif kind == START:
            words.start(value, attributes)
        else:
            words.end(value)
    words.add_remaining_links()


class _Words:
    """Takes the text of paragraphs, wherever they stand, and hyperlinks with their text.

    A hyperlink is an element around its text, a property of a run of text or of a picture, or a
    field: instructions, a separator, and the text that they make.
    """

    def __init__(self, collector: Collector, outside: dict[str, str]) -> None:
        self._collector = collector
        self._outside = dict(outside)
        self._left_out = 0
        self._element = self._field = ""
        # (element, target, where its text begins) of the open links.
        self._links: list[tuple[str, str, int]] = []
        self._run = 0
        self._run_target: str | None = None

    def start(self, name: str, attributes: Attributes) -> None:
        self._element = name
        self._left_out += name in _LEFT_OUT
        if name == "p":  # of a text box, it stands within the words of another paragraph
            self._collector.add_text("\n")
        elif name == _NO_BREAK_HYPHEN and not self._left_out:
            self._collector.add_text("-")
        elif name == "r":
            self._run = self._collector.mark()
        elif name == "fldChar":
            self._field_character(attributes.get("fldCharType"))
        elif name == "fldSimple":
            self._open(name, _target_of_field(attributes.get("instr", "")))
        elif name == "hyperlink":
            self._open(name, self._outside.pop(attributes.get(":id", ""), ""))
        elif name == "hlinkClick":
            self._run_target = self._outside.pop(attributes.get(":id", ""), None)

    def end(self, name: str) -> None:
        self._element = ""
        self._left_out -= name in _LEFT_OUT
        if name in _GAPS:
            self._collector.add_text("\n" if name in _LINES else " ")
        elif name in ("r", "cNvPr") and self._run_target:
            anchor = self._collector.text_since(self._run) if name == "r" else ""
            self._collector.add_link(self._run_target, anchor)
            self._run_target = None
        elif name != "fldChar":
            self._close(name)

    def text(self, text: str) -> None:
        if self._left_out:
            return
        if self._element == "t":
            self._collector.add_text(text)
        elif self._element == "instrText":
            self._field = (self._field + text)[:_MAX_FIELD_CHARS]

    def add_remaining_links(self) -> None:
        """Adds the links that have no text."""
        for target in (*(target for _, target, _ in self._links), *self._outside.values()):
            self._collector.add_link(target)

    def _field_character(self, kind: str | None) -> None:
        if kind == "begin":
            self._field = ""
        elif kind == "separate":
            self._open("fldChar", _target_of_field(self._field))
        elif kind == "end":
            self._close("fldChar")

    def _open(self, name: str, target: str) -> None:
        if len(self._links) < _MAX_OPEN:
            self._links.append((name, target, self._collector.mark()))

    def _close(self, name: str) -> None:
        if self._links and self._links[-1][0] == name:
            _, target, begin = self._links.pop()
            self._collector.add_link(target, self._collector.text_since(begin))


def _target_of_field(field: str) -> str:
    """Returns the target of a field; empty if it is not a hyperlink."""
    hyperlink = _FIELD.match(field)
    return (hyperlink[1] or hyperlink[2]) if hyperlink else ""
