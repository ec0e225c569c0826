"""The manifests for Flink against Flink, the Flink operator and the job server themselves.

Needs what `make test-flink` brings into build/tools.
"""

import contextlib
import shutil
import subprocess
import zipfile

import grpc
import pytest
import yaml
from apache_beam.portability.api import beam_job_api_pb2, beam_job_api_pb2_grpc
from flink.cluster import JAR, TOOLS, free_ports, wait_for
from flink.settings import JOB_MANAGER, TASK_MANAGER, java_words, write_config
from flink_templates import FLINK, OF_THE_JOB_SERVER, compose, containers, objects, settings
from guide_blocks import blocks
from here import ROOT

OPERATOR = TOOLS / "flink-kubernetes-operator-api.jar"
CRD = "META-INF/fabric8/flinkdeployments.flink.apache.org-v1.yml"
pytestmark = [
    pytest.mark.flink,
    pytest.mark.skipif(not FLINK.exists(), reason="templates/ is not part of the wheel"),
]


def strict(schema):
    """Returns a schema that refuses what the API server would silently drop."""
    if isinstance(schema, list):
        return [strict(inner) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: strict(inner) for name, inner in schema.items()}
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        kept = schema.get("x-kubernetes-preserve-unknown-fields")
        made.setdefault("additionalProperties", bool(kept))
    return made


@pytest.fixture(scope="module")
def crd():
    if not OPERATOR.exists():
        pytest.skip(f"{OPERATOR} is missing: make test-flink fetches it by Maven")
    with zipfile.ZipFile(OPERATOR) as jar:
        definition = yaml.load(jar.read(CRD), yaml.CSafeLoader)
    [version] = [v for v in definition["spec"]["versions"] if v["name"] == "v1beta1"]
    return strict(version["schema"]["openAPIV3Schema"]["properties"]["spec"])


def test_flink_deployment_follows_the_operators_definition(crd):
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    [cluster] = objects("FlinkDeployment")
    assert cluster["apiVersion"] == "flink.apache.org/v1beta1"
    jsonschema.validate(cluster["spec"], crd)
    manager = cluster["spec"]["taskManager"]["podTemplate"]["spec"]
    manager["containers"][1]["volumMounts"] = []  # a misspelling deep inside is noticed
    with pytest.raises(jsonschema.ValidationError, match="volumMounts"):
        jsonschema.validate(cluster["spec"], crd)


@pytest.fixture(scope="module")
def jar():
    if not JAR.exists() or shutil.which("java") is None:
        pytest.skip("needs Java and build/tools/flink-job-server.jar: make test-flink makes it")
    return JAR


def test_settings_are_flinks(jar):
    with zipfile.ZipFile(jar) as archive:
        names = [n for n in archive.namelist() if n.startswith("org/apache/flink/configuration/")]
        constants = b"\n".join(archive.read(name) for name in names if name.endswith(".class"))
    for found in settings():
        assert [name for name in found if name.encode() not in constants] == []
    assert b"taskmanager.memory.task.heep.size" not in constants


def guide_settings():
    [lines] = [text for text, _ in blocks(ROOT / "docs/guides/flink.md", "yaml")]
    return {name: str(value) for name, value in yaml.safe_load(lines).items()}


def published():
    """Yields the settings of each place, as they are added to those of Flink's distribution."""
    yield guide_settings()
    yield from settings()


@pytest.mark.parametrize("number", [0, 1, 2], ids=["guide", "compose", "kubernetes"])
def test_flink_takes_the_published_memory_on_top_of_its_own_settings(jar, number, tmp_path):
    of_place = list(published())[number]
    write_config(tmp_path, of_place)
    options, calculated = java_words("java", jar, TASK_MANAGER, tmp_path)
    sizes = dict(word.split("=") for word in calculated if "=" in word)

    def mebibytes(name):
        return int(sizes[f"taskmanager.memory.{name}"].removesuffix("b")) >> 20

    assert mebibytes("task.heap.size") >= 896
    assert mebibytes("managed.size") == 512  # a key may have a quarter of it
    assert mebibytes("network.max") == 256
    assert any(word.startswith("-Xmx") for word in options)
    assert java_words("java", jar, JOB_MANAGER, tmp_path)


def test_without_the_size_of_the_process_nothing_is_left_for_the_heap_of_tasks(jar, tmp_path):
    found = guide_settings()
    del found["taskmanager.memory.process.size"]  # what the distribution has stays: 1728m
    write_config(tmp_path, found)
    assert (
        "taskmanager.memory.task.heap.size=0b" in java_words("java", jar, TASK_MANAGER, tmp_path)[1]
    )
    write_config(tmp_path, found | {"taskmanager.memory.task.heap.size": "896m"})
    with pytest.raises(ValueError, match="Total Process Memory size"):
        java_words("java", jar, TASK_MANAGER, tmp_path)


def test_the_same_settings_are_published_everywhere():
    first, *others = published()
    for found in others:
        assert {name: str(found.get(name)) for name in first} == first


def arguments():
    """Yields the job server's arguments, of each set-up."""
    yield compose()["services"]["jobserver"]["command"]
    [found] = [c["args"] for _, c in containers() if c["name"] == "jobserver"]
    yield found


@pytest.mark.parametrize("number", [0, 1], ids=["compose", "kubernetes"])
def test_the_job_server_takes_its_arguments_and_knows_the_options(jar, number, tmp_path):
    ports = dict(zip(("8099", "8098", "8097"), map(str, free_ports(3)), strict=True))
    words = []
    for word in list(arguments())[number]:
        flag, _, value = word.partition("=")
        words.append(f"{flag}={ports.get(value, value)}".replace("/artifacts", str(tmp_path)))
    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen(["java", "-jar", jar, *words], stdout=log, stderr=log)
    try:
        channel = grpc.insecure_channel(f"localhost:{ports['8099']}")
        stub = beam_job_api_pb2_grpc.JobServiceStub(channel)
        request = beam_job_api_pb2.DescribePipelineOptionsRequest()

        def described():
            assert server.poll() is None, (tmp_path / "log").read_text()
            with contextlib.suppress(grpc.RpcError):
                return stub.DescribePipelineOptions(request, timeout=5)

        answer = wait_for(described, "the job server")
        known = {f"--{option.name}" for option in answer.options}
        assert known >= OF_THE_JOB_SERVER
        channel.close()
    finally:
        server.kill()
        server.wait()
