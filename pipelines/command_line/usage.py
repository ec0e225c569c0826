"""Makes the text of ``nutbeam COMMAND --help``."""

import argparse

from ...web.base.options import Option, default_text, options_of
from .command import Argument, CommandModule, CommonOptions

COMMON_GROUP = "every command"
_EPILOG = "Beam's options are taken, too, such as --runner or --direct_num_workers."


def command_help(command: str, help: str, beam: bool, module: CommandModule) -> str:
    """Returns the help of a command: arguments, then options group by group."""
    parser = argparse.ArgumentParser(
        prog=f"nutbeam {command}",
        usage=_usage(command, module.ARGUMENTS, beam),
        description=help,
        epilog=_EPILOG if beam else None,
        add_help=False,
        formatter_class=lambda prog: argparse.HelpFormatter(prog, max_help_position=30),
    )
    arguments = parser.add_argument_group("arguments")
    for argument in module.ARGUMENTS:
        arguments.add_argument(
            argument.name, help=_escape(argument.help), metavar=argument.name.upper()
        )
    for title, declared in grouped(module).items():
        group = parser.add_argument_group(f"options: {title}")
        for option in declared:
            flags = [f"-{option.short}"] if option.short else []
            group.add_argument(
                *flags,
                option.flag,
                dest=option.name,
                metavar=metavar(option),
                help=_escape(option_help(option)),
            )
    return parser.format_help()


def grouped(module: CommandModule) -> dict[str, list[Option]]:
    """Returns a command's options by group: its own groups first, the common options last."""
    groups: dict[str, list[Option]] = {}
    for option in options_of(module.Options):
        groups.setdefault(option.group, []).append(option)
    ordered = dict(reversed(groups.items()))
    return {**ordered, COMMON_GROUP: list(options_of(CommonOptions))}


def metavar(option: Option) -> str:
    """Returns the placeholder of the value: its choices, its unit or its type.

    >>> metavar(Option("timeout", float, 10.0, "", unit="s", item=float))
    'S'
    """
    if option.choices:
        return "{" + ",".join(map(str, option.choices)) + "}"
    name = option.unit or {str: "text", bool: "true|false"}.get(option.item, "n")
    return f"{name},..." if option.type is tuple else name if "|" in name else name.upper()


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


def _usage(command: str, arguments: tuple[Argument, ...], beam: bool) -> str:
    words = [f"nutbeam {command}"]
    for argument in arguments:
        name = argument.name.upper()
        words.append(
            {"?": f"[{name}]", "*": f"[{name}...]", "+": f"{name}..."}.get(
                argument.nargs or "", name
            )
        )
    return " ".join([*words, "[--option value]", *(["[Beam options]"] if beam else [])])


def _escape(text: str) -> str:
    return text.replace("%", "%%")
