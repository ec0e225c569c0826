"""Metrics of real commands, by a file and by a port: what they say is what the table says."""

import http.client
import json
import subprocess
import sys

import pytest
from crawling import manifests_of, nutbeam, reach
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families
from simulated_web import served_web
from small_disk import mounted

from nutbeam.io.table.opening import open_table
from nutbeam.pipelines.base.command import Invocation
from nutbeam.pipelines.launch.launch import LaunchOptions
from nutbeam.pipelines.metrics.metrics_file import MetricsFile, file_of
from nutbeam.pipelines.metrics.observing import run_observed
from nutbeam.policy.metrics.catalogue import catalogue
from nutbeam.policy.metrics.count_labels import labelled_counts
from nutbeam.policy.metrics.samples import MetricSample
from nutbeam.web.base.errors import JobFailed, UsageError

web = served_web(hosts=3, pages=12, scope="module")


def values(text, parse=text_string_to_metric_families):
    """Returns the values of a text by metric and labels, without that of the table."""
    found = {}
    for family in parse(text):
        for sample in family.samples:
            labels = {name: v for name, v in sample.labels.items() if name != "table"}
            found[sample.name, *labels.values()] = sample.value
    return found


@pytest.fixture(scope="module")
def crawled(web, tmp_path_factory):
    """A table, and the file of metrics that its crawl has left."""
    table = tmp_path_factory.mktemp("crawled") / "mine"
    folder = tmp_path_factory.mktemp("textfiles")
    words = ["--rounds", "2", "--metrics_file", folder]
    assert nutbeam("crawl", table, *web.seeds, *reach(web), *words) == 0
    return table, file_of(str(folder), str(table))


def test_the_file_of_a_crawl_has_the_figures_of_its_table(crawled, capsys):
    table, path = crawled
    found = values(path.read_text())
    capsys.readouterr()
    query = "select status, count(*) as n from state group by status"
    assert nutbeam("sql", table, query, "--format", "json") == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    by_status = {
        labels[0]: n for (name, *labels), n in found.items() if name == "nutbeam_urls" and n
    }
    assert by_status == {row["status"]: row["n"] for row in rows}
    manifests = manifests_of(table)
    counts = labelled_counts({})
    for manifest in manifests:
        counts += labelled_counts({(manifest.job, name): n for name, n in manifest.counts.items()})
    shown = {
        labels
        for name, *labels in found
        if name == "nutbeam_counts_total"
        for labels in [tuple(labels)]
    }
    assert len(shown) == len(counts) > 5
    for labels, number in counts.items():
        assert found["nutbeam_counts_total", labels.name, labels.phase, labels.reason] == number
    assert found["nutbeam_snapshot",] == manifests[-1].snapshot
    assert found["nutbeam_request_seconds_count",] == sum(
        m.counts.get("requests", 0) for m in manifests
    )
    assert found["nutbeam_command_running", "crawl"] == 0
    assert found["nutbeam_command_exit_code", "crawl"] == 0
    assert found["nutbeam_table_bytes", "state"] > 0
    assert (
        0 < found["nutbeam_disk_free_bytes", "table"] <= found["nutbeam_disk_size_bytes", "table"]
    )


def test_counters_of_the_table_go_on_and_each_command_keeps_its_end(crawled, capsys):
    table, path = crawled
    before = values(path.read_text())
    assert nutbeam("dedup", table, "--metrics_file", path.parent) == 0
    kept = len(open_table(str(table)).snapshots())
    assert (
        nutbeam("compact", table, "--snapshot_retention", "0", "--metrics_file", path.parent) == 0
    )
    assert (
        len(open_table(str(table)).snapshots()) < kept
    )  # the counts of the others are in history/
    assert nutbeam("readdb", table, "http://none.example/", "--metrics_file", path.parent) == 1
    after = values(path.read_text())
    falling = [key for key, value in before.items() if key[0] in
               ("nutbeam_counts_total", "nutbeam_phase_commits_total") and after[key] < value]  # fmt: skip
    assert falling == []
    commits = ("nutbeam_phase_commits_total", "dedup")
    assert after[commits] == before[commits] + 1
    codes = {
        labels[0]: n for (name, *labels), n in after.items() if name == "nutbeam_command_exit_code"
    }
    assert codes == {"crawl": 0, "dedup": 0, "compact": 0, "readdb": 1}


def observed(run, table, **options):
    return run_observed(
        Invocation("fetch", {}, LaunchOptions(**options), [], table=str(table)), run
    )


