"""The page that says what each command of Nutch is in nutbeam: as Markdown, and as text.

Importing the modules of all commands takes seconds. Therefore ``make docs`` writes the file
``option_flags.txt`` from the declarations: a flag of Nutch per line, with its option.
"""

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ...web.base.options import Option
from .nutch_grammar import TABLE_ROLES, answers, command_sections, declared_flags, read_sections

FLAGS_FILE = "option_flags.txt"
_WIDTH = 80
# Roles under the names that Nutch's users know.
_SHOWN = {"all": "segments", "address": "segment", "other": "linkdb", "output": "out",
          "outputfile": "out", "one": "n"}  # fmt: skip
_RULES = """\
A command line of Nutch runs as it is typed, if its meaning is clear; a line on standard error says what \
it is in nutbeam. What cannot mean the same is refused with a line that says what does.
One table takes the place of CrawlDb, LinkDb, HostDb, web graph and segments: X/crawldb, X/linkdb, \
X/hostdb, X/webgraphdb and X/segments mean the table X, X/segments/NAME its batch NAME. Without a folder \
before them, they mean the table crawldb. -crawlId X (2.x) means the table X.
-D NAME=VALUE and --NAME VALUE set a property of Nutch, if an option of the command has its meaning.
Names in other case, classes such as org.apache.nutch.crawl.Injector, and nutch before the command are \
understood.
"""


class CommandEntry(NamedTuple):
    """A command of Nutch on the page.

    Attributes:
        group: The part of the page.
        usage: How Nutch shows it.
        here: What it is in nutbeam, in Markdown.
        flags: Each of its flags, with what it is, in Markdown.
    """

    group: str
    usage: str
    here: str
    flags: tuple[str, ...] = ()


def flag_lines(options_of: Mapping[str, Iterable[Option]]) -> str:
    """Returns the content of the file of flags.

    Args:
        options_of: The options of our commands, by command.

    >>> top_n = Option("top_n", int, 0, "", nutch="generate -topN, crawl --size-fetchlist")
    >>> flag_lines({"generate": [top_n]})
    'generate -topN: --top_n\\n'
    """
    lines = [
        f"{command} {flag.name}: {flag.gives.removesuffix(' {value}')}\n"
        for command, options in options_of.items()
        for option in options
        for flag in declared_flags(command, option)
    ]
    return "".join(lines)


def command_entries(unsupported: Mapping[str, str]) -> list[CommandEntry]:
    """Returns the commands of Nutch, in the order of the page.

    Args:
        unsupported: What to use in place of names of Nutch that are in no section, by name.
    """
    rows, group = [], ""
    for name, section in command_sections().items():
        group = section.get("group", group)
        rows.append(
            CommandEntry(group, section["usage"], section["here"], tuple(_flags(name, section)))
        )
    others = "Names without a command"
    rows += [CommandEntry(others, each["usage"], each["here"]) for each in answers().values()]
    return rows + [CommandEntry(others, name, text) for name, text in unsupported.items()]


def _flags(name: str, section: Mapping[str, Any]) -> Iterator[str]:
    own = section.get("flags", {})
    for words, gives in own.items():
        flag, _, roles = words.partition(" ")
        names = [re.sub(r"\W", "", role) for role in roles.split()]
        shown = f"`{' '.join([flag, *(f'<{_SHOWN.get(each, each)}>' for each in names)])}`"
        verb, _, reason = gives.partition(" ")
        if verb == "drop":
            yield f"{shown}: not needed, {reason}"
        elif verb == "refuse":
            yield f"{shown}: no; {reason}"
        elif gives:
            option = re.sub(r"\{(\w+)\}", lambda m: f"<{_SHOWN.get(m[1], m[1])}>", gives)
            yield f"{shown} = `{option}`"
        else:
            yield f"{shown} names {_named_thing(names[0])}"
    mentioned = {words.split()[0].lower() for words in own}
    for line in Path(__file__).with_name(FLAGS_FILE).read_text("utf-8").splitlines():
        owner, flag, option = line.replace(":", "").split()
        if owner == name and flag.lower() not in mentioned:
            yield f"`{flag}` = `{option}`"


def _named_thing(role: str) -> str:
    if role in TABLE_ROLES:
        return "the table"
    return "a batch" if role == "segment" else "an argument"


def nutch_tables(unsupported: Mapping[str, str]) -> str:
    """Returns the tables of the page, in Markdown."""
    parts: list[str] = []
    group = ""
    for row in command_entries(unsupported):
        if row.group != group:
            group = row.group
            parts += ["", f"## {group}", "", "| Nutch | nutbeam | flags |", "| --- | --- | --- |"]
        cells = (f"`{row.usage}`", row.here, "<br>".join(row.flags))
        parts.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    common = [f"* {each}" for each in _flags("any", read_sections()["any"])]
    return "\n".join([*parts, "", "## Flags of all commands", "", *common, ""]).lstrip("\n")


def nutch_text(unsupported: Mapping[str, str]) -> str:
    """Returns the text of ``nutbeam help nutch``."""
    lines = [line for rule in _RULES.splitlines() for line in (*textwrap.wrap(rule, _WIDTH), "")]
    group = ""
    for row in command_entries(unsupported):
        if row.group != group:
            group = row.group
            lines += [f"{group}:", ""]
        lines += _wrapped(row.usage, "  ", "      ")
        for text in (row.here, *row.flags):
            lines += _wrapped(text.replace("`", ""), "      ", "        ")
        lines.append("")
    return "\n".join(lines)


def _wrapped(text: str, first: str, rest: str) -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
