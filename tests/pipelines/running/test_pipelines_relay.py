"""What a launcher shows of jobs whose work other processes do."""

import io
import re
import subprocess
import sys

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from crawling import nutbeam, reach
from simulated_web import SimWeb
from waiting import PATIENCE, wait_until

from nutbeam.io.reading.watched_table import read_watched
from nutbeam.pipelines.base.live import live_view
from nutbeam.pipelines.running.beam_internals import new_pipeline
from nutbeam.pipelines.running.relay import relayed_phases
from nutbeam.pipelines.running.runner import make_pipeline, run_pipeline, works_here
from nutbeam.web.base.errors import JobFailed
from nutbeam.web.base.progress import Progress


def started(*words):
    """Starts a command in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "nutbeam", *map(str, words), "--progress", "false"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


@pytest.fixture(scope="module")
def web():
    with SimWeb(hosts=1, pages=24, seed=3, crawl_delay=0) as running:
        yield running


def test_phases_of_another_process_are_shown_in_the_words_of_this_one(web, tmp_path):
    table, progress, stream = tmp_path / "table", Progress(), io.StringIO()
    with live_view(progress=progress, stream=stream, interval=0.3):
        progress.begin_round(1, 3)
        with relayed_phases(str(table), "away", progress):
            wait_until(lambda: "start of workers" in stream.getvalue())
            words = ("--operation", "away", "--rounds", 1, "--server_delay", 0)
            command = started("crawl", table, *web.seeds, *words, *reach(web))
            said, _ = command.communicate(timeout=PATIENCE)
            assert command.returncode == 0, said
    *running, last = progress.snapshot().history
    assert [phase.name for phase in running] == ["inject", "generate", "fetch", "update"]
    assert (last.name, last.round) == ("dedup", "1 of 3")
    fetch = running[2]
    assert (fetch.done, fetch.unit, fetch.counts["success"]) == (1, "pages", 1)
    assert fetch.counts["bytes"] > 0
    assert 0 < fetch.elapsed < sum(phase.elapsed for phase in running)
    lines = stream.getvalue().splitlines()
    assert "round 1 of 3, fetch: 1 page in " in stream.getvalue()
    assert not [text for text in lines if "not finished" in text]


@pytest.mark.long  # a lease writes its first count after ten seconds
def test_a_phase_that_other_processes_leave_unfinished_is_shown_with_its_pages(web, tmp_path):
    table, progress, stream = tmp_path / "table", Progress(), io.StringIO()
    urls = sorted(web.site.urls("page"))
    assert nutbeam("inject", table, *urls) == 0
    assert nutbeam("generate", table) == 0
    words = ("fetch", table, "--operation", "away", *reach(web), "--server_delay", 3)
    command = started(*words)
    some = f"fetch: [1-9][0-9]* of {len(urls)} pages, .* pages/s"

    def fail_after_some_pages():
        view = live_view(progress=progress, stream=stream, interval=0.2)
        with view, relayed_phases(str(table), "away", progress):
            wait_until(lambda: re.search(some, stream.getvalue()), command)
            (fetch,) = read_watched(str(table), -1)[0].operations
            assert 0 < fetch.fetched < len(urls)  # status shows it, also without the launcher
            raise JobFailed("the cluster is gone")

    try:
        with pytest.raises(JobFailed):
            fail_after_some_pages()
    finally:
        command.kill()
        command.communicate()
    assert stream.getvalue().endswith(" pages, not finished\n")
    assert progress.snapshot().history == ()


@pytest.mark.parametrize(
    ("words", "is_here"),
    [
        ([], True),
        (["--runner=DirectRunner"], True),
        (["--direct_running_mode=multi_processing", "--direct_num_workers=2"], False),
        (["--runner=PortableRunner", "--job_endpoint=a:1"], False),
        (["--runner=DataflowRunner"], False),
    ],
)
def test_the_work_of_clusters_and_worker_processes_is_done_elsewhere(words, is_here):
    pipeline = new_pipeline(PipelineOptions(words), "FnApiRunner")
    assert works_here(pipeline) is is_here


def test_a_pipeline_that_runs_again_still_works_elsewhere():
    words = ["--runner=PortableRunner", "--job_endpoint=embed", "--environment_type=LOOPBACK"]
    pipeline = make_pipeline(words)
    _ = pipeline | beam.Create([1])
    run_pipeline(pipeline)
    assert not works_here(pipeline)
