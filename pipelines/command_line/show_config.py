"""config, showproperties: show the value of each option, and where it comes from.

The text of config is a toml file: values that were set are keys of it, the others are comments.
"""

import functools
import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError
from ...web.base.json_logs import without_login
from ...web.base.options import Option, option, value_text
from ...web.base.visible import visible
from ...web.base.wording import quote_value
from ..base.command import DONE, Argument, CommandParts, Invocation
from ..base.suggestions import suggestion
from ..base.toml_text import toml_value
from ..nutch_conf.property_catalogue import properties_of_options
from .arguments import command_options, names_of_options
from .commands import COMMANDS
from .config import DeclaredOptions, SourcedValue, from_environment
from .config_file import ConfigErrors, from_file
from .usage import options_by_group

_COMMAND = Argument(
    "command", "Command whose options are shown; without it those of all commands.", nargs="?"
)
_PROFILES = Path(__file__).with_name("profiles")
_SECRET = re.compile(
    r"(?i)(\b(?:password|passwd|secret|token|api[_-]?key|authorization|cookie)\s*[=:]\s*)(.+)"
)
_HIDDEN = "***"


def _profile_names() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in _PROFILES.glob("*.toml")))


@dataclass(frozen=True)
class ConfigOptions:
    """Options of config and showproperties."""

    GROUP = "config"

    changed: bool = option(False, "Show only the options that a file or the environment sets.")


@dataclass(frozen=True)
class ProfileOptions(ConfigOptions):
    """Options of config."""

    GROUP = "config"

    profile: str | None = option(
        None,
        "Print a profile, a file to copy as nutbeam.toml and to change, and show nothing else.",
        choices=_profile_names(),
    )


class OptionRow(NamedTuple):
    """An option with its value.

    Attributes:
        option: The option.
        group: Its heading.
        sourced: Its value, and the source; the source is empty for the default.
        commands: The commands for which it has this value.
    """

    option: Option
    group: str
    sourced: SourcedValue
    commands: list[str]


def show_config(invocation: Invocation) -> int:
    """Runs config: prints all options with value, source, default, name in Nutch and help."""
    options: ProfileOptions = invocation.options
    if options.profile:
        print((_PROFILES / f"{options.profile}.toml").read_text("utf-8"), end="")
        return DONE
    rows = _option_rows(invocation)
    if invocation.format == "json":
        for row in rows:
            print(json.dumps(_record(row), ensure_ascii=False))
        return DONE
    for line in _toml_lines(rows, several=invocation.arguments["command"] is None):
        print(visible(line))
    return DONE


def show_properties(invocation: Invocation) -> int:
    """Runs showproperties: prints the same by Nutch's names, sorted."""
    rows = _option_rows(invocation)
    by_property: dict[str, list[OptionRow]] = {}
    for row in rows:
        for name in (row.option.nutch or "").split(", "):
            if name in properties_of_options():
                by_property.setdefault(name, []).append(row)
    for name in sorted(by_property):
        for row in by_property[name]:
            if invocation.format == "json":
                print(json.dumps({"property": name} | _record(row), ensure_ascii=False))
            else:
                unit = (
                    f" {row.option.unit}"
                    if row.option.unit and row.sourced.value not in (None, "")
                    else ""
                )
                value = f"{_shown_text(row.option, row.sourced.value)}{unit}"
                source = row.sourced.source or "default"
                print(visible(f"{name} = {value}\t{row.option.flag}, {source}"))
    return DONE


