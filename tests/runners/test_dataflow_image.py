"""The image of the Flex Templates, as far as it can be tried without building it."""

import contextlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from string import Template

import pytest
from here import ROOT
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from nutbeam.pipelines.command_line.arguments import command_options, read_invocation, split
from nutbeam.pipelines.command_line.cli import beam_parser, load, option_names
from nutbeam.pipelines.command_line.commands import COMMANDS
from nutbeam.pipelines.command_line.config import DeclaredOptions
from nutbeam.pipelines.reference_pages.template_files import TEMPLATES

FOLDER = ROOT / "templates" / "dataflow"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="templates/ is not part of the wheel")
PYTHON = {"python_version": "3.11", "python_full_version": "3.11.9", "sys_platform": "linux",
          "platform_system": "Linux", "platform_machine": "x86_64", "os_name": "posix",
          "platform_python_implementation": "CPython"}  # fmt: skip
ARGS = {"NUTBEAM_IMAGE": "here/nutbeam:1"}
HASHES = r"((?: \\\n    --hash=sha256:[0-9a-f]{64})+)"
PIN = re.compile(rf"^([a-z0-9][a-z0-9._-]*)==(\S+){HASHES}$", re.MULTILINE)


def steps():
    """Returns (instruction, its words) of the Dockerfile."""
    text = re.sub(r"^#.*\n", "", (FOLDER / "Dockerfile").read_text(), flags=re.MULTILINE)
    lines = text.replace("\\\n", " ").splitlines()
    return [(words[0], words[1:]) for words in map(str.split, lines) if words]


def pinned(name="requirements.txt"):
    """Returns the version of each distribution that a file pins with hashes."""
    text = (FOLDER / name).read_text()
    head, rest = re.sub(PIN, "", text).split("\n", 1)
    assert head.startswith("#")
    assert not rest.strip()  # every line is a pin
    return {name: version for name, version, _ in PIN.findall(text)}


