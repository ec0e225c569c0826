"""Translates command lines of Nutch into those of nutbeam.

::

    words ─ flags with their values, words without a flag ─ roles ─ table, batches, values ─▶ our words
"""

import shlex
from collections.abc import Iterable, Mapping, Sequence

from ...io.snapshots.manifest import newest_manifest
from ...io.storage.place_addresses import one_spelling
from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError, one_line
from ...web.base.options import parse_value
from ...web.base.wording import quote_value
from .nutch_grammar import command_sections, grammar_of
from .nutch_paths import is_table
from .nutch_words import NutchWords, OwnCommand, OwnWords, words_of_option

_HELP = ("-h", "--help", "--help_all", "--help-all")


@dataclass(frozen=True)
class OwnLine:
    """A command line of nutbeam.

    Attributes:
        words: The command and its words.
        output: File that takes what the command prints; empty for standard output.
    """

    words: tuple[str, ...]
    output: str = ""

    def __str__(self) -> str:
        target = f" > {shlex.quote(self.output)}" if self.output else ""
        return f"{shlex.join(['nutbeam', *self.words])}{target}"


@dataclass(frozen=True)
class Translation:
    """What a command line of Nutch is in nutbeam.

    Attributes:
        lines: The command lines, each of which runs if the one before it succeeds.
        folder: Folder to make before; empty for none.
        notes: What was left out, and why.
    """

    lines: tuple[OwnLine, ...]
    folder: str = ""
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The text for a shell."""
        folder = [f"mkdir -p {shlex.quote(self.folder)}"] if self.folder else []
        return " && ".join([*folder, *map(str, self.lines)])


def translate_line(name: str, words: Sequence[str], own: OwnCommand) -> Translation | None:
    """Returns what a command line means in nutbeam; None if it is one of nutbeam already.

    Args:
        name: The command's name in Nutch, or in nutbeam.
        words: The words after it.
        own: Our command.

    Raises:
        UsageError: Something cannot mean the same; one line with all faults.
    """
    if any(word in _HELP for word in words):
        return None
    arguments = [argument.name for argument in own.arguments]
    line = NutchWords(grammar_of(name, own.options.values(), arguments), own)
    line.read(words)
    is_read = not line.faults
    properties = _property_words(line)
    if is_read:
        translation = _translation_of(line, properties)
    else:
        line.faults += _value_faults(line)
    if line.faults:
        raise UsageError("; ".join(dict.fromkeys(line.faults)))
    return translation if line.is_changed else None


def _translation_of(line: NutchWords, properties: Mapping[str, list[str]]) -> Translation:
    """Returns the lines of ours; adds the faults of the line as a whole."""
    command, table = line.command, _table_of(line)
    section = command_sections().get(command.name, {})
    values = {**line.values, "table": [table] if table else []}
    for role, text in section.get("with", {}).items():
        if role in values:
            line.add_words(text, values)
    arguments = line.add_words(command.gives, values)
    _check_repeated(line)
    line.faults += _value_faults(line)
    batches = _batch_words(line, table)
    typed_names = {name for name, _ in line.options}
    options = [*(each for each in properties.items() if each[0] not in typed_names), *line.options]
    reason = section.get("refuse", "")
    if not table and "{table}" in command.gives:
        arguments, reason = ["TABLE", *arguments], reason or "the table is missing"
    lines = [_own_line(line, command.ours, arguments, [*options, *batch]) for batch in batches]
    if "sitemaps" in values and command.ours == "crawl":
        lines = [
            *_lines_before_crawl(line, table, values, options),
            _own_line(line, "crawl", [table], options),
        ]
    if reason:
        line.faults.append(f"{reason}: {lines[0]}")
    return Translation(tuple(lines), line.folder, tuple(dict.fromkeys(line.notes)))


def _own_line(
    line: NutchWords, command: str, arguments: Sequence[str], options: Iterable[OwnWords]
) -> OwnLine:
    words = [word for _, words in options for word in words]
    dashed = any(each.startswith("-") and each != "-" for each in arguments)
    ordered = [*words, "--", *arguments] if dashed else [*arguments, *words]
    return OwnLine((command, *ordered), line.output)


def _lines_before_crawl(
    line: NutchWords, table: str, values: Mapping[str, list[str]], options: Sequence[OwnWords]
) -> list[OwnLine]:
    """Returns the lines that read seeds and sitemaps, with the options that their commands have."""
    lines = []
    for command, role in (("inject", "seeds"), ("sitemap", "sitemaps")):
        theirs = [each for each in options if command in line.own.commands_with(each[0])]
        if values.get(role):
            lines.append(_own_line(line, command, [table, *values[role]], theirs))
    return lines


def _table_of(line: NutchWords) -> str:
    """Returns the table that all words name; a fault if they name several."""
    by_spelling = {one_spelling(path.table): word for word, path in line.tables.items()}
    if len(by_spelling) > 1:
        named = " and ".join(
            f"{quote_value(word)} (table {line.tables[word].table})"
            for word in by_spelling.values()
        )
        line.faults.append(
            f"{named} are different tables: give one, which has what both have in Nutch"
        )
    return next((path.table for path in line.tables.values()), "")


def _property_words(line: NutchWords) -> dict[str, list[str]]:
    """Converts the properties; what only other commands read is left out, with a note."""
    words = {}
    typed_names = {name for name, _ in line.options}
    for name, value in line.properties.items():
        converted = line.own.convert_property(name, value, line.properties)
        line.faults += [f"{name}: {converted.fault}"] * bool(converted.fault)
        line.notes += [f"{name}: {converted.note}"] * bool(converted.note)
        for option, text in converted.options.items():
            if option in line.own.options:
                words[option] = words_of_option(f"--{option}", text)
                fault = "" if option in typed_names else _value_fault(line, option, text)
                line.faults += [f"{name}: {fault}"] * bool(fault)
            else:
                owners = ", ".join(sorted(line.own.commands_with(option))[:3])
                line.notes.append(f"{name} is not needed here: it is --{option} of {owners}")
    return words


def _value_faults(line: NutchWords) -> list[str]:
    """Returns why options refuse the values that were typed for them."""
    faults = [
        _value_fault(line, name, text)
        for name, words in line.options
        if (text := _text_of(words)) is not None
    ]
    return list(filter(None, faults))


def _value_fault(line: NutchWords, name: str, text: str) -> str:
    """Returns why an option refuses a value; an empty text if it does not."""
    try:
        if name in line.own.options:
            parse_value(line.own.options[name], text)
    except ValueError as error:
        return one_line(error)
    return ""


def _text_of(words: Sequence[str]) -> str | None:
    """Returns the value in the words of an option; None if there is none."""
    _, equals, text = words[0].partition("=")
    return text if equals else words[1] if words[1:] else None


def _check_repeated(line: NutchWords) -> None:
    """Refuses an option with two values where one counts: Nutch's commands differ in which."""
    texts: dict[str, list[str]] = {}
    for name, words in line.options:
        option = line.own.options.get(name)
        if option is not None and option.type is not tuple:
            value = _text_of(words) or "true"
            texts.setdefault(name, []).append(value)
    for name, values in texts.items():
        different = list(dict.fromkeys(values))
        if len(different) > 1:
            shown = " and ".join(map(quote_value, different))
            line.faults.append(f"--{name} is there twice, with {shown}: give one")


