"""The commands of ``nutbeam``, and what the help of each shows: an example, the usual options.

``commands.toml`` declares them.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

_FILE = "commands.toml"


class Command(NamedTuple):
    """A command.

    Attributes:
        module: Its module below ``nutbeam.pipelines``; with ``:`` and the name of its ``CommandParts``
            if the module has several commands.
        help: What it does, in one line.
        beam: Whether it takes Beam's options.
        group: One of ``GROUPS``.
        example: A command line that works, without ``nutbeam`` and the command's name.
        options: The options that ``--help`` shows, in order; empty for those that only commands
            of its kind have.
        method: Name of the method of ``nutbeam.Table`` that runs it; empty for none.
        returns: The class of what this method returns.
        error_code: Exit code of all its errors, wrong usage too; 0: each error has its own.
    """

    module: str
    help: str
    beam: bool = True
    group: str = "take care of a table"
    example: str = "mine"
    options: tuple[str, ...] = ()
    method: str = ""
    returns: str = ""
    error_code: int = 0

    @property
    def file(self) -> str:
        """The full name of its module."""
        return f"nutbeam.pipelines.{self.module.partition(':')[0]}"

    @property
    def scratch(self) -> bool:
        """Whether the command makes temporary files."""
        return self.beam or self.module in (
            "querying.sql",
            "searching.search",
            "checkers.parsechecker",
            "checkers.indexchecker",
        )


def _read_commands() -> dict[str, Command]:
    groups = tomllib.loads(Path(__file__).with_name(_FILE).read_text("utf-8"))
    texts = groups.pop("texts")
    return {
        name: Command(
            declared.get("module", name),
            declared["help"],
            declared.get("beam", True),
            group,
            declared.get("example", "mine").format_map(texts),
            tuple(declared.get("options", "").format_map(texts).split()),
            declared.get("method", name if "returns" in declared else ""),
            declared.get("returns", ""),
            declared.get("error_code", 0),
        )
        for group, commands in groups.items()
        for name, declared in commands.items()
    }


COMMANDS = _read_commands()
# The groups of ``nutbeam --help``, in order.
GROUPS = tuple(dict.fromkeys(command.group for command in COMMANDS.values()))


def overview(commands: Mapping[str, Command]) -> str:
    """Returns the text of ``nutbeam --help``: the commands by group."""
    lines = ["usage: nutbeam COMMAND TABLE [arguments] [--option value] [Beam options]"]
    for title in GROUPS:
        lines += ["", f"{title}:"]
        group_commands = (
            (name, command) for name, command in commands.items() if command.group == title
        )
        lines += [f"  {name:17} {command.help}" for name, command in group_commands]
    lines += ["", "nutbeam help COMMAND has an example and the usual options of a command,"]
    lines += ["nutbeam COMMAND --help_all all of them."]
    return "\n".join([*lines, ""])