def get(port, path="/metrics", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.headers, answer.read().decode()


def served_port(caplog):
    (line,) = [r.getMessage() for r in caplog.records if "metrics are at" in r.getMessage()]
    return int(line.removesuffix("/metrics").rpartition(":")[2])


def test_a_port_gives_openmetrics_and_prometheus_text_to_this_machine_alone(crawled, caplog):
    caplog.set_level("INFO", "nutbeam")

    def run(_):
        port = served_port(caplog)
        status, headers, text = get(port, Accept="application/openmetrics-text; version=1.0.0")
        assert status == 200
        assert headers["Content-Type"].startswith("application/openmetrics-text")
        found = values(text, openmetrics.text_string_to_metric_families)
        assert found["nutbeam_command_running", "fetch"] == 1
        status, headers, text = get(port)
        assert headers["Content-Type"].startswith("text/plain")
        assert values(text)["nutbeam_command_running", "fetch"] == 1
        assert get(port, Host="evil.example")[0] == 403
        assert get(port, "/other")[0] == 404
        with pytest.raises(UsageError, match=f"--metrics_port {port} cannot be used"):
            observed(run, crawled[0], metrics_port=str(port))
        return 7

    assert observed(run, crawled[0], metrics_port="0") == 7


@pytest.mark.parametrize("error", [JobFailed("no"), ValueError("a defect"), KeyboardInterrupt()])
def test_a_command_that_fails_leaves_its_exit_code(tmp_path, error):
    def run(_):
        raise error

    with pytest.raises(type(error)):
        observed(run, tmp_path / "none", metrics_file=str(tmp_path))
    found = values(file_of(str(tmp_path), str(tmp_path / "none")).read_text())
    assert found["nutbeam_command_exit_code", "fetch"] == (
        130 if isinstance(error, KeyboardInterrupt) else 3
    )


def test_a_damaged_table_is_counted_and_ends_no_command(tmp_path):
    (tmp_path / "mine" / "manifest").mkdir(parents=True)
    (tmp_path / "mine" / "manifest" / "00000001.json").write_text("{")
    path = tmp_path / "a.prom"
    assert observed(lambda _: 0, tmp_path / "mine", metrics_file=str(path)) == 0
    assert values(path.read_text())["nutbeam_table_read_failures_total",] > 0


OTHER_PROCESS = """
import sys
from nutbeam.pipelines.metrics.metrics_file import MetricsFile
MetricsFile(sys.argv[1], sys.argv[2], "fetch")
"""


def test_one_process_writes_a_file_and_others_get_a_clear_answer(tmp_path, caplog):
    path, sample = tmp_path / "a.prom", MetricSample("nutbeam_snapshot", (), 5)
    first = MetricsFile(str(path), "/data/mine", "crawl")
    first.write([sample])
    second = MetricsFile(str(path), "/data/mine", "fetch")  # in another thread
    assert "is being written by nutbeam crawl" in caplog.text
    second.write([])
    assert values(path.read_text()) == {("nutbeam_snapshot",): 5}

    def other_process(table):
        words = [sys.executable, "-c", OTHER_PROCESS, path, table]
        return subprocess.run(words, capture_output=True, text=True, check=False).stderr

    assert "which is being" not in (said := other_process("/data/mine"))
    assert "is being written by nutbeam crawl (process" in said
    path.unlink()  # only the lock says whose it is
    assert "for the table '/data/mine': name another file, or a folder" in other_process("/data/b")
    first.close()
    second.write([sample])
    assert values(path.read_text()) == {("nutbeam_snapshot",): 5}
    second.close()


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.prom", "node_uptime 1\n", "is another file, not of nutbeam's metrics"),
        (
            "a.prom",
            '# nutbeam metrics of "/data/other"\n',
            'of the table "/data/other": name another',
        ),
        ("notes.txt", "mine", "a file whose name ends with .prom, got"),
    ],
)
def test_files_of_others_are_refused_and_stay(tmp_path, name, content, reason):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(UsageError, match=reason):
        MetricsFile(str(path), "/data/mine", "crawl")
    assert path.read_text() == content


def test_a_command_that_was_killed_runs_no_more_in_the_file(tmp_path):
    path = tmp_path / "a.prom"
    killed = MetricsFile(str(path), "/data/mine", "crawl")
    killed.write([MetricSample("nutbeam_command_running", ("crawl",), 1)])
    killed.close()
    later = MetricsFile(str(path), "/data/mine", "dedup")
    later.write([MetricSample("nutbeam_command_running", ("dedup",), 1)])
    later.close()
    assert values(path.read_text()) == {
        ("nutbeam_command_running", "crawl"): 0,
        ("nutbeam_command_running", "dedup"): 1,
    }


def test_an_odd_address_stays_one_label(tmp_path):
    table = tmp_path / 'a"b\\c\nnutbeam_snapshot 9'
    path = tmp_path / "a.prom"
    assert observed(lambda _: 0, table, metrics_file=str(path)) == 0
    names = [f.name for f in text_string_to_metric_families(path.read_text())]
    assert len(names) == len(set(names))
    for family in text_string_to_metric_families(path.read_text()):
        assert {sample.labels["table"] for sample in family.samples} == {str(table)}
    assert set(names) <= {name.removesuffix("_total") for name in catalogue()}


@pytest.mark.parametrize(
    ("package", "options", "extra"),
    [
        ("prometheus_client", {"metrics_port": "0"}, "metrics"),
        ("opentelemetry.exporter", {"trace_to": "http://127.0.0.1:1"}, "traces"),
    ],
)
def test_a_missing_package_is_named(monkeypatch, tmp_path, package, options, extra):
    for name in [n for n in sys.modules if n.startswith((package, "nutbeam.pipelines.metrics."))]:
        if name != "nutbeam.pipelines.metrics.observing":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    import nutbeam.pipelines.metrics as folder

    monkeypatch.delattr(folder, "exposition", raising=False)
    with pytest.raises(UsageError, match=rf"pip install 'nutbeam\[{extra}\]'"):
        observed(lambda _: 0, tmp_path, **options)


def test_a_full_disk_is_no_wrong_usage(tmp_path, refuse):
    with mounted(tmp_path / "disk", "16k") as disk:
        (disk / "other").write_bytes(bytes(12_288))
        path = str(disk / "mine.prom")
        words = ("inject", tmp_path / "table", "http://a.example/", "--metrics_file", path)
        line = refuse(*words, code=3)
    assert line.startswith(f"--metrics_file {path!r} cannot be written: No space left on device")
    assert line.endswith(": make room, then run the same again")
    assert not (tmp_path / "table").exists()
