"""Flex Templates: launched as their launcher does, staged for real, and what is staged is run."""

import io
import json
import shutil
import zipfile
from concurrent.futures import ThreadPoolExecutor

import pytest
from crawling import asked, assert_same, assert_whole, contents, crawl, manifest_of, nutbeam, tree
from dataflow_parameters import matches
from running import PRISM
from simulated_web import served_web

from nutbeam.pipelines.reference_pages.template_files import TEMPLATES, template

pytest.importorskip("google.cloud.storage", reason="make test-dataflow installs the extra gcp")
from gcs_server import PROGRAM, GcsServer
from staged import BOOT, BUCKET, IMAGE, Launcher, Prism

TOOLS = [PROGRAM, PRISM, BOOT]
MISSING = [str(tool) for tool in TOOLS if not tool.exists()]
pytestmark = [
    pytest.mark.dataflow,
    pytest.mark.skipif(bool(MISSING), reason=f"make test-dataflow builds {', '.join(MISSING)}"),
]
# Each job by its own template, and then rounds.
PHASES = ("generate", "fetch", "parse", "updatedb", "dedup")
BARRED = "h1.example.com"
EXCLUDED = "//h2"
# Links and ranks, one after the other on one table; then its links are merged into another.
INDEXING = ("index", "clean")
LINKS = ("invertlinks", "webgraph", "linkrank", "scoreupdater")
# Each on a table of its own.
ALONE = ("purge", "filterdb", "updatehostdb", "mergelinkdb")
WITHIN = ("ignore_internal_host", "ignore_internal_domain")


web = served_web(hosts=3, pages=4, scope="module")


@pytest.fixture(scope="module")
def server():
    with GcsServer() as running:
        yield running


@pytest.fixture(scope="module")
def launcher(server):
    return Launcher(server)


def parameters_of(command, table, web, others=None):
    """Returns the parameters of a launch, checked as Dataflow would against the metadata."""
    given = {"table": str(table)} | ({} if "://" in str(table) else {"shared_path": "true"})
    if command == "inject":
        given["seeds"] = ",".join(web.seeds)
    if command == "purge":
        given["host"] = BARRED
    if command == "filterdb":
        given["exclude"] = EXCLUDED
    if command == "webgraph":  # the first batch has links within hosts only
        given |= dict.fromkeys(WITHIN, "false")
    if command == "mergelinkdb":
        given["others"] = str(others)
    if command in INDEXING:
        given |= {"writer": "dummy", "writer_parameters": "path=documents"}
    if command in ("fetch", "round", "sitemap"):
        given |= {"connect_to": ",".join(web.connect_to), "server_delay": "0"}
    declared = {parameter["name"]: parameter for parameter in template(command)["parameters"]}
    assert all(matches(declared[name], text) for name, text in given.items())
    assert {n for n, p in declared.items() if not p["isOptional"]} <= {"command", *given}
    return given


def oldest_batch(table):
    batches = manifest_of(table).batches
    return ["--batch", min(batches, key=lambda name: batches[name].created)]


@pytest.fixture(scope="module")
def here(web, tmp_path_factory):
    """The same web, crawled in this process: the table, and what was asked for."""
    table = tmp_path_factory.mktemp("here") / "table"
    before = len(asked(web))
    assert crawl(table, web, *web.seeds) == 0
    return table, asked(web)[before:]


@pytest.fixture(scope="module")
def tables(here, tmp_path_factory):
    """The folder of the table that the staged jobs crawl, and copies of what was crawled here.

    ``others`` has links: mergelinkdb reads them at its launch.
    """
    folder = tmp_path_factory.mktemp("dataflow")
    names = ("purge", "filterdb", "updatehostdb", "links", "mergelinkdb", "others")
    copies = {name: shutil.copytree(here[0], folder / name) for name in names}
    assert nutbeam("invertlinks", copies["others"], *oldest_batch(here[0])) == 0
    return folder, copies


