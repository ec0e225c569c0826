"""The manifests for Flink are what their schemas allow, name real options, and avoid known traps.

No container runs here: what is tested is what can be tested of a file.
"""

import importlib.resources
import ipaddress
import itertools
import json
import os
import random
import re
import shlex
import subprocess

import pytest
import yaml
from flink_templates import (
    COMPOSE,
    FLINK,
    MANIFESTS,
    OF_THE_JOB_SERVER,
    compose,
    containers,
    documents,
    objects,
    settings,
)
from guide_blocks import blocks

from nutbeam.io.parsing.parser_limits import PARSER_BYTES, share_of_worker
from nutbeam.pipelines.command_line.arguments import command_options, read_invocation, split
from nutbeam.pipelines.command_line.cli import beam_parser, load, option_names
from nutbeam.pipelines.command_line.commands import COMMANDS
from nutbeam.pipelines.command_line.config import DeclaredOptions
from nutbeam.web.base.option_checks import check_setup
from nutbeam.web.network.guard import is_public

STORE = FLINK / "kubernetes-store" / "store.yaml"
COMPOSE_STORE = FLINK / "docker-compose.store.yaml"
README = FLINK / "README.md"
KUBERNETES = "1.31"  # whose schemas are used
pytestmark = pytest.mark.skipif(not FLINK.exists(), reason="templates/ is not part of the wheel")


def strings(value):
    """Yields all strings in a document."""
    if isinstance(value, dict):
        for inner in value.values():
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)
    elif isinstance(value, str):
        yield value


def test_compose_file_follows_its_schema():
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    pytest.importorskip("check_jsonschema", reason="check-jsonschema is not installed")
    folder = importlib.resources.files("check_jsonschema") / "builtin_schemas" / "vendor"
    schema = json.loads((folder / "compose-spec.json").read_text())
    jsonschema.validate(compose(), schema)
    jsonschema.validate(yaml.safe_load(COMPOSE_STORE.read_text("utf-8")), schema)
    with pytest.raises(jsonschema.ValidationError):  # the schema does notice a misspelling
        jsonschema.validate({"services": {"a": {"image": "a", "comand": "b"}}}, schema)


@pytest.mark.parametrize("path", [*MANIFESTS, STORE], ids=lambda path: path.name)
def test_manifests_follow_the_schemas_of_kubernetes(path):
    validator = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is missing")
    for document in documents(path):
        if document["kind"] != "FlinkDeployment":
            validator.validate(document, KUBERNETES, strict=True)


def test_images_are_of_the_beam_that_is_pinned():
    """A job server of another version than the workers' is not supported by Beam."""
    pins = (FLINK.parent / "dataflow/requirements.txt").read_text("utf-8")
    version = re.search(r"^apache-beam(?:\[[\w,]+\])?==([\d.]+)", pins, re.MULTILINE)[1]
    texts = [
        p.read_text("utf-8")
        for p in (COMPOSE, COMPOSE_STORE, README, FLINK / "Dockerfile", STORE, *MANIFESTS)
    ]
    tags = re.findall(
        r"(?:job_server|beam_python[\d.]+_sdk|nutbeam-worker|nutbeam-flink):([\w.-]+)|ARG BEAM=(.+)",
        "\n".join(texts),
    )
    assert len(tags) > 8
    assert {tag or argument for tag, argument in tags} == {version}, "change the tags in templates/"


def test_one_version_of_flink_everywhere():
    text = "\n".join(p.read_text("utf-8") for p in (COMPOSE, FLINK / "Dockerfile", *MANIFESTS))
    images = re.findall(r"ARG FLINK=([\d.]+)-java17", text)
    servers = re.findall(r"beam_flink([\d.]+)_job_server", text)
    [cluster] = objects("FlinkDeployment")
    assert images == ["1.19.0"]  # that of the job server's jar, whose classes come first
    assert len(servers) == 3
    assert {*servers, cluster["spec"]["flinkVersion"].replace("_", ".")[1:]} == {"1.19"}


# What runs nutbeam: (where it stands, words after ``nutbeam``).


def compose_commands():
    for name, service in compose()["services"].items():
        if service.get("entrypoint") == ["nutbeam"] and service["command"] != ["--help"]:
            yield name, service["command"]


def kubernetes_commands():
    for document, container in containers():
        words = [*container.get("command", []), *container.get("args", [])]
        if "nutbeam" in words:
            yield document["metadata"]["name"], words[words.index("nutbeam") + 1 :]


