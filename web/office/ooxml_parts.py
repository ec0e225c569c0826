"""Parts of Office Open XML: how they refer to each other, and the words in them."""

import dataclasses
import posixpath
import re

from ..pages.page import ParseFailed
from .archive import Archive, entry_name, folder_of
from .collected import Collected
from .xml_events import Attributes, Enough, Handler, read_xml

_MAX_RELATIONS = 100_000
_MAX_FIELD_CHARS = 4_096
_MAX_OPEN = 1_000
# Text that is there twice, or is none that a reader sees.
_LEFT_OUT = frozenset({"Fallback", "rPh"})
_WORDS = frozenset({"t"})
_GAPS = frozenset({"br", "cr", "p", "tab", "tc"})
_FIELD = re.compile(r'\s*HYPERLINK\s+"([^"]+)"')


@dataclasses.dataclass
class Relations:
    """What a part refers to.

    Attributes:
        inside: Names of parts, by id.
        outside: Targets of hyperlinks that leave the document, by id.
        kinds: (last word of its type, name) of each part.
    """

    inside: dict[str, str] = dataclasses.field(default_factory=dict)
    outside: dict[str, str] = dataclasses.field(default_factory=dict)
    kinds: list[tuple[str, str]] = dataclasses.field(default_factory=list)

    def first(self, kind: str) -> str | None:
        """Returns the name of the first part of a kind."""
        return next((name for own, name in self.kinds if own == kind), None)


def relations_of(archive: Archive, part: str) -> Relations:
    """Returns what a part refers to; of the package as a whole where it is ``""``."""
    folder, name = posixpath.split(part)
    relations = Relations()
    rels = posixpath.join(folder, "_rels", f"{name}.rels")
    if rels in archive:
        read_xml(archive.chunks(rels), _RelationsHandler(relations, folder_of(part)))
    return relations


class _RelationsHandler(Handler):
    def __init__(self, relations: Relations, folder: str) -> None:
        self._relations = relations
        self._folder = folder

    def start(self, name: str, attributes: Attributes) -> None:
        if name != "Relationship":
            return
        id_, target = attributes.get("Id", ""), attributes.get("Target", "")
        kind = attributes.get("Type", "").rpartition("/")[2]
        relations = self._relations
        if attributes.get("TargetMode") == "External":
            if kind == "hyperlink":
                relations.outside[id_] = target
        else:
            part = entry_name(self._folder, target)
            relations.inside[id_] = part
            relations.kinds.append((kind, part))
        if len(relations.inside) + len(relations.outside) > _MAX_RELATIONS:
            raise ParseFailed("too_complex")


def root_of(archive: Archive, part: str) -> str:
    """Returns the name of a part's root element."""
    root = _Root()
    read_xml(archive.chunks(part), root)
    return root.name


class _Root(Handler):
    name = ""

    def start(self, name: str, attributes: Attributes) -> None:
        self.name = name
        raise Enough


class Words(Handler):
    """Takes the text of paragraphs, wherever they stand, and hyperlinks with their text."""

    def __init__(self, collected: Collected, relations: Relations) -> None:
        self._collected = collected
        self._outside = dict(relations.outside)
        self._left_out = self._in_words = self._in_field = 0
        self._field = ""
        # (element, target, where its text begins) of what is open.
        self._links: list[tuple[str, str, int]] = []
        self._run = 0
        self._run_target: str | None = None

    def start(self, name: str, attributes: Attributes) -> None:
        if name in _LEFT_OUT:
            self._left_out += 1
        if name in _WORDS:
            self._in_words += 1
        elif name == "r":
            self._run = self._collected.mark()
        elif name == "instrText":
            self._in_field += 1
        elif name == "fldChar":
            self._field_character(attributes.get("fldCharType"))
        elif name == "fldSimple":
            self._open(name, _target(attributes.get("instr", "")))
        elif name == "hyperlink":
            self._open(name, self._outside.pop(attributes.get("r:id", ""), None))
        elif name == "hlinkClick":
            self._run_target = self._outside.pop(attributes.get("r:id", ""), None)

    def end(self, name: str) -> None:
        if name in _LEFT_OUT:
            self._left_out -= 1
        if name in _WORDS:
            self._in_words -= 1
        elif name in _GAPS:
            self._collected.add(" ")
        elif name in ("r", "cNvPr") and self._run_target:
            anchor = self._collected.since(self._run) if name == "r" else ""
            self._collected.link(self._run_target, anchor)
            self._run_target = None
        elif name == "instrText":
            self._in_field -= 1
        elif name != "fldChar":
            self._close(name)

    def text(self, text: str) -> None:
        if self._left_out:
            return
        if self._in_words:
            self._collected.add(text)
        elif self._in_field and len(self._field) < _MAX_FIELD_CHARS:
            self._field += text[:_MAX_FIELD_CHARS]

    def rest(self) -> None:
        """Takes the links that stand at nothing that has text."""
        for target in (*(target for _, target, _ in self._links), *self._outside.values()):
            self._collected.link(target)

    def _field_character(self, kind: str | None) -> None:
        """A field is instructions, a separator, and the text that they make."""
        if kind == "begin":
            self._field = ""
        elif kind == "separate":
            self._open("fldChar", _target(self._field))
        elif kind == "end":
            self._close("fldChar")

    def _open(self, name: str, target: str | None) -> None:
        if len(self._links) < _MAX_OPEN:
            self._links.append((name, target or "", self._collected.mark()))

    def _close(self, name: str) -> None:
        if self._links and self._links[-1][0] == name:
            _, target, begin = self._links.pop()
            self._collected.link(target, self._collected.since(begin))


def _target(field: str) -> str | None:
    found = _FIELD.match(field)
    return found[1] if found else None
