"""Beam's in-process runner, without what makes a short pipeline slow.

Beam 2.77 looks for user state in every method of every DoFn at each start of a
stage, and at its end waits for a thread that sleeps a tenth of the stage's
time. In a round of a crawl that finds little to do this was half of the cost.
"""

import contextlib
import copy
import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability import python_urns
from apache_beam.portability.api import beam_runner_api_pb2
from apache_beam.runners.portability.fn_api_runner.fn_runner import FnApiRunner, RunnerResult
from apache_beam.runners.worker.statesampler import StateSampler
from apache_beam.transforms import userstate

from ...transforms.spill import spilling
from ...web.base.terminal import Relay

_SAMPLING_PERIOD_MS = 2
_state_specs: dict[Any, Any] = {}
_look, _defaults = userstate.get_dofn_specs, StateSampler.__init__.__defaults__
_setting = threading.Lock()
_hurrying = 0


class InProcessRunner(FnApiRunner):
    """Beam's in-process runner: quiet worker processes, and cheap second runs.

    A pipeline that is run again is not translated again, which in a crawl's
    rounds is most of what a start costs.
    """

    _translated: beam_runner_api_pb2.Pipeline | None = None

    def run_pipeline(self, pipeline: beam.Pipeline, options: PipelineOptions) -> RunnerResult:
        if self._translated is None:
            with hurried():
                return super().run_pipeline(pipeline, options)
        return self.run_via_runner_api(self._translated, options)

    def run_via_runner_api(
        self, pipeline_proto: beam_runner_api_pb2.Pipeline, options: PipelineOptions
    ) -> RunnerResult:
        environments = pipeline_proto.components.environments.values()
        elsewhere = [env for env in environments if env.urn == python_urns.SUBPROCESS_SDK]
        alone = spilling() if not elsewhere else contextlib.nullcontext()
        with hurried(), alone, _errors(bool(elsewhere)) as errors:
            for environment in elsewhere:
                command = environment.payload.removeprefix(b"exec ").partition(b" 2>")[0]
                environment.payload = b"exec " + command + errors
            self._translated = copy.deepcopy(pipeline_proto)  # running changes it
            return super().run_via_runner_api(pipeline_proto, options)


@contextlib.contextmanager
def _errors(elsewhere: bool) -> Iterator[bytes]:
    """Yields the end of a shell's command that says where a worker's standard error goes.

    A worker writes its start-up log there, whatever the log level.

    Args:
        elsewhere: Whether there are workers in processes of their own.
    """
    if not (elsewhere and _verbose()):
        yield b" 2>/dev/null"
        return
    relay = Relay()
    try:
        # By name: Beam starts workers without our descriptors.
        name = f" 2>/proc/{os.getpid()}/fd/{relay.stderr}"
        yield name.encode() if relay.stderr is not None and Path("/proc").is_dir() else b""
    finally:
        relay.close()


@contextlib.contextmanager
def hurried() -> Iterator[None]:
    """Remembers what kinds of DoFns have user state, and samples times more often.

    Pipelines may be built and run in several threads: the last one sets it back.
    """
    global _hurrying
    with _setting:
        _hurrying += 1
        userstate.get_dofn_specs = _remembered
        # At a stage's end Beam waits until the sampler wakes up.
        StateSampler.__init__.__defaults__ = (_SAMPLING_PERIOD_MS,)
    try:
        yield
    finally:
        with _setting:
            _hurrying -= 1
            if not _hurrying:
                userstate.get_dofn_specs = _look
                StateSampler.__init__.__defaults__ = _defaults


def _remembered(dofn: beam.DoFn) -> Any:
    # A function's DoFn has the function's own parameters.
    kind = type(dofn), getattr(getattr(dofn, "_fn", None), "__code__", None)
    if kind not in _state_specs:
        _state_specs[kind] = _look(dofn)
    return _state_specs[kind]


def _verbose() -> bool:
    return logging.getLogger().isEnabledFor(logging.INFO)
