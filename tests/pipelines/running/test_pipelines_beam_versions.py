"""Versions of Beam: what nutbeam changes in it, and what it does on a version that was not tried."""

import ast
import json
import os
import re
import subprocess
import sys
import tomllib

import pytest
from apache_beam.runners import DirectRunner
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.transforms import userstate
from crawling import assert_same, contents, crawl, reach
from here import ROOT
from package_files import FILES, PACKAGE, imported, nodes
from simulated_web import SimWeb
from waiting import PATIENCE

import nutbeam
from nutbeam.pipelines.running import beam_internals
from nutbeam.pipelines.running.fused_runner import FusedRunner
from nutbeam.pipelines.running.runner import in_process_runner, make_pipeline

INTERNALS = (
    "pipelines/running/beam_internals.py", "pipelines/running/fused_plan.py",
    "pipelines/running/fused_runner.py", "pipelines/running/quiet_workers.py", "pipelines/running/placement.py",
    "pipelines/launch/job_server_options.py", "transforms/elements/row_types.py",
)  # fmt: skip
# What Beam documents; all else of it may change with any version.
DOCUMENTED = re.compile(
    r"apache_beam(\.(io|metrics|options|coders|pipeline|runners\.runner|runners\.dataflow|transforms\.window"
    r"|utils\.(timestamp|windowed_value))(\.|$)|$)"
)
# An option class adds its flags to a parser in this method: Beam's guide has users write it.
HOOKS = {"_add_argparse_args"}
# A version that was not tried, in which nutbeam finds nothing that Beam does not document.
PRETEND = f"""
import builtins, re, sys
import apache_beam as beam
from apache_beam.transforms import userstate
beam.version.__version__ = "2.999.0"
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
give = builtins.__import__
def documented(name, importer=None, *args, **named):
    ours = (importer or {{}}).get("__name__", "").startswith("nutbeam")
    if ours and name.startswith("apache_beam") and not re.match({DOCUMENTED.pattern!r}, name):
        raise ImportError(f"no module {{name!r}}")
    return give(name, importer, *args, **named)
builtins.__import__ = documented
look, given = userstate.get_dofn_specs, []
run = FnApiRunner.run_via_runner_api
def seen(runner, *args):
    given.append((type(runner), userstate.get_dofn_specs))
    return run(runner, *args)
FnApiRunner.run_via_runner_api = seen
from nutbeam.pipelines.command_line.cli import main
code = main(sys.argv[1:])
assert given and set(given) == {{(FnApiRunner, look)}}, given
sys.exit(code)
"""


def private_uses(path):
    """Returns the names of Beam in a file that its documentation does not promise."""
    found = {name for name in imported(path) if name.split(".")[0] == "apache_beam"}
    uses = {name for name in found if not DOCUMENTED.match(name) or not is_listed(name)}
    if found:
        uses |= {
            ast.unparse(node)
            for node in nodes(path)
            if isinstance(node, ast.Attribute) and re.match("_[a-z]", node.attr)
            and node.attr not in HOOKS and names_beam(node.value)
        }  # fmt: skip
    return uses


def is_listed(name):
    """Returns whether a module of Beam lists a name of its own as public, if it lists any."""
    module, _, last = name.rpartition(".")
    return last in getattr(sys.modules.get(module), "__all__", [last])


def names_beam(node):
    """Returns whether an expression stands for something of Beam's, as far as its name says."""
    word = ast.unparse(node)
    return bool(re.search(r"\b(beam|runner|pipeline|options|row_type|collection|chunks)$", word))


@pytest.mark.long
def test_private_names_of_beam_stand_in_one_file_of_a_room():
    names = {path.relative_to(PACKAGE).as_posix(): private_uses(path) for path in FILES}
    assert {name for name, uses in names.items() if uses} == set(INTERNALS)


