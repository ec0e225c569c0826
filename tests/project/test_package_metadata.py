"""What the installed package says of itself; run on the editable install and on the wheel."""

import ast
import re
import subprocess
import sys
from importlib.metadata import distribution, metadata
from pathlib import Path

import pytest
from here import ROOT
from package_files import ROOMS

import nutbeam


def test_the_metadata_names_licence_authors_and_words_to_find_it_by():
    found = metadata("nutbeam")
    assert found["License-Expression"] == "Apache-2.0"
    assert found["Author"]
    assert "crawler" in found["Summary"]
    assert {"apache-beam", "nutch", "web-crawling"} <= set(found["Keywords"].split(","))
    assert found["Description-Content-Type"] == "text/markdown"
    assert found["Description"].startswith("# nutbeam\n")


def test_the_licence_comes_along():
    (path,) = [path for path in distribution("nutbeam").files or [] if path.name == "LICENSE"]
    assert "Apache License" in path.read_text()


def test_classifiers_name_the_versions_of_python_that_were_tried():
    named = metadata("nutbeam").get_all("Classifier")
    assert "Typing :: Typed" in named
    assert "Programming Language :: Python :: 3.11" in named
    minor = [int(m[1]) for name in named if (m := re.fullmatch(r".*Python :: 3\.(\d+)", name))]
    lowest = re.fullmatch(r">=3\.(\d+)", metadata("nutbeam")["Requires-Python"])
    assert min(minor) == int(lowest[1])
    assert minor == list(range(min(minor), max(minor) + 1))


def test_addresses_are_ones_that_a_reader_can_open():
    # None so far: see pyproject.toml.
    for url in metadata("nutbeam").get_all("Project-URL") or []:
        assert re.fullmatch(r"[^,]+, https://\S+", url)


def test_the_package_says_that_it_is_typed():
    assert Path(nutbeam.__file__).with_name("py.typed").is_file()


def test_the_command_prints_the_version():
    command = Path(sys.executable).with_name("nutbeam")
    done = subprocess.run([command, "--version"], check=True, capture_output=True, text=True)
    assert done.stdout == f"nutbeam {metadata('nutbeam')['Version']}\n"


@pytest.mark.skipif(not (ROOT / "setup.py").exists(), reason="not part of the wheel")
def test_the_wheel_takes_all_files_along():
    calls = [
        node
        for node in ast.walk(ast.parse((ROOT / "setup.py").read_text("utf-8")))
        if isinstance(node, ast.Call)
    ]
    (data,) = [word.value for call in calls for word in call.keywords if word.arg == "package_data"]
    taken = {
        path
        for package, patterns in ast.literal_eval(data).items()
        for pattern in patterns
        for path in (ROOT / Path(*package.split(".")[1:])).glob(pattern)
    }
    files = subprocess.run(
        ["git", "ls-files", *ROOMS], cwd=ROOT, check=True, capture_output=True, text=True
    )
    left = [
        name
        for name in files.stdout.splitlines()
        if not name.endswith(".py") and ROOT / name not in taken
    ]
    assert left == []


@pytest.mark.skipif(not (ROOT / "CHANGELOG.md").exists(), reason="not part of the wheel")
def test_the_changelog_keeps_its_form():
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    releases = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert releases[0] == "Unreleased"
    assert all(re.fullmatch(r"\d+\.\d+\.\d+ - \d{4}-\d\d-\d\d", name) for name in releases[1:])
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security", "Known limits"}
    assert set(re.findall(r"^### (.+)$", text, re.MULTILINE)) <= kinds
