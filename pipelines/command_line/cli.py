"""The ``nutbeam`` command: ``nutbeam COMMAND TABLE [arguments] [--option value] [Beam options]``.

Exit codes: 0 done; 1 nothing to do; 2 bad usage or configuration; 3 the job failed and the table is
unchanged, or a server does not answer; 4 a crawl ran, but no page was fetched; 130 interrupted by
Ctrl-C, SIGTERM or SIGHUP. A job that was submitted to a cluster continues there when the command
ends.
"""

import atexit
import contextlib
import dataclasses
import importlib
import itertools
import logging
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NoReturn, cast

from ...web.base import json_logs
from ...web.base.errors import UsageError
from ...web.base.imports import safe_environment
from ...web.base.memory import collect_seldom, keep_modules, share_heaps
from ...web.base.terminal import NOTICE, LineFormatter, close_views, pass_records, visible_streams
from ...web.base.visible import check_utf8
from ...web.base.wording import quote_value
from ..as_in_nutch.nutch_grammar import answer_to, find_command, may_be_nutch_line, own_command
from ..base.beam_flags import beam_parser, takes_value
from ..base.command import CommandModule, configuration, is_page
from ..base.ending import ENDING, INTERRUPTED, watch_signals
from ..base.suggestions import suggestion
from ..running.beam_import import deferred_connectors
from .arguments import (
    command_options,
    names_of_options,
    read_invocation,
    split,
    unknown_option,
)
from .commands import COMMANDS, overview
from .config import DeclaredOptions, listed_options
from .foreign_names import command_hint, unsupported_commands
from .help_pages import help_page
from .invocations import do_nothing, run_invocation
from .messages import (
    failure_message,
    print_line,
    print_notice,
    print_traceback,
    reader_left,
)

_NUTCH_HOME = re.compile(r".*/(?=bin/(?:nutch|crawl)$)")  # scripts of Nutch, by their paths
_READERS = ("readdb", "pages", "export")  # read-only commands with Beam options
_GO_ON = "the table is whole, and what was fetched is kept: run the same command again to go on"


def script() -> NoReturn:
    """Runs the command of this process, and ends the process at once.

    A normal exit of Python takes 0.3 s, because it frees the memory of all modules.
    """
    words = sys.argv[1:]
    command = words[0] if words and words[0] in COMMANDS else ""
    with visible_streams():  # threads may print until the end
        watch_signals(lambda message: _ended_by_force(command, message))
        helped = words[:1] == ["help"] and words[1:2]  # help imports the command, too
        if command or helped:  # the import of Beam takes a second or more
            NOTICE.show(f"nutbeam {command or ' '.join(words[:2])}: starting ...", sys.stderr)
        os.environ |= safe_environment(os.environ)  # also for worker processes of runners
        code = main(words)
        ENDING.finish(code)
        NOTICE.clear()
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        atexit._run_exitfuncs()
        os._exit(code)


def _ended_by_force(command: str, message: str) -> None:
    """Prints why this process is ended in the middle of its work."""
    close_views()  # it would leave the cursor hidden
    print_line(command, message, INTERRUPTED)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; prints one line if it fails; returns its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    # Streams that the parent process has closed are empty.
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: PTH123, SIM115
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115
    command = words[0] if words and words[0] in COMMANDS else ""
    share_heaps()
    collect_seldom()
    with visible_streams():
        return _run_guarded(command, words)


def _run_guarded(command: str, words: list[str]) -> int:
    if _asks_for_json(words):  # usage errors, too, are for a log collector
        quiet(logging.WARNING)
        json_logs.install()
    try:
        code = _run(command, words)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt as error:
        return _report_interrupt(command, *map(str, error.args))
    except Exception as error:  # noqa: BLE001 (the last resort: a defect is one line too)
        # Worker processes get the signal, too, and may fail first.
        return _report_interrupt(command) if ENDING.signalled else _report_failure(command, error)
    finally:
        json_logs.uninstall()  # another command of this process may use text


