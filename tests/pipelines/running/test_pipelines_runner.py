import logging
import subprocess
import sys
import types

import apache_beam as beam
import pytest
from short_form import first
from waiting import PATIENCE

from nutbeam.pipelines.running.fused_runner import FusedRunner
from nutbeam.pipelines.running.quiet_workers import QuietWorkers
from nutbeam.pipelines.running.runner import make_pipeline, run_pipeline
from nutbeam.web.base.errors import JobFailed, UsageError, UserError


def failure():
    """Returns a function that is pickled by value: workers have no tests to import."""

    def fail(kind):
        if kind == "usage":
            raise UsageError("--agent must be set, got ''")
        if kind == "caused":
            try:
                raise JobFailed("the disk is full")
            except JobFailed as error:
                raise RuntimeError("while writing") from error
        raise ValueError("a defect\nin two lines")

    return fail


def failing(kind, *beam_args):
    pipeline = make_pipeline(beam_args)
    (
        pipeline
        | "Kinds" >> beam.Create([kind])
        | "Shuffle" >> beam.Reshuffle()
        | "Fail" >> beam.Map(failure())
        | "Then" >> beam.Map(str)
    )
    logging.getLogger("apache_beam").setLevel(logging.CRITICAL)
    with pytest.raises(UserError) as caught:
        run_pipeline(pipeline)
    return caught.value


TWO_PROCESSES = ("--direct_running_mode=multi_processing", "--direct_num_workers=2")


@pytest.mark.few(1)
@pytest.mark.parametrize("beam_args", [(), ("--runner=DirectRunner",), TWO_PROCESSES])
def test_an_error_of_a_worker_reaches_the_user_as_its_one_line(beam_args):
    error = failing("usage", *beam_args)
    assert (type(error), str(error)) == (UsageError, "--agent must be set, got ''")


def test_a_user_error_counts_also_as_a_cause():
    error = failing("caused")
    assert str(error) == "the disk is full"


@pytest.mark.parametrize("beam_args", first(1, [(), TWO_PROCESSES]))
def test_another_failure_names_its_step(beam_args):
    error = failing("defect", *beam_args)
    assert (type(error), error.exit_code) == (JobFailed, 3)
    assert str(error) == "ValueError: a defect in two lines (in step 'Fail')"


@pytest.mark.parametrize("name", ["", "DirectRunner", "direct", "FnApiRunner"])
def test_the_in_process_runner_stands_for_beams_direct_runner(name):
    pipeline = make_pipeline([f"--runner={name}"] if name else [])
    assert type(pipeline.runner) is FusedRunner


def test_worker_processes_are_of_beams_runner():
    assert type(make_pipeline(TWO_PROCESSES).runner) is QuietWorkers


def test_in_a_notebook_steps_keep_their_names_and_need_no_pandas(monkeypatch):
    notebook = types.SimpleNamespace(get_ipython=lambda: types.SimpleNamespace(execution_count=7))
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    monkeypatch.setitem(sys.modules, "pandas", None)
    pipeline = make_pipeline([])
    pipeline | "Numbers" >> beam.Create([1]) | "Texts" >> beam.Map(str)
    run_pipeline(pipeline)
    assert {"Numbers", "Texts"} <= pipeline.applied_labels
    with pytest.raises(ImportError, match="pandas"):  # Beam's own way, for pipelines of users
        beam.Pipeline("FnApiRunner") | "Numbers" >> beam.Create([1])


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("beam_args", "message"),
    [(["--runner=Nope"], "nope"), (["--runner=DataflowRunner"], "project|dataflow|gcp|google")],
)
def test_a_runner_that_is_not_there_is_bad_usage_in_one_line(beam_args, message):
    with pytest.raises(UsageError, match=f"(?i){message}") as caught:
        make_pipeline(beam_args)
    assert "\n" not in str(caught.value)


def append(line, path):
    with path.open("a") as file:
        file.write(f"{line}\n")


def test_functions_of_the_same_code_keep_their_own_defaults(tmp_path):
    def adding(number):
        def add(one, more=number):
            return one + more

        return add

    pipeline = make_pipeline([])
    for number in (10, 20):
        (
            pipeline
            | f"One{number}" >> beam.Create([1])
            | f"Add{number}" >> beam.Map(adding(number))
            | f"Written{number}" >> beam.Map(append, tmp_path / "sums")
        )
    run_pipeline(pipeline)
    assert sorted((tmp_path / "sums").read_text().split()) == ["11", "21"]


def test_counters_of_steps_are_reported():
    pipeline = make_pipeline([])
    count = beam.metrics.Metrics.counter("nutbeam-test", "elements")
    pipeline | beam.Create([1, 2, 3]) | beam.Map(lambda _: count.inc())
    counters = run_pipeline(pipeline).metrics().query()["counters"]
    assert [(one.key.metric.name, one.committed) for one in counters] == [("elements", 3)]


@pytest.mark.long
def test_worker_processes_are_quiet():
    code = (
        "from nutbeam.pipelines.command_line.cli import quiet\n"
        "quiet(30)\n"
        "import apache_beam as beam\n"
        "from nutbeam.pipelines.running.runner import make_pipeline, run_pipeline\n"
        f"pipeline = make_pipeline({TWO_PROCESSES!r})\n"
        "pipeline | beam.Create([1, 2]) | beam.Reshuffle() | beam.Map(str)\n"
        "run_pipeline(pipeline)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
