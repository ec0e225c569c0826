import ast
import pathlib
import sys

import pytest

import nutbeam.web

# Where the package is: this repository, or where the wheel is installed.
PACKAGE = pathlib.Path(next(iter(nutbeam.web.__path__))).parent
# An arrow may only point to a room further down.
ROOMS = ("pipelines", "transforms", "io", "policy", "web")
WITHOUT_BEAM = ("policy", "web")
FILES = sorted(path for room in ROOMS for path in (PACKAGE / room).rglob("*.py"))


def imported(path):
    """Returns the full names of the modules, or of what is in them, that a file imports."""
    package = ("nutbeam", *path.relative_to(PACKAGE).parts[:-1])
    names = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            source = ".".join([*above, *([node.module] if node.module else [])])
            names |= {f"{source}.{alias.name}" for alias in node.names}
    return names


def room(path):
    return path.relative_to(PACKAGE).parts[0]


def label(path):
    return str(path.relative_to(PACKAGE))


def test_io_is_not_a_regular_package():
    # With it, PYTHONPATH=. stops Python up to 3.10, and 3.11+ under a debugger.
    assert not [path for path in FILES if path.name == "__init__.py"]


def test_every_room_has_modules():
    assert {room(path) for path in FILES} == set(ROOMS)


@pytest.mark.parametrize("path", FILES, ids=label)
def test_arrows_between_rooms_point_down(path):
    allowed = ROOMS[ROOMS.index(room(path)) :]
    ours = {name for name in imported(path) if name.startswith("nutbeam.")}
    assert {name for name in ours if name.split(".")[1] not in allowed} == set()


@pytest.mark.parametrize("path", FILES, ids=label)
def test_policy_and_web_know_no_beam(path):
    if room(path) in WITHOUT_BEAM:
        assert not [name for name in imported(path) if name.split(".")[0] == "apache_beam"]


def test_imports_are_read_as_python_reads_them(monkeypatch, tmp_path):
    file = tmp_path / "web" / "simweb" / "server.py"
    file.parent.mkdir(parents=True)
    file.write_text(
        "import io, apache_beam as beam\nfrom . import a\nfrom .site import Site\n"
        "from ..urls import parse\ndef late():\n    from ...io.commit import c\n"
    )
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path)
    assert imported(file) == {
        "io",
        "apache_beam",
        "nutbeam.web.simweb.a",
        "nutbeam.web.simweb.site.Site",
        "nutbeam.web.urls.parse",
        "nutbeam.io.commit.c",
    }


def test_no_module_in_io_is_named_after_a_standard_one():
    names = {path.stem for path in (PACKAGE / "io").glob("*.py")}
    assert names & sys.stdlib_module_names == set()
