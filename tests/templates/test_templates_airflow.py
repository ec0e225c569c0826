"""The DAGs in templates/airflow: loaded by Airflow's DagBag, and one run from end to end.

Airflow lives in an environment of its own: build/airflow, or that of $AIRFLOW_PYTHON.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from crawling import assert_same, contents, crawl, done_in, nutbeam, reach
from guide_blocks import blocks, run_as_typed
from here import ROOT, TESTS
from simulated_web import served_web

from nutbeam.pipelines.launch.job_options import JobOptions
from nutbeam.web.base.options import options_of

DAG = ROOT / "templates" / "airflow" / "nutbeam_crawl.py"
DATAFLOW = DAG.with_name("nutbeam_crawl_dataflow.py")
GUIDE = ROOT / "docs" / "guides" / "airflow.md"
PROBE = TESTS / "support" / "airflow_probe.py"
PYTHON = Path(os.environ.get("AIRFLOW_PYTHON") or ROOT / "build" / "airflow" / "bin" / "python")
NUTBEAM = Path(sys.executable).with_name("nutbeam")
ROUNDS = 3
pytestmark = [
    pytest.mark.airflow,
    pytest.mark.skipif(
        not PYTHON.exists(),
        reason=f"needs Airflow: {PYTHON} is missing, make test-airflow makes it",
    ),
    pytest.mark.skipif(not DAG.exists(), reason="templates/ is not part of the wheel"),
]


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """The variables of an Airflow with a database of its own, and only our DAGs."""
    home = tmp_path_factory.mktemp("airflow")
    inherited = {n: v for n, v in os.environ.items() if not n.startswith(("AIRFLOW", "NUTBEAM"))}
    made = {
        **inherited,
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        "CRAWL_COMMAND": str(NUTBEAM),
        "CRAWL_ROUNDS": str(ROUNDS),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    (home / "dags").mkdir()
    (home / "dags" / DAG.name).write_text(DAG.read_text("utf-8"))
    return made


def airflow(environment, *words):
    """Runs a program of Airflow's environment; returns (exit code, all that it printed)."""
    ran = subprocess.run(
        [*map(str, words)], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=900, check=False,
    )  # fmt: skip
    return ran.returncode, ran.stdout


@pytest.fixture
def probe(environment):
    def ask(*words):
        code, printed = airflow(environment, PYTHON, PROBE, *words)
        assert code == 0, printed
        return json.loads(printed.splitlines()[-1])

    return ask


web = served_web(hosts=1, pages=3, scope="module")  # the guide's; 2 rounds


def test_the_dag_bag_finds_a_crawl(probe):
    found = probe("dags", DAG)
    assert found["errors"] == {}
    [(name, dag)] = found["dags"].items()
    assert name == "nutbeam_crawl"
    tasks = dag["tasks"]
    assert len(tasks) == 1 + 5 * ROUNDS + 1
    order = list(tasks)
    assert order[0] == "inject"
    assert order[-1] == "report"
    assert [tasks[task]["upstream"] for task in order[1:]] == [[task] for task in order[:-1]]
    assert {tasks[task]["retries"] for task in order} == {3}
    assert all(tasks[task]["words"][:2] == ["next", "--wait_until_done"] for task in order[1:-1])
    assert set(tasks["inject"]["parameters"]) <= set(dag["params"])


def test_exit_codes_decide_the_state_of_a_task(probe, web, tmp_path):
    table = str(tmp_path / "table")
    params = {"options": reach(web), "table": table}

    def run(*words, **more):
        return probe("execute", DAG, json.dumps({**params, **more}), *words)

    error, said = run("next")  # there is no table
    assert error == "AirflowFailException"  # which is not tried again
    assert "no web table" in said
    assert nutbeam("inject", table, *web.seeds, "--operation", "seeds") == 0
    error, said = run("readdb", options=[])
    assert error == ""
    assert "db_unfetched" in said
    assert crawl(table, web) == 0
    assert run("next") == ["AirflowSkipException", "nothing is due"]


def test_a_failed_job_is_tried_again(environment, probe, tmp_path, monkeypatch):
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho disk full; exit 3\n")
    broken.chmod(0o755)
    monkeypatch.setitem(environment, "CRAWL_COMMAND", str(broken))
    assert probe("execute", DAG, "{}", "next") == ["AirflowException", "exit code 3: disk full"]


