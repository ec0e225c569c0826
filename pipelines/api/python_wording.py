"""Says in Python what messages say for a shell: ``name=value`` in place of ``--name value``, methods of commands.

Values that a message quotes stay as they are.
"""

import functools
import re
import shlex
from collections.abc import Iterable
from pathlib import Path

from ...web.base.keyword_wording import OPTION, PLACEHOLDER, QUOTED_TEXT, as_python, keyword_of
from ..base.suggestions import suggestion
from ..command_line.commands import COMMANDS
from ..command_line.completion import VALUES_FILE

# Commands that a method of nutbeam.Table written by hand does.
_READERS = {"explain": "explain", "history": "history", "search": "search", "sql": "sql"}
# What else does what a command of another name does.
_OTHER_METHODS = {"readdb": "stats", "read": "frame, arrow or pages", "export": "frame or arrow",
                  "to_pandas": "frame().to_pandas"}  # fmt: skip
_WORDS = rf"(?: (?:{PLACEHOLDER}|{QUOTED_TEXT}|[a-z]+://[^\s;]+))*"


def in_python(message: str, table: str = "") -> str:
    """Returns a message of the command line for people who write Python.

    Args:
        message: The message.
        table: Address of the table that a method is called of.

    >>> in_python("--rounds must be a whole number, got '--3'")
    "rounds must be a whole number, got '--3'"
    >>> in_python("a file is missing: run nutbeam index mine --full --index test", "mine")
    "a file is missing: run table.index(full=True, index='test')"
    >>> in_python("give --agent_url URL or --allowed_ports 80; nutbeam history lists them")
    'give agent_url=URL or allowed_ports=80; table.history() lists them'
    >>> in_python("nutbeam export TABLE --what dead_letters says why, then index --full")
    'nutbeam export TABLE --what dead_letters says why, then table.index(full=True)'
    >>> in_python("this works: nutbeam crawl 'my table' http://shop.example/ --rounds 1", "my table")
    "this works: nutbeam.crawl('my table', 'http://shop.example/', rounds=1)"
    """
    return (
        _pattern(table.rstrip("/"))
        .sub(lambda match: _replacement(match, message, table), message)
        .replace("must be true or false", "must be True or False")
    )


@functools.lru_cache(maxsize=8)
def _pattern(table: str) -> "re.Pattern[str]":
    """Returns what finds commands, options and quoted values in messages."""
    own = "|".join(map(re.escape, {table, shlex.quote(table), str(Path(table).absolute())}))
    address = rf"(?P<address> (?:{own})/?(?=[\s;,.:]|$))?" if table else "(?P<address>(?!))?"
    names = "|".join(sorted(_methods(), key=len, reverse=True))
    switch = rf"--(?:{'|'.join(_switches())})\b(?:[ =](?:true|false)\b)?"
    options = rf"(?: (?:{switch}|--\w+[ =](?:{QUOTED_TEXT}|[^\s;]*[^\s;,.:)])))"
    return re.compile(
        rf"nutbeam (?P<called>{names})\b{address}(?P<words>{_WORDS})(?P<options>{options}*)"
        rf"|\b(?P<bare>{names})(?P<bare_options>{options}+)"
        rf"|nutbeam (?P<shell>[a-z_]+)(?: {PLACEHOLDER})*{options}*|{OPTION}|{QUOTED_TEXT}"
    )


def method_hint(name: str, names: Iterable[str]) -> str:
    """Returns which method of ``nutbeam.Table`` may be meant by an unknown name; empty if none is.

    Args:
        name: The unknown name.
        names: The names that it has.

    >>> method_hint("updatedb", ["update"]), method_hint("genrate", ["generate", "_generate"])
    ('; it is update', "; did you mean 'generate'?")
    """
    if name.startswith("_"):  # such as what notebooks look for
        return ""
    if method := _methods().get(name) or _OTHER_METHODS.get(name):
        return f"; it is {method}"
    return suggestion(name, [each for each in names if not each.startswith("_")])


def _replacement(match: "re.Match[str]", message: str, table: str) -> str:
    if command := match["called"] or match["bare"]:
        words = [
            as_python(word)
            for word in re.findall(rf"{QUOTED_TEXT}|\S+", match["words"] or "")
            if word != "TABLE"
        ]
        options = match["options"] or match["bare_options"] or ""
        if command == "crawl" and match["address"] and words:  # a table may not exist yet
            return f"nutbeam.crawl({', '.join([repr(table), *words, *_keywords(options)])})"
        return f"table.{_methods()[command]}({', '.join([*words, *_keywords(options)])})"
    if match["shell"] in COMMANDS or not match["name"]:
        return match[0]
    return keyword_of(match, message, _switches())


def _keywords(options: str) -> list[str]:
    """Returns the options after a command as keywords."""
    parts = [part.partition(" " if " " in part else "=") for part in options.split(" --")[1:]]
    return [f"{name}={as_python(value) if value else True}" for name, _, value in parts]


@functools.cache
def _methods() -> dict[str, str]:
    """Returns the names of the methods of ``nutbeam.Table``, by command."""
    return _READERS | {name: one.method for name, one in COMMANDS.items() if one.method}


@functools.cache
def _switches() -> frozenset[str]:
    """Returns the names of the options that are true or false."""
    file = Path(__file__).parents[1] / "command_line" / VALUES_FILE
    lines = [line.partition(" --") for line in file.read_text("utf-8").splitlines()]
    switches = {
        n.partition(":")[0] for who, _, n in lines if who == "*" and n.endswith(": true false")
    }
    return frozenset(switches - {name.partition(":")[0] for who, _, name in lines if who != "*"})
