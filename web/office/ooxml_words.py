"""Text documents and slides: the text of a part, and the hyperlinks in it."""

import re

from ..pages.xml_events import CHARACTERS, START, Attributes
from .archive import Archive
from .collected import Collected
from .ooxml_parts import relations_of

_MAX_FIELD_CHARS = 4_096
_MAX_OPEN = 1_000
# Text that is there twice, or that no reader sees; ``rt`` says how to read a word.
_LEFT_OUT = frozenset({"Fallback", "del", "moveFrom", "rPh", "rt"})
_GAPS = frozenset({"br", "cr", "p", "ptab", "tab", "tc"})
_NO_BREAK_HYPHEN = "noBreakHyphen"
_FIELD = re.compile(r'\s*HYPERLINK\s+(?:"([^"]+)"|([^\s"\\]\S*))', re.IGNORECASE)


def read_words(archive: Archive, part: str | None, collected: Collected) -> None:
    """Takes the text and the hyperlinks of a part and its diagrams, if it exists."""
    if part is None:
        return
    relations = relations_of(archive, part)
    _read_words(archive, part, relations.outside, collected)
    for diagram in relations.diagrams:
        collected.add(" ")
        _read_words(archive, diagram, {}, collected)


def _read_words(archive: Archive, part: str, outside: dict[str, str], collected: Collected) -> None:
    words = _Words(collected, outside)
    for kind, value, attributes in archive.events(part):
        if kind == CHARACTERS:
            words.text(value)
        elif kind == START:
            words.start(value, attributes)
        else:
            words.end(value)
    words.rest()


class _Words:
    """Takes the text of paragraphs, wherever they stand, and hyperlinks with their text.

    A hyperlink is an element around its text, a property of a run of text or of a picture, or a
    field: instructions, a separator, and the text that they make.
    """

    def __init__(self, collected: Collected, outside: dict[str, str]) -> None:
        self._collected = collected
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
            self._collected.add(" ")
        elif name == _NO_BREAK_HYPHEN and not self._left_out:
            self._collected.add("-")
        elif name == "r":
            self._run = self._collected.mark()
        elif name == "fldChar":
            self._field_character(attributes.get("fldCharType"))
        elif name == "fldSimple":
            self._open(name, _target(attributes.get("instr", "")))
        elif name == "hyperlink":
            self._open(name, self._outside.pop(attributes.get(":id", ""), ""))
        elif name == "hlinkClick":
            self._run_target = self._outside.pop(attributes.get(":id", ""), None)

    def end(self, name: str) -> None:
        self._element = ""
        self._left_out -= name in _LEFT_OUT
        if name in _GAPS:
            self._collected.add(" ")
        elif name in ("r", "cNvPr") and self._run_target:
            anchor = self._collected.since(self._run) if name == "r" else ""
            self._collected.link(self._run_target, anchor)
            self._run_target = None
        elif name != "fldChar":
            self._close(name)

    def text(self, text: str) -> None:
        if self._left_out:
            return
        if self._element == "t":
            self._collected.add(text)
        elif self._element == "instrText":
            self._field = (self._field + text)[:_MAX_FIELD_CHARS]

    def rest(self) -> None:
        """Adds the links that have no text."""
        for target in (*(target for _, target, _ in self._links), *self._outside.values()):
            self._collected.link(target)

    def _field_character(self, kind: str | None) -> None:
        if kind == "begin":
            self._field = ""
        elif kind == "separate":
            self._open("fldChar", _target(self._field))
        elif kind == "end":
            self._close("fldChar")

    def _open(self, name: str, target: str) -> None:
        if len(self._links) < _MAX_OPEN:
            self._links.append((name, target, self._collected.mark()))

    def _close(self, name: str) -> None:
        if self._links and self._links[-1][0] == name:
            _, target, begin = self._links.pop()
            self._collected.link(target, self._collected.since(begin))


def _target(field: str) -> str:
    """Returns the target of a field; empty if it is not a hyperlink."""
    found = _FIELD.match(field)
    return (found[1] or found[2]) if found else ""
