"""Answers for people who type names of other programs: of Nutch, Scrapy, wget, curl, HTTrack.

``foreign_names.toml`` has the names and the answers. It is read when somebody types one. Names of
crawlers other than Nutch that differ only in case, dashes and underscores are one name.
"""

import functools
import re
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from .config import listed_options

_FILE = "foreign_names.toml"


def command_hint(name: str) -> str | None:
    """Returns what to use in place of a command of Nutch; None if Nutch has no such command.

    >>> command_hint("junit")
    'nutbeam runs no Java class'
    """
    return unsupported_commands().get(name.lower())


def unsupported_commands() -> Mapping[str, str]:
    """Returns what to use in place of commands of Nutch that nutbeam does not have, by name."""
    return _split_names(_read_tables()["commands"])


@functools.cache
def _read_tables() -> Mapping[str, Mapping[str, Any]]:
    return tomllib.loads(Path(__file__).with_name(_FILE).read_text("utf-8"))


def _split_names(answers: Mapping[str, str]) -> Mapping[str, str]:
    """Returns answers by name, from those by names with spaces between."""
    return {name: answer for names, answer in answers.items() for name in names.split()}


def meant_option(flag: str) -> str | None:
    """Returns the option of nutbeam that a flag of another crawler means, or None.

    >>> meant_option("--DOWNLOAD_DELAY"), meant_option("-l"), meant_option("--pdf")
    ('server_delay', 'depth', None)
    """
    name, options = _fold_flag(flag), _read_tables()["options"]
    return next((option for option in options if name in options[option]["names"].split()), None)


def answer_for(command: str, flag: str, options: Collection[str]) -> str:
    """Returns what to use in place of a flag of another crawler; empty if it is unknown.

    Args:
        command: The command.
        flag: The flag.
        options: Names of the command's options.

    >>> answer_for("crawl", "--max-redirect", ["redirect_max"])
    'it is --redirect_max'
    >>> answer_for("fetch", "--max_pages", ["threads"])
    'it is --top_n of generate, the most URLs of a round'
    """
    name = meant_option(flag)
    if name is None:
        crawls = command == "inject" or "server_delay" in options
        answers = _split_names(_read_tables()["answers"])
        return answers.get(_fold_flag(flag), "") if crawls else ""
    meant = _read_tables()["options"][name]
    note = f", {meant['note']}" if "note" in meant else ""
    if name in options:
        verb = "see" if note and name != "top_n" else "it is"
        return f"{verb} --{name}{note}"
    owner = meant.get("command")
    is_phase = command in listed_options().get("batch", ())
    return f"it is --{name} of {owner}{note}" if owner and is_phase else ""


def _fold_flag(flag: str) -> str:
    """Returns a name in one form; that of a short flag keeps its dash."""
    if not flag.startswith("--") and len(flag) <= 3:
        return flag
    return re.sub("[-_]", "", flag).lower()
