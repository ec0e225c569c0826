"""The help of each command on one screen, as ``make docs`` writes it from the declarations.

To print it no module of a command is imported, most of which import Beam.
"""

from collections.abc import Mapping
from pathlib import Path

HELP_FILE = "help_pages.txt"


def help_page(command: str) -> str:
    """Returns what ``nutbeam COMMAND --help`` prints; empty for a command that is newer than the file.

    >>> help_page("inject").splitlines()[0]
    'usage: nutbeam inject TABLE [SEEDS...] [--option value] [Beam options]'
    """
    pages = Path(__file__).with_name(HELP_FILE).read_text("utf-8")
    return pages.partition(_head(command))[2].partition("\n# ")[0]


def joined_pages(pages: Mapping[str, str]) -> str:
    """Returns the content of the file.

    Args:
        pages: The help of each command.
    """
    return "".join(f"{_head(command)}{page}" for command, page in pages.items())


def _head(command: str) -> str:
    return f"\n# {command}\n"
