"""Runs a pipeline, in this process unless another runner is named.

``--runner=DirectRunner`` means the in-process FnApiRunner too: Beam's own
DirectRunner may go and download another one.
"""

import argparse
import importlib
import re
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn, TypeVar

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions
from apache_beam.runners.runner import PipelineResult, PipelineState

from ..web.errors import JobFailed, UsageError, UserError
from .in_process import InProcessRunner

View = TypeVar("View", bound=PipelineOptions)
_IN_PROCESS = ("", "direct", "directrunner", "fnapi", "fnapirunner")
# Beam appends the step to the message of an exception, once per step it passed.
_STEPS = re.compile(r"(?: \[while running ['\"].*?['\"]\])+\s*$", re.DOTALL)
# The last part of a traceback: a name at the start of a line, and a message to its end.
_RAISED = re.compile(
    r"^((?:[a-z_]\w*\.)*[A-Z]\w*)(?:: (.*?))?(?=\n\n|\Z|\nDuring|\nThe above)",
    re.MULTILINE | re.DOTALL,
)


def beam_parser() -> argparse.ArgumentParser:
    """Returns a parser of all of Beam's options, which raises ``UsageError``."""
    parser = _BeamParser(add_help=False, allow_abbrev=False)
    for options in PipelineOptions.__subclasses__():
        if options.__module__.startswith("apache_beam."):
            options._add_argparse_args(parser)  # type: ignore[arg-type]
    return parser


class _BeamParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(" ".join(message.split()))


def make_pipeline(beam_args: Sequence[str]) -> beam.Pipeline:
    """Returns an empty pipeline for the runner and options in ``beam_args``.

    Raises:
        UsageError: No such runner, or one that lacks an option.
    """
    options = _Options(list(beam_args))
    runner = (options.view_as(StandardOptions).runner or "").lower().rpartition(".")[2]
    try:
        if runner in _IN_PROCESS:
            return beam.Pipeline(runner=InProcessRunner(), options=options)
        return beam.Pipeline(options=options)
    except (ValueError, RuntimeError, ImportError) as error:
        raise UsageError(" ".join(str(error).split())) from error


class _Options(PipelineOptions):
    """Options whose views are made once: Beam asks for one at each step of a pipeline."""

    def __init__(self, flags: Sequence[str] | None = None, **kwargs: Any) -> None:
        super().__init__(flags, **kwargs)
        self.__dict__["_views"] = {}

    def view_as(self, cls: type[View]) -> View:
        views: dict[type, Any] = self.__dict__["_views"]
        if cls not in views:
            views[cls] = super().view_as(cls)
        return views[cls]


def run_pipeline(pipeline: beam.Pipeline) -> PipelineResult:
    """Runs a pipeline to its end, or only submits it with ``--no_wait_until_finish``.

    Raises:
        UserError: Raised by a worker, with its own message and exit code.
        JobFailed: The job failed for another reason: its innermost, in one line.
    """
    try:
        # Its round trip through the runner API costs time in every round of a crawl.
        result = pipeline.run(test_runner_api=False)
        if not pipeline._options.view_as(StandardOptions).no_wait_until_finish:
            result.wait_until_finish()
    except Exception as error:
        if any(isinstance(cause, KeyboardInterrupt) for cause in _causes(error)):
            raise KeyboardInterrupt from error  # Beam makes an error of it
        raise user_error(error) from error
    if result.state in (PipelineState.FAILED, PipelineState.CANCELLED):
        raise JobFailed(f"the job ended as {result.state.lower()}")
    return result


def user_error(error: BaseException) -> UserError:
    """Returns what a failed job has to say to the user, without what Beam wraps around it.

    >>> user_error(RuntimeError("Traceback ...\\nOSError: disk full [while running 'Write']"))
    JobFailed("OSError: disk full (in step 'Write')")
    """
    for cause in _causes(error):
        if isinstance(cause, UserError):
            return type(cause)(_without_steps(str(cause)))
    message = str(error)
    if isinstance(error, RuntimeError) and "Traceback" in message:
        return _from_traceback(message)
    return JobFailed(_line(type(error).__name__, message))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yields an exception and what caused it; Beam's copy of one has no cause but a context."""
    while error is not None:
        yield error
        copied = "[while running " in str(error)
        error = error.__cause__ or (error.__context__ if copied else None)


def _from_traceback(text: str) -> UserError:
    """Reads the exception off the text of a traceback, as other processes send it."""
    raised = list(_RAISED.finditer(text))
    if not raised:
        return JobFailed(_line("", text.strip().splitlines()[-1]))
    name, message = raised[-1][1], raised[-1][2] or ""
    module, _, short = name.rpartition(".")
    if module.startswith("nutbeam."):
        kind = getattr(importlib.import_module(module), short, None)
        if isinstance(kind, type) and issubclass(kind, UserError):
            return kind(_without_steps(message))
    return JobFailed(_line(short, message))


def _without_steps(message: str) -> str:
    return " ".join(_STEPS.sub("", message).split())


def _line(name: str, message: str) -> str:
    steps = re.findall(r"\[while running ['\"](.*?)['\"]\]", message)
    step = f" (in step {steps[0]!r})" if steps else ""
    text = ": ".join(part for part in (name, _without_steps(message)) if part)
    return text[:500] + step
