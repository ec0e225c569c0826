"""Runs a pipeline, by default in this process, over conflicts, and finds the message of a failure.

``--runner=DirectRunner`` means the in-process FnApiRunner, too: Beam's own
DirectRunner may download another runner.

An in-process worker raises its exception unchanged. Workers on other machines
send the text of a traceback, which job servers put into their own exceptions.
"""

import contextlib
import importlib
import logging
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import apache_beam as beam
import numpy as np
import polars as pl
from apache_beam.options.pipeline_options import StandardOptions
from apache_beam.runners.runner import PipelineResult, PipelineState

from ...io.snapshots.manifest import Manifest, load_manifest, purged_since
from ...io.snapshots.operations import pinned_operation
from ...io.storage.file_errors import BatchMovedOn, ConflictError, PurgedMeanwhile
from ...io.storage.processes import ScratchFull, full_by
from ...io.table.opening import open_table
from ...web.base.errors import JobFailed, UsageError, UserError, one_line
from .beam_internals import (
    beam_options,
    in_process_runner,
    keep_paths_safe,
    new_pipeline,
    silence_runners,
)

# Runners where a job continues without the command that submitted it.
_CLUSTERS = ("portable", "flink", "spark", "dataflow")
IN_PROCESS = ("", "direct", "directrunner", "fnapi", "fnapirunner")


def make_pipeline(beam_args: Sequence[str]) -> beam.Pipeline:
    """Returns an empty pipeline for the runner and options in ``beam_args``.

    Raises:
        UsageError: There is no such runner, or an option for it is missing.
    """
    # polars loads numpy when it meets the first array, and must not do so in two threads at once.
    pl.Series(np.empty(0))
    options = beam_options(beam_args)
    runner = (options.view_as(StandardOptions).runner or "").lower().rpartition(".")[2]
    try:
        if runner in IN_PROCESS:
            return new_pipeline(options, in_process_runner())
        silence_runners()
        keep_paths_safe(options)
        return new_pipeline(options)
    except (ValueError, RuntimeError, ImportError) as error:
        raise UsageError(one_line(error)) from error


def run_pipeline(pipeline: beam.Pipeline) -> PipelineResult:
    """Runs a pipeline to its end, or only submits it with ``--no_wait_until_finish``.

    Raises:
        UserError: A worker has raised it, with its own message and exit code.
        JobFailed: The job failed for another reason; the message is the innermost cause.
    """
    try:
        # The test's round trip through the runner API costs time in every round of a crawl.
        result = pipeline.run(test_runner_api=False)
        if waits(pipeline):
            result.wait_until_finish()
    except KeyboardInterrupt as error:
        raise _interrupt_error(pipeline) from error
    except Exception as error:
        if any(isinstance(cause, KeyboardInterrupt) for cause in causes(error)):
            raise _interrupt_error(pipeline) from error  # Beam has converted the interrupt
        raise user_error(error) from error
    if result.state in (PipelineState.FAILED, PipelineState.CANCELLED):
        raise JobFailed(f"the job ended as {result.state.lower()}")
    return result


def _interrupt_error(pipeline: beam.Pipeline) -> KeyboardInterrupt:
    runner = str(pipeline.options.view_as(StandardOptions).runner or "").lower()
    words = ["a job that was submitted goes on: cancel it where it runs"]
    return KeyboardInterrupt(*(words if runner.startswith(_CLUSTERS) else []))


def only_submits(beam_args: Sequence[str]) -> bool:
    """Returns whether the command only submits jobs, which continue after it has ended."""
    return bool(beam_options(beam_args).view_as(StandardOptions).no_wait_until_finish)


def waits(pipeline: beam.Pipeline) -> bool:
    """Returns whether ``run_pipeline`` waits for the end of a pipeline."""
    return not pipeline.options.view_as(StandardOptions).no_wait_until_finish


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


