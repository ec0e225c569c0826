"""Reads the command line into an ``Invocation``.

``argparse`` writes the help only. It cannot read the command line, because it would treat the value
of an option that only Beam knows as a positional argument.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from ...web.base.errors import UsageError, one_line
from ...web.base.options import Option, options_of, parse_value, validate, value_text
from ...web.base.wording import quote_value
from ...web.plugins.plugin_files import is_plugin_file, read_plugin_files
from ...web.plugins.plugin_options import names_in, plugin_names
from ..as_in_nutch.nutch_grammar import advice_on_dashes
from ..base.beam_flags import beam_flag
from ..base.command import TABLE, Argument, CommandModule, CommonOptions, Invocation, is_page
from ..base.suggestions import endings, nearest_spellings, one_of, suggestion
from .config import DeclaredOptions, from_environment, listed_options, without_sources
from .config_file import ConfigErrors, from_file
from .foreign_names import answer_for

if TYPE_CHECKING:
    from argparse import ArgumentParser

# Runners whose job server has options that Beam's Python parser does not have.
PORTABLE_RUNNERS = ("flinkrunner", "portablerunner", "sparkrunner")
_HELP: Mapping[str, Literal["usual", "all"]] = {
    "-h": "usual", "--help": "usual", "--help_all": "all", "--help-all": "all",
}  # fmt: skip
# Beam has them, too, but with no effect: on requests, and on a job, which would run for real.
_NOT_THOSE_OF_BEAM = ("user_agent", "dry_run")
_BOOLEANS = ("true", "false", "yes", "no", "on", "off", "1", "0")


@dataclasses.dataclass
class TypedWords:
    """A command line, divided into options and arguments, but not checked.

    Attributes:
        values: Texts by name of the option or argument, in order.
        positionals: Words without a flag.
        after_switches: Those directly after a flag that is true or false, and this flag.
        beam_args: Flags and values for Beam.
        help: ``usual`` for ``--help`` or ``-h``, ``all`` for ``--help_all``, else empty.
    """

    values: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    positionals: list[str] = dataclasses.field(default_factory=list)
    after_switches: dict[str, str] = dataclasses.field(default_factory=dict)
    beam_args: list[str] = dataclasses.field(default_factory=list)
    help: Literal["", "usual", "all"] = ""


def command_options(module: CommandModule) -> dict[str, Option]:
    """Returns a command's own options and the common options, by name.

    Raises:
        TypeError: Two options have the same name.
    """
    options: dict[str, Option] = {}
    for declared in (*options_of(module.Options), *options_of(CommonOptions)):
        if declared.name in options or declared.name in {a.name for a in module.ARGUMENTS}:
            raise TypeError(f"option {declared.name!r} is declared twice")
        options[declared.name] = declared
    return options


def names_of_options(modules: Mapping[str, CommandModule], command: str) -> set[str]:
    """Returns the names of the options of a command; none if it is not installed.

    Args:
        modules: The modules of all commands.
        command: The command.
    """
    try:
        return set(command_options(modules[command]))
    except ModuleNotFoundError:
        return set()


def split(
    argv: Sequence[str],
    options: Mapping[str, Option],
    arguments: Sequence[Argument],
    beam_parser: Callable[[], "ArgumentParser"] | None,
    command: str = "",
) -> TypedWords:
    """Divides the words after the name of the command into options and arguments.

    Args:
        argv: The words.
        options: Options of nutbeam by name.
        arguments: The command's positional arguments.
        beam_parser: Function that returns Beam's parser. It imports Beam, so it is called only
            for a flag that is not in ``options``. None if the command has no Beam options.
        command: Name of the command, for messages.

    Raises:
        UsageError: An unknown flag, or a flag without its value.
    """
    typed = TypedWords()
    names = {name: option.item is bool and option.type is bool for name, option in options.items()}
    names |= {argument.name: False for argument in arguments}
    shorts = {f"-{option.short}": name for name, option in options.items() if option.short}
    words = list(argv)

    def refuse_flag(flag: str, beams: Iterable[str] = ()) -> UsageError:
        if advice := advice_on_dashes(command, flag, options.values()):
            return UsageError(f"unknown option {quote_value(flag)}; {advice}")
        return unknown_option(command, flag, names, beams)

    while words:
        word = words.pop(0)
        flag, equals, value = word.partition("=")
        name = shorts.get(flag) or flag.removeprefix("--").replace("-", "_")
        if word == "--":
            typed.positionals += words
            break
        if word in _HELP:
            typed.help = "all" if "all" in (typed.help, _HELP[word]) else "usual"
        elif not word.startswith("-") or word == "-":
            typed.positionals.append(word)
        elif (flag.startswith("--") or flag in shorts) and name in names:
            if not equals:
                word_count = len(words)
                value = _value_of(flag, words, boolean=names[name])
                if names[name] and len(words) == word_count > 0:
                    typed.after_switches[words[0]] = flag
            typed.values.setdefault(name, []).append(value)
        elif typed.help or any(each in _HELP for each in words):
            continue
        elif beam_parser is None or name in _NOT_THOSE_OF_BEAM:
            raise refuse_flag(flag)
        else:
            typed.beam_args += _beam_words(word, words, beam_parser(), refuse_flag, argv)
    return typed


def unknown_option(
    command: str, flag: str, ours: Iterable[str], beams: Iterable[str] = ()
) -> UsageError:
    """Returns the error for an unknown flag: which commands have it, or a similar option."""
    name, names = flag.lstrip("-").replace("-", "_"), list(ours)
    ours = [f"--{each}" for each in names]
    near = nearest_spellings(flag, [each for each in ours if len(flag) > 2])
    answer = "" if near else answer_for(command, flag, names)
    others = sorted(listed_options().get(name, frozenset()) - {command})
    if others and flag.startswith("--"):  # only typing errors and other crawlers are likelier
        owners = ", ".join([*others[:3], "others"] if len(others) > 4 else others)
        text = f"{quote_value(flag)} is an option of {owners}, not of {command}"
        return UsageError(
            f"{text}; {answer}" if answer else text + one_of(near or endings(flag, ours))
        )
    text = f"unknown option {quote_value(flag)}"
    return UsageError(f"{text}; {answer}" if answer else text + suggestion(flag, [*ours, *beams]))


def _value_of(flag: str, words: list[str], boolean: bool) -> str:
    if boolean:
        return words.pop(0) if words and words[0].lower() in _BOOLEANS else "true"
    if not words or words[0].startswith("--"):
        raise UsageError(f"{flag} needs a value, got {_no_value(flag, words)}")
    return words.pop(0)


def _no_value(flag: str, words: Sequence[str]) -> str:
    """Returns what stands in the place of a value, and how to write it if it is one."""
    if not words:
        return "nothing"
    is_name = words[0].removeprefix("--").partition("=")[0].replace("-", "_").isidentifier()
    hint = "" if is_name else f"; write {flag}=VALUE if the value begins with -"
    return f"{quote_value(words[0])}{hint}"


def _beam_words(
    word: str,
    words: list[str],
    parser: "ArgumentParser",
    refuse_flag: Callable[[str, Iterable[str]], UsageError],
    argv: Sequence[str],
) -> list[str]:
    """Returns a flag of Beam with its value, and removes the value from ``words``."""
    flag, equals, value = word.partition("=")
    flag, action = beam_flag(flag, parser)
    taken = [f"{flag}={value}" if equals else flag]
    if action is None:
        beams = parser._option_string_actions
        if (
            _runner(argv) not in PORTABLE_RUNNERS
            or not word.startswith("--")
            or _misspelt(flag, beams)
        ):
            raise refuse_flag(word.partition("=")[0], beams)
        wants_value = bool(words) and not words[0].startswith("-")
        taken = [word]
    elif action.nargs == "?":
        wants_value = bool(words) and not words[0].startswith("-")
    else:
        wants_value = action.nargs != 0
    if wants_value and not equals:
        taken.append(_value_of(flag, words, boolean=False))
    return taken


def _misspelt(flag: str, beams: Iterable[str]) -> bool:
    """Returns whether a flag is an option of nutbeam or of Beam, or nearly: a job server ignores it.

    >>> _misspelt("--num_fetcher", []), _misspelt("--execution_mode_for_batch", [])
    (True, False)
    """
    ours = (f"--{name}" for name in listed_options())
    return bool(nearest_spellings(flag, [*ours, *beams]))


def _runner(argv: Sequence[str]) -> str:
    """Returns the chosen runner in lower case, as Beam compares it."""
    for word, following in zip(argv, [*argv[1:], ""], strict=True):
        flag, equals, value = word.partition("=")
        if flag == "--runner":
            name = (value if equals else following).lower().rpartition(".")[2]
            return name if name.endswith("runner") else f"{name}runner"
    return ""


def read_invocation(
    command: str,
    module: CommandModule,
    typed: TypedWords,
    environ: Mapping[str, str],
    declared: DeclaredOptions,
    values_of_program: Mapping[str, Any] = MappingProxyType({}),
) -> tuple[Invocation, CommonOptions]:
    """Returns the invocation.

    An option may have values in several sources; the first one counts: command line or program,
    environment, toml file, default.

    Args:
        command: Name of the command.
        module: Its module.
        typed: The words of the command line.
        environ: The environment.
        declared: The options.
        values_of_program: Values of options, checked, if a Python program calls the command.

    Raises:
        UsageError: A value or name is wrong; the message is one line that quotes it.
    """
    typed_values = {
        name: _parse(declared.options[name], texts)
        for name, texts in typed.values.items()
        if name in declared.options
    } | dict(values_of_program)
    arguments = _arguments(module.ARGUMENTS, typed, declared.options)
    values = without_sources(from_environment(environ, declared))
    config = typed_values.get("config") or environ.get("NUTBEAM_CONFIG")
    try:
        file_values = without_sources(from_file(config, command, declared))
    except ConfigErrors:
        if not getattr(module, "SHOWS_CONFIG", False):
            raise
        file_values = {}
    if not config:
        _refuse_plugin_files(file_values, declared.options)
    values = file_values | values | typed_values
    try:
        common = CommonOptions(**_fields(CommonOptions, values))
        options = module.Options(**_fields(module.Options, values))
        validate(options, values)
        read_plugin_files(plugin_names(options))
    except ValueError as error:
        raise UsageError(one_line(error)) from error
    invocation = Invocation(
        command,
        arguments,
        options,
        typed.beam_args,
        format=common.format,
        table=arguments.get("table"),
        progress=common.progress,
        given_names=frozenset(values),
        typed={name: texts for name, texts in typed.values.items() if name in declared.options}
        | {n: [value_text(declared.options[n], v)] for n, v in values_of_program.items()},
    )
    return invocation, common


def _refuse_plugin_files(values: Mapping[str, Any], options: Mapping[str, Option]) -> None:
    """Refuses plug-ins in files of a toml file that nobody has named.

    Else someone who can write into the working folder could run code, see ``web/base/imports.py``.
    """
    for name, value in values.items():
        if name in options and options[name].plugins:
            texts = (value,) if isinstance(value, str) else value
            for each in (each for text in texts for each in names_in(text)):
                if is_plugin_file(each):
                    raise UsageError(
                        f"nutbeam.toml names a file with code, {each!r} ({name}), which counts only if "
                        "the toml file is named, too: add --config nutbeam.toml"
                    )


def _fields(cls: type, values: Mapping[str, Any]) -> dict[str, Any]:
    return {option.name: values[option.name] for option in options_of(cls) if option.name in values}


def _parse(option: Option, texts: Sequence[str]) -> Any:
    try:
        parsed = [parse_value(option, text) for text in texts]
    except ValueError as error:
        raise UsageError(str(error)) from error
    if option.type is tuple:  # values of repeated flags are joined
        return tuple(item for items in parsed for item in items or ())
    return parsed[-1]


def _arguments(
    declared: Sequence[Argument], typed: TypedWords, options: Mapping[str, Option]
) -> dict[str, Any]:
    rest = list(typed.positionals)
    values: dict[str, Any] = {}
    if rest and declared and declared[0] == TABLE and is_page(rest[0]):
        raise UsageError(
            f"missing argument TABLE before {quote_value(rest[0])}: {_mid_sentence(TABLE.help)}"
        )
    for argument in declared:
        texts = typed.values.get(argument.name, [])
        if argument.nargs in ("*", "+"):
            _refuse_values_of_switches(rest, typed)
            as_option = Option(argument.name, tuple, (), argument.help)
            values[argument.name] = [*_parse(as_option, texts), *rest]
            rest = []
        else:
            values[argument.name] = texts[-1] if texts else rest.pop(0) if rest else None
        if argument.nargs in (None, "+") and not values[argument.name]:
            raise UsageError(
                f"missing argument {argument.name.upper()}: {_mid_sentence(argument.help)}"
            )
    if rest:
        url = is_page(rest[0]) and "url" in options
        hint = "; a URL is given as --url URL" if url else ""
        if values.get("query"):
            words = quote_value(" ".join((values["query"], *rest)))
            hint = f"; a query of several words stands in quotation marks: {words}"
        if not hint:
            _refuse_values_of_switches([*rest, *typed.positionals], typed)
        raise UsageError(f"unexpected argument {quote_value(rest[0])}{hint}")
    return values


def _refuse_values_of_switches(words: Iterable[str], typed: TypedWords) -> None:
    """Refuses a plain word directly after a flag that is true or false, as in ``--deliver maybe``."""
    for word in words:
        if word.isalnum() and (flag := typed.after_switches.get(word)) and not Path(word).exists():
            raise UsageError(f"{flag} must be true or false, got {quote_value(word)}")


def _mid_sentence(text: str) -> str:
    """Returns a help text for the middle of a sentence.

    >>> _mid_sentence("Address of the table."), _mid_sentence("URLs, files.")
    ('address of the table', 'URLs, files')
    """
    text = text.rstrip(".")
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]