def readme_commands():
    """What is typed in the README, with variables filled in by the shell itself."""
    lines = "\n".join(text for text, _ in blocks(README, "bash"))
    shell = """
        make() { :; }; cd() { :; }; helm() { :; }; kubectl() { :; }
        docker() { printf '%q ' "$@"; echo; }
    """
    typed = subprocess.run(
        ["bash", "-euc", shell + lines], capture_output=True, text=True, check=True
    ).stdout
    for line in typed.splitlines():
        words = shlex.split(line)
        if words[0] == "compose" and "run" in words:
            yield "README.md", words[words.index("nutbeam", words.index("run")) + 1 :]


ALL_COMMANDS = [
    (where, tuple(words))
    for found in (compose_commands, kubernetes_commands, readme_commands)
    if FLINK.exists()
    for where, words in found()
]


@pytest.fixture
def config(tmp_path):
    """The nutbeam.toml of the ConfigMap, as the pods see it."""
    [found] = objects("ConfigMap")
    path = tmp_path / "nutbeam.toml"
    path.write_text(found["data"]["nutbeam.toml"])
    return path


@pytest.mark.parametrize(("where", "words"), ALL_COMMANDS, ids=str)
def test_commands_could_be_run(where, words, config):
    words = [word.replace("/crawl/nutbeam.toml", str(config)) for word in words]
    module = load(words[0])
    options = command_options(module)
    parser = beam_parser if COMMANDS[words[0]].beam else None
    typed = split(words[1:], options, module.ARGUMENTS, parser)
    known = DeclaredOptions(options, COMMANDS, option_names)
    invocation, _ = read_invocation(words[0], module, typed, {}, known)
    check_setup(invocation.options)
    # Beam's Python parser passes what it does not know on to the job server.
    flags = {word.partition("=")[0] for word in invocation.beam_args}
    assert flags <= set(beam_parser()._option_string_actions) | OF_THE_JOB_SERVER
    if invocation.beam_args:
        assert invocation.options.shared_path
        assert flags == {
            "--runner", "--job_endpoint", "--artifact_endpoint", "--parallelism",
            "--environment_type", "--environment_config", "--environment_cache_millis",
            "--execution_mode_for_batch",
        }  # fmt: skip


def test_there_are_commands():
    assert [words[0] for _, words in ALL_COMMANDS] == [
        "simweb", "simweb", "inject", "next", "crawl", "readdb", "pages", "inject", "next", "crawl",
    ]  # fmt: skip


def test_readme_names_services_that_exist():
    services = set(compose()["services"])
    text = README.read_text("utf-8")
    assert set(re.findall(r"docker compose run --rm (\w+)", text)) <= services
    assert set(re.findall(r"`((?:taskmanager|worker)\d)`", text)) <= services
    profiles = {p for s in compose()["services"].values() for p in s.get("profiles", [])}
    assert set(re.findall(r"--profile (\w+)", text)) <= profiles
    for path in re.findall(r"-f (templates/\S+)", text):
        assert (FLINK.parent.parent / path).exists()
    applied = set(re.findall(r"-f templates/flink/kubernetes/(\S+)", text))
    assert applied == {path.name for path in MANIFESTS}


def test_all_services_that_need_a_table_in_a_store_reach_it():
    extra = yaml.safe_load(COMPOSE_STORE.read_text("utf-8"))["services"]
    led = {name for name, s in extra.items() if "AWS_ENDPOINT_URL" in s.get("environment", {})}
    services = compose()["services"]
    touching = {n for n, s in services.items() if "table:/table" in s.get("volumes", [])}
    assert {n for n in touching if not n.startswith("simweb")} == led - {"bucket"}
    assert extra["store"]["environment"] == {
        "MINIO_ROOT_USER": extra["nutbeam"]["environment"]["AWS_ACCESS_KEY_ID"],
        "MINIO_ROOT_PASSWORD": extra["nutbeam"]["environment"]["AWS_SECRET_ACCESS_KEY"],
    }
    secret, *_, bucket = documents(STORE)
    reference = {"name": secret["metadata"]["name"]}
    for _, container in containers():
        if any(m["name"] == "table" for m in container["volumeMounts"]):
            assert container["envFrom"] == [{"secretRef": reference | {"optional": True}}]
    assert bucket["spec"]["template"]["metadata"]["labels"]["nutbeam"] == "command"


# Traps.


