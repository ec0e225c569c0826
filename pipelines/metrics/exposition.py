"""Writes samples as text for Prometheus, or as OpenMetrics, by prometheus_client."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from ...policy.metrics.catalogue import Metric, catalogue
from ...policy.metrics.samples import RUNNING, MetricSample

Family = CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily
_FAMILIES: Mapping[str, type[CounterMetricFamily] | type[GaugeMetricFamily]] = {
    "counter": CounterMetricFamily,
    "gauge": GaugeMetricFamily,
}


class _Samples(Collector):
    """Gives samples to an encoder of prometheus_client."""

    def __init__(self, samples: Iterable[MetricSample], table: str) -> None:
        self._samples, self._table = samples, table

    def collect(self) -> Iterator[Family]:
        """Yields the metrics that have a sample, in the order of the catalogue."""
        by_name: dict[str, list[MetricSample]] = {}
        for sample in self._samples:
            by_name.setdefault(sample.name, []).append(sample)
        for name, metric in catalogue().items():
            if name in by_name:
                yield _family(metric, by_name[name], self._table)


def _family(metric: Metric, samples: Sequence[MetricSample], table: str) -> Family:
    if metric.type == "histogram":
        histogram = HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
        for sample in samples:
            histogram.add_metric((table, *sample.labels), list(sample.buckets), sample.value)
        return histogram
    family = _FAMILIES[metric.type](metric.name, metric.help, labels=metric.labels)
    for sample in samples:
        family.add_metric((table, *sample.labels), sample.value)
    return family


def prometheus_text(samples: Iterable[MetricSample], table: str) -> bytes:
    """Returns samples as text in Prometheus' own format, for files.

    Args:
        samples: Of metrics of the catalogue.
        table: Address of the table.
    """
    return generate_latest(_registry(samples, table))


def scraped_text(samples: Iterable[MetricSample], table: str, accept: str) -> tuple[bytes, str]:
    """Returns (samples as text, its content type) in the best format that a scraper accepts.

    Args:
        samples: Of metrics of the catalogue.
        table: Address of the table.
        accept: The header Accept of its request.
    """
    encode, content_type = choose_encoder(accept)
    return encode(_registry(samples, table)), content_type


def samples_of_commands(text: str, without: str) -> list[MetricSample]:
    """Reads the samples about commands from a text; none of them runs any more.

    Args:
        text: What ``prometheus_text`` has made.
        without: A command whose samples are left out.

    Raises:
        ValueError: It is no such text.
    """
    commands = []
    for family in text_string_to_metric_families(text):
        for name, labels, value, *_ in family.samples:
            metric = catalogue().get(name)
            if metric and "command" in metric.labels and labels.get("command") != without:
                values = tuple(labels[label] for label in metric.labels[1:])
                commands.append(MetricSample(name, values, 0.0 if name == RUNNING else value))
    return commands


def _registry(samples: Iterable[MetricSample], table: str) -> CollectorRegistry:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Samples(list(samples), table))
    return registry
