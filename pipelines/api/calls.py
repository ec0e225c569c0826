"""Calls a command from Python: with values in place of words, and a value as its result.

A call prints nothing, unless progress is wanted, and leaves nothing behind in the process: no
handlers of signals, no settings of logs or of garbage collection. It may run in any thread.
"""

import contextlib
import dataclasses
import datetime
import functools
import gc
import inspect
import logging
import numbers
import os
import threading
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeVar, cast

from ...web.base.errors import UsageError, UserError, one_line
from ...web.base.memory import collect_seldom
from ...web.base.options import BYTES, DURATIONS, Option, check_value, parse_value
from ...web.base.progress import PROGRESS
from ...web.base.visible import check_utf8
from ...web.base.wording import quote_value
from ..base.command import CommandModule, Invocation
from ..command_line.arguments import TypedWords, command_options, read_invocation, unknown_option
from ..command_line.cli import AllModules, load, option_names
from ..command_line.commands import COMMANDS
from ..command_line.config import DeclaredOptions
from ..command_line.invocations import run_invocation
from ..command_line.messages import failure_message
from .python_wording import in_python

# Options of every command that only say how the command line prints.
PRINTING = ("format", "log_level")
_BEAM_ARGS = "beam_args"
_NUMBERS = ("number", "time")  # such as the number of a snapshot
# Libraries that also log the errors that they raise. To see their logs, set their level.
_LIBRARIES = ("apache_beam", "grpc", "gcsfs", "s3fs", "fsspec", "asyncio")
_SILENCE = logging.NullHandler()
_Method = TypeVar("_Method", bound=Callable[..., Any])
_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")
_counting = threading.Lock()
_calls = 0  # that run now
_as_before = contextlib.ExitStack()


class CallOutcome(NamedTuple):
    """The result of a command.

    Attributes:
        command: The command.
        code: Its exit code.
        records: What it would print as JSON.
    """

    command: str
    code: int
    records: tuple[Mapping[str, Any], ...]


def call_command(command: str, words: Sequence[Any], keywords: Mapping[str, Any]) -> CallOutcome:
    """Runs a command.

    Args:
        command: The command.
        words: Its arguments, in order.
        keywords: Its options by name, ``progress``, and ``beam_args``.

    Raises:
        UserError: With the message that the command line would print, in words of Python.
    """
    records: list[Mapping[str, Any]] = []
    with calling(words[0] if words else ""):
        module, invocation = read_call(command, words, keywords)
        invocation = dataclasses.replace(invocation, take_record=records.append)
        code = run_invocation(module, invocation)
    return CallOutcome(command, code, tuple(records))


@contextlib.contextmanager
def calling(table: Any = "") -> Iterator[None]:
    """Turns errors in the block into those of the documented tree, in words of Python; keeps libraries silent.

    Libraries log only what the program has set a level for.

    Args:
        table: Address of the table, which messages need not name.

    Raises:
        UserError: The block cannot do its work. Defects of nutbeam are raised as they are.
        KeyboardInterrupt: Ctrl-C; its traceback begins at the call.
    """
    _count_call(1)
    try:
        yield
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt(*error.args) from None  # without a hundred lines of Beam
    except Exception as error:
        if not (message := failure_message(error)):
            raise
        message = in_python(one_line(message), table if isinstance(table, str) else "")
        if not isinstance(error, UserError):
            raise UserError(message) from error
        error.args = (message, *error.args[1:])
        raise
    finally:
        _count_call(-1)


def _count_call(number: int) -> None:
    """Counts the calls that run now; the first sets up the process, the last puts that back."""
    global _calls
    with _counting:
        if not _calls:
            _set_up_process()
        _calls += number
        if not _calls:
            _as_before.close()


def _set_up_process() -> None:
    """Keeps libraries silent, and garbage collection rare, until ``_as_before`` is closed."""
    PROGRESS.reset()  # a call that was interrupted has left a phase
    root = logging.getLogger()
    # Without a handler Python prints warnings, and logging.error() sets up one for good.
    root.addHandler(_SILENCE)
    _as_before.callback(root.removeHandler, _SILENCE)
    for logger in map(logging.getLogger, _LIBRARIES):
        if not logger.level:  # else the program has set it
            logger.setLevel(logging.CRITICAL)
            _as_before.callback(logger.setLevel, logging.NOTSET)
    _as_before.callback(gc.set_threshold, *gc.get_threshold())
    collect_seldom()


def read_call(
    command: str,
    words: Sequence[Any],
    keywords: Mapping[str, Any],
    module: CommandModule | None = None,
) -> tuple[CommandModule, Invocation]:
    """Returns the module of a command and its checked invocation.

    As on the command line, the environment and ``nutbeam.toml`` have values of options, too.

    Args:
        command: The command.
        words: Its arguments, in order.
        keywords: Its options by name, ``progress``, and ``beam_args``.
        module: Its module, if only its options count; None loads it.

    Raises:
        UsageError: There is no such option, or a value is wrong.
    """
    module = module or load(command)
    options, rest = _options_of_call(module), dict(keywords)
    beam_args = rest.pop(_BEAM_ARGS, ())
    if beam_args and not COMMANDS[command].beam:
        raise UsageError(f"{command} is no Beam pipeline: leave out {_BEAM_ARGS}")
    if isinstance(beam_args, str):
        raise UsageError(f"{_BEAM_ARGS} must be a list, got {quote_value(beam_args)}")
    for name in sorted(rest.keys() - options.keys()):
        if name in PRINTING:
            raise UsageError(f"{name} is only for the command line: a call returns a value")
        text = str(unknown_option(command, f"--{name}", options))
        raise UsageError(text.replace("'--", "'"))
    try:
        values = {name: value_of_program(options[name], value) for name, value in rest.items()}
    except ValueError as error:
        raise UsageError(str(error)) from error
    values["progress"] = values.get("progress") or False
    declared = DeclaredOptions(command_options(module), COMMANDS, option_names)
    typed = TypedWords(
        positionals=[_text(word) for word in words], beam_args=[_text(arg) for arg in beam_args]
    )
    invocation, _ = read_invocation(command, module, typed, os.environ, declared, values)
    own_words = {name: texts for name, texts in invocation.typed.items() if name in rest}
    return module, dataclasses.replace(
        invocation, format="json", modules=AllModules(), typed=own_words
    )


