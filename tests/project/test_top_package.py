"""The package ``nutbeam`` itself: what it offers by name, and what it costs to import."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import nutbeam


def python(code):
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], check=True, capture_output=True, text=True, timeout=120
    )
    return done.stdout.strip()


def test_the_import_loads_no_library():
    loaded = python(
        "import sys; before = set(sys.modules); import nutbeam; "
        "new = {name.partition('.')[0] for name in sys.modules.keys() - before}; "
        "print(*new - sys.stdlib_module_names)"
    )
    assert loaded == "nutbeam"


def test_its_version_is_the_one_that_is_installed():
    code = "import nutbeam, importlib.metadata as m; print(nutbeam.__version__ == m.version('nutbeam'))"
    assert python(code) == "True"


@pytest.mark.parametrize("name", nutbeam.__all__)
def test_each_public_name_is_there(name):
    assert getattr(nutbeam, name)
    assert name in dir(nutbeam)


def test_type_checkers_see_the_same_names():
    tree = ast.parse(Path(nutbeam.__file__).read_text("utf-8"))
    (block,) = [
        node for node in tree.body if isinstance(node, ast.If) and "TYPE" in ast.dump(node.test)
    ]
    seen = {
        alias.asname: node.module.removeprefix("nutbeam.")
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == nutbeam._MODULES
    assert nutbeam.__all__ == ["__version__", *sorted(seen)]


def test_a_name_that_is_not_there_says_which_are():
    with pytest.raises(AttributeError, match=r"no attribute 'Partition'.* PartitionByHost"):
        nutbeam.Partition
    with pytest.raises(ImportError):
        from nutbeam import Partition  # noqa: F401
    assert dir(nutbeam) == sorted(nutbeam.__all__)


def test_the_room_of_transforms_has_them_by_name():
    from nutbeam.transforms import PartitionByHost, partition

    assert PartitionByHost is partition.PartitionByHost is nutbeam.PartitionByHost
    with pytest.raises(AttributeError, match=r"no attribute 'read'; it has .*PartitionByHost"):
        nutbeam.transforms.read
    code = "from nutbeam.transforms import TopNPerKey, partition; import nutbeam.transforms.elements.rows as r; "
    found = python(code + "print(TopNPerKey.__module__, partition.__name__, r.__name__)")
    assert found.split() == [
        "nutbeam.transforms.top_n_per_key",
        "nutbeam.transforms.partition",
        "nutbeam.transforms.elements.rows",
    ]


@pytest.mark.long
@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("first", "warns"), [("from nutbeam import PartitionByHost", False), ("pass", True)]
)
def test_no_pipeline_is_warned_of_a_client_that_no_transform_uses(first, warns):
    code = f"""
import sys
import types
# As where Beam is installed without its extra gcp.
sys.modules["apitools"] = None
sys.modules["apache_beam.io.gcp.gcsfilesystem"] = types.ModuleType("empty")
{first}
import apache_beam.io.gcp.internal.clients.bigquery"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False
    )
    assert ("apitools not found" in done.stderr) == warns
    assert ("Failed to import GCSFileSystem" in done.stderr) == warns


def test_rooms_import_by_every_way():
    code = (
        "from nutbeam import web; import nutbeam.io.storage.places as p; "
        "from nutbeam.policy.components import schema; print(web.__name__, p.__name__, schema.__name__)"
    )
    assert python(code) == "nutbeam.web nutbeam.io.storage.places nutbeam.policy.components.schema"


def test_python_runs_the_package_as_the_command():
    done = subprocess.run(
        [sys.executable, "-P", "-m", "nutbeam", "--version"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout == f"nutbeam {nutbeam.__version__}\n"


def test_importing_jobs_starts_no_threads_of_polars():
    """A process that has imported all and then forks must have none: see nursery.py."""
    names = python(
        "import pathlib; from nutbeam.pipelines import crawl, purge;"
        "from nutbeam.pipelines.indexing import index;"
        "print(*(path.read_text().strip() for path in pathlib.Path('/proc/self/task').glob('*/comm')))"
    )
    assert not [name for name in names.split() if name.startswith(("polars-0", "tokio"))]
