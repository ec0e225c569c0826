"""Reads the words of a command line of Nutch: flags with their values, and the roles of all words."""

import dataclasses
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from ...web.base.dataclass import dataclass
from ...web.base.options import Option
from ...web.base.wording import quote_value
from ..base.command import NUTCH_FILE, Argument
from ..base.suggestions import suggestion
from .nutch_grammar import (
    TABLE_ROLES,
    NutchCommand,
    NutchFlag,
    Role,
    command_sections,
    is_nutch_path,
    value_words,
)
from .nutch_paths import NutchPath, explain_folder, is_table, read_table_path

_NUMBER = re.compile(r"-\.?\d.*")
_PROPERTY_FLAG = re.compile(r"--[A-Za-z]\w*\.[\w.-]+")
_SWITCH_VALUES = ("true", "false", "yes", "no", "on", "off", "1", "0")
_NAME_IN_BRACES = re.compile(r"\{(\w+)\}")
# An option of ours, and the words of the line that give it.
OwnWords = tuple[str, list[str]]


class PropertyInNutbeam(Protocol):
    """What a property of Nutch is in nutbeam: options, or why it is left out or refused."""

    @property
    def options(self) -> Mapping[str, str]:
        """Texts of the command line by name of the option."""

    @property
    def note(self) -> str:
        """Why the property is not needed, or an empty text."""

    @property
    def fault(self) -> str:
        """Why the property cannot mean the same, or an empty text."""


@dataclass(frozen=True)
class OwnCommand:
    """What the translation must know of our command.

    Attributes:
        options: Its options by name.
        arguments: Its arguments.
        takes_value: Returns whether a flag of Beam takes a value.
        explain_unknown: Returns what is said of an unknown flag.
        commands_with: Returns the commands that have an option.
        convert_property: Returns what a property of Nutch is, from its name, its value and all
            properties of the line.
    """

    options: Mapping[str, Option]
    arguments: Sequence[Argument]
    takes_value: Callable[[str], bool]
    explain_unknown: Callable[[str], str]
    commands_with: Callable[[str], Collection[str]]
    convert_property: Callable[[str, str, Mapping[str, str]], PropertyInNutbeam]


