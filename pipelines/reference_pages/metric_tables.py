"""Makes the tables of docs/reference/metrics.md from the catalogue of metrics."""

from collections.abc import Iterator

from ...policy.metrics.catalogue import TABLE_LABEL, metrics_by_section
from ...policy.metrics.count_labels import count_labels
from ...transforms.wiring.metrics import FAMILIES, NUTCH
from .markdown_tables import markdown_table

_NUTCH = (
    "## Counts that Nutch has a name for\n\n"
    "Beam's metrics have these names, on the pages of Flink and Dataflow. A count may be a part of two.\n"
)


def metric_tables() -> str:
    """Returns a table of metrics for each section of the catalogue, and one of Nutch's names."""
    parts = []
    for title, metrics in metrics_by_section().items():
        rows = [
            (
                f"`{metric.name}`",
                metric.type,
                ", ".join(f"`{label}`" for label in metric.labels if label != TABLE_LABEL),
                metric.help,
            )
            for metric in metrics
        ]
        table = markdown_table(("metric", "type", "labels", "meaning"), rows)
        parts.append(f"## {title}\n\n{table}")
    table = markdown_table(("`phase`", "`count`", "`reason`", "Nutch"), sorted(_nutch_rows()))
    return "\n\n".join([*parts, f"{_NUTCH}\n{table}"]) + "\n"


def _nutch_rows() -> Iterator[tuple[str, ...]]:
    """Yields (phase, count, reason, Nutch's names); the reason of a whole family is any."""
    for (job, name), counters in NUTCH.items():
        labels = count_labels(job, name)
        yield *(f"`{value}`" if value else "" for value in labels), _code(counters)
    for (job, family), counter in FAMILIES.items():
        yield f"`{job}`", f"`{family}`", "any", _code((counter,))


def _code(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)