@pytest.fixture(scope="module")
def prism(tables):
    with Prism(tables[0]) as running:
        yield running


@pytest.fixture(scope="module")
def stage(web, launcher, tables):
    """Stages a job by its template, for the table that it is about."""
    folder, copies = tables

    def run(command):
        its = copies["links"] if command in LINKS else copies.get(command, folder / "table")
        return launcher.launch(command, folder, parameters_of(command, its, web, copies["others"]))

    return run


@pytest.fixture(scope="module")
def jobs(stage, prism):
    """What was staged, by template, when the table had nothing but seeds."""
    staged = {"inject": stage("inject")}
    prism.run(staged["inject"])
    others = [command for command in TEMPLATES if command not in staged]
    with ThreadPoolExecutor(2) as pool:
        return staged | dict(zip(others, pool.map(stage, others), strict=True))


@pytest.fixture(scope="module")
def results(stage, jobs, here, tables, prism):
    """The tables, after all jobs have run in which no index takes part."""
    # The last round finds nothing that is due.
    rounds = len(manifest_of(here[0]).batches)
    with ThreadPoolExecutor(2) as pool:
        more = list(pool.map(stage, ["round"] * (rounds - 1)))
    phases = [jobs[command] for command in (*PHASES, "round")]
    for job in (*phases, *more, *(jobs[command] for command in ("compact", *ALONE, *LINKS))):
        prism.run(job)
    return tables[1] | {"crawl": tables[0] / "table"}


@pytest.mark.long
def test_the_staged_graphs_crawl_as_the_command_does(web, here, results):
    table, requests = results["crawl"], asked(web)
    there, asked_there = here
    assert manifest_of(table).job == "compact"
    assert_whole(table, web.site)
    batches = manifest_of(table).batches
    assert len(batches) == len(manifest_of(there).batches) >= 3
    assert {batch.phase for batch in batches.values()} == {"updated"}
    assert sorted(requests[len(asked_there) :]) == sorted(asked_there)
    assert_same(contents(table), contents(there))


@pytest.mark.long
@pytest.mark.parametrize(
    ("command", "words", "count"),
    [
        ("purge", ("--host", BARRED), "rows/state"),
        ("filterdb", ("--exclude", EXCLUDED), "dropped/excluded"),
        ("updatehostdb", (), "counted_hosts"),
    ],
)
def test_a_staged_job_gives_the_same_table_as_the_command(
    here, results, tmp_path, command, words, count
):
    table, staged = shutil.copytree(here[0], tmp_path / "table"), results[command]
    assert nutbeam(command, table, *words) == 0
    assert manifest_of(table).counts == manifest_of(staged).counts
    assert manifest_of(table).counts[count] > 0
    assert_same(contents(staged), contents(table))


@pytest.mark.long
def test_staged_links_and_ranks_are_those_of_the_commands(here, results, tmp_path):
    table, merged = (shutil.copytree(here[0], tmp_path / name) for name in ("table", "merged"))
    words = {  # a launch of a template inverts the oldest batch, the command all of them
        "invertlinks": oldest_batch(table),
        "webgraph": [f"--{name}=false" for name in WITHIN],
    }
    for command in LINKS:
        assert nutbeam(command, table, *words.get(command, ())) == 0
    assert nutbeam("mergelinkdb", merged, table) == 0
    assert_same(contents(results["links"]), contents(table))
    assert_same(contents(results["mergelinkdb"]), contents(merged))