def _asks_for_json(words: Sequence[str]) -> bool:
    """Returns whether the command line or the environment asks for logs as JSON."""
    log_format = os.environ.get("NUTBEAM_LOG_FORMAT", "")
    for word, following in itertools.pairwise([*words, ""]):
        flag, equals, value = word.partition("=")
        if flag.replace("-", "_") == "__log_format":
            log_format = value if equals else following
    return log_format == "json"


def _report_interrupt(command: str, *words: str) -> int:
    """Prints that a command was interrupted, and how to continue."""
    job = command in COMMANDS and COMMANDS[command].beam and command not in _READERS
    return print_line(command, "; ".join(["interrupted", *(words or [_GO_ON] * job)]), INTERRUPTED)


def _report_failure(command: str, error: Exception) -> int:
    """Prints why a command failed; returns its exit code."""
    if isinstance(error, BrokenPipeError) and reader_left():
        return 0
    if reason := failure_message(error):
        print_traceback()
        declared_code = COMMANDS[command].error_code if command else 0
        return print_line(command, reason, declared_code or getattr(error, "exit_code", 3))
    print_line(command, f"internal error: {type(error).__name__}: {error}", 3)
    if not print_traceback():
        print("set NUTBEAM_DEBUG=1 for the traceback", file=sys.stderr)
    return 3


def load(command: str) -> CommandModule:
    """Imports the module of a command."""
    # By name, never run as __main__: its definitions then pickle as
    # nutbeam.pipelines.MODULE.NAME, which a worker can import.
    with deferred_connectors():
        module = importlib.import_module(COMMANDS[command].file)
    _, _, parts = COMMANDS[command].module.partition(":")
    return cast(CommandModule, getattr(module, parts) if parts else module)


class AllModules(Mapping[str, CommandModule]):
    """The modules of all commands; each is imported when it is asked for."""

    def __getitem__(self, command: str) -> CommandModule:
        return load(command)

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


def option_names(command: str) -> set[str]:
    """Returns the names of the options of a command; none if it is not installed."""
    return names_of_options(AllModules(), command)


def _run(command: str, words: list[str]) -> int:
    with configuration():
        for word in words:
            check_utf8("an argument", word)
    if not command:
        return _without_command(words)
    quiet(logging.WARNING)
    if may_be_nutch_line(command, words[1:], is_ours=True):
        return _run_as_in_nutch(command, words[1:])
    return _run_own(command, words[1:])


def _run_as_in_nutch(typed_name: str, words: list[str]) -> int:
    """Runs a line that may be one of Nutch; shows what it is in nutbeam, if it is another one."""
    from ..as_in_nutch.nutch_lines import OwnLine, Translation, translate_line
    from ..as_in_nutch.nutch_words import OwnCommand
    from ..nutch_conf.nutch_properties import convert_property

    name = find_command(typed_name) or typed_name
    command = own_command(name)
    module = load(command)
    options = command_options(module)
    names = [*options, *(argument.name for argument in module.ARGUMENTS)]
    own = OwnCommand(
        options, module.ARGUMENTS, takes_value if COMMANDS[command].beam else lambda _: False,
        lambda flag: str(unknown_option(command, flag, names)),
        lambda option: listed_options().get(option, frozenset()), convert_property,
    )  # fmt: skip
    translation = translate_line(name, words, own)
    if translation is None and typed_name == command:
        return _run_own(command, words)
    translation = translation or Translation((OwnLine((command, *words)),))
    notes = "".join(f"{note}; " for note in translation.notes)

    def announce() -> None:
        print_notice(command, f"as in Nutch; {notes}here it is: {translation}")
        if translation.folder:
            Path(translation.folder).mkdir(parents=True, exist_ok=True)

    for number, line in enumerate(translation.lines):
        code = _run_own(
            line.words[0], line.words[1:], do_nothing if number else announce, line.output
        )
        if code:
            return code
    return 0