def test_each_task_manager_has_a_worker_pool_of_its_own():
    services = compose()["services"]
    managers = [n for n, s in services.items() if s.get("command") == "taskmanager"]
    pools = [s["network_mode"] for s in services.values() if s.get("command") == ["--worker_pool"]]
    assert sorted(pools) == sorted(f"service:{name}" for name in managers)
    [cluster] = objects("FlinkDeployment")
    assert cluster["spec"]["flinkConfiguration"]["taskmanager.numberOfTaskSlots"] == "1"
    sidecars = cluster["spec"]["taskManager"]["podTemplate"]["spec"]["containers"]
    assert [c["args"] for c in sidecars if c["name"] != "flink-main-container"] == [
        ["--worker_pool"]
    ]


def test_as_much_work_at_once_as_there_are_slots():
    managers = [s for s in compose()["services"].values() if s.get("command") == "taskmanager"]
    [cluster] = objects("FlinkDeployment")
    slots = {len(managers), cluster["spec"]["taskManager"]["replicas"]}
    words = [word for _, words in ALL_COMMANDS for word in words]
    assert {int(w.partition("=")[2]) for w in words if w.startswith("--parallelism=")} == slots
    [toml] = [d["data"]["nutbeam.toml"] for d in objects("ConfigMap")]
    fetchers = [b for a, b in itertools.pairwise(words) if a == "--num_fetchers"]
    assert {*map(int, fetchers), int(re.findall(r"num_fetchers = (\d+)", toml)[0])} == slots


def test_task_managers_see_the_artifacts_of_the_job_server():
    services = compose()["services"]
    server = services["jobserver"]
    assert "--artifacts-dir=/artifacts" in server["command"]
    mounts = [s["volumes"] for s in services.values() if s.get("command") == "taskmanager"]
    assert [volume.split(":")[:2] for [volume] in [server["volumes"], *mounts]] == [
        ["artifacts", "/artifacts"]
    ] * 3
    mounted = {
        container["name"]: {m["name"]: m["mountPath"] for m in container["volumeMounts"]}
        for _, container in containers()
    }
    assert mounted["jobserver"] == mounted["flink-main-container"] == {"artifacts": "/artifacts"}
    # The command and the workers have the table at the same place.
    assert mounted["worker"]["table"] == mounted["nutbeam"]["table"] == "/table"


def test_the_cluster_retries_jobs_and_ends_processes_that_run_out_of_memory():
    for found in settings():
        assert found["restart-strategy.type"] == "fixed-delay"
        assert int(found["restart-strategy.fixed-delay.attempts"]) >= 3
        assert found["cluster.uncaught-exception-handling"] == "FAIL"
        assert "-XX:+ExitOnOutOfMemoryError" in found["env.java.opts.taskmanager"]
        assert found["taskmanager.memory.managed.size"] == "512m"  # a key may have a quarter of it


def test_flink_has_beam_on_its_own_class_path():
    """Else a worker ends with each step; Beam keeps it only if Flink's own loader has loaded Beam."""
    for found in settings():
        assert found["classloader.resolve-order"] == "parent-first"
    [cluster] = objects("FlinkDeployment")
    of_compose = {
        s["image"] for s in compose()["services"].values() if "FLINK_PROPERTIES" in str(s)
    }
    assert {cluster["spec"]["image"]} == of_compose
    image = (FLINK / "Dockerfile").read_text("utf-8")
    assert re.search(
        r"AS flink-with-beam\nCOPY --from=jobserver \S+ \S+/jars/\*.jar \S+/lib/", image
    )


def test_commands_deliver_nothing_to_workers_whose_image_has_it():
    for _, words in ALL_COMMANDS:
        if any(word.startswith("--runner") for word in words):
            assert "--deliver=false" in words or ("--deliver", "false") in itertools.pairwise(words)


def test_a_job_is_not_started_again_with_the_worker_that_died():
    """A worker is kept for a while after its step, and forgotten before a restart."""
    kept = {
        int(word.partition("=")[2])
        for _, words in ALL_COMMANDS
        for word in words
        if word.startswith("--environment_cache_millis=")
    }
    delays = {found["restart-strategy.fixed-delay.delay"] for found in settings()}
    assert len(kept) == len(delays) == 1
    assert 0 < kept.pop() < 1000 * int(delays.pop().removesuffix(" s"))


