"""Reads the catalogue of metrics: name, type, labels and meaning of each.

The file ``metrics.toml`` declares them. The text for Prometheus, docs/reference/metrics.md, and the tests
of the alert rules and of the dashboard follow it.
"""

import functools
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

_FILE = "metrics.toml"
TABLE_LABEL = "table"


class Metric(NamedTuple):
    """The declaration of a metric.

    Attributes:
        name: Its name, as it is in the text and in queries.
        type: ``counter``, ``gauge`` or ``histogram``.
        help: What it is, in a line.
        labels: Names of its labels; the table is the first one of all.
    """

    name: str
    type: str
    help: str
    labels: tuple[str, ...]


@functools.cache
def metrics_by_section() -> Mapping[str, tuple[Metric, ...]]:
    """Returns the catalogue, by the sections of its page.

    >>> list(metrics_by_section())[:2]
    ['The command', 'The table']
    """
    sections = tomllib.loads(Path(__file__).with_name(_FILE).read_text("utf-8"))
    return {
        title: tuple(
            Metric(name, one["type"], one["help"], (TABLE_LABEL, *one.get("labels", ())))
            for name, one in metrics.items()
        )
        for title, metrics in sections.items()
    }


@functools.cache
def catalogue() -> Mapping[str, Metric]:
    """Returns the metrics by name, in the order of the catalogue.

    >>> catalogue()["nutbeam_urls"].labels
    ('table', 'status')
    """
    every = (metric for metrics in metrics_by_section().values() for metric in metrics)
    return {metric.name: metric for metric in every}
