"""Nutch's commands: their names, the roles of their words, and their flags.

``nutch_lines.toml`` declares them, and options say which flags they are (``option(..., nutch=...)``). The
file is read only for a line that may be Nutch's.
"""

import functools
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ...web.base.options import Option
from ..base.command import is_page

_FILE = "nutch_lines.toml"
_NO_CLASS = "nutbeam runs no Java class; nutbeam help nutch lists the commands"
_ANY, _ANSWERS, _VALUES = "any", "answers", "values"
# Roles of words that name the table of a line.
TABLE_ROLES = ("crawldb", "linkdb", "hostdb", "webgraphdb", "segments", "all", "crawldir",
               "crawlid", "crawldbs")  # fmt: skip
# What words of these roles look like.
_LOOKS = {
    "rounds": re.compile(r"-?\d+"),
    "reducers": re.compile(r"\d+"),
    "min": re.compile(r"-?[\d.]+"),
    "mode": re.compile(r"host|domain|suffix|tld"),
    "solr": re.compile(r"https?://.*"),
    "wait": re.compile(r"-?\d+[smhd]?"),
}
_PATH = re.compile(
    r"(?!https?:|file:)(?:.*/)?(?:crawldb|linkdb|hostdb|webgraphdb|segments)(?:/+[^/]*)?/*|.+(?<!batches)/\d{14}/*"
)
_BATCH = re.compile(r"(?:.*/)?segments/+[^/]+/*|.+(?<!batches)/\d{14}/*")
_FLAG = re.compile(r"-(?:D.*|[A-Za-z][A-Za-z]+(?:=.*)?)|--[a-z]\w*\.[\w.]+(?:=.*)?", re.DOTALL)
_SCRIPT_FLAG = re.compile(
    r"-[isw]|--(?:hostdb\w+|num-(?:slaves|tasks|threads|fetchers)|size-fetchlist|time-limit-fetch"
    r"|sitemaps-from-hostdb)(?:=.*)?"
)
_ROUNDS = _LOOKS["rounds"]
_AGENTS = re.compile(r"[\w,-]+")


class Role(NamedTuple):
    """The role of a word, or of several.

    Attributes:
        name: Its name.
        many: Empty for one word, ``?`` for at most one, ``*`` for any number, ``+`` for at least one.
        is_path: Whether the words must be paths of Nutch.
    """

    name: str
    many: str = ""
    is_path: bool = False

    def fits(self, word: str) -> bool:
        """Returns whether a word may have the role."""
        look = _LOOKS.get(self.name)
        if self.is_path and not (_BATCH if self.name == "segment" else _PATH).fullmatch(word):
            return False
        if self.name in TABLE_ROLES and (is_page(word) or Path(word).is_file()):
            return False
        return look is None or look.fullmatch(word) is not None


class NutchFlag(NamedTuple):
    """A flag of Nutch.

    Attributes:
        name: As Nutch writes it.
        roles: The roles of its values.
        gives: Words of nutbeam with names of roles in braces; ``drop REASON`` or ``refuse REASON``.
    """

    name: str
    roles: tuple[Role, ...]
    gives: str


class NutchCommand(NamedTuple):
    """A command of Nutch.

    Attributes:
        name: Its name in nutch_lines.toml.
        ours: The command of nutbeam.
        forms: Its words without flags, by form.
        gives: Arguments of our command, with names of roles in braces.
        batches: What segments are for our command: ``join``, ``each``, ``one`` or ``all``.
        flags: Its flags, by their names in lower case.
    """

    name: str
    ours: str
    forms: tuple[tuple[Role, ...], ...]
    gives: str
    batches: str
    flags: Mapping[str, NutchFlag]


def is_nutch_path(word: str) -> bool:
    """Returns whether a word may be the path of one of Nutch's databases or segments.

    >>> is_nutch_path("crawl/segments/2026"), is_nutch_path("mine"), is_nutch_path("http://a.org/segments")
    (True, False, False)
    """
    return _PATH.fullmatch(word) is not None


