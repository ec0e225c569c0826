"""Answers for people who type names of other programs: of Nutch, Scrapy, wget, curl, HTTrack.

``foreign_names.toml`` has the names and the answers. It is read when somebody types one. Names of
crawlers other than Nutch that differ only in case, dashes and underscores are one name.
"""

import functools
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ...web.base.options import Option
from .config import listed_options

# Commands that take Nutch's flags as they are: they do the same, and have the same arguments.
TYPED_AS_IN_NUTCH = ("readseg", "freegen", "mergedb", "mergelinkdb", "parse", "dump",
                     "mergesegs", "commoncrawldump")  # fmt: skip
_FILE = "foreign_names.toml"


def command_hint(name: str) -> str | None:
    """Returns what to use in place of a command of Nutch; None if Nutch has no such command.

    >>> command_hint("parseSegment")
    'it is nutbeam parse'
    """
    return _split_names(_read_tables()["commands"]).get(name.lower())


@functools.cache
def _read_tables() -> Mapping[str, Mapping[str, Any]]:
    return tomllib.loads(Path(__file__).with_name(_FILE).read_text("utf-8"))


def _split_names(answers: Mapping[str, str]) -> Mapping[str, str]:
    """Returns answers by name, from those by names with spaces between."""
    return {name: answer for names, answer in answers.items() for name in names.split()}


def flag_hint(command: str, words: list[str], options: Iterable[Option]) -> str | None:
    """Returns what to use in place of a flag of Nutch; None if Nutch has no such flag.

    Args:
        command: The command.
        words: The flag, and the words after it.
        options: The options of the command.

    >>> top_n = Option("top_n", int, 0, "", nutch="generate -topN, crawl --size-fetchlist")
    >>> flag_hint("generate", ["-topN", "5"], [top_n])
    "Nutch's -topN is --top_n"
    >>> flag_hint("fetch", ["-D", "http.agent.name=bot"], [])
    "no option of fetch is Nutch's http.agent.name"
    """
    flag = words[0].partition("=")[0]
    if words[0].startswith("-D"):
        return _property_hint(command, (words[0][2:] or "".join(words[1:2])), options)
    for option in options:
        for name in _nutch_names(option):
            if name.rpartition(" ")[2].lower() == flag.lower() and " " in name:
                return f"Nutch's {flag} is {option.flag}"
    name = flag.lower()
    if name.startswith("--"):
        name = f"--{name[2:].replace('-', '_')}"
    flags = _read_tables()["flags"]
    return _split_names(flags["any"] | flags.get(command, {})).get(name)


def nutch_flags(command: str, options: Iterable[Option]) -> dict[str, str]:
    """Returns the names of options by the flags that they have in Nutch, if those are accepted, too.

    >>> option = Option("no_content", bool, False, "", nutch="readseg -nocontent")
    >>> nutch_flags("readseg", [option]), nutch_flags("readdb", [option])
    ({'-nocontent': 'no_content'}, {})
    """
    if command not in TYPED_AS_IN_NUTCH:
        return {}
    pairs = (
        (name.partition(" "), option.name) for option in options for name in _nutch_names(option)
    )
    return {flag: name for (owner, _, flag), name in pairs if owner == command and flag}


def spelling_in_nutch(flag: str, flags: Iterable[str]) -> str | None:
    """Returns the flag of Nutch that is meant by one with two dashes; None if there is none.

    >>> spelling_in_nutch("--outputdir", ["-outputDir"]), spelling_in_nutch("--x", ["-outputDir"])
    ('-outputDir', None)
    """
    if not flag.startswith("--"):
        return None
    return next((each for each in flags if _fold_flag(f"-{each}") == _fold_flag(flag)), None)


def _property_hint(command: str, text: str, options: Iterable[Option]) -> str | None:
    name = text.partition("=")[0]
    if not name:
        return None
    for option in options:
        if name in _nutch_names(option):
            return f"Nutch's {name} is {option.flag}"
    if elsewhere := _split_names(_read_tables()["properties"]).get(name):
        return f"Nutch's {name} is {elsewhere}"
    return f"no option of {command} is Nutch's {name}"


def _nutch_names(option: Option) -> Iterator[str]:
    """Yields an option's names in Nutch: properties, and flags after the name of a command."""
    yield from (option.nutch or "").split(", ")


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
