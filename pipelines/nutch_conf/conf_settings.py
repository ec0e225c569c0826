"""The lines of the new ``nutbeam.toml``, checked by the options of all commands."""

import dataclasses
import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError
from ...web.base.options import Option, options_of, parse_value
from ..base.command import CommandModule
from ..base.toml_text import toml_value
from .conf_files import RULES_FOLDER, ImportedFile
from .conf_report import ImportedProperty
from .property_catalogue import ConvertedProperty, read_catalogue

_LONGEST_COMMENT = 60
_FLAG = re.compile(r"--(\w+)")


class Setting(NamedTuple):
    """A line of the new file.

    Attributes:
        section: The command that it is for; empty for all.
        name: The option.
        text: Its value, as typed.
        comment: Where it comes from.
        is_copy: Whether the value is the path of a copied file in the new folder.
    """

    section: str
    name: str
    text: str
    comment: str
    is_copy: bool = False

    def text_below(self, base: Path) -> str:
        """Returns the value; of a copy its path below a folder."""
        return str(base / self.text) if self.is_copy else self.text


@dataclass(frozen=True)
class OptionsOfCommands:
    """The options of all commands.

    Attributes:
        modules: The modules of all commands; each is imported when it is asked for, which takes long.
    """

    modules: Mapping[str, CommandModule]

    @functools.cached_property
    def by_name(self) -> Mapping[str, list[tuple[str, Option]]]:
        """The declarations of each option, with their commands."""
        options: dict[str, list[tuple[str, Option]]] = {}
        for command in self.modules:
            try:
                declared = options_of(self.modules[command].Options)
            except ModuleNotFoundError:  # this installation does not have it
                continue
            for each in declared:
                options.setdefault(each.name, []).append((command, each))
        return options

    def parse(self, name: str, text: str) -> Any:
        """Returns the value of an option.

        Raises:
            ValueError: It is wrong.
        """
        return parse_value(self.by_name[name][0][1], text)

    def are_defaults(self, name: str, text: str) -> bool:
        """Returns whether a value is the default of all commands."""
        return all(parse_value(each, text) == each.default for _, each in self.by_name[name])

    def sections(self, name: str, property_name: str) -> list[str]:
        """Returns the commands for which an option is that of a property; an empty name is all.

        A name such as ``min_score`` means something else in another command.
        """
        renamed = read_catalogue()["renamed"].get(property_name, property_name)
        named = [
            command
            for command, each in self.by_name[name]
            if renamed in (each.nutch or "").split(", ")
        ]
        return [""] if len(named) in (0, len(self.by_name[name])) else named

    def refuse_wrong_value(self, each: ImportedProperty) -> ImportedProperty:
        """Returns a property; as not supported if an option refuses its value."""
        for name, text in each.converted.options.items():
            try:
                self.parse(name, text)
            except ValueError as error:
                return each._replace(converted=ConvertedProperty(fault=str(error)))
        return each

    def refusals(self, settings: Iterable[Setting], base: Path) -> list[tuple[set[str], str]]:
        """Returns the messages of commands that refuse the values together, with the options in them.

        Args:
            settings: The lines of the file.
            base: The folder of the copies.
        """
        values_by_command: dict[str, dict[str, Any]] = {}
        for setting in settings:
            for command, each in self.by_name[setting.name]:
                if setting.section in ("", command):
                    value = parse_value(each, setting.text_below(base))
                    values_by_command.setdefault(command, {})[each.name] = value
        refusals = []
        for command, values in values_by_command.items():
            options = self.modules[command].Options
            own = {field.name for field in dataclasses.fields(options)}
            try:
                options(**{name: value for name, value in values.items() if name in own})
            except (ValueError, UsageError) as error:
                refusals.append(({*_FLAG.findall(str(error))}, str(error)))
        return refusals


def lines_of_settings(
    properties: Iterable[ImportedProperty],
    files: Iterable[ImportedFile],
    options: OptionsOfCommands,
) -> Iterator[Setting]:
    """Yields the lines of the file: those of properties, then those of copied files."""
    for each in properties:
        value = f" = {each.shown_value}" if len(each.shown_value) <= _LONGEST_COMMENT else ""
        comment = f"{each.entry.name}{value} ({each.entry.place})"
        for name, text in each.converted.options.items():
            if each.entry.name == "plugin.includes" and options.are_defaults(name, text):
                continue
            for section in options.sections(name, each.entry.name):
                yield Setting(section, name, text, comment)
    copies = [file for file in files if file.copy]
    if any(file.copy.startswith(f"{RULES_FOLDER}/") for file in copies):
        names = ", ".join(file.name for file in copies if file.copy.startswith(f"{RULES_FOLDER}/"))
        yield Setting("", "url_rules_dir", RULES_FOLDER, names, is_copy=True)
    for file in copies:
        if file.option:
            yield Setting("", file.option, file.copy, file.name, is_copy=True)


def config_lines(
    settings: Iterable[Setting], base: Path, source: str, options: OptionsOfCommands
) -> Iterator[str]:
    """Yields the lines of the file: first those for all commands, then the sections.

    Args:
        settings: The lines; of two for one option the last counts.
        base: The folder of the copies, as it is written.
        source: What the file was made from.
        options: The options of all commands.
    """
    by_section: dict[str, dict[str, Setting]] = {"": {}}
    for setting in settings:
        by_section.setdefault(setting.section, {})[setting.name] = setting
    yield f"# From {_comment(source)}. Each line: the option, and the property or file it comes from.\n"
    for section, by_name in by_section.items():
        if section:
            yield f"\n[{section}]\n"
        for setting in by_name.values():
            value = options.parse(setting.name, setting.text_below(base))
            yield f"{setting.name} = {toml_value(value)}  # {_comment(setting.comment)}\n"


def _comment(text: str) -> str:
    """Returns a text for a comment: one line without control characters."""
    return re.sub(r"[\x00-\x08\x0a-\x1f\x7f]", " ", text)
