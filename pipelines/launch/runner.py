"""Runs a pipeline, by default in this process.

``--runner=DirectRunner`` means the in-process FnApiRunner, too: Beam's own
DirectRunner may download another runner.
"""

from collections.abc import Sequence

import apache_beam as beam
from apache_beam.options.pipeline_options import StandardOptions
from apache_beam.runners.runner import PipelineResult, PipelineState

from ...web.base.errors import JobFailed, UsageError, one_line
from .beam_internals import beam_options, in_process_runner, keep_paths_safe, silence_runners
from .failures import causes, user_error

# Runners where a job continues without the command that submitted it.
_CLUSTERS = ("portable", "flink", "spark", "dataflow")
_IN_PROCESS = ("", "direct", "directrunner", "fnapi", "fnapirunner")


def make_pipeline(beam_args: Sequence[str]) -> beam.Pipeline:
    """Returns an empty pipeline for the runner and options in ``beam_args``.

    Raises:
        UsageError: There is no such runner, or an option for it is missing.
    """
    options = beam_options(beam_args)
    runner = (options.view_as(StandardOptions).runner or "").lower().rpartition(".")[2]
    try:
        if runner in _IN_PROCESS:
            return beam.Pipeline(runner=in_process_runner(), options=options)
        silence_runners()
        keep_paths_safe(options)
        return beam.Pipeline(options=options)
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
