"""The alert rules and the dashboard: Prometheus takes them, and their metrics are in the catalogue."""

import json
import re
import subprocess
import urllib.request

import pytest
import yaml
from crawling import nutbeam, reach
from free_ports import free_port
from here import ROOT, TESTS
from prometheus_client.parser import text_string_to_metric_families
from running import TOOLS
from simulated_web import served_web
from web_servers import connect_to, reply, serve

from nutbeam.policy.metrics.catalogue import catalogue
from nutbeam.policy.metrics.count_labels import OTHER_LABEL, count_labels

MONITORING = ROOT / "templates" / "monitoring"
ALERTS, DASHBOARD = MONITORING / "alerts.yaml", MONITORING / "dashboard.json"
PROMTOOL = TOOLS / "promtool"
pytestmark = pytest.mark.skipif(
    not MONITORING.exists(), reason="templates/ is not part of the wheel"
)
with_promtool = pytest.mark.skipif(
    not PROMTOOL.exists(), reason=f"no promtool at {PROMTOOL}: .ci/tools promtool builds it"
)
_MATCHER = re.compile(r'(\w+)\s*(=~|!=|=)\s*"([^"]*)"')
web = served_web(hosts=2, pages=6)


def queries_of_alerts():
    (group,) = yaml.safe_load(ALERTS.read_text())["groups"]
    return [rule["expr"] for rule in group["rules"]]


def queries_of_dashboard():
    board = json.loads(DASHBOARD.read_text())
    variables = [v["query"]["query"] for v in board["templating"]["list"] if v["type"] == "query"]
    return [t["expr"] for panel in board["panels"] for t in panel["targets"]] + variables


@pytest.mark.parametrize("queries", [queries_of_alerts, queries_of_dashboard])
def test_each_metric_and_label_of_a_query_is_in_the_catalogue(queries):
    seen = set()
    for query in queries():
        for name, matchers in re.findall(r"\b(nutbeam_\w+)(?:\{([^}]*)\})?", query):
            metric = catalogue()[re.sub("_bucket$", "", name)]
            seen.add(metric.name)
            labels = {label: value for label, _, value in _MATCHER.findall(matchers)}
            assert labels.keys() <= {*metric.labels, "instance"}, query
            if metric.name == "nutbeam_counts_total" and "|" not in labels["count"]:
                name = labels["count"]
                assert count_labels(labels["phase"], name).name == name != OTHER_LABEL
    assert len(seen) > 5


_MATCHES = {
    "=": lambda value, wanted: value == wanted,
    "!=": lambda value, wanted: value != wanted,
    "=~": lambda value, wanted: bool(re.fullmatch(wanted.replace("$table", ".+"), value)),
}


@pytest.fixture
def series(tmp_path):
    """Names and labels of all series that a crawl gives while it fetches, and a job at its end."""
    table, port, texts = tmp_path / "mine", free_port(), []

    def answer(path, _):
        if path == "/":
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as metrics:
                texts.append(metrics.read().decode())
            return reply(
                b"<a href=/next>n</a><a href=mailto:me>m</a>", "200 OK", "Content-Type: text/html"
            )
        return reply(status="404 Not Found")

    with serve(answer) as server:
        reached = [word for entry in connect_to(server.port) for word in ("--connect_to", entry)]
        words = (*reached, "--server_delay", "0", "--rounds", "2", "--metrics_port", str(port))
        assert nutbeam("crawl", table, "http://a.example.com/", *words) == 0
    generate = ("generate", table, "--add_days", "60")  # leaves an open batch
    assert nutbeam(*generate, "--metrics_file", tmp_path / "a.prom") == 0
    texts.append((tmp_path / "a.prom").read_text())
    families = (family for text in texts for family in text_string_to_metric_families(text))
    return [(sample.name, sample.labels) for family in families for sample in family.samples]


def test_each_query_selects_series_of_a_real_crawl(series):
    for query in queries_of_alerts() + queries_of_dashboard():
        for name, matchers in re.findall(r"\b(nutbeam_\w+)(?:\{([^}]*)\})?", query):
            wanted = _MATCHER.findall(matchers)
            assert any(
                name == of
                and all(_MATCHES[op](labels.get(label, ""), v) for label, op, v in wanted)
                for of, labels in series
            ), (name, matchers)


