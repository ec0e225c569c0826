"""Reads options from the environment and from ``nutbeam.toml``, and knows which command has which.

Importing the modules of all commands takes seconds, most of it for Beam. Therefore ``make docs`` writes
the file ``option_names.txt`` from the declarations: an option per line, with its commands.
"""

import dataclasses
import functools
import os
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from ...web.base.errors import UsageError, one_line
from ...web.base.options import Option, check_value, parse_value
from ...web.base.visible import check_utf8
from ..base.command import configuration
from ..base.suggestions import nearest_spellings, suggestion

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


DEFAULT_FILE = "nutbeam.toml"
PREFIX = "NUTBEAM_"
COMMON = "common"
_NO_OPTIONS = ("NUTBEAM_CONFIG", "NUTBEAM_DEBUG")  # the first is --config


@dataclasses.dataclass(frozen=True)
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


def from_environment(environ: Mapping[str, str], declared: DeclaredOptions) -> dict[str, Any]:
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
            values[name] = _read(declared.options[name], environ[variable], variable)
            continue
        near = nearest_spellings(name, declared.options)
        if near and declared.unknown([name], declared.commands):
            advice = f"did you mean {PREFIX}{near[0].upper()}?"
            raise UsageError(f"unknown environment variable {variable!r}; {advice}")
    return values


def from_file(path: str | None, command: str, declared: DeclaredOptions) -> dict[str, Any]:
    """Returns the values of a toml file for this command.

    Keys at the top or in ``[common]`` apply to every command. Keys in the section of a command
    apply only to this command, and override the others.

    Args:
        path: The file; None for ``nutbeam.toml``, if it exists.
        command: Name of the command.
        declared: The allowed keys and sections.

    Raises:
        UsageError: The file cannot be read, or has an unknown name or a wrong value.
    """
    # os.path, not pathlib: pathlib raises an error in a folder without permission.
    if path is None and not os.path.isfile(DEFAULT_FILE):  # noqa: PTH113
        return {}
    name = path or DEFAULT_FILE
    sections = _sections(_load(name))
    for section, keys in sections.items():
        _check_keys(name, section, keys, declared)
    values = {}
    for section in (COMMON, command):
        for key, value in sections.get(section, {}).items():
            if key in declared.options:
                values[key] = _read(declared.options[key], value, _place(section, name))
    return values


def _load(path: str) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"--config must be a readable file, got {path!r}: {reason}") from error
    except (ValueError, RecursionError) as error:
        reason = one_line(error)[:1].lower() + one_line(error)[1:]
        if isinstance(error, RecursionError):
            reason = "it is nested too deeply"
        elif isinstance(error, UnicodeDecodeError):
            reason = f"byte {error.start + 1:,} of it is not UTF-8"
        raise UsageError(f"--config must be a toml file, got {path!r}: {reason}") from error


def _sections(content: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Returns the sections; top keys are in ``common``, and names have underscores."""
    top = {key: value for key, value in content.items() if not isinstance(value, dict)}
    tables = {key: value for key, value in content.items() if isinstance(value, dict)}
    tables[COMMON] = top | tables.get(COMMON, {})
    return {
        section: {key.replace("-", "_"): value for key, value in keys.items()}
        for section, keys in tables.items()
    }


def _check_keys(name: str, section: str, keys: Iterable[str], declared: DeclaredOptions) -> None:
    if section != COMMON and section not in declared.commands:
        advice = suggestion(section, [COMMON, *declared.commands])
        raise UsageError(f"unknown section {section!r} in {name}{advice}")
    common = section == COMMON
    missing = [key for key in keys if not (common and key in declared.options)]
    unknown = declared.unknown(missing, declared.commands if common else [section])
    for key in keys:
        if key in unknown or key == "config":
            names = declared.anywhere() if common else declared.names_of(section)
            near = suggestion(key, names)
            raise UsageError(f"unknown option {key!r} in {_place(section, name)}{near}")


def _place(section: str, name: str) -> str:
    """Returns where a key is; those for all commands need no section."""
    return name if section == COMMON else f"[{section}] of {name}"


def _read(option: Option, value: Any, source: str) -> Any:
    try:
        return parse_value(option, value) if isinstance(value, str) else check_value(option, value)
    except ValueError as error:
        raise UsageError(f"{error} (from {source})") from error