@dataclasses.dataclass
class NutchWords:
    """What the words of a command line of Nutch say.

    Attributes:
        command: The command of Nutch.
        own: Our command.
        positionals: Words without a flag.
        tables: The tables that words name, by the word.
        batches: Ids of batches that words name.
        wants_all: Whether a word names the folder of all segments.
        has_id: Whether -crawlId names the table.
        values: Values of other roles.
        properties: Properties of Nutch, by name.
        options: Words for our options, in the order in which they were typed.
        notes: What is not needed, and why.
        faults: What cannot mean the same, and why.
        folder: Folder that Nutch makes.
        output: File for what our command prints.
        is_changed: Whether the line is not one of nutbeam already.
    """

    command: NutchCommand
    own: OwnCommand
    positionals: list[str] = dataclasses.field(default_factory=list)
    tables: dict[str, NutchPath] = dataclasses.field(default_factory=dict)
    batches: list[str] = dataclasses.field(default_factory=list)
    wants_all: bool = False
    has_id: bool = False
    values: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    properties: dict[str, str] = dataclasses.field(default_factory=dict)
    options: list[OwnWords] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)
    faults: list[str] = dataclasses.field(default_factory=list)
    folder: str = ""
    output: str = ""
    is_changed: bool = False

    # Flags.

    def read(self, words: Sequence[str]) -> None:
        """Reads a line: its flags, then the roles of its other words."""
        self._divide(list(words))
        if not self.faults:  # else a word may be the value of an unknown flag
            self._read_positionals()

    def _divide(self, rest: list[str]) -> None:
        while rest:
            word = rest.pop(0)
            flag, equals, value = word.partition("=")
            nutch_flag = self.command.flags.get(flag.lower())
            if word == "--":
                self.positionals += rest
                return
            if word.startswith("-D") and nutch_flag is None:
                self._read_property(word[2:] or (rest.pop(0) if rest else ""))
            elif _PROPERTY_FLAG.fullmatch(flag):
                text = value if equals else rest.pop(0) if rest else ""
                self._read_property(f"{flag[2:]}={text}")
            elif nutch_flag is not None and not _is_own_index(flag, rest):
                self._read_flag(nutch_flag, [value] if equals else [], rest)
            elif (name := self._option_of(flag)) or word.startswith("--"):
                self._keep_option(name or flag.removeprefix("--"), word, rest)
            elif not word.startswith("-") or word == "-" or _NUMBER.fullmatch(word):
                self.positionals.append(word)
            else:
                near = suggestion(flag, [each.name for each in self.command.flags.values()])
                unknown = f"unknown option {quote_value(flag)}{near}"
                self.faults.append(unknown if near else self.own.explain_unknown(flag))

    def _option_of(self, flag: str) -> str:
        """Returns the name of our option with a flag, or an empty text."""
        name = flag.removeprefix("--").replace("-", "_")
        if flag.startswith("--") and name in self.own.options:
            return name
        shorts = {f"-{option.short}": option.name for option in self.own.options.values()}
        return shorts.get(flag, "")

    def _keep_option(self, name: str, word: str, rest: list[str]) -> None:
        option, words = self.own.options.get(name), [word]
        if "=" not in word and rest:
            if option is not None and option.item is bool and option.type is bool:
                takes = rest[0].lower() in _SWITCH_VALUES
            elif option is not None or any(each.name == name for each in self.own.arguments):
                takes = not rest[0].startswith("--")
            else:
                takes = not rest[0].startswith("--") and self.own.takes_value(word)
            words += [rest.pop(0)] if takes else []
        self.options.append((name, words))

    def _read_property(self, text: str) -> None:
        name, equals, value = text.partition("=")
        self.is_changed = True
        if name.strip() and equals:
            self.properties[name.strip()] = value.strip()  # the last one counts, as in Nutch
        else:
            shown = quote_value(text) if text else "nothing"
            self.faults.append(f"-D needs NAME=VALUE, got {shown}")

    def _read_flag(self, flag: NutchFlag, values: list[str], rest: list[str]) -> None:
        self.is_changed = True
        verb, _, reason = flag.gives.partition(" ")
        is_dropped = verb in ("drop", "refuse")
        bound: dict[str, list[str]] = {} if flag.gives else self.values
        has_effect, switch_value = True, [] if flag.roles else values
        for role in flag.roles:
            role_values, values = self._take_values(flag, role, values, rest), []
            if role_values is None:
                return
            if not is_dropped or role.name == "one":
                effects = [self._bind(role, value, bound) for value in role_values]
                has_effect = has_effect and all(effects)
        if verb == "refuse":
            self.faults += [f"{flag.name}: {reason}"] * has_effect
        elif verb == "drop":
            self.notes.append(f"{flag.name} is not needed: {reason}")
        elif has_effect and flag.gives:
            self.add_words(flag.gives, bound, switch_value)

    def _take_values(
        self, flag: NutchFlag, role: Role, values: list[str], rest: list[str]
    ) -> list[str] | None:
        """Returns the values of a flag with a role; None, and a fault, if there are none."""
        taken = list(values)
        while rest and not self._is_flag(rest[0]):
            full = bool(taken) and role.many not in ("*", "+")
            if full or (role.many == "?" and not role.fits(rest[0])):
                break
            taken.append(rest.pop(0))
        if taken or role.many in ("?", "*"):
            return taken
        shown = quote_value(rest[0]) if rest else "nothing"
        self.faults.append(f"{flag.name} needs a value, got {shown}")
        return None

    def _is_flag(self, word: str) -> bool:
        flag = word.partition("=")[0].lower()
        return word.startswith(("--", "-D")) or flag in self.command.flags

    # Roles.

    def _read_positionals(self) -> None:
        """Gives each word without a flag its role."""
        form = self._form()
        if form is None:
            usage = command_sections()[self.command.name]["usage"]
            shown = " ".join(map(quote_value, self.positionals)) or "no words"
            self.faults.append(f"Nutch has {usage}; got {shown}")
            return
        rest = list(self.positionals)
        for role in form:
            count = len(rest) if role.many in ("*", "+") else 1
            for word in rest[:count]:
                self._bind(role, word, self.values)
            rest = rest[count:]

    def _form(self) -> tuple[Role, ...] | None:
        """Returns the first form that fits; those with which the line has a table come first."""
        naming = (*TABLE_ROLES, "segment", "other")
        forms = [
            form
            for form in self.command.forms
            if self.tables or any(role.name in naming for role in form)
        ]
        return next((form for form in (*forms, *self.command.forms) if self._fits(form)), None)

    def _fits(self, form: Sequence[Role]) -> bool:
        words = self.positionals
        least = sum(role.many in ("", "+") for role in form)
        most = len(words) if any(role.many in ("*", "+") for role in form) else len(form)
        if not least <= len(words) <= most:
            return False
        if self.has_id and any(role.name in (*TABLE_ROLES, "segment") for role in form):
            return False
        begins_with_seeds = len(form) > 1 and form[0].name == "seeds"
        if begins_with_seeds and words and is_table(words[0]):
            return False  # a line of ours, where the table comes first
        roles = [*form, *[form[-1]] * (len(words) - len(form))] if form else []
        return all(
            role.fits(word) and role.name not in self.values  # a flag has given it
            for role, word in zip(roles, words, strict=False)
        )

    def _bind(self, role: Role, word: str, values: dict[str, list[str]]) -> bool:
        """Notes the value of a role; returns whether it has an effect."""
        name = role.name
        if name in TABLE_ROLES or name == "segment":
            for each in word.split(",") if name == "crawldbs" else [word]:
                self._note_table(name, each)
        elif name in ("address", "other"):
            path = self._path_of(word) if is_nutch_path(word) else None
            shown = path and (path.batches if name == "address" else path.table)
            values.setdefault(name, []).append(shown or word)
        elif name == "batch":
            self.batches.append(word)
        elif name in ("output", "outputfile"):
            self._note_folder(word)
            self.output = f"{self.folder}/{NUTCH_FILE}" if name == "outputfile" else self.output
            values[name], self.is_changed = [self.folder], True
        elif name in ("wait", "one"):
            return not word.startswith("-") if name == "wait" else word != "1"
        elif name == "agents":
            first, *others = word.split(",")
            values["agents"], values["others"], self.is_changed = [first], others, True
        else:
            self.is_changed |= name in ("solr", "mode", "rounds", "cluster")
            renamed = value_words().get(name, {}).get(word.lower(), word)
            verb, _, reason = renamed.partition(" ")
            if verb == "refuse" and renamed != word:
                self.faults.append(f"{word}: {reason}")
                return False
            convert = _CONVERT.get(name)
            values.setdefault(name, []).extend(convert(word) if convert else [renamed])
        return True

    def _note_table(self, role: str, word: str) -> None:
        if role == "crawlid":
            self.has_id, self.tables[word] = True, NutchPath(word)
            return
        path = self._path_of(word)
        self.tables[word] = path
        self.batches += [path.batch] if path.batch else []
        is_folder = role == "all" or (role == "segment" and is_nutch_path(word))
        self.wants_all |= is_folder and not path.batch

    def _path_of(self, word: str) -> NutchPath:
        path = read_table_path(word)
        self.is_changed |= is_nutch_path(word) and path.table != word.rstrip("/")
        fault = "" if is_table(path.table) else explain_folder(word)
        self.faults += [fault] * bool(fault)
        return path

    def _note_folder(self, word: str) -> None:
        self.folder = word.rstrip("/") or word
        if "://" in word or word == "-":
            self.faults.append(f"{quote_value(word)} must be a folder of this machine")
        elif Path(word).is_file():
            self.faults.append(f"{quote_value(word)} must be a folder, and is a file")
        elif (Path(word) / NUTCH_FILE).exists():
            self.faults.append(f"{self.folder}/{NUTCH_FILE} is there already: give another folder")

    # Words of ours.

    def add_words(
        self, text: str, values: Mapping[str, list[str]], switch_value: Sequence[str] = ()
    ) -> list[str]:
        """Adds the options in a text with names in braces; returns its other words.

        An option whose value has no word is left out.
        """
        arguments: list[str] = []
        words = text.split()
        while words:
            word = words.pop(0)
            if not word.startswith("--"):
                arguments += _fill(word, values)
            elif not words or words[0].startswith("--"):
                self.options.append((word[2:], _with_equals(word, switch_value)))
            elif filled := _fill(words.pop(0), values):
                self.options.append((word[2:], words_of_option(word, ",".join(filled))))
        return arguments