def test_the_docs_name_these_files_and_the_versions():
    architecture = (ROOT / "docs" / "architecture.md").read_text()
    assert [name for name in INTERNALS if f"`{name}`" not in architecture] == []
    oldest, next_one, *_, before, newest = beam_internals.TRIED
    said = " ".join((ROOT / "docs" / "reliability.md").read_text().split())
    assert f"All tests run with Beam {newest} on Python" in said
    assert f"run with Beam {oldest}, the oldest that `pyproject.toml` allows" in said
    assert f"with Beam {next_one} to {before} only a crawl" in said


def test_the_table_lists_the_change_that_the_package_makes():
    changes = [line.split(",")[0] for line in beam_internals.__doc__.splitlines()]
    assert nutbeam._is_shown.__name__ in changes


def test_on_a_version_that_was_tried_beam_is_changed_and_changed_back():
    look = userstate.get_dofn_specs
    assert type(in_process_runner(workers=False)) is FusedRunner
    with beam_internals.quick_building(), beam_internals.quick_building():
        assert userstate.get_dofn_specs is not look
    assert userstate.get_dofn_specs is look


@pytest.mark.long
def test_on_a_version_that_was_not_tried_a_crawl_gives_the_same_with_one_warning(tmp_path):
    with SimWeb(hosts=3, pages=6, seed=7, crawl_delay=0) as web:
        assert crawl(tmp_path / "right", web, *web.seeds) == 0
        pretend("crawl", tmp_path / "table", *web.seeds, "--rounds", "-1", *reach(web))
    assert_same(contents(tmp_path / "table"), contents(tmp_path / "right"))


@pytest.mark.long
def test_on_a_version_that_was_not_tried_a_job_runs_with_one_warning(tmp_path):
    assert (
        pretend("inject", tmp_path, "http://example.com/")
        == "inject: added 1, injected 1, lines 1\n"
    )


def pretend(*words):
    """Runs a command on a version of Beam that was not tried; returns what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", PRETEND, *map(str, words)],
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (warning,) = [line for line in done.stderr.splitlines() if "Beam 2.999.0" in line]
    assert re.match("WARNING.nutbeam", warning)
    return done.stdout


def test_a_version_that_was_not_tried_is_run_by_beams_own_runner(monkeypatch):
    monkeypatch.setattr("apache_beam.version.__version__", "2.999.0")
    assert type(make_pipeline([]).runner) is FnApiRunner
    monkeypatch.setattr(
        "apache_beam.options.pipeline_options.StandardOptions.KNOWN_RUNNER_NAMES", []
    )
    assert type(make_pipeline([]).runner) is DirectRunner


def test_the_oldest_version_that_is_tried_is_the_oldest_that_may_be_installed():
    given = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [given["dependencies"], *given["optional-dependencies"].values()]
    beams = [one for some in needed for one in some if re.match(r"apache-beam\b", one)]
    assert len(beams) == 3
    assert all(one.endswith(f">={beam_internals.TRIED[0]},<3") for one in beams)


@pytest.mark.long
def test_the_oldest_version_crawls_as_the_newest_does(tmp_path):
    """Runs what ``make build/oldest/ready`` has installed."""
    python = ROOT / "build" / "oldest" / "bin" / "python"
    if not python.exists():
        pytest.skip("make build/oldest/ready installs the oldest Beam")
    show = "import apache_beam; print(apache_beam.version.__version__)"
    version = subprocess.check_output([python, "-c", show], text=True).strip()
    assert version.rpartition(".")[0] == beam_internals.TRIED[0]
    with SimWeb(hosts=3, pages=6, seed=7, crawl_delay=0) as web:
        assert crawl(tmp_path / "right", web, *web.seeds) == 0
        words = ["crawl", tmp_path / "table", *web.seeds, "--rounds", "-1", *reach(web)]
        done = subprocess.run(
            [python, "-m", "nutbeam", *map(str, words), "--format", "json"],
            capture_output=True, text=True, timeout=300, check=False,
            env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    assert json.loads(done.stdout)
    assert_same(contents(tmp_path / "table"), contents(tmp_path / "right"))
