"""The lines of gcloud in the docs, held against gcloud itself and the templates' parameters."""

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from dataflow_parameters import matches
from guide_blocks import blocks
from here import ROOT

from nutbeam.pipelines.command_line.arguments import command_options
from nutbeam.pipelines.command_line.cli import load
from nutbeam.pipelines.reference_pages.template_files import TEMPLATES, template
from nutbeam.web.base.options import parse_value

DOCS = sorted(path for folder in ("docs", "templates") for path in (ROOT / folder).rglob("*.md"))
BUILD = ROOT / "templates" / "dataflow" / "build"
pytestmark = pytest.mark.skipif(not DOCS, reason="docs/ is not part of the wheel")
LINE = re.compile(r'\bgcloud [a-z](?:"[^"]*"|[^"\n|;)])*')


def gcloud_lines(text, variables):
    """Returns the words of each line of gcloud in a script, with its variables filled in."""
    text = re.sub(r"\\\n\s*", " ", text)
    variables.update(re.findall(r"^([A-Z]+)=(\S+)$", text, re.MULTILINE))
    for name, values in re.findall(r"^for (\w+) in ([\w ]+); do$", text, re.MULTILINE):
        loops = [re.sub(rf"\${name}\b", value, text) for value in values.split()]
        return [
            line for loop in loops for line in gcloud_lines(loop.replace("for ", ""), variables)
        ]
    found = LINE.findall(text)
    while any("$" + name in line for line in found for name in variables):
        found = [re.sub(r"\$(\w+)", lambda m: variables.get(m[1], "x"), line) for line in found]
    return [shlex.split(line) for line in found]


def documented():
    variables = {"id": "2026-01-01_00_00_00-1"}
    return [
        (path.name, words)
        for path in DOCS
        for text, _ in blocks(path, "bash")
        for words in gcloud_lines(text, variables)
    ]


LINES = documented() if DOCS else []
RUNS = [words for _, words in LINES if words[1:4] == ["dataflow", "flex-template", "run"]]


def flag(words, name):
    """Returns the value of a flag of a line; None without it."""
    values = [w.partition("=")[2] for w in words if w.startswith(f"--{name}=")]
    return values[0] if values else None


def parameters(words):
    """Returns the parameters of a launch, read as gcloud reads them (gcloud topic escaping)."""
    text, separator = flag(words, "parameters"), ","
    if other := re.match(r"\^(.+?)\^", text):
        text, separator = text[other.end() :], other[1]
    return dict(part.split("=", 1) for part in text.split(separator))


def test_there_are_lines_to_look_at():
    assert {flag(words, "template-file-gcs-location").rpartition("/")[2] for words in RUNS} >= {
        "inject.json",
        "round.json",
        "fetch.json",
    }
    assert len(LINES) > 20


@pytest.mark.parametrize("words", RUNS, ids=lambda words: words[4])
def test_a_launch_gives_parameters_that_its_template_has(words):
    job = Path(flag(words, "template-file-gcs-location")).stem
    assert job in TEMPLATES
    declared = {parameter["name"]: parameter for parameter in template(job)["parameters"]}
    given = parameters(words)
    assert given.keys() <= declared.keys()
    assert {n for n, p in declared.items() if not p["isOptional"]} <= given.keys()
    known = command_options(load(job))
    for name, text in given.items():
        assert matches(declared[name], text), name
        if name in known:
            parse_value(known[name], text)


def test_the_launch_by_a_schedule_gives_parameters_that_its_template_has():
    (script,) = [
        text for path in DOCS for text, _ in blocks(path, "bash") if "launchParameter" in text
    ]
    launch = json.loads(script[script.index("{") : script.rindex("}") + 1])["launchParameter"]
    job = Path(launch["containerSpecGcsPath"]).stem
    declared = {parameter["name"]: parameter for parameter in template(job)["parameters"]}
    assert all(matches(declared[name], text) for name, text in launch["parameters"].items())
    # Fields of the interface's FlexTemplateRuntimeEnvironment.
    types = pytest.importorskip("google.cloud.dataflow_v1beta3", reason="extra gcp")
    fields = types.FlexTemplateRuntimeEnvironment.meta.fields.keys()
    snake = {re.sub("([A-Z])", r"_\1", name).lower() for name in launch["environment"]}
    assert snake <= fields
    assert (
        launch["environment"]["ipConfiguration"] in types.WorkerIPAddressConfiguration.__members__
    )


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("gcloud"), reason="gcloud is not installed here")
def test_gcloud_knows_the_commands_and_their_flags(tmp_path):
    lines = [typed(words) for _, words in LINES]
    script = BUILD.read_text().replace('"', "")
    places = {"templates": "gs://b", "job": "round", "image": "i"}
    lines += [typed(words) for words in gcloud_lines(script, places)]
    lines += ["gcloud dataflow flex-template run --no-such-flag=1"]
    complaints = lint(tmp_path, list(dict.fromkeys(lines)))
    assert "no-such-flag" in str(complaints.pop())
    assert [text for text in complaints if text] == []


def typed(words):
    """Returns a line of words; gcloud's check wants flags to begin with hyphens, not with quotes."""
    parts = [word.partition("=") if word.startswith("--") else ("", "", word) for word in words]
    return " ".join(flag + equals + shlex.quote(text) * bool(text) for flag, equals, text in parts)


def lint(folder, lines):
    """Returns what gcloud has to say against each line, without running any of them."""
    path = folder / "lines.json"
    commands = [{"command_string": line, "id": str(n)} for n, line in enumerate(lines, 1)]
    path.write_text(json.dumps(commands))
    done = subprocess.run(
        ["gcloud", "meta", "lint-gcloud-commands", "--serialize", f"--commands-file={path}"],
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "CLOUDSDK_CONFIG": str(folder / "config")},
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    if "Invalid choice" in done.stderr:
        pytest.skip("this gcloud cannot check lines")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    return [found[str(n)][0]["error_message"] for n, _ in enumerate(lines, 1)]
