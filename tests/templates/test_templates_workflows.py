"""The Cloud Workflow: follows the schema and Dataflow's API, and crawls in an emulator.

The emulator runs the workflow's steps; a job that it launches is run here, by the
command of the template, and answered for as Dataflow's API does.
"""

import json
import re

import pytest
import yaml
from crawling import assert_same, contents, crawl, manifests_of, nutbeam, reach
from here import ROOT
from simulated_web import served_web

from nutbeam.transforms.wiring.metrics import metrics_of

WORKFLOW = ROOT / "templates" / "workflows" / "crawl.yaml"
FOLDER = "gs://your-bucket/templates"
pytestmark = pytest.mark.skipif(not WORKFLOW.exists(), reason="templates/ is not in the wheel")

emulator = pytest.importorskip(
    "workflows_emulator.main", reason="workflows-emulator is not installed"
)


@pytest.fixture(scope="module")
def api():
    """The discovery document of Dataflow's API."""
    return emulator.load_package_config("discovery_documents/dataflow_v1b3.json")


web = served_web(hosts=1, pages=3, scope="module")  # 2 rounds


def workflow():
    return emulator.load_workflow(str(WORKFLOW))


def steps(value):
    """Yields all steps of a workflow, however deep, with their names."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if isinstance(inner, dict) and not {"steps", "params"} & set(inner):
                yield name, inner
            yield from steps(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from steps(inner)


def test_follows_the_schema_of_workflows():
    workflow()  # validates
    broken = yaml.safe_load(WORKFLOW.read_text("utf-8"))
    broken["main"]["steps"][1]["inject_if_there_are_seeds"]["swich"] = []
    with pytest.raises(Exception, match="swich"):
        emulator.validate(broken, emulator.WORKFLOW_SCHEMA)


def test_steps_lead_to_steps_that_exist():
    for name, part in workflow().items():
        named = {step for entry in part["steps"] for step in entry}
        followed = {n for _, s in steps(part["steps"]) for n in [s.get("next")] if n}
        followed |= {
            case["next"]
            for _, s in steps(part["steps"])
            for case in s.get("switch", [])
            if isinstance(case, dict) and "next" in case
        }
        assert followed <= named, name


def test_subworkflows_get_their_parameters():
    parts = workflow()
    calls = [s for _, s in steps(parts) if s.get("call") in parts]
    assert len(calls) == 3
    for call in calls:
        assert set(call["args"]) == set(parts[call["call"]]["params"])


def test_calls_are_those_of_the_api(api):
    calls = [s for _, s in steps(workflow()) if str(s.get("call")).startswith("googleapis.")]
    assert len(calls) == 3
    for call in calls:
        _, service, version, *resources, method = call["call"].split(".")
        assert (service, version) == (api["name"], api["version"])
        found = api
        for resource in resources:
            found = found["resources"][resource]
        found = found["methods"][method]
        required = {n for n, p in found["parameters"].items() if p.get("required")}
        given = set(call["args"]) - {"body"}
        assert required <= given <= set(found["parameters"])
        if "body" in call["args"]:
            check_body(call["args"]["body"], api["schemas"][found["request"]["$ref"]], api)


def check_body(body, schema, api):
    """Asserts that a request has only fields that the API knows; expressions pass."""
    if isinstance(body, str) and body.startswith("${"):
        return
    if isinstance(body, dict) and "properties" in schema:
        assert set(body) <= set(schema["properties"])
        for name, inner in body.items():
            field = schema["properties"][name]
            check_body(inner, api["schemas"].get(field.get("$ref"), field), api)


def metadata(template):
    return json.loads((ROOT / "templates" / f"{template}.json").read_text("utf-8"))


class Dataflow:
    """Answers as Dataflow's API does; a launched job is run at once, on this machine.

    Attributes:
        launched: (template, parameters) of each job.
        asked: How often each job was asked for; the first answer is "running".
    """

    def __init__(self, table, fail=False):
        self.table = table
        self.fail = fail
        self.launched = []
        self.asked = {}
        self.codes = {}

    def request(self, method, url, body=None, **_):
        path = url.removeprefix("https://dataflow.googleapis.com/v1b3/projects/my-project/")
        path = path.removeprefix("locations/europe-west1/")
        if (method, path) == ("POST", "flexTemplates:launch"):
            return {"body": {"job": {"id": self.launch(**body["launchParameter"])}}}
        assert method == "GET"
        job, _, rest = path.removeprefix("jobs/").partition("/")
        if rest == "metrics":
            return {"body": {"metrics": list(self.metrics(job))}}
        self.asked[job] = self.asked.get(job, 0) + 1
        state = "DONE" if self.codes[job] in (0, 1) else "FAILED"
        state = f"JOB_STATE_{state if self.asked[job] > 1 else 'RUNNING'}"
        return {"body": {"id": job, "currentState": state}}

    def launch(self, jobName, containerSpecGcsPath, parameters, environment):
        assert re.fullmatch(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])", jobName)
        assert jobName not in self.codes
        assert environment == {"maxWorkers": 2}
        template = containerSpecGcsPath.removeprefix(f"{FOLDER}/").removesuffix(".json")
        known = {p["name"]: p for p in metadata(template)["parameters"]}
        assert set(parameters) <= set(known)
        assert {n for n, p in known.items() if not p["isOptional"]} <= set(parameters)
        for name, value in parameters.items():
            assert all(re.fullmatch(r, value) for r in known[name].get("regexes", [])), name
        self.launched.append((template, parameters))
        words = [f"--{name}={value}" for name, value in parameters.items() if name != "command"]
        self.codes[jobName] = 3 if self.fail else nutbeam(template, *words)
        return jobName

    def metrics(self, job):
        yield {"name": {"origin": "dataflow/v1b3", "name": "ElementCount"}, "scalar": 7}
        for manifest in manifests_of(self.table):
            if manifest.operation.startswith(f"{job}."):
                for count, number in manifest.counts.items():
                    for namespace, name in metrics_of(manifest.job, count):
                        context = {"namespace": namespace, "step": "Commit"}
                        for more in ({}, {"tentative": "true"}):
                            named = {"origin": "user", "name": name, "context": context | more}
                            yield {"name": named, "scalar": number}


@pytest.fixture
def execute(monkeypatch):
    """Runs the workflow against a Dataflow; returns what it returns."""
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT_ID", "my-project")
    monkeypatch.setenv("GOOGLE_CLOUD_WORKFLOW_EXECUTION_ID", "0b6d1c1e-6f0b-4d6e-9d0e-2f6f9f1f3a11")
    slept = []
    monkeypatch.setattr(
        "workflows_emulator.lib.sys_utils.sleep", lambda seconds: slept.append(seconds)
    )

    def run(dataflow, **args):
        monkeypatch.setattr(emulator, "authenticated_request", dataflow.request)
        common = {"templates": FOLDER, "table": str(dataflow.table), "location": "europe-west1",
                  "environment": {"maxWorkers": 2}}  # fmt: skip
        found = emulator.execute_workflow(workflow(), {"args": common | args})
        assert set(slept) == {30}
        assert len(slept) == 2 * len(dataflow.launched)  # it waits while a job is running
        return found

    return run


def as_parameters(words):
    flags = words[::2]
    return {flag.removeprefix("--"): value for flag, value in zip(flags, words[1::2], strict=True)}


@pytest.mark.long
def test_crawls_until_nothing_is_due(execute, web, tmp_path):
    dataflow = Dataflow(tmp_path / "table")
    parameters = as_parameters(reach(web))
    found = execute(dataflow, seeds=",".join(web.seeds), rounds=9, parameters=parameters)
    assert found == {"rounds": 3}  # the third found nothing due
    assert [template for template, _ in dataflow.launched] == ["inject", "round", "round", "round"]
    assert dataflow.launched[1][1].items() > parameters.items()
    assert crawl(tmp_path / "other", web, *web.seeds) == 0
    assert_same(contents(dataflow.table), contents(tmp_path / "other"))


@pytest.mark.long
def test_the_workflow_ends_after_its_rounds_and_needs_no_seeds(execute, web, tmp_path):
    dataflow = Dataflow(tmp_path / "table")
    assert nutbeam("inject", dataflow.table, *web.seeds) == 0
    assert execute(dataflow, rounds=1, parameters=as_parameters(reach(web))) == {"rounds": 1}
    assert [template for template, _ in dataflow.launched] == ["round"]


def test_a_failed_job_fails_the_workflow(execute, web, tmp_path):
    dataflow = Dataflow(tmp_path / "table", fail=True)
    with pytest.raises(Exception, match=r"job nutbeam-\S+-inject ended as JOB_STATE_FAILED"):
        execute(dataflow, seeds=web.seeds[0], parameters={})
    assert len(dataflow.launched) == 1


def test_its_counters_are_those_of_updatedb():
    [(namespace, name)] = metrics_of("update", "status/db_fetched")
    assert (namespace, name) == ("nutbeam_crawldb", "db_fetched")
    assert f'"{namespace}"' in WORKFLOW.read_text("utf-8")
    dag = ROOT / "templates" / "airflow" / "nutbeam_crawl_dataflow.py"
    assert f'PROGRESS = "{namespace}"' in dag.read_text("utf-8")
