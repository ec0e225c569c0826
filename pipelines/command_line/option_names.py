"""Lists which commands have an option, without importing the modules of the commands.

Importing all modules takes seconds, most of it for Beam. ``make docs`` writes the file
``option_names.txt`` from the declarations: an option per line, with its commands.
"""

import functools
from collections.abc import Iterable, Mapping
from pathlib import Path

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