def _is_own_index(flag: str, rest: Sequence[str]) -> bool:
    """Returns whether ``--index`` is our option with a name, not the switch of the crawl script."""
    is_switch = not rest or rest[0].startswith("-") or (len(rest) == 2 and rest[1].isdigit())
    return flag == "--index" and not is_switch


def _fill(word: str, values: Mapping[str, list[str]]) -> list[str]:
    """Returns a word with the values in place of names in braces; none if a name has no value.

    >>> _fill("{seeds}", {"seeds": ["a", "b"]}), _fill("url={solr}", {"solr": ["u"]}), _fill("{n}", {})
    (['a', 'b'], ['url=u'], [])
    """
    if match := _NAME_IN_BRACES.fullmatch(word):
        return list(values.get(match[1], ()))
    if not all(values.get(name) for name in _NAME_IN_BRACES.findall(word)):
        return []
    return [_NAME_IN_BRACES.sub(lambda match: values[match[1]][0], word)]


def words_of_option(flag: str, value: str) -> list[str]:
    """Returns the words that give an option a value."""
    return [f"{flag}={value}"] if value.startswith("--") else [flag, value]


def _with_equals(flag: str, values: Sequence[str]) -> list[str]:
    return [f"{flag}={values[0]}"] if values else [flag]


def _plugin_name(text: str) -> list[str]:
    """Returns the name of a filter or normalizer for that of its plug-in or class.

    >>> _plugin_name("urlfilter-regex"), _plugin_name("org.apache.nutch.urlfilter.domain.DomainURLFilter")
    (['regex'], ['domain'])
    """
    name = text.rpartition(".")[2].lower()
    return [re.sub(r"^url(filter|normalizer)-|url(filter|normalizer)$", "", name)]


_CONVERT: Mapping[str, Callable[[str], list[str]]] = {
    "params": lambda text: text.replace(",", "\\,").split("&"),
    "plugin": _plugin_name,
}
