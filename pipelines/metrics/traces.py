"""Sends spans of a command, its rounds and its jobs to a receiver of OpenTelemetry.

A job's span begins when its operation was pinned, and ends with its commit; both times are in the table. So
spans are the same on every runner, and no worker needs OpenTelemetry. ``TRACEPARENT`` in the environment
is the parent of the command's span.
"""

import logging
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from opentelemetry.context import Context
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Span, Status, StatusCode, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from ...io.snapshots.lineage import commit_times
from ...io.snapshots.manifest import Manifest
from ...io.table.web_table import WebTable
from ...io.upkeep.table_figures import manifests_after
from ...policy.metrics.count_labels import count_labels
from ...web.base.errors import UsageError
from ...web.base.json_logs import launched_operations, without_login
from .command_watch import CommandWatch

if TYPE_CHECKING:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

_LOG = logging.getLogger("nutbeam")
FROM_ENVIRONMENT = "env"
_PATH = "/v1/traces"  # as for OTEL_EXPORTER_OTLP_ENDPOINT
_TIMEOUT_S = 3.0  # a command waits for it at its end; OTEL_EXPORTER_OTLP_TIMEOUT has another one
# Exit codes of commands that did not fail: done, nothing to do, nothing fetched.
_GOOD = (0, 1, 4)
_ROUND = re.compile(r"(?:wait\d+\.)?(\d+)\.[a-z_]+")


class Traces:
    """The spans of one command.

    Args:
        named: Address of the receiver, or ``env``.
        watch: The command.
        table: Its table, if it has one.

    Raises:
        UsageError: The package that sends spans is not installed.
    """

    def __init__(self, named: str, watch: CommandWatch, table: WebTable | None) -> None:
        self._named, self._table = named, table
        self._seen = table.latest_snapshot() if table else 0
        self._launched_before = len(launched_operations())
        self._exporter = _exporter_for(named)
        self._spans = InMemorySpanExporter()
        # What the environment says (OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES) has priority.
        usual = {SERVICE_NAME: "nutbeam", SERVICE_VERSION: watch.version}
        named_there = "OTEL_SERVICE_NAME" in os.environ or "service.name=" in os.environ.get(
            "OTEL_RESOURCE_ATTRIBUTES", ""
        )
        resource = (
            Resource(usual).merge(Resource.create()) if named_there else Resource.create(usual)
        )
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(SimpleSpanProcessor(self._spans))
        self._tracer = self._provider.get_tracer("nutbeam", watch.version)
        attributes = {"nutbeam.command": watch.command, "nutbeam.table": watch.address}
        self._command = self._tracer.start_span(
            f"nutbeam {watch.command}",
            _parent(),
            start_time=_ns(watch.started),
            attributes=attributes,
        )
        self._round: tuple[str, Span, float] | None = None  # number, span, latest end
        self._failed = False

    def add_jobs(self) -> None:
        """Adds and sends the spans of the jobs of this command that have committed since the last call."""
        newest = self._table.latest_snapshot() if self._table else 0
        if self._table is None or newest <= self._seen:
            return
        manifests = list(manifests_after(self._table, self._seen, newest))
        committed = commit_times(self._table, manifests)
        launches = launched_operations()[self._launched_before :]
        for manifest in manifests:
            own = [one for one in launches if manifest.operation.startswith(f"{one}.")]
            if own:
                self._add(manifest, own[-1], committed.get(manifest.snapshot, 0.0))
        self._seen = newest
        self._send()

    def _add(self, manifest: Manifest, launch: str, committed: float) -> None:
        """Adds the span of a job.

        Args:
            manifest: The snapshot that it has made.
            launch: Id of the launch, with which the id of the operation begins.
            committed: When it was committed, s.
        """
        begun = manifest.time / 1000
        ended = max(begun, committed)
        match = _ROUND.fullmatch(manifest.operation.removeprefix(f"{launch}."))
        parent = self._round_span(match[1], begun, ended) if match else self._command
        attributes: dict[str, str | int] = {
            "nutbeam.job": manifest.job,
            "nutbeam.operation": manifest.operation,
            "nutbeam.snapshot": manifest.snapshot,
            **({"nutbeam.batch": manifest.batch} if manifest.batch else {}),
            **_count_attributes(manifest),
        }
        span = self._tracer.start_span(
            manifest.job, set_span_in_context(parent), start_time=_ns(begun), attributes=attributes
        )
        span.end(_ns(ended))

    def _round_span(self, number: str, begun: float, ended: float) -> Span:
        if self._round is None or self._round[0] != number:
            self._end_round()
            context = set_span_in_context(self._command)
            span = self._tracer.start_span(
                f"round {number}", context, start_time=_ns(begun),
                attributes={"nutbeam.round": int(number)},
            )  # fmt: skip
            self._round = number, span, ended
        self._round = (number, self._round[1], max(ended, self._round[2]))
        return self._round[1]

    def _end_round(self) -> None:
        if self._round is not None:
            self._round[1].end(_ns(self._round[2]))
            self._round = None

    def _send(self) -> None:
        """Sends the spans that have ended; logs once if the receiver does not take them."""
        spans: tuple[ReadableSpan, ...] = self._spans.get_finished_spans()
        if not spans:
            return
        self._spans.clear()
        if self._exporter.export(spans) is not SpanExportResult.SUCCESS and not self._failed:
            self._failed = True
            _LOG.warning(
                "spans cannot be sent to --trace_to %s: the work goes on without them",
                without_login(self._named),
            )

    def end(self, ended: float, exit_code: int, failed_phase: str) -> None:
        """Ends the spans of the round and of the command, and sends them.

        Args:
            ended: When the command ended, s.
            exit_code: Its exit code.
            failed_phase: The phase that it did not finish; may be empty.
        """
        self._end_round()
        self._command.set_attribute("nutbeam.exit_code", exit_code)
        if exit_code not in _GOOD:
            self._command.set_status(Status(StatusCode.ERROR, f"exit code {exit_code}"))
            if failed_phase:
                self._command.set_attribute("nutbeam.failed_phase", failed_phase)
        self._command.end(_ns(ended))
        self._send()
        self._exporter.shutdown()  # type: ignore[no-untyped-call]


def _exporter_for(named: str) -> "OTLPSpanExporter":
    """Returns what sends spans to a receiver.

    Raises:
        UsageError: The package is not installed.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    except ImportError as error:
        raise UsageError("--trace_to needs its package: pip install 'nutbeam[traces]'") from error
    # It logs each failure; _send() logs the first one.
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    timeout = (
        None if any("OTLP" in name and "TIMEOUT" in name for name in os.environ) else _TIMEOUT_S
    )
    if named == FROM_ENVIRONMENT:
        return OTLPSpanExporter(timeout=timeout)
    has_path = named.split("://", 1)[1].rstrip("/").count("/")
    endpoint = named if has_path else named.rstrip("/") + _PATH
    return OTLPSpanExporter(endpoint=endpoint, timeout=timeout)


def _parent() -> Context:
    carrier = {
        name.lower(): os.environ[name]
        for name in ("TRACEPARENT", "TRACESTATE")
        if name in os.environ
    }
    return TraceContextTextMapPropagator().extract(carrier)


def _count_attributes(manifest: Manifest) -> Mapping[str, int]:
    """Returns the counts of a job without reasons, as attributes of its span."""
    counts = {count_labels(manifest.job, name): n for name, n in manifest.counts.items()}
    return {f"nutbeam.counts.{labels.name}": n for labels, n in counts.items() if not labels.reason}


def _ns(seconds: float) -> int:
    return int(seconds * 1000) * 1_000_000