class Stage:
    """A stage of the Dockerfile, played in a folder and an environment of Python's own."""

    def __init__(self, root):
        self._root, self._folder = root, root
        subprocess.run([sys.executable, "-m", "venv", root / "venv"], check=True)
        self._environ = {"PATH": f"{root}/venv/bin:/usr/bin:/bin", "HOME": str(root)}
        for name in ("PIP_CERT", "PIP_INDEX_URL", "SSL_CERT_FILE"):
            if name in os.environ:
                self._environ[name] = os.environ[name]

    def play(self, instructions):
        """Carries out instructions as Docker would; what comes from other images is left out."""
        for name, words in instructions:
            if name == "RUN":
                self._run(" ".join(words))
            elif name == "WORKDIR":
                self._folder = self._place(words[0])
                self._folder.mkdir(parents=True, exist_ok=True)
            elif name == "COPY" and not words[0].startswith("--from="):
                for word in words[:-1]:
                    self._copy(ROOT / word, self._place(words[-1]))
            elif name == "ENV":
                pairs = (word.split("=", 1) for word in words)
                self._environ |= {key: Template(text).safe_substitute(ARGS) for key, text in pairs}

    def _place(self, path):
        return self._root / path[1:] if path.startswith("/") else self._folder / path

    def _copy(self, source, target):
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)

    def _run(self, line):
        line = re.sub(r"(?<![\w.])/(template|wheels)\b", rf"{self._root}/\1", line)
        done = subprocess.run(
            ["sh", "-e", "-c", line], cwd=self._folder, env=self._environ, text=True,
            capture_output=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"


def instructions_of(stage):
    """Returns the instructions of the stage of a name, or of the last one."""
    starts = [i for i, (name, _) in enumerate(steps()) if name == "FROM"]
    ends = [*starts[1:], len(steps())]
    named = {
        steps()[start][1][-1]: (start + 1, end) for start, end in zip(starts, ends, strict=True)
    }
    first, last = named[stage] if stage else (starts[-1] + 1, len(steps()))
    return steps()[first:last]


def asked_for():
    """Returns what nutbeam and its extra gcp ask for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [*project["dependencies"], *project["optional-dependencies"]["gcp"]]


def add_needed(lines, extras, found):
    """Adds the distributions that requirements ask for, and theirs, as far as installed here."""
    for requirement in map(Requirement, lines):
        key = (canonicalize_name(requirement.name), frozenset(requirement.extras))
        if key not in found and any(applies(requirement, extra) for extra in ("", *extras)):
            found.add(key)
            with contextlib.suppress(PackageNotFoundError):  # another Python needs it
                add_needed(requires(requirement.name) or [], requirement.extras, found)


def applies(requirement, extra):
    marker = requirement.marker
    return marker is None or marker.evaluate({**PYTHON, "extra": extra})


def load_main():
    spec = importlib.util.spec_from_file_location("launch_script", FOLDER / "main.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_source_of_a_copy_exists():
    stages = {words[-1] for name, words in steps() if name == "FROM" and "AS" in words}
    for name, words in steps():
        if name != "COPY":
            continue
        if words[0].startswith("--from="):
            assert words[0].removeprefix("--from=") in stages
        else:
            assert [word for word in words[:-1] if not (ROOT / word).exists()] == []


def test_the_launcher_finds_the_script_and_the_workers_their_boot_program():
    variables = dict(w.split("=", 1) for n, words in steps() if n == "ENV" for w in words)
    copied = [words for name, words in steps() if name == "COPY"]
    assert variables["FLEX_TEMPLATE_PYTHON_PY_FILE"] == "/template/main.py"
    assert any("templates/dataflow/main.py" in w and w[-1] == "/template/" for w in copied)
    arguments = {w.partition("=")[0] for n, words in steps() if n == "ARG" for w in words}
    assert "NUTBEAM_IMAGE" in variables.keys() & arguments
    assert ["LICENSE", "/LICENSE"] in copied
    (entry,) = [words for name, words in steps() if name == "ENTRYPOINT"]
    assert entry == ['["/opt/apache/beam/boot"]']
    assert any(w[1:] == ["/opt/apache/beam", "/opt/apache/beam"] for w in copied)


def test_each_worker_of_a_machine_parses_with_one_process_unless_a_parameter_says_otherwise(
    tmp_path,
):
    """Dataflow has a worker for each CPU; the launcher's environment is that of the image."""
    variables = dict(w.split("=", 1) for n, words in steps() if n == "ENV" for w in words)
    module = load("parse")
    options = command_options(module)

    def parsed(*parameters):
        typed = split([str(tmp_path), *parameters], options, module.ARGUMENTS, beam_parser)
        declared = DeclaredOptions(options, COMMANDS, option_names)
        return read_invocation("parse", module, typed, variables, declared)[0].options

    assert (parsed().parse_processes, parsed().all_parsers_memory) == (1, 1 << 30)
    assert parsed("--parse_processes=3").parse_processes == 3


def test_beams_boot_program_is_of_the_version_that_is_pinned():
    (beam,) = [w for n, words in steps() if n == "ARG" for w in words if w.startswith("BEAM=")]
    assert beam == f"BEAM={pinned()['apache-beam']}"


@pytest.mark.dataflow
def test_a_wheel_made_of_the_copied_files_is_complete(tmp_path):
    rooms = ("io", "pipelines", "policy", "transforms", "web")
    here = [path for room in rooms for path in (ROOT / room).rglob("*.py")]
    modules = {f"nutbeam/{path.relative_to(ROOT)}" for path in here}
    Stage(tmp_path).play(instructions_of("wheel"))
    (wheel,) = (tmp_path / "wheels").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert modules <= held
    assert {"nutbeam/__init__.py", "nutbeam/__main__.py", "nutbeam/py.typed"} <= held
    assert {
        "nutbeam/web/rules/regex-urlfilter.txt",
        "nutbeam/web/rules/regex-normalize.xml",
    } <= held


@pytest.mark.dataflow
@pytest.mark.long
@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the image has Python 3.11")
def test_the_instructions_of_the_image_work_in_a_fresh_environment(tmp_path):
    stage = Stage(tmp_path)
    stage.play(instructions_of("wheel"))
    stage.play([("WORKDIR", ["/"]), *instructions_of("")])  # all wheels, pip check, and the command
    python = tmp_path / "venv" / "bin" / "python"
    listed = subprocess.run(
        [python, "-m", "pip", "list", "--format=json"], check=True, capture_output=True
    ).stdout
    versions = {canonicalize_name(found["name"]): found["version"] for found in json.loads(listed)}
    pins = pinned() | pinned("build-requirements.txt")
    assert {name: versions.get(name) for name in pins} == pins
    assert versions.keys() - pins.keys() <= {"pip", "nutbeam"}


def test_the_requirements_of_nutbeam_are_pinned_to_allowed_versions():
    versions = pinned()
    for requirement in map(Requirement, asked_for()):
        version = Version(versions[canonicalize_name(requirement.name)])
        assert requirement.specifier.contains(version), requirement


@pytest.mark.dataflow
def test_all_that_is_needed_is_pinned_with_hashes():
    pytest.importorskip("google.cloud.storage", reason="make test-dataflow installs the extra gcp")
    found = set()
    add_needed(asked_for(), (), found)
    names = {name for name, _ in found}
    assert {"apache-beam", "google-cloud-storage", "grpcio", "polars"} <= names
    assert names <= pinned().keys()


@pytest.mark.dataflow
def test_the_pins_are_to_be_had_and_want_nothing_else(tmp_path):
    uv = shutil.which("uv", path=Path(sys.executable).parent) or shutil.which("uv")
    if not uv:
        pytest.skip("uv is not installed: make test-dataflow installs it")
    # With hashes required, anything that is needed and not pinned is an error; nothing is fetched.
    done = subprocess.run(
        [uv, "pip", "install", "--dry-run", "--require-hashes", "--no-config", "--python-version",
         "3.11", "--python-platform", "x86_64-manylinux_2_28", "--only-binary", ":all:",
         "--no-binary", "google-apitools", "--target", tmp_path / "empty", "-r",
         FOLDER / "requirements.txt"],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    would = re.findall(r"^ \+ (\S+?)==", done.stderr, re.MULTILINE)
    assert set(would) == pinned().keys()


def test_the_launch_script_runs_the_command_of_its_parameter():
    words = load_main().words(
        ["--table=gs://bucket/table", "--command=dedup", "--runner=DataflowRunner"],
        {"NUTBEAM_IMAGE": "here/nutbeam:1"},
    )
    assert words[:3] == ["dedup", "--table=gs://bucket/table", "--runner=DataflowRunner"]
    assert "--no_wait_until_finish" in words
    assert words[-1] == "--sdk_container_image=here/nutbeam:1"
    with pytest.raises(SystemExit, match="command must name the job"):
        load_main().words(["--table=gs://bucket/table"], {"NUTBEAM_IMAGE": "here/nutbeam:1"})


def test_build_makes_one_image_of_pinned_bases_and_a_template_of_each_job(tmp_path):
    for program in ("docker", "gcloud"):
        path = tmp_path / program
        path.write_text(
            f'#!/bin/sh\n[ "$1" != buildx ] || {{ echo sha256:7e57; exit; }}\n'
            f'echo "{program} $*" >> {tmp_path}/log\n'
        )
        path.chmod(0o755)
    subprocess.run(
        [FOLDER / "build", "us-docker.pkg.dev/p/r", "gs://bucket/templates", "7"],
        cwd="/", env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, check=True,
    )  # fmt: skip
    docker, push, *templates = [
        line.split() for line in (tmp_path / "log").read_text().splitlines()
    ]
    declared = {w.partition("=")[0] for n, words in steps() if n == "ARG" for w in words}
    bases = {w.strip("${}") for n, words in steps() if n == "FROM" for w in words[:1]}
    assert docker[:4] == ["docker", "build", "--file", "templates/dataflow/Dockerfile"]
    given = dict(docker[i + 1].split("=", 1) for i, w in enumerate(docker) if w == "--build-arg")
    image = given.pop("NUTBEAM_IMAGE")
    assert given.keys() == bases <= declared
    assert all(re.fullmatch(r"[a-z].*:[\w.-]+@sha256:7e57", base) for base in given.values()), given
    assert image == "us-docker.pkg.dev/p/r/nutbeam:7"
    assert docker[docker.index("--tag") + 1 :] == [image, "."]
    assert push == ["docker", "push", image]
    built = []
    for gcloud in templates:
        job = gcloud[-1].removeprefix("--metadata-file=templates/").removesuffix(".json")
        assert gcloud[4:6] == [f"gs://bucket/templates/{job}.json", f"--image={image}"]
        built.append(job)
    assert sorted(built) == sorted(TEMPLATES)
