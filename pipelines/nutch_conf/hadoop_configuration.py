"""Reads configuration files of Hadoop, such as ``nutch-site.xml``.

A later file overrides an earlier one, except properties that are final there. ``${name}`` in a value stands
for another property. XInclude takes files of the same folder. Entities are refused, and values have a largest
length: a file cannot read other files of the machine, nor fill its memory.
"""

import dataclasses
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple
from xml.parsers import expat

from ...web.base.wording import quote_value

VARIABLE = re.compile(r"\$\{([^\s$}]+)\}")
_MOST_ROUNDS = 20  # of substitutions, as in Hadoop
_LONGEST_VALUE = 65_536
_LARGEST_FILE = 16 << 20
_MOST_INCLUDES = 10  # one in another
_FIELDS = ("name", "value", "final")


class PropertyEntry(NamedTuple):
    """A property of a file.

    Attributes:
        name: Its name.
        value: Its value, with variables.
        file: The name of the file.
        line: Its line there, from 1.
        is_final: Whether later files cannot override it.
    """

    name: str
    value: str
    file: str
    line: int
    is_final: bool = False

    @property
    def place(self) -> str:
        """The file and the line."""
        return f"{self.file}, line {self.line}"


class Configuration(NamedTuple):
    """The properties of several files.

    Attributes:
        entries: The entry that counts of each property; variables are replaced by what they stand for.
        remarks: What a reader of the files should know: entries that do not count, and why.
        faults: Why files, or parts of them, cannot be read, with file, line and column.
    """

    entries: Mapping[str, PropertyEntry]
    remarks: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()


def read_configuration(folder: Path, names: Iterable[str]) -> Configuration:
    """Reads files of a folder; those that do not exist are left out.

    What cannot be read is a fault, and the rest is read.

    Args:
        folder: The folder.
        names: Names of the files; later ones override earlier ones.
    """
    entries: dict[str, PropertyEntry] = {}
    remarks: list[str] = []
    faults: list[str] = []
    for name in names:
        if not (folder / name).is_file():
            continue
        in_file: dict[str, PropertyEntry] = {}
        for entry in _read_entries(folder, name, (), faults):
            earlier = in_file.get(entry.name)
            if earlier and earlier.is_final:
                remarks.append(
                    f"{entry.name} is there twice: {earlier.place} is final and counts, not {entry.place}"
                )
                continue
            if earlier:
                remarks.append(
                    f"{entry.name} is there twice: {entry.place} counts, not {earlier.place}"
                )
            in_file[entry.name] = entry
        for entry in in_file.values():
            earlier_entry = entries.get(entry.name)
            if earlier_entry and earlier_entry.is_final and earlier_entry.value != entry.value:
                remarks.append(
                    f"{entry.name} of {entry.place} does not count: it is final in {earlier_entry.place}"
                )
            else:
                entries[entry.name] = entry
    replaced = _replace_variables(entries, faults)
    return Configuration(replaced, tuple(remarks), tuple(faults))


def _replace_variables(
    entries: Mapping[str, PropertyEntry], faults: list[str]
) -> dict[str, PropertyEntry]:
    """Returns the entries with variables replaced; those that stand for no property stay."""
    replaced = {}
    for name, entry in entries.items():
        value = entry.value
        for _ in range(_MOST_ROUNDS):
            variables = [each for each in VARIABLE.findall(value) if each in entries]
            if not variables:
                break
            if len(value) + sum(len(entries[each].value) for each in variables) > _LONGEST_VALUE:
                faults.append(
                    f"{entry.place}: the value of {name} is longer than {_LONGEST_VALUE:,} characters "
                    "with its variables"
                )
                break
            value = VARIABLE.sub(
                lambda match: entries[match[1]].value if match[1] in entries else match[0], value
            )
        replaced[name] = entry._replace(value=value)
    return replaced


