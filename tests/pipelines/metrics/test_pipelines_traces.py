"""Spans of real commands, as a receiver of OpenTelemetry gets them."""

import pytest
from crawling import manifests_of, nutbeam, reach
from free_ports import free_port
from simulated_web import served_web
from span_receiver import attributes, receiving

from nutbeam.pipelines.base.command import Invocation
from nutbeam.pipelines.launch.launch import LaunchOptions
from nutbeam.pipelines.metrics.observing import run_observed
from nutbeam.web.base.errors import JobFailed
from nutbeam.web.base.progress import PROGRESS

web = served_web(hosts=2, pages=8, scope="module")
TRACE = "0af7651916cd43dd8448eb211c80319c"


@pytest.fixture
def receiver():
    with receiving() as server:
        yield server


def test_spans_of_a_crawl_are_its_rounds_and_jobs(web, tmp_path, receiver, monkeypatch):
    monkeypatch.setenv("TRACEPARENT", f"00-{TRACE}-b7ad6b7169203331-01")
    table = tmp_path / "mine"
    words = ["--rounds", "2", "--trace_to", receiver.url]
    assert nutbeam("crawl", table, *web.seeds, *reach(web), *words) == 0
    spans = receiver.spans()
    (command,) = spans.pop("nutbeam crawl")
    assert command.trace_id.hex() == TRACE
    assert command.parent_span_id.hex() == "b7ad6b7169203331"
    rounds = [spans.pop(f"round {number}")[0] for number in (1, 2)]
    assert [span.parent_span_id for span in rounds] == [command.span_id] * 2
    manifests = manifests_of(table)
    jobs = {
        attributes(span)["nutbeam.snapshot"]: span for named in spans.values() for span in named
    }
    assert sorted(jobs) == [manifest.snapshot for manifest in manifests]
    for manifest in manifests:
        span = jobs[manifest.snapshot]
        facts = attributes(span)
        assert (span.name, facts["nutbeam.operation"]) == (manifest.job, manifest.operation)
        number = manifest.operation.split(".")[-2]
        parent = rounds[int(number) - 1] if number in "12" else command
        assert span.parent_span_id == parent.span_id
        assert parent.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano
        plain = {name: n for name, n in manifest.counts.items() if "/" not in name}
        counted = {k.rpartition(".")[2]: v for k, v in facts.items() if ".counts." in k}
        assert counted == plain
    assert "example.com" not in str(receiver.requests)  # no host, no URL


def run_traced(run, **options):
    return run_observed(Invocation("fetch", {}, LaunchOptions(**options), []), run)


def test_a_command_that_failed_says_so(receiver):
    def run(_):
        PROGRESS.start("fetch")
        raise JobFailed("http://secret.example/ failed")

    try:
        with pytest.raises(JobFailed):
            run_traced(run, trace_to=receiver.url)
    finally:
        PROGRESS.reset()
    (span,) = receiver.spans()["nutbeam fetch"]
    assert span.status.code == span.status.STATUS_CODE_ERROR
    assert attributes(span)["nutbeam.exit_code"] == 3
    assert attributes(span)["nutbeam.failed_phase"] == "fetch"
    assert "secret" not in str(span)


def test_variables_of_opentelemetry_are_followed(receiver, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=abc")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "my-crawl")
    assert run_traced(lambda _: 1, trace_to="env") == 1
    ((path, headers, message),) = receiver.requests
    assert path == "/v1/traces"
    assert headers["x-key"] == "abc"
    assert attributes(message.resource_spans[0].resource)["service.name"] == "my-crawl"
    (span,) = receiver.spans()["nutbeam fetch"]
    assert span.status.code == span.status.STATUS_CODE_UNSET  # nothing to do is no failure


def test_a_receiver_that_does_not_answer_is_one_warning(caplog):
    address = f"http://me:pw@127.0.0.1:{free_port()}/"
    assert run_traced(lambda _: 0, trace_to=address) == 0
    (record,) = caplog.records
    assert "spans cannot be sent to --trace_to http://***@127.0.0.1" in record.getMessage()