def may_be_nutch_line(command: str, words: Sequence[str], is_ours: bool) -> bool:
    """Returns whether a command line may be one of Nutch; quick, because all lines are asked.

    Args:
        command: The name of the command, as it was typed.
        words: The words after it.
        is_ours: Whether nutbeam has this command.

    >>> may_be_nutch_line("generate", ["mine", "-topN", "5"], True)
    True
    >>> may_be_nutch_line("generate", ["mine", "--top_n", "-5"], True)
    False
    >>> may_be_nutch_line("crawl", ["urls", "crawl", "3"], True)
    True
    """
    if not is_ours:
        return not command.startswith("-")
    if any(_FLAG.fullmatch(word) or is_nutch_path(word) for word in words):
        return True
    leading = list(_leading_words(words))
    if command == "crawl":
        counted = len(leading) > 1 and leading[-1:] == words[-1:] and _ROUNDS.fullmatch(leading[-1])
        return bool(counted) or any(_SCRIPT_FLAG.fullmatch(word) for word in words)
    if command.startswith("solr"):
        return any(map(is_page, leading[:2]))
    if command == "robotsparser":
        return len(leading) == 3 and _AGENTS.fullmatch(leading[2]) is not None
    return command in ("domainstats", "protocolstats") and len(leading) > 1


def _leading_words(words: Iterable[str]) -> Iterator[str]:
    for word in words:
        if word.startswith("-") and not _ROUNDS.fullmatch(word):
            return
        yield word


@functools.cache
def read_sections() -> Mapping[str, Mapping[str, Any]]:
    """Returns the sections of the file."""
    return tomllib.loads(Path(__file__).with_name(_FILE).read_text("utf-8"))


def value_words() -> Mapping[str, Mapping[str, str]]:
    """Returns the values of Nutch that have other names here, by role; or ``refuse REASON``."""
    return read_sections()[_VALUES]


def command_sections() -> dict[str, Mapping[str, Any]]:
    """Returns the sections of Nutch's commands, in order."""
    others = (_ANY, _ANSWERS, _VALUES)
    return {name: section for name, section in read_sections().items() if name not in others}


def answers() -> Mapping[str, Mapping[str, str]]:
    """Returns the names of Nutch that no command of nutbeam has, with what to do."""
    return read_sections()[_ANSWERS]


def find_command(name: str) -> str | None:
    """Returns Nutch's command for a name in any case, or for a class; None if there is none.

    >>> find_command("org.apache.nutch.crawl.Injector"), find_command("ParseSegment")
    ('inject', 'parse')
    >>> find_command("org.apache.nutch.crawl.CrawlDb"), find_command("fecth")
    ('updatedb', None)
    """
    return _find(name, command_sections())


def own_command(name: str) -> str:
    """Returns the command of nutbeam for a command of Nutch.

    >>> own_command("elasticindex"), own_command("fetch")
    ('index', 'fetch')
    """
    return str(command_sections().get(name, {}).get("ours", name))


def answer_to(name: str) -> str | None:
    """Returns what to do in place of a name of Nutch that no command has, or None.

    >>> answer_to("org.apache.nutch.scoring.webgraph.Loops")
    'not needed: nutbeam webgraph leaves out links within a site and repeated links'
    """
    found = _find(name, answers())
    if found:
        return str(answers()[found]["here"]).replace("`", "")
    return _NO_CLASS if name.lower().startswith("org.apache.nutch.") else None


def _find(name: str, sections: Mapping[str, Mapping[str, Any]]) -> str | None:
    parts = name.lower().split(".")
    spellings = {parts[-1], ".".join(parts[-2:])}
    for command, section in sections.items():
        if spellings & {command, *section.get("names", "").split()}:
            return command
    return None