def _read_entries(
    folder: Path, name: str, parents: tuple[str, ...], faults: list[str]
) -> list[PropertyEntry]:
    if name in parents or len(parents) > _MOST_INCLUDES:
        faults.append(f"{parents[-1]}: it includes {quote_value(name)}, which includes it")
        return []
    path = folder / name
    try:
        if path.stat().st_size > _LARGEST_FILE:
            faults.append(f"{name} is larger than {_LARGEST_FILE:,} bytes")
            return []
        data = path.read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        faults.append(f"{name} must be a readable file: {reason}")
        return []
    return _ConfigurationReader(folder, name, parents, faults).read(data)


class _Unreadable(Exception):
    """The rest of a file cannot be read; the fault is noted."""


@dataclasses.dataclass
class _ConfigurationReader:
    """Reads one file, event by event."""

    folder: Path
    name: str
    parents: tuple[str, ...]
    faults: list[str]
    entries: list[PropertyEntry] = dataclasses.field(default_factory=list)
    _path: list[str] = dataclasses.field(default_factory=list)
    _fields: dict[str, str] = dataclasses.field(default_factory=dict)
    _line: int = 0

    def read(self, data: bytes) -> list[PropertyEntry]:
        """Returns the entries, up to where the file is no configuration any more."""
        parser = expat.ParserCreate()
        parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        parser.buffer_text = True
        self._parser = parser
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._add_text
        parser.EntityDeclHandler = self._refuse_entity
        parser.SkippedEntityHandler = self._refuse_entity
        parser.ExternalEntityRefHandler = self._refuse_entity
        try:
            parser.Parse(data, True)
        except expat.ExpatError as error:
            text = expat.ErrorString(error.code)
            place = f"line {error.lineno}, column {error.offset + 1}"
            self.faults.append(f"{self.name}, {place}: it must be XML: {text}")
        except LookupError as error:
            self.faults.append(f"{self.name}: it must be XML: {error}")
        except _Unreadable:
            pass  # it is noted
        return self.entries

    def _note(self, text: str) -> None:
        place = (
            f"line {self._parser.CurrentLineNumber}, column {self._parser.CurrentColumnNumber + 1}"
        )
        self.faults.append(f"{self.name}, {place}: {text}")

    def _refuse_entity(self, *_: object) -> int:
        self._note("entities are refused")
        raise _Unreadable

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        local = tag.rpartition(":")[2]
        if not self._path and local != "configuration":
            self._note(f"it must be a configuration of Hadoop, got <{tag}>")
            raise _Unreadable
        self._path.append(local)
        if local == "property":
            self._line = self._parser.CurrentLineNumber
            self._fields = {key: attributes[key] for key in _FIELDS if key in attributes}
        elif local == "include":
            self._include(attributes)

    def _include(self, attributes: Mapping[str, str]) -> None:
        href = attributes.get("href", "")
        target, folder = (self.folder / href).resolve(), self.folder.resolve()
        if attributes.get("parse", "xml") != "xml" or "xpointer" in attributes or not href:
            self._note("only whole XML files can be included")
        elif ":" in href or not target.is_relative_to(folder):
            self._note(f"only files of the folder can be included, got {quote_value(href)}")
        elif not target.is_file():
            self._note(f"there is no file {quote_value(href)} to include")
        else:
            name, parents = str(target.relative_to(folder)), (*self.parents, self.name)
            self.entries += _read_entries(self.folder, name, parents, self.faults)

    def _add_text(self, text: str) -> None:
        if len(self._path) > 1 and self._path[-2] == "property" and self._path[-1] in _FIELDS:
            self._fields[self._path[-1]] = self._fields.get(self._path[-1], "") + text

    def _end(self, tag: str) -> None:
        if self._path.pop() != "property":
            return
        name = self._fields.get("name", "").strip()
        if not name:
            self.faults.append(f"{self.name}, line {self._line}: a property has no name")
            return
        is_final = self._fields.get("final", "").strip().lower() == "true"
        value = self._fields.get("value", "")
        self.entries.append(PropertyEntry(name, value, self.name, self._line, is_final))