def test_each_alert_fires_in_a_test_and_is_in_the_guide():
    (group,) = yaml.safe_load(ALERTS.read_text())["groups"]
    cases = yaml.safe_load((TESTS / "templates" / "alerts_test.yaml").read_text())["tests"]
    fired = {t["alertname"] for c in cases for t in c["alert_rule_test"] if t.get("exp_alerts")}
    guide = (ROOT / "docs" / "guides" / "monitoring.md").read_text("utf-8")
    for rule in group["rules"]:
        assert rule["alert"] in fired
        assert f"| `{rule['alert']}` |" in guide
        assert rule["labels"]["severity"] in ("page", "ticket")


def test_the_dashboard_follows_grafanas_schema():
    """Grafana's own library reads it, and writes all of it again."""
    dashboards = pytest.importorskip("grafana_foundation_sdk.models.dashboard")
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.cog.plugins import register_default_plugins

    register_default_plugins()
    raw = json.loads(DASHBOARD.read_text())
    written = json.loads(JSONEncoder().encode(dashboards.Dashboard.from_json(raw)))
    assert list(lost(raw, written)) == []
    ids = [panel["id"] for panel in raw["panels"]]
    assert len(ids) == len(set(ids))


def lost(raw, written, path=""):
    """Yields the paths of what is not in a second version of a value."""
    if isinstance(raw, dict) and isinstance(written, dict):
        for name, value in raw.items():
            yield from lost(value, written.get(name), f"{path}.{name}")
    elif isinstance(raw, list) and isinstance(written, list) and len(raw) == len(written):
        for number, (one, other) in enumerate(zip(raw, written, strict=True)):
            yield from lost(one, other, f"{path}.{number}")
    elif raw != written:
        yield path


def block_of_guide(title):
    """Returns a block of the guide with a title."""
    guide = (ROOT / "docs" / "guides" / "monitoring.md").read_text("utf-8")
    (text,) = re.findall(rf'^```yaml title="{title}"\n(.*?)^```$', guide, re.MULTILINE | re.DOTALL)
    return text


def test_kubernetes_takes_the_job_of_the_guide():
    validator = pytest.importorskip("kubernetes_validate")
    job = yaml.safe_load(block_of_guide("cronjob.yaml"))
    validator.validate(job, "1.31", strict=True)
    (container,) = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert {one["name"] for one in container["env"]} == {"NUTBEAM_METRICS_PORT"}


def promtool(*words, **more):
    return subprocess.run([PROMTOOL, *words], capture_output=True, text=True, check=False, **more)


@with_promtool
@pytest.mark.long
def test_prometheus_takes_the_alert_rules():
    done = promtool("check", "rules", ALERTS)
    assert done.returncode == 0, done.stderr
    assert "SUCCESS" in done.stdout


@with_promtool
@pytest.mark.long
def test_prometheus_takes_the_configuration_of_the_guide(tmp_path):
    (tmp_path / "prometheus.yml").write_text(block_of_guide("prometheus.yml"))
    (tmp_path / "alerts.yaml").write_text(ALERTS.read_text())
    done = promtool("check", "config", tmp_path / "prometheus.yml")
    assert done.returncode == 0, done.stdout + done.stderr


@with_promtool
@pytest.mark.long
def test_alerts_fire_when_they_should():
    done = promtool("test", "rules", TESTS / "templates" / "alerts_test.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


@with_promtool
@pytest.mark.long
def test_prometheus_takes_the_metrics_of_a_crawl(web, tmp_path):
    path = tmp_path / "a.prom"
    words = ["--rounds", "1", "--metrics_file", path]
    assert nutbeam("crawl", tmp_path / "mine", *web.seeds, *reach(web), *words) == 0
    done = promtool("check", "metrics", input=path.read_text())
    assert (done.returncode, done.stderr) == (0, "")


@with_promtool
@pytest.mark.long
def test_prometheus_takes_the_queries_of_the_dashboard(tmp_path):
    rules = [
        {"record": f"q:{number}", "expr": query.replace("$table", ".+")}
        for number, query in enumerate(queries_of_dashboard())
        if not query.startswith("label_values")
    ]
    path = tmp_path / "queries.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "board", "rules": rules}]}))
    done = promtool("check", "rules", path)
    assert done.returncode == 0, done.stderr
