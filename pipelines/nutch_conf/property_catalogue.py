"""Reads what is known about Nutch's properties: options that name them, and ``nutch_properties.toml``.

Options name their properties (``option(..., nutch=...)``); ``make docs`` writes these names with the types
of the options into ``option_properties.txt``, because importing all options takes seconds. The toml file has
everything else: other units, names of values, and what became of properties without an option.
"""

import dataclasses
import functools
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ...web.base.dataclass import dataclass
from ...web.base.options import Option
from ...web.base.wording import quote_value

PROPERTIES_FILE = "option_properties.txt"
_CATALOGUE = "nutch_properties.toml"
_DEFAULTS = "nutch_defaults.txt"


@dataclass(frozen=True)
class ConvertedProperty:
    """What a property with a value is in nutbeam.

    Attributes:
        options: Options with their values, as typed on the command line. A list that several
            properties set is the whole list.
        note: Why nothing is needed, or what to know; may be empty.
        fault: Why the property cannot mean the same, and what to do; empty if it can.
    """

    options: Mapping[str, str] = dataclasses.field(default_factory=dict)
    note: str = ""
    fault: str = ""

    @property
    def outcome(self) -> Literal["mapped", "not needed", "not supported"]:
        """What became of the property."""
        if self.fault:
            return "not supported"
        return "mapped" if self.options else "not needed"


class PropertyOption(NamedTuple):
    """An option that names a property.

    Attributes:
        name: Its name.
        kind: ``true-or-false``, ``whole``, ``number``, ``text`` or ``list``.
        unit: Its unit, ``-`` for none.
    """

    name: str
    kind: str
    unit: str


def option_properties(options: Iterable[Option]) -> str:
    """Returns the content of the file: a property per line, with the options that name it.

    >>> option_properties([Option("timeout", float, 10.0, "", unit="s", nutch="http.timeout")])
    'http.timeout: timeout number s\\n'
    """
    lines: dict[str, set[str]] = {}
    for declared in options:
        kind = {bool: "true-or-false", int: "whole", float: "number", tuple: "list"}.get(
            declared.type, "text"
        )
        for name in (declared.nutch or "").split(", "):
            if name and " " not in name and not name.startswith("-"):
                unit = (declared.unit or "-").split()[0]
                lines.setdefault(name, set()).add(f"{declared.name} {kind} {unit}")
    return "".join(f"{name}: {', '.join(sorted(lines[name]))}\n" for name in sorted(lines))


@functools.cache
def properties_of_options() -> Mapping[str, tuple[PropertyOption, ...]]:
    """Returns the options that name each property.

    >>> properties_of_options()["http.timeout"]
    (PropertyOption(name='timeout', kind='number', unit='s'),)
    """
    text = Path(__file__).with_name(PROPERTIES_FILE).read_text("utf-8")
    pairs = (line.partition(": ")[::2] for line in text.splitlines())
    return {
        name: tuple(PropertyOption(*words.split()) for words in options.split(", "))
        for name, options in pairs
    }


@functools.cache
def read_defaults() -> Mapping[str, tuple[tuple[str, str], ...]]:
    """Returns the versions and values of each property of Nutch's ``nutch-default.xml``, the oldest first.

    >>> read_defaults()["http.content.limit"]
    (('1.9-1.15', '65536'), ('1.16-1.22', '1048576'), ('2.4', '65536'))
    """
    defaults: dict[str, tuple[tuple[str, str], ...]] = {}
    for line in Path(__file__).with_name(_DEFAULTS).read_text("utf-8").splitlines():
        if not line.startswith("#"):
            name, versions, value = line.split("\t")
            defaults[name] = (*defaults.get(name, ()), (versions, value))
    return defaults


@functools.cache
def read_catalogue() -> Mapping[str, Any]:
    """Returns the tables of the catalogue; names that stand together are one key each."""
    tables = tomllib.loads(Path(__file__).with_name(_CATALOGUE).read_text("utf-8"))
    for table in ("part_of", "not_needed", "always", "not_supported", "plugins"):
        tables[table] = split_names(tables[table])
    for table, by_prefix in tables["prefixes"].items():
        tables["prefixes"][table] = split_names(by_prefix)
    units = {name: unit for unit, names in tables["units"].items() for name in names.split()}
    return tables | {"units": units, "limits": frozenset(tables["limits"]["names"].split())}


def split_names(answers: Mapping[str, Any]) -> dict[str, Any]:
    """Returns answers by name, from those by names with spaces between."""
    return {name: answer for names, answer in answers.items() for name in names.split()}


def no_such_class(name: str) -> str:
    """Returns the fault for a class of Java without a counterpart."""
    return f"{quote_value(name)} has no counterpart, and no Java classes are run: write a plug-in"


def split_list(value: str) -> list[str]:
    """Returns the elements of a list as Hadoop reads it: with commas between, blanks do not count.

    >>> split_list("a, b,,c ")
    ['a', 'b', 'c']
    """
    return [part.strip() for part in value.split(",") if part.strip()]