def test_operation_ids_are_such(probe):
    """Whatever Airflow calls a run, the id has only characters that nutbeam allows."""
    [operation] = [o for o in options_of(JobOptions) if o.name == "operation"]
    found = set()
    for run_id in (
        "manual__2026-11-21T09:00:00+00:00",
        "manual__2026-11-21T09:00:00 00:00",
        "ü/" * 99,
    ):
        made = probe("operation", DAG, "nutbeam_crawl", run_id, "inject")
        assert re.fullmatch(operation.pattern, made)
        assert len(made) < 128
        found.add(made)
    assert len(found) == 3
    assert any(repr(made) in DAG.read_text("utf-8") for made in found)  # its example is right


def test_the_guide_runs_as_typed_and_makes_the_table_that_a_crawl_makes(
    environment, web, tmp_path, monkeypatch
):
    for name in ("CRAWL_ROUNDS", "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED"):
        monkeypatch.setenv(name, environment[name])
    monkeypatch.setenv("PATH", f"{PYTHON.parent}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "templates").symlink_to(ROOT / "templates")
    typed = [text for text, why in blocks(GUIDE, "bash") if (why or "").startswith("airflow:")]
    assert len(typed) == 2
    printed = run_as_typed("\n".join(typed), tmp_path, seconds=900)
    assert "state=success" in printed, printed
    table = tmp_path / "mine"
    jobs = [job for job, _ in done_in(table)]
    phases = ["generate", "fetch", "parse", "update", "dedup"]
    assert jobs == ["inject", *phases, *phases]
    # The first task of the third round was skipped, and with it all that follow.
    commands = re.findall(r"Running command: \['[^']*', '(\w+)'", printed)
    assert commands == ["inject", *["next"] * 11, "readdb"]
    assert crawl(tmp_path / "other", web, *web.seeds) == 0
    assert_same(contents(table), contents(tmp_path / "other"))


# Dataflow: the provider is large, so it need not be there.


@pytest.fixture
def dataflow(environment):
    code, _ = airflow(
        environment, PYTHON, "-c", "import airflow.providers.google.cloud.operators.dataflow"
    )
    if code:
        pytest.skip("needs Airflow's providers for Google and Apache Beam, 2 GB")


def parameters_of(template):
    metadata = json.loads((ROOT / "templates" / f"{template}.json").read_text("utf-8"))
    return {p["name"]: p for p in metadata["parameters"]}


@pytest.mark.usefixtures("dataflow")
def test_the_dag_bag_finds_a_crawl_on_dataflow(probe):
    found = probe("dags", DATAFLOW)
    assert found["errors"] == {}
    [tasks] = [dag["tasks"] for dag in found["dags"].values()]
    assert {name: task["upstream"] for name, task in tasks.items()} == {
        "inject": [], "round_1": ["inject"], "go_on_1": ["round_1"], "round_2": ["go_on_1"],
        "go_on_2": ["round_2"], "round_3": ["go_on_2"],
    }  # fmt: skip


@pytest.mark.usefixtures("dataflow")
@pytest.mark.parametrize("task", ["inject", "round_1"])
def test_dataflow_gets_only_parameters_that_the_template_takes(probe, task):
    launch = probe("rendered", DATAFLOW, task)["body"]["launchParameter"]
    template = task.partition("_")[0]
    assert launch["containerSpecGcsPath"].endswith(f"/{template}.json")
    assert re.fullmatch(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])", launch["jobName"])
    known = parameters_of(template)
    assert set(launch["parameters"]) <= set(known)
    assert {n for n, p in known.items() if not p["isOptional"]} <= set(launch["parameters"])
    for name, value in launch["parameters"].items():
        assert all(re.fullmatch(regex, value) for regex in known[name].get("regexes", []))


@pytest.mark.usefixtures("dataflow")
def test_counters_say_whether_a_round_has_changed_the_table(probe):
    def metric(namespace, scalar, **context):
        name = {
            "origin": "user",
            "name": "db_fetched",
            "context": {"namespace": namespace, **context},
        }
        return {"name": name, "scalar": scalar}

    element_count = {"name": {"origin": "dataflow/v1b3", "name": "ElementCount"}, "scalar": 5}
    cases = [
        ([element_count, metric("nutbeam_crawldb", 3)], True),
        ([element_count, metric("nutbeam_crawldb", 0)], False),
        ([element_count, metric("nutbeam_crawldb", 3, tentative="true")], False),
        ([element_count, metric("nutbeam_generator", 3)], False),
        ([], False),
    ]
    for metrics, expected in cases:
        assert probe("updated", DATAFLOW, json.dumps(metrics)) is expected
