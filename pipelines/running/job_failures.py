"""Finds the message of a failed job for its user.

A step in this process raises its exception with a note that names the step. Workers on other machines
send the text of a traceback, which job servers put into their own exceptions.
"""

import contextlib
import importlib
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from ...io.storage.processes import ScratchFull, full_by
from ...web.base.errors import JobFailed, UserError, one_line
from ...web.base.wording import quote_value

_LONGEST = 500
# Beam appends the name of the step to the message of an exception, once for each step.
_STEPS = re.compile(r"(?: \[while running ['\"].*?['\"]\])+\s*$", re.DOTALL)
# An exception as the last part of a traceback: a name at the start of a line, and a message up to
# an empty line, the next traceback, or the stack of a job server in Java.
_END = r"(?=\n\s*\n|\s*\Z|\nDuring|\nThe above|\nTraceback|\n?\s+at [\w.$]+\(|\nCaused by:)"
_RAISED = re.compile(rf"^((?:[a-z_]\w*\.)*[A-Z]\w*)(?:: (.*?))?{_END}", re.MULTILINE | re.DOTALL)
_OURS = re.compile(rf"^\s*(nutbeam(?:\.\w+)+): (.*?){_END}", re.MULTILINE | re.DOTALL)
_JAVA = re.compile(
    rf"^(?:Caused by: )?((?:[a-z]\w*\.)+[A-Z][\w$]*): (.*?){_END}", re.MULTILINE | re.DOTALL
)
_JOB = re.compile(r"^Pipeline \S+ failed in state \w+: (?:bundle \S+ \S+ failed:)?")
_MISSING = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
_FAILURES = "cluster_failures.toml"


@contextlib.contextmanager
def as_job_failures() -> Iterator[None]:
    """Raises what fails in the block as the error for the user, as a pipeline in this process does."""
    try:
        yield
    except Exception as error:
        raise user_error(error) from error


def user_error(error: BaseException, program: str = "") -> UserError:
    """Returns the error of a failed job for the user, without the text that runners add.

    Args:
        error: What was raised.
        program: The program that starts workers, if they are processes.

    >>> user_error(RuntimeError("Traceback ...\\nOSError: disk full [while running 'Write']"))
    JobFailed("OSError: disk full (in step 'Write')")
    """
    for cause in causes(error):
        if isinstance(cause, UserError):
            return type(cause)(_without_steps(str(cause)))
        if isinstance(cause, OSError) and (message := full_by(cause)):
            return ScratchFull(message)
    details = getattr(error, "details", None)
    if callable(details) and callable(getattr(error, "code", None)):  # an error of gRPC
        line = _line("the job server failed", str(details() or error))
        return JobFailed(f"{line}; a job that it had begun may go on where it runs")
    message = " ".join([str(error), *getattr(error, "__notes__", ())])
    if isinstance(error, RuntimeError) or "Traceback (most recent call last)" in message:
        return from_text(message, program)
    return JobFailed(_meaning(message, program) or _line(type(error).__name__, message))


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yields an exception and its causes; Beam's copies have a context instead of a cause."""
    while error is not None:
        yield error
        copied = "[while running " in str(error)
        error = error.__cause__ or (error.__context__ if copied else None)


def from_text(text: str, program: str = "") -> UserError:
    """Returns the error in the text of a failure, for runners with other processes.

    The first that is found counts: an error of nutbeam, a failure with a known meaning,
    the last exception in Python, the innermost cause in Java.
    """
    text = _JOB.sub("", text)
    for match in reversed(list(_OURS.finditer(text))):
        module, _, short = match[1].rpartition(".")
        kind = None
        with contextlib.suppress(ImportError):
            kind = getattr(importlib.import_module(module), short, None)
        if isinstance(kind, type) and issubclass(kind, UserError):
            return kind(_without_steps(match[2]))
    meaning = _meaning(text, program)
    if meaning:
        return JobFailed(meaning)
    if "Traceback" in text:
        raised = list(_RAISED.finditer(text))
        if raised:
            return JobFailed(_line(raised[-1][1].rpartition(".")[2], raised[-1][2] or ""))
    java = list(_JAVA.finditer(text))
    if java:
        return JobFailed(_line(java[-1][1].rpartition(".")[2], java[-1][2]))
    return JobFailed(_line("", text.strip()) or "no reason was given")


def _meaning(text: str, program: str) -> str | None:
    missing = _MISSING.findall(text)
    if missing:
        package = missing[-1].partition(".")[0]
        ours = package == "nutbeam"
        remedy = "leave out --deliver false" if ours else f"--plugin_package {package}"
        return (
            f"package {missing[-1]!r} is missing on the workers: {remedy}, "
            "or install it in their image"
        )
    file = tomllib.loads(Path(__file__).with_name(_FAILURES).read_text("utf-8"))
    matches = ((re.search(row["pattern"], text), row["meaning"]) for row in file["failures"])
    meaning = next((match.expand(meaning) for match, meaning in matches if match), None)
    return meaning and meaning.replace("PROGRAM", quote_value(program))


def _without_steps(message: str) -> str:
    return one_line(_STEPS.sub("", message))


def _line(name: str, message: str) -> str:
    steps = re.findall(r"\[while running ['\"](.*?)['\"]\]", message)
    step = f" (in step {steps[0]!r})" if steps else ""
    text = ": ".join(part for part in (name, _without_steps(message)) if part)
    return text[:_LONGEST] + step
