"""Runs pipelines in tests, in this process unless ``NUTBEAM_TEST_RUNNER`` names another runner.

By name: Beam's DirectRunner may go looking for a Prism binary, and so does
``[...] | transform``, which runs on it.
"""

import os
import pickle
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from here import ROOT

TOOLS = Path(os.environ.get("NUTBEAM_TOOLS") or ROOT / "build" / "tools")
PRISM = TOOLS / "prism"
NO_PRISM = f"no Prism at {PRISM}: make test-prism builds it"

# What Beam is told for each runner.
RUNNERS = {
    "": [],
    "bundles": ["--runner=BundleBasedDirectRunner"],
    "prism": ["--runner=PrismRunner", f"--prism_location={PRISM}", "--job_server_timeout=36000"],
    "processes": ["--direct_running_mode=multi_processing", "--direct_num_workers=2"],
}
RUNNER = os.environ.get("NUTBEAM_TEST_RUNNER", "")
BEAM_ARGS = RUNNERS[RUNNER]
# What the ValueError of a step becomes: Prism quotes it in an error of its own.
STEP_FAILED = (ValueError, RuntimeError)


def run(build: Callable[[beam.Pipeline], Any], pipeline: beam.Pipeline | None = None) -> Any:
    """Runs a pipeline and returns the elements of what ``build`` returns.

    Args:
        build: Returns a collection, or a dict of collections.
        pipeline: An empty pipeline; None makes one.

    Returns:
        A list of elements, or a dict of lists.
    """
    # Not without options: Beam would take those that pytest was started with.
    options = PipelineOptions(BEAM_ARGS)
    runner = "FnApiRunner" if RUNNER in ("", "processes") else None
    pipeline = pipeline or beam.Pipeline(runner, options=options)
    with tempfile.TemporaryDirectory() as folder:
        with pipeline:
            built = build(pipeline)
            named = dict(built) if isinstance(built, dict) else {"": built}
            for name, collection in named.items():
                (Path(folder) / f"-{name}").mkdir()
                collection | f"Keep {name}" >> beam.Map(_keep, f"{folder}/-{name}")
        found = {name: _kept(Path(folder) / f"-{name}") for name in named}
    return found if isinstance(built, dict) else found[""]


def apply(elements: list[Any], transform: beam.PTransform) -> Any:
    """Runs one transform on a list of elements."""
    return run(lambda pipeline: pipeline | beam.Create(elements) | transform)


def _keep(element: Any, folder: str) -> None:
    path = Path(folder) / f"{time.monotonic_ns():020}-{uuid.uuid4().hex}"
    path.write_bytes(pickle.dumps(element))


def _kept(folder: Path) -> list[Any]:
    return [pickle.loads(path.read_bytes()) for path in sorted(folder.iterdir())]