def grammar_of(
    name: str, options: Iterable[Option], arguments: Collection[str] = ()
) -> NutchCommand:
    """Returns a command of Nutch, or one that only nutbeam has.

    Args:
        name: Its name in Nutch, or in nutbeam.
        options: The options of our command.
        arguments: Names of the arguments of our command.

    >>> top_n = Option("top_n", int, 0, "", nutch="generate -topN, crawl --size-fetchlist")
    >>> grammar_of("generate", [top_n]).flags["-topn"]
    NutchFlag(name='-topN', roles=(Role(name='value', many='', is_path=False),), gives='--top_n {value}')
    """
    first = "crawldb " if "table" in arguments else ""
    section = command_sections().get(name) or {
        "words": [f"{first}words*"], "gives": f"{'{table} ' * bool(first)}{{words}}"
    }  # fmt: skip
    flags: dict[str, NutchFlag] = {}
    for option in options:
        flags |= {flag.name.lower(): flag for flag in _flags_of_option(name, option)}
    for text, gives in (read_sections()[_ANY]["flags"] | section.get("flags", {})).items():
        words = text.split()
        flags[words[0].lower()] = NutchFlag(words[0], _roles(words[1:]), gives)
    forms = tuple(_roles(form.split()) for form in section["words"])
    return NutchCommand(
        name, section.get("ours", name), forms, section.get("gives", "{table}"),
        section.get("batches", "all"), flags,
    )  # fmt: skip


def advice_on_dashes(command: str, flag: str, options: Iterable[Option]) -> str:
    """Returns what is said of a flag of Nutch that was typed with two dashes; empty if there is none.

    It is asked only for flags that nutbeam does not have.

    >>> advice_on_dashes("mergesegs", "--dir", []), advice_on_dashes("fetch", "--x", [])
    ('type -dir, as in Nutch', '')
    >>> advice_on_dashes("fetch", "--all", [])
    'it is not needed: a job takes the batch that is next in line'
    """
    if not flag.startswith("--") or len(flag) < 5:
        return ""
    name = f"-{re.sub('[-_]', '', flag).lower()}"
    nutch_flag = grammar_of(command, options).flags.get(name)
    if nutch_flag is None or nutch_flag.name.startswith("--"):
        return ""
    verb, _, reason = nutch_flag.gives.partition(" ")
    advice = {"drop": f"it is not needed: {reason}", "refuse": reason}
    return advice.get(verb, f"type {nutch_flag.name}, as in Nutch")


def _roles(words: Iterable[str]) -> tuple[Role, ...]:
    roles = []
    for word in words:
        match = re.fullmatch(r"(\w+)(!?)([?*+]?)", word)
        assert match is not None, word
        roles.append(Role(match[1], match[3], bool(match[2])))
    return tuple(roles)


def declared_names(option: Option) -> Iterator[str]:
    """Yields an option's names in Nutch: properties, and flags after the name of a command."""
    yield from filter(None, (option.nutch or "").split(", "))


def declared_flags(command: str, option: Option) -> Iterator[NutchFlag]:
    """Yields the flags of a command of Nutch that an option declares."""
    for name in declared_names(option):
        owner, _, flag = name.partition(" ")
        if owner == command and flag:
            yield _flag(flag, option)


def _flags_of_option(command: str, option: Option) -> Iterator[NutchFlag]:
    """Yields the flags that an option declares, and the one with its name."""
    spelling = re.sub("_(.)", lambda match: match[1].upper(), option.name)
    if spelling not in ("format", "config", "writer"):  # flags of other meanings, or of none
        yield _flag(f"-{spelling}", option)
    yield from declared_flags(command, option)


def _flag(flag: str, option: Option) -> NutchFlag:
    is_switch = option.item is bool and option.type is bool
    roles = () if is_switch else (Role("value"),)
    return NutchFlag(flag, roles, option.flag if is_switch else f"{option.flag} {{value}}")
