"""The parts of an Office Open XML document, and how they refer to each other."""

import dataclasses
import posixpath

from ..pages.page import ParseFailed
from .archive import Archive, entry_name

_MAX_RELATIONS = 100_000


@dataclasses.dataclass
class Relations:
    """The references of a part.

    Attributes:
        inside: Names of parts, by id.
        outside: Targets of hyperlinks that leave the document, by id.
        first: Name of the first part of each kind, by the last word of its type.
        diagrams: Names of the parts with the texts of diagrams (SmartArt), each once.
    """

    inside: dict[str, str] = dataclasses.field(default_factory=dict)
    outside: dict[str, str] = dataclasses.field(default_factory=dict)
    first: dict[str, str] = dataclasses.field(default_factory=dict)
    diagrams: dict[str, None] = dataclasses.field(default_factory=dict)


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
            if kind == "diagramData":
                relations.diagrams[relations.inside[id_]] = None
        elif kind == "hyperlink":
            relations.outside[id_] = target
        if len(relations.inside) + len(relations.outside) > _MAX_RELATIONS:
            raise ParseFailed("too_complex")
    return relations