def test_processes_that_parse_fit_the_container_of_their_worker():
    """They follow its limits; without limits there would be one for each core of the machine."""
    services = compose()["services"]
    workers = [s for s in services.values() if s.get("command") == ["--worker_pool"]]
    limits = [(s["cpus"], memory_limit(s["mem_limit"])) for s in workers]
    for _, container in containers():
        if container["name"] == "worker":
            of_pod = container["resources"]["limits"]
            limits.append((int(of_pod["cpu"]), memory_limit(of_pod["memory"])))
    assert len(limits) == 3
    for cores, memory in limits:
        fit = share_of_worker(cores, memory, workers=1)
        assert fit.processes == cores
        assert fit.memory >= cores * PARSER_BYTES
        assert memory - fit.memory >= 1 << 30  # the worker itself


def memory_limit(text):
    number, unit = re.fullmatch(r"(\d+)(\w+)", text).groups()
    return int(number) << {"g": 30, "Gi": 30, "Mi": 20, "m": 20}[unit]


def test_the_readme_asks_for_the_memory_that_the_containers_may_take():
    services, flink = compose()["services"].values(), next(iter(settings()))
    sizes = [s["mem_limit"] for s in services if s.get("command") == ["--worker_pool"]]
    names = [s["command"] for s in services if "FLINK_PROPERTIES" in s.get("environment", {})]
    sizes += [flink[f"{name}.memory.process.size"] for name in names]
    [asked] = re.findall(r"(\d+) GB of memory", README.read_text("utf-8"))
    assert len(sizes) == 5
    assert sum(map(memory_limit, sizes)) <= int(asked) << 30


def test_workers_reach_public_addresses_only():
    [policy] = [p for p in objects("NetworkPolicy") if p["metadata"]["name"] == "nutbeam-web"]
    [rule] = policy["spec"]["egress"]
    allowed = [to["ipBlock"] for to in rule["to"]]

    def reaches(address):
        parsed = ipaddress.ip_address(address)
        return any(
            parsed in ipaddress.ip_network(block["cidr"])
            and not any(parsed in ipaddress.ip_network(part) for part in block["except"])
            for block in allowed
        )

    def both_sides(part):
        """Returns the first and the last address of a network, and their neighbours."""
        network = ipaddress.ip_network(part)
        kind = type(network[0])
        first, last = int(network[0]), int(network[-1])
        edges = [n for n in (first - 1, first, last, last + 1) if 0 <= n < 2**network.max_prefixlen]
        return [str(kind(number)) for number in edges]

    excepted = [part for block in allowed for part in block["except"]]
    chance = random.Random(7)
    samples = [str(ipaddress.IPv4Address(chance.getrandbits(32))) for _ in range(5000)]
    samples += [str(ipaddress.IPv6Address(chance.getrandbits(128))) for _ in range(5000)]
    samples += [address for part in excepted for address in both_sides(part)]
    samples += ["fd00::1", "fe80::1", "::1", "64:ff9b::a00:1", "::ffff:10.0.0.1", "169.254.169.254"]
    # 6to4 (2002::/16) carries IPv4 addresses, good and bad: left out as a whole.
    wrong = [a for a in samples if reaches(a) != (is_public(a) and not a.startswith("2002:"))]
    assert wrong == []
    # No other policy opens a way to addresses, and every pod is under one.
    for other in objects("NetworkPolicy"):
        if other != policy:
            peers = [p for rule in other["spec"].get("egress", []) for p in rule["to"]]
            assert peers
            assert not any("ipBlock" in peer for peer in peers)
    labels = [
        d["spec"].get("jobTemplate", d)["spec"]["template"]["metadata"]["labels"]
        for kind in ("Deployment", "Job", "CronJob")
        for d in objects(kind)
    ]
    assert all("nutbeam" in found for found in labels)


@pytest.mark.parametrize(("code", "ends"), [(1, 0), (2, 2), (3, 3)])
def test_the_cron_job_ends_when_nothing_is_due_or_something_fails(code, ends, tmp_path):
    """Of four phases the fourth ends with a code other than 0."""
    phase = tmp_path / "phase"
    phase.write_text(f"echo x >> log; [ $(wc -l < log) -lt 4 ] || exit {code}")
    [job] = objects("CronJob")
    [container] = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    words = [*container["command"], "sh", phase]
    ran = subprocess.run(words, check=False, cwd=tmp_path, env={"PATH": os.environ["PATH"]})
    assert ran.returncode == ends
    assert (tmp_path / "log").read_text() == "x\n" * 4