def _options_of_call(module: CommandModule) -> dict[str, Option]:
    """Returns the options that a program may give, by name."""
    options = command_options(module)
    return {name: option for name, option in options.items() if name not in PRINTING}


def _text(word: Any) -> str:
    if isinstance(word, str | os.PathLike):
        text = os.fspath(word)
        try:
            check_utf8("an argument", text)
        except ValueError as error:
            raise UsageError(str(error)) from error
        return text
    hint = (
        ": give each as an argument of its own, as *seeds" if isinstance(word, list | tuple) else ""
    )
    raise UsageError(f"an argument must be a text or a path, got {quote_value(word)}{hint}")


def value_of_program(option: Option, value: Any) -> Any:
    """Returns a value from a program, checked.

    A text is read as on the command line if it says more than a number: for durations, sizes and lists.
    Paths, whole numbers and times are texts where the option takes them; a list may be any iterable.

    Raises:
        ValueError: One line that names the option and quotes the value.

    >>> delay = Option("server_delay", float, 5.0, "", unit="s", item=float)
    >>> value_of_program(delay, 2), value_of_program(delay, "2m")
    (2.0, 120.0)
    >>> value_of_program(Option("allowed_ports", tuple, (), "", takes="number"), [80, "8000-8999"])
    ('80', '8000-8999')
    >>> value_of_program(Option("rounds", int, 3, "", item=int), "3")
    Traceback (most recent call last):
    ValueError: --rounds must be a whole number, got '3'
    """
    is_read = option.type is tuple or option.unit in DURATIONS or option.unit in BYTES
    if isinstance(value, str) and is_read:
        return parse_value(option, str.__str__(value))
    if option.type is not tuple or value is None:
        return check_value(option, _plain_value(option, value))
    if isinstance(value, Iterable) and not isinstance(value, bytes | Mapping | os.PathLike):
        return check_value(option, [_plain_value(option, each) for each in value])
    alone = _plain_value(option, value)  # such as one path
    return check_value(option, [alone] if isinstance(alone, str) else value)


def _plain_value(option: Option, value: Any) -> Any:
    """Returns a value as text or number, if the option takes it so; else as it is."""
    if isinstance(value, str | os.PathLike):
        return str.__str__(value) if isinstance(value, str) else os.fspath(value)
    if isinstance(value, datetime.timedelta) and option.unit in DURATIONS:
        duration = value.total_seconds() / DURATIONS[option.unit]
        return int(duration) if duration.is_integer() else duration
    if isinstance(value, datetime.date) and option.takes == "time":
        return value.isoformat()  # without an offset it is UTC, as in all texts
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        value = int(value) if isinstance(value, numbers.Integral) else float(value)
        return str(value) if isinstance(value, int) and option.takes in _NUMBERS else value
    return value


class CallWithOptions:
    """A function or method whose signature shows the options of a command, for notebooks and ``help``."""

    def __init__(self, function: Callable[..., Any], command: str) -> None:
        functools.update_wrapper(self, function)
        self._function, self._command = function, command

    def __get__(self, owner: object, kind: type | None = None) -> Any:
        return self if owner is None else types.MethodType(self, owner)

    def __repr__(self) -> str:
        return f"<function {self._function.__qualname__}>"

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self._function(*args, **keywords)

    @property
    def __signature__(self) -> inspect.Signature:
        return call_signature(self._function, self._command)


def call_signature(function: Callable[..., Any], command: str) -> inspect.Signature:
    """Returns the signature of a function, with the options of a command in place of ``**options``."""
    plain = inspect.signature(function)
    shown = [p for p in plain.parameters.values() if p.kind is not p.VAR_KEYWORD]
    names = {parameter.name for parameter in shown}
    named = [
        inspect.Parameter(option.name, inspect.Parameter.KEYWORD_ONLY, default=option.default)
        for option in _options_of_call(load(command)).values()
        if option.name not in names
    ]
    return plain.replace(parameters=[*shown, *named])


def with_options(command: str) -> Callable[[_Method], _Method]:
    """Returns a decorator for a function or method that takes a command's options as ``**options``."""

    def decorate(function: _Method) -> _Method:
        return cast(_Method, CallWithOptions(function, command))

    return decorate


def with_parameters_of(
    other: Callable[_Parameters, Any],
) -> Callable[[Callable[..., _Result]], Callable[_Parameters, _Result]]:
    """Returns a decorator for a function or method that passes its arguments to another one."""

    def decorate(function: Callable[..., _Result]) -> Callable[_Parameters, _Result]:
        returned = inspect.signature(function).return_annotation
        signature = inspect.signature(other).replace(return_annotation=returned)
        function.__signature__ = signature  # type: ignore[attr-defined]
        return function

    return decorate
