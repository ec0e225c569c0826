"""Reads options from the environment, and knows which command has which.

Importing the modules of all commands takes seconds, most of it for Beam. Therefore ``make docs`` writes
the file ``option_names.txt`` from the declarations: an option per line, with its commands.
"""

import functools
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError
from ...web.base.options import Option, check_value, parse_value
from ...web.base.visible import check_utf8
from ..base.command import configuration
from ..base.suggestions import nearest_spellings

FILE = "option_names.txt"


@functools.cache
def listed_options() -> Mapping[str, frozenset[str]]:
    """Returns the commands that have each option. A newer option may be missing.

    >>> "fetch" in listed_options()["agent_name"]
    True
    """
    text = Path(__file__).with_name(FILE).read_text("utf-8")
    lines = (line.partition(":")[::2] for line in text.splitlines())
    return {name: frozenset(commands.split()) for name, commands in lines}


def option_lines(options_of: Mapping[str, Iterable[str]]) -> str:
    """Returns the content of the file.

    Args:
        options_of: The names of the options of each command.

    >>> option_lines({"fetch": ["agent_name", "config"], "sql": ["config"]})
    'agent_name: fetch\\nconfig: fetch sql\\n'
    """
    names = sorted({name for options in options_of.values() for name in options})
    commands = {name: [c for c, options in options_of.items() if name in options] for name in names}
    return "".join(f"{name}: {' '.join(commands[name])}\n" for name in names)


PREFIX = "NUTBEAM_"
_NO_OPTIONS = ("NUTBEAM_CONFIG", "NUTBEAM_DEBUG")  # the first is --config


@dataclass(frozen=True)
class DeclaredOptions:
    """The names of options and commands.

    Attributes:
        options: The options of this command by name.
        commands: Names of all commands; each may be a section of the file.
        names_of: Function that returns the names of the options of any command. It imports the
            module of the command, which takes long.
    """

    options: Mapping[str, Option]
    commands: Iterable[str]
    names_of: Callable[[str], Iterable[str]]

    def anywhere(self) -> set[str]:
        """Returns the names of the options of all commands."""
        return {name for command in self.commands for name in self.names_of(command)}

    def unknown(self, names: Iterable[str], commands: Iterable[str]) -> list[str]:
        """Returns the names that are no option of any of the commands.

        Modules are imported only for names that are not in the list.
        """
        listed, commands = listed_options(), set(commands)
        rest = [name for name in names if not commands & listed.get(name, frozenset())]
        own_names = {name for command in commands if rest for name in self.names_of(command)}
        return [name for name in rest if name not in own_names]


class SourcedValue(NamedTuple):
    """The value of an option, and where it comes from.

    Attributes:
        value: The value.
        source: The source, for messages: a variable, or a section of a file with its line.
        file: The file, if it comes from one.
        line: Its line there, from 1; 0 if it is unknown.
        section: Its section there, if it is that of a command.
    """

    value: Any
    source: str
    file: str = ""
    line: int = 0
    section: str = ""


def without_sources(values: Mapping[str, SourcedValue]) -> dict[str, Any]:
    """Returns the values alone."""
    return {name: sourced.value for name, sourced in values.items()}


def from_environment(
    environ: Mapping[str, str], declared: DeclaredOptions
) -> dict[str, SourcedValue]:
    """Returns the values of ``NUTBEAM_<NAME>`` variables for this command.

    Other variables with this prefix are ignored, because Kubernetes sets some for a
    service with the name nutbeam. Only a name that looks like a misspelt option is refused.

    Raises:
        UsageError: A value of the wrong type, or a misspelt name.
    """
    values = {}
    for variable in sorted(environ):
        name = variable.removeprefix(PREFIX).lower()
        if not variable.startswith(PREFIX) or variable in _NO_OPTIONS:
            continue
        if name in declared.options:
            with configuration():
                check_utf8(variable, environ[variable])
            value = read_value(declared.options[name], environ[variable], variable)
            values[name] = SourcedValue(value, variable)
            continue
        near = nearest_spellings(name, declared.options)
        if near and declared.unknown([name], declared.commands):
            advice = f"did you mean {PREFIX}{near[0].upper()}?"
            raise UsageError(f"unknown environment variable {variable!r}; {advice}")
    return values


def read_value(option: Option, value: Any, source: str) -> Any:
    """Returns a value that was read, checked.

    Raises:
        UsageError: It is wrong; the message names the source.
    """
    try:
        return parse_value(option, value) if isinstance(value, str) else check_value(option, value)
    except ValueError as error:
        raise UsageError(f"{error} (from {source})") from error
