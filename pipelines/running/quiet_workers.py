"""Runs a pipeline in worker processes on this machine, by Beam's runner."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability import python_urns
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

from ...web.base.terminal import Relay
from .beam_internals import is_verbose


class QuietWorkers(FnApiRunner):
    """Beam's runner with worker processes on this machine, which print no start-up logs."""

    def run_via_runner_api(self, pipeline_proto: Any, options: PipelineOptions) -> Any:
        with _worker_errors() as errors:
            for environment in pipeline_proto.components.environments.values():
                if environment.urn == python_urns.SUBPROCESS_SDK:
                    command = environment.payload.removeprefix(b"exec ").partition(b" 2>")[0]
                    environment.payload = b"exec " + command + errors
            return super().run_via_runner_api(pipeline_proto, options)


@contextlib.contextmanager
def _worker_errors() -> Iterator[bytes]:
    """Yields the end of a shell command that redirects the standard error of a worker.

    A worker writes its start-up log there, whatever the log level.
    """
    if not is_verbose():
        yield b" 2>/dev/null"
        return
    relay = Relay()
    try:
        # By name, because workers do not inherit the file descriptors of this process.
        name = f" 2>/proc/{os.getpid()}/fd/{relay.stderr}"
        yield name.encode() if relay.stderr is not None and Path("/proc").is_dir() else b""
    finally:
        relay.close()