def _option_rows(invocation: Invocation) -> list[OptionRow]:
    """Returns the options of one command or of all, those with one value together.

    Raises:
        UsageError: There is no such command.
        ConfigErrors: The file has faults: those that each of the commands finds.
    """
    command = invocation.arguments["command"]
    if command is not None and command not in COMMANDS:
        near = suggestion(command, COMMANDS)
        raise UsageError(f"unknown command {quote_value(command)}{near}")
    typed = invocation.typed.get("config")
    config = typed[-1] if typed else os.environ.get("NUTBEAM_CONFIG")
    rows: dict[tuple[str, str], OptionRow] = {}
    names = COMMANDS if command is None else (command,)
    faults: list[ConfigErrors] = []
    for name in names:
        try:
            for row in _rows_of(name, config, invocation):
                key = (row.option.name, f"{row.sourced!r} {row.option.default!r}")
                rows.setdefault(key, row._replace(commands=[])).commands.append(name)
        except ConfigErrors as error:
            faults.append(error)
    if faults:
        errors = dict.fromkeys(error for fault in faults for error in fault.errors)
        raise ConfigErrors(faults[0].name, list(errors))
    by_group: dict[str, list[OptionRow]] = {}
    for row in rows.values():
        if row.sourced.source or not invocation.options.changed:
            by_group.setdefault(row.group, []).append(row)
    return [row for group_rows in by_group.values() for row in group_rows]


def _rows_of(command: str, config: str | None, invocation: Invocation) -> Iterator[OptionRow]:
    try:
        module = invocation.modules[command]
    except ModuleNotFoundError:  # a command that this installation does not have
        return
    names_of = functools.partial(names_of_options, invocation.modules)
    declared = DeclaredOptions(command_options(module), COMMANDS, names_of)
    values = from_file(config, command, declared) | from_environment(os.environ, declared)
    for group, options in options_by_group(module).items():
        for each in options:
            if each.name != "config":
                default = SourcedValue(each.default, "")
                yield OptionRow(each, group, values.get(each.name, default), [command])


def _toml_lines(rows: Sequence[OptionRow], several: bool) -> Iterator[str]:
    """Yields the lines of a toml file; keys of sections come last."""
    group = ""
    for row in rows:
        if row.sourced.section:
            continue
        if row.group != group:
            group = row.group
            yield f"# ---- {group} ----"
            yield ""
        yield from _toml_entry(row, several)
    sections = dict.fromkeys(row.sourced.section for row in rows if row.sourced.section)
    for section in sections:
        yield f"[{section}]"
        yield ""
        for row in rows:
            if row.sourced.section == section:
                yield from _toml_entry(row, several=False)


def _toml_entry(row: OptionRow, several: bool) -> Iterator[str]:
    yield f"# {row.option.help}"
    comment = "" if row.sourced.source else "# "
    value = toml_value(_hidden(row.sourced.value))
    facts = [f"from {row.sourced.source}" if row.sourced.source else "default"]
    if row.option.unit:
        facts.append(f"in {row.option.unit}")
    if row.sourced.source:
        facts.append(f"default {toml_value(row.option.default)}")
    if row.option.nutch:
        facts.append(f"Nutch: {row.option.nutch}")
    if several and len(row.commands) <= 5:
        facts.append(f"of {' '.join(row.commands)}")
    yield f"{comment}{row.option.name} = {value}  # {'; '.join(facts)}"
    yield ""


def _record(row: OptionRow) -> dict[str, Any]:
    option, sourced = row.option, row.sourced
    return {
        "option": option.name,
        "value": _hidden(sourced.value),
        "unit": option.unit,
        "source": sourced.source or "default",
        "file": sourced.file or None,
        "line": sourced.line or None,
        "default": option.default,
        "nutch": [name for name in (option.nutch or "").split(", ") if name],
        "help": option.help,
        "commands": row.commands,
    }


def _shown_text(option: Option, value: Any) -> str:
    return value_text(option, _hidden(value))


def _hidden(value: Any) -> Any:
    """Returns a value without secrets.

    >>> _hidden(("url=http://me:pw@solr/", "password=x", "X-Token: 7"))
    ('url=http://***@solr/', 'password=***', 'X-Token: ***')
    """
    if isinstance(value, tuple):
        return tuple(map(_hidden, value))
    return _SECRET.sub(rf"\1{_HIDDEN}", without_login(value)) if isinstance(value, str) else value


CONFIG = CommandParts(ProfileOptions, show_config, (_COMMAND,), SHOWS_CONFIG=True)
SHOW_PROPERTIES = CommandParts(ConfigOptions, show_properties, (_COMMAND,), SHOWS_CONFIG=True)
