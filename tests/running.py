"""Runs pipelines in tests, in-process.

By name: Beam's DirectRunner may go looking for a Prism binary, and so does
``[...] | transform``, which runs on it.
"""

from collections.abc import Callable
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

_FOUND: dict[str, list[Any]] = {}


def run(build: Callable[[beam.Pipeline], Any]) -> Any:
    """Runs a pipeline and returns the elements of what ``build`` returns.

    Args:
        build: Returns a collection, or a dict of collections.

    Returns:
        A list of elements, or a dict of lists.
    """
    _FOUND.clear()
    # No options: Beam would take those that pytest was started with.
    with beam.Pipeline("FnApiRunner", options=PipelineOptions([])) as pipeline:
        built = build(pipeline)
        named = built if isinstance(built, dict) else {"": built}
        for name, collection in named.items():
            _FOUND[name] = []
            collection | f"Keep {name}" >> beam.Map(_keep, name)
    return {name: _FOUND[name] for name in named} if isinstance(built, dict) else _FOUND[""]


def apply(elements: list[Any], transform: beam.PTransform) -> Any:
    """Runs one transform on a list of elements."""
    return run(lambda pipeline: pipeline | beam.Create(elements) | transform)


def _keep(element: Any, name: str) -> None:
    _FOUND[name].append(element)