@pytest.mark.parametrize("command", TEMPLATES)
def test_a_job_is_staged_whole(server, jobs, command):
    job = jobs[command]
    record = job.record
    assert record["type"] == "JOB_TYPE_BATCH"
    assert "submitted" in job.said
    (environment,) = job.environments()  # one image, with nutbeam: no wheel needs to come along
    assert IMAGE.encode() in environment.payload
    (pool,) = record["environment"]["workerPools"]
    assert [i["containerImage"] for i in pool["sdkHarnessContainerImages"]] == [IMAGE]
    artifacts = dict(job.artifacts())
    assert all(artifacts.values())
    assert not [name for name in artifacts if name.endswith((".whl", ".tar.gz"))]
    assert "pickled_main_session" not in artifacts
    # What the job names is in the bucket, and the other way round.
    folder = record["environment"]["sdkPipelineOptions"]["options"]["staging_location"]
    prefix = folder.removeprefix(f"gs://{BUCKET}/")
    packages = {package["name"] for package in pool["packages"]}
    assert packages == artifacts.keys()
    assert set(server.names(BUCKET, prefix)) == {
        f"{prefix}/{name}" for name in (*artifacts, "pipeline.pb")
    }


@pytest.mark.parametrize("command", TEMPLATES)
def test_a_graph_is_small_and_its_steps_have_names_of_their_own(jobs, command):
    job = jobs[command]
    assert job.size < 1 << 20
    names = [step.unique_name for step in job.pipeline.components.transforms.values()]
    assert len(names) == len(set(names))


def test_options_that_the_launcher_sets_reach_dataflow(jobs):
    record = jobs["round"].record
    options = record["environment"]["sdkPipelineOptions"]["options"]
    assert record["name"].startswith("nutbeam-round-")
    assert options["region"] == "us-central1"
    assert options["service_account_email"].startswith("crawler@")
    assert record["labels"] == json.loads('{"goog-dataflow-provided-template-type": "flex"}')


def test_a_crawl_to_a_table_in_cloud_storage(web, here, server, launcher, tmp_path, monkeypatch):
    table = f"gs://{BUCKET}/tables/mine"
    before, rounds = len(asked(web)), len(manifest_of(here[0]).batches)
    with Prism(tmp_path, server.environ) as prism:
        for command in ("inject", *["round"] * rounds):
            prism.run(launcher.launch(command, tmp_path, parameters_of(command, table, web)))
    for name, value in server.environ.items():
        monkeypatch.setenv(name, value)
    assert_whole(table, web.site)
    assert sorted(asked(web)[before:]) == sorted(here[1])
    assert_same(contents(table), contents(here[0]))
    assert nutbeam("readdb", table, "--stats") == 0


def test_a_launch_that_cannot_work_fails_with_one_line(launcher, here, tmp_path):
    table = tmp_path / "copy"
    shutil.copytree(here[0], table)
    able = {"table": str(table), "shared_path": "true"}
    for parameters, environ, word in [
        ({"table": str(table)}, {}, "--shared_path"),
        (able | {"top_n": "many"}, {}, "--top_n"),
        (able | {"top": "1"}, {}, "--top"),
        (able | {"table": str(tmp_path / "none")}, {}, "no web table"),
        ({"table": "gs://none/table"}, {}, "no bucket 'none'"),
        (able, {"NO_GCE_CHECK": "true"}, "no Google Cloud credentials"),
    ]:
        said = launcher.refuse("generate", tmp_path, parameters, **environ)
        assert said.count("\n") == 1
        assert said.startswith("nutbeam generate: ")
        assert word in said
    assert tree(table, ignore=()) == tree(here[0], ignore=())


def test_a_launch_without_our_image_brings_nutbeam_along(web, launcher, tmp_path):
    table = tmp_path / "table"
    job = launcher.submit("inject", tmp_path, parameters_of("inject", table, web))
    artifacts = dict(job.artifacts())
    wheels = [name for name in artifacts if name.endswith(".whl")]
    assert [name.partition("-")[0] for name in wheels] == ["nutbeam"]
    with zipfile.ZipFile(io.BytesIO(artifacts[wheels[0]])) as archive:
        assert {"nutbeam/pipelines/inject.py", "nutbeam/web/urls/row_keys.py"} <= set(
            archive.namelist()
        )
    with Prism(tmp_path) as prism:
        prism.run(job, bare=True)
    assert manifest_of(table).counts["injected"] == len(web.seeds)