def _batch_words(line: NutchWords, table: str) -> list[list[OwnWords]]:
    """Returns the words for the batches of each line of ours."""
    batches, how = list(dict.fromkeys(line.batches)), line.command.batches
    own_batch = next((words for name, words in line.options if name == "batch"), None)
    if batches and own_batch:
        words = (word for word, path in line.tables.items() if path.batch == batches[0])
        shown = f"{' '.join(own_batch)} and {quote_value(next(words, batches[0]))}"
        line.faults.append(f"{shown} are two batches: give one")
    if line.wants_all and not batches and how == "join" and not own_batch:
        batches = _waiting_batches(table)
    if not batches:
        return [[]]
    if how == "one" and len(batches) > 1:
        shown = " and ".join(map(quote_value, batches))
        line.faults.append(f"{line.command.ours} takes one segment, got {shown}")
    if how == "all":
        line.notes.append(f"{line.command.ours} works on all batches, not only on {batches[0]}")
        return [[]]
    texts = [",".join(batches)] if how == "join" else batches
    return [[("batch", ["--batch", text])] for text in texts]


def _waiting_batches(table: str) -> list[str]:
    """Returns the batches of a table that updatedb may take, oldest first."""
    if not is_table(table):
        return []
    batches = newest_manifest(table).batches.items()
    return sorted(name for name, batch in batches if batch.phase in ("fetched", "parsed"))
