"""Makes the texts of ``nutbeam COMMAND --help`` and ``--help_all``."""

import argparse
import dataclasses
import shlex
import textwrap
from collections.abc import Iterable

from ...web.base.options import DURATIONS, Option, default_text, options_of
from ..base.command import Argument, CommandModule, CommonOptions
from .arguments import command_options
from .commands import Command

COMMON_GROUP = "every command"
# Groups that most commands have: --help does not show them, unless the command asks for it.
_SHARED_GROUPS = (COMMON_GROUP, "job", "launch", "metrics")
_WIDTH = 80


def command_help(name: str, command: Command, module: CommandModule) -> str:
    """Returns the help of a command on one screen: an example and the usual options."""
    parser = _parser(name, command, module)
    parser.description = f"{command.help}\n\nexample:\n{example(name, command)}"
    group = parser.add_argument_group("usual options")
    for option in usual_options(command, module):
        _add(group, option, _first_sentence(option), _short_metavar(option))
    also = " Beam's options are taken, too." if command.beam else ""
    parser.epilog = (
        f"All {len(command_options(module))} options: nutbeam {name} --help_all, or "
        "docs/reference/options.md. Options may also be in nutbeam.toml and in NUTBEAM_OPTION "
        f"variables.{also}"
    )
    return parser.format_help()


def command_help_all(name: str, command: Command, module: CommandModule) -> str:
    """Returns the whole help of a command: arguments, then all options group by group."""
    parser = _parser(name, command, module)
    for title, declared in _in_order(usual_options(command, module), options_by_group(module)):
        group = parser.add_argument_group(f"options: {title}")
        for option in declared:
            _add(group, option, option_help(option), metavar(option))
    if command.beam:
        parser.epilog = "Beam's options are taken, too, such as --runner or --direct_num_workers."
    return parser.format_help()


def usual_options(command: Command, module: CommandModule) -> list[Option]:
    """Returns the options that ``--help`` shows."""
    options = command_options(module)
    formats = getattr(module, "FORMATS", ("text", "json"))
    text = getattr(module, "FORMAT_HELP", "Format of the result.")
    options["format"] = dataclasses.replace(options["format"], choices=formats, help=text)
    groups = options_by_group(module).items()
    own = [
        option.name
        for title, group_options in groups
        if title not in _SHARED_GROUPS
        for option in group_options
    ]
    return [options[name] for name in (*(command.options or own), "format")]


def example(name: str, command: Command) -> str:
    """Returns the example of a command, on lines that a shell joins.

    >>> print(example("crawl", Command("crawl", "", example="mine " + "http://a.org/ " * 6)))
      nutbeam crawl mine http://a.org/ http://a.org/ http://a.org/ http://a.org/ \\
          http://a.org/ http://a.org/
    """
    words = [shlex.quote(word) for word in shlex.split(command.example)]
    lines = textwrap.wrap(
        " ".join(["nutbeam", name, *words]), _WIDTH - 4,
        initial_indent="  ", subsequent_indent="      ",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    return " \\\n".join(lines)


def options_by_group(module: CommandModule) -> dict[str, list[Option]]:
    """Returns a command's options by group: its own groups first, the common options last."""
    groups: dict[str, list[Option]] = {}
    for option in options_of(module.Options):
        groups.setdefault(option.group, []).append(option)
    ordered = dict(reversed(groups.items()))
    return {**ordered, COMMON_GROUP: list(options_of(CommonOptions))}


def _in_order(
    shown: Iterable[Option], groups: dict[str, list[Option]]
) -> list[tuple[str, list[Option]]]:
    """Returns the groups; that of the first usual option comes first."""
    first = next(iter(shown)).group
    return sorted(groups.items(), key=lambda item: item[0] != first)


def metavar(option: Option) -> str:
    """Returns the placeholder of the value: its choices, its unit or its type.

    >>> metavar(Option("timeout", float, 10.0, "", unit="s", item=float))
    'S'
    """
    if option.choices:
        return "{" + ",".join(map(str, filter(None, option.choices))) + "}"
    name = option.unit or {str: "text", bool: "true|false"}.get(option.item, "n")
    if option.type is tuple and option.separator == ",":
        return f"{name},..."
    return name if "|" in name else name.upper()


def _short_metavar(option: Option) -> str:
    """Returns the placeholder of the value; without the choices if they are many.

    >>> statuses = tuple(f"db_status{n}" for n in range(9))
    >>> _short_metavar(Option("restrict_status", str, "", "", choices=statuses))
    'STATUS'
    """
    name = metavar(option)
    return name if len(name) <= _WIDTH // 2 else option.name.rpartition("_")[2].upper()


def option_help(option: Option) -> str:
    """Returns an option's help with unit, default and Nutch property.

    >>> option_help(Option("timeout", float, 10.0, "Longest wait.", unit="s", nutch="http.timeout"))
    'Longest wait. [s; default 10; Nutch: http.timeout]'
    """
    default = default_text(option)
    notes = [
        option.unit,
        f"default {default}" if default else "default: none",
        f"Nutch: {option.nutch}" if option.nutch else None,
    ]
    return f"{option.help} [{'; '.join(note for note in notes if note)}]"


def _first_sentence(option: Option) -> str:
    """Returns the first sentence of an option's help, with its default.

    >>> _first_sentence(Option("depth", int, 5, "Follow no link deeper. See there.", item=int))
    'Follow no link deeper. [5]'
    >>> _first_sentence(Option("fetch_interval", int, 2592000, "Wait.", item=int, unit="s"))
    'Wait. [30d]'
    """
    default = default_text(option)
    scale = DURATIONS.get(option.unit or "")
    if scale and option.default > 0:
        default = _duration(option.default * scale)
    text = option.help.partition(". ")[0].removesuffix(".")
    return f"{text}. [{default}]" if default not in ("", "false") else f"{text}."


def _duration(seconds: float) -> str:
    """Returns a duration in the largest unit that fits, as options take it."""
    for unit, scale in sorted(DURATIONS.items(), key=lambda item: -item[1]):
        number = round(seconds / scale, 9)
        if number >= 1 and number == int(number):
            return f"{number:g}{unit}"
    return f"{seconds:g}s"


def _parser(name: str, command: Command, module: CommandModule) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"nutbeam {name}",
        usage=_usage(name, module.ARGUMENTS, command.beam),
        description=command.help,
        add_help=False,
        formatter_class=lambda prog: _Formatter(prog, max_help_position=26, width=_WIDTH - 1),
    )
    arguments = parser.add_argument_group("arguments")
    for argument in module.ARGUMENTS:
        arguments.add_argument(
            argument.name, help=_escape(argument.help), metavar=argument.name.upper()
        )
    return parser


class _Formatter(argparse.HelpFormatter):
    """Keeps the lines of the description, which end with the example."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" in text:
            return text
        return super()._fill_text(text, width, indent)


def _add(group: argparse._ArgumentGroup, option: Option, text: str, value: str) -> None:
    flags = [f"-{option.short}"] if option.short else []
    group.add_argument(*flags, option.flag, dest=option.name, metavar=value, help=_escape(text))


def _usage(command: str, arguments: tuple[Argument, ...], beam: bool) -> str:
    words = [f"nutbeam {command}"]
    for argument in arguments:
        name = argument.name.upper()
        forms = {"?": f"[{name}]", "*": f"[{name}...]", "+": f"{name}..."}
        words.append(forms.get(argument.nargs or "", name))
    return " ".join([*words, "[--option value]", *(["[Beam options]"] if beam else [])])


def _escape(text: str) -> str:
    return text.replace("%", "%%")
