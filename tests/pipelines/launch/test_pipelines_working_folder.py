"""No process of a command imports files from the working folder."""

import os
import subprocess
import sys

import pytest
from apache_beam.options.pipeline_options import PortableOptions
from apache_beam.transforms.environments import ProcessEnvironment
from plugins import install

from nutbeam.pipelines.running.runner import make_pipeline

# Modules that the processes of a command import after their start, and that libraries look for.
NAMES = ("random", "tld", "queue", "statistics", "grpc", "polars", "pyarrow", "py3langid", "lxml")
WORKERS = ("--direct_running_mode=multi_processing", "--direct_num_workers=2")
# Modules that the package imports before anything else.
EARLY = ("logging", "string", "weakref", "traceback")
MODULE = (sys.executable, "-m", "nutbeam")
SCRIPT = (os.path.join(os.path.dirname(sys.executable), "nutbeam"),)  # noqa: PTH118, PTH120


@pytest.fixture
def trapped(tmp_path):
    """Returns a working folder with a page, and with files that would leave a trace."""
    for name in NAMES:
        (tmp_path / f"{name}.py").write_text(
            f"open({str(tmp_path / 'trace')!r}, 'a').write({name!r})\nraise OSError('trapped')\n"
        )
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "a.html").write_text("<title>A pear</title><p>It is green.")
    return tmp_path


def crawl(folder, program, *words, python_path=""):
    site = folder / "site"
    local = ("--schemes=file", f"--file_roots={site}", "--parse_processes=1", "--rounds=1")
    environment = {**os.environ, "PYTHONPATH": python_path}
    environment.pop("PYTHONSAFEPATH", None)
    return subprocess.run(
        [*program, "crawl", "T", f"file://{site}/a.html", *local, *words],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(
    ("program", "words", "python_path"),
    [
        (SCRIPT, ("--detect_language",), ""),
        (MODULE, (), ":/nowhere"),
        (MODULE, WORKERS, ""),
        (SCRIPT, ("--detect_language",), ".:/nowhere"),
        (SCRIPT, WORKERS, "/nowhere::./"),
    ],
)
@pytest.mark.few(2)
def test_files_of_the_working_folder_are_not_imported(trapped, program, words, python_path):
    done = crawl(trapped, program, *words, python_path=python_path)
    assert (done.returncode, (trapped / "trace").exists()) == (0, False), done.stderr
    assert "1 page" in done.stdout


@pytest.mark.few(1)
@pytest.mark.parametrize("program", [MODULE, (sys.executable, "-mnutbeam"), SCRIPT])
def test_the_start_of_the_package_imports_nothing_from_the_working_folder(trapped, program):
    for name in EARLY:
        (trapped / f"{name}.py").write_text((trapped / "random.py").read_text())
    done = crawl(trapped, program, "--format=nonsense")
    assert (done.returncode, (trapped / "trace").exists()) == (2, False), done.stderr


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("program", "python_path", "first"),
    [
        (SCRIPT, "", False),
        ((sys.executable, "-P", "-m", "nutbeam"), "", False),
        # Nothing of nutbeam runs then, so nothing of nutbeam can refuse.
        (MODULE, "", True),
        (SCRIPT, ":", True),
        (SCRIPT, ".", True),
    ],
)
def test_python_runs_a_file_named_nutbeam_first_only_where_the_guide_says(
    trapped, program, python_path, first
):
    (trapped / "nutbeam.py").write_text("print('mine')\nraise SystemExit(0)\n")
    done = crawl(trapped, program, python_path=python_path)
    assert done.returncode == 0, done.stderr
    assert (done.stdout == "mine\n") == first


@pytest.mark.long
def test_a_plug_in_is_found_in_a_folder_of_pythonpath_also_in_the_working_folder(trapped):
    source = "def mark(page):\n    page.metadata['pear'] = 'yes'\n"
    install(trapped / "plug-ins", "marks", {"marks.py": source}, {"marks": "marks:mark"})
    done = crawl(trapped, SCRIPT, "--parse_filters=marks", python_path="plug-ins")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("given", "expected"),
    [(None, {"PYTHONSAFEPATH": "1"}), ("A=b", {"A": "b", "PYTHONSAFEPATH": "1"})],
)
def test_workers_that_a_runner_starts_ignore_their_working_folder(given, expected):
    words = ["--runner=PortableRunner", "--job_endpoint=localhost:1", "--environment_type=PROCESS"]
    words += ["--environment_option=process_command=/boot"]
    words += [f"--environment_option=process_variables={given}"] if given else []
    options = make_pipeline(words).options.view_as(PortableOptions)
    environment = ProcessEnvironment.from_options(options)
    assert (environment.command, dict(environment.env)) == ("/boot", expected)