def _run_own(
    command: str,
    words: Sequence[str],
    before_run: Callable[[], None] = do_nothing,
    output: str = "",
) -> int:
    """Runs a command line of nutbeam.

    Args:
        command: The command.
        words: The words after it.
        before_run: Is called when the line is checked.
        output: File for what is printed; empty for standard output.
    """
    if words in (["--help"], ["-h"]) and (page := help_page(command)):
        print(page, end="")
        return 0
    module = load(command)
    keep_modules()
    options = command_options(module)
    parser = beam_parser if COMMANDS[command].beam else None
    typed = split(words, options, module.ARGUMENTS, parser, command)
    if typed.help:
        from .usage import command_help, command_help_all

        text = command_help if typed.help == "usual" else command_help_all
        print(text(command, COMMANDS[command], module), end="")
        return 0
    declared = DeclaredOptions(options, COMMANDS, option_names)
    invocation, common = read_invocation(command, module, typed, os.environ, declared)
    invocation = dataclasses.replace(invocation, modules=AllModules())
    log_format = getattr(invocation.options, "log_format", "text")
    quiet(_log_level(common.log_level, log_format))
    if log_format == "json":
        json_logs.install()
        if invocation.progress is None:  # progress lines are not JSON
            invocation = dataclasses.replace(invocation, progress=False)
    if invocation.format != "text":
        pass_records()
    formats = getattr(module, "FORMATS", ("text", "json"))
    if common.format not in formats:
        raise UsageError(
            f"--format must be {' or '.join(formats)} for {command}, got {common.format!r}"
        )
    return run_invocation(module, invocation, before_run, output)


def _without_command(words: list[str]) -> int:
    first = _NUTCH_HOME.sub("", words[0]) if words else ""
    if first.lower() in ("nutch", "bin/nutch") and words[1:]:
        return _run(words[1] if words[1] in COMMANDS else "", words[1:])
    if first == "nutch" or words[:2] == ["help", "nutch"]:
        from ..as_in_nutch.nutch_pages import nutch_text

        print(nutch_text(unsupported_commands()), end="")
        return 0
    if first == "help" and words[1:]:
        command = words[1] if words[1] in COMMANDS else find_command(words[1])
        if command is None:
            raise _unknown_command(words[1])
        return _run_own(own_command(command), ["--help", *words[2:]])
    if first in ("-h", "--help", "--help_all", "help"):
        print(overview(COMMANDS), end="")
        return 0
    if first == "--version":
        from importlib.metadata import version

        print(f"nutbeam {version('nutbeam')}")
        return 0
    if first and find_command(first):
        quiet(logging.WARNING)
        return _run_as_in_nutch(first, words[1:])
    if not words:
        raise UsageError(
            "a command is missing; nutbeam --help lists them; to crawl a site, use nutbeam crawl"
        )
    raise _unknown_command(first)


def _unknown_command(name: str) -> UsageError:
    if is_page(name):
        advice = f"; to crawl a site: nutbeam crawl TABLE {name}"
    elif hint := command_hint(name) or answer_to(name):
        advice = f", a command of Nutch; {hint}"
    else:
        advice = suggestion(name, COMMANDS) or "; nutbeam --help lists the commands"
    return UsageError(f"unknown command {quote_value(name)}{advice}")


def quiet(level: int) -> None:
    """Sets the level of nutbeam's logs; shows those of other packages only at the level debug."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(handlers=[handler])
    verbose = level <= logging.DEBUG
    logging.getLogger().setLevel(logging.INFO if verbose else max(level, logging.ERROR))
    logging.getLogger("nutbeam").setLevel(level)
    # They also raise the errors that they log, so no error is lost.
    for name in ("apache_beam", "grpc", "gcsfs", "s3fs", "fsspec", "asyncio"):
        logging.getLogger(name).setLevel(logging.INFO if verbose else logging.CRITICAL)
    if not verbose:
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")
        warnings.simplefilter("ignore")


def _log_level(name: str | None, log_format: str) -> int:
    """Returns the level of logs: what was typed, else info for JSON, warning for text."""
    level = name or ("info" if log_format == "json" else "warning")
    return int(getattr(logging, level.upper()))