def user_error(error: BaseException) -> UserError:
    """Returns the error of a failed job for the user, without the text that runners add.

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
    message = str(error)
    if isinstance(error, RuntimeError) or "Traceback (most recent call last)" in message:
        return from_text(message)
    return JobFailed(_meaning(message) or _line(type(error).__name__, message))


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yields an exception and its causes; Beam's copies have a context instead of a cause."""
    while error is not None:
        yield error
        copied = "[while running " in str(error)
        error = error.__cause__ or (error.__context__ if copied else None)


def from_text(text: str) -> UserError:
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
    meaning = _meaning(text)
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


def _meaning(text: str) -> str | None:
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
    return next((match.expand(meaning) for match, meaning in matches if match), None)


def _without_steps(message: str) -> str:
    return one_line(_STEPS.sub("", message))


def _line(name: str, message: str) -> str:
    steps = re.findall(r"\[while running ['\"](.*?)['\"]\]", message)
    step = f" (in step {steps[0]!r})" if steps else ""
    text = ": ".join(part for part in (name, _without_steps(message)) if part)
    return text[:_LONGEST] + step


_LOG = logging.getLogger("nutbeam")


def run_over_conflicts(pipeline: beam.Pipeline, address: str, launched: str) -> None:
    """Runs a pipeline; repeats it if a phase has failed because of a purge or of another crawl.

    The failed phase has changed nothing. It starts again on the changed table, and is skipped if
    the other crawl has done its work.

    Args:
        pipeline: The pipeline.
        address: Address of the table.
        launched: Id of the launch, to recognize commits of others.
    """
    table = open_table(address)
    while True:
        seen = table.latest_snapshot()
        try:
            run_pipeline(pipeline)
            return
        except (ConflictError, PurgedMeanwhile) as error:
            if purged_since(table, seen):
                other = "a purge"
            elif _others_since(address, launched, seen):
                other = "another crawl or job"
            else:
                raise
            _LOG.warning("%s has committed first, the phase is run again: %s", other, error)


def run_over_batches(pipeline: beam.Pipeline) -> None:
    """Runs the pipeline of one job; runs it again if another job has done its work on the batch.

    This ends, because the second run finds the batch past its phase, and has nothing to do.
    """
    while True:
        try:
            run_pipeline(pipeline)
            return
        except BatchMovedOn as error:
            _LOG.warning("%s; looking again", error)


def look_again(work: Callable[[], int], address: str) -> int:
    """Does the next work of a table; looks again if another job has committed first.

    Args:
        work: Finds the next work, does it, and returns the exit code.
        address: Address of the table.
    """
    table = open_table(address)
    while True:
        seen = table.latest_snapshot()
        try:
            return work()
        except (ConflictError, PurgedMeanwhile) as error:
            if table.latest_snapshot() == seen:
                raise
            _LOG.warning("%s; looking again for the next phase", error)


def _others_since(address: str, launched: str, seen: int) -> bool:
    """Returns whether other launches have made snapshots after snapshot ``seen``."""
    number = open_table(address).latest_snapshot() - seen
    return number > len(manifests_of_launch(address, launched, seen))


def manifests_of_launch(address: str, launched: str, seen: int) -> list[Manifest]:
    """Returns the manifests of a launch's snapshots after snapshot ``seen``."""
    return [m for m in _manifests_since(address, seen) if m.operation.startswith(f"{launched}.")]


def manifests_of_others(address: str, launched: str) -> list[Manifest]:
    """Returns the manifests of the snapshots that others have made since a crawl was launched."""
    pinned = pinned_operation(address, f"{launched}.crawl")
    manifests = _manifests_since(address, pinned.snapshot) if pinned else []
    return [m for m in manifests if not m.operation.startswith(f"{launched}.")]


def _manifests_since(address: str, seen: int) -> list[Manifest]:
    table = open_table(address)
    numbers = [number for number in table.snapshots() if number > seen]
    return [load_manifest(table, number) for number in numbers]
