import threading
import time

import apache_beam as beam
import pytest

from nutbeam.pipelines.runner import make_pipeline, run_pipeline
from nutbeam.transforms import spill, threads
from nutbeam.transforms.threads import FlatMapInThreads, cores
from nutbeam.web.errors import UserError

SEEN = []


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    SEEN.clear()
    monkeypatch.setattr(threads, "MOST", 2)
    monkeypatch.setattr(threads.os, "sched_getaffinity", lambda _: {0, 1}, raising=False)


def run(function, elements, *args, outputs=()):
    """Runs a step in this process and returns what came out, by tag, in order."""
    found = {}
    pipeline = make_pipeline([])
    step = beam.ParDo(FlatMapInThreads(function), *args)
    made = pipeline | beam.Create(elements, reshuffle=False) | step.with_outputs(
        *outputs, main="main"
    )  # fmt: skip
    for tag in ("main", *outputs):
        made[tag] | tag >> beam.Map(lambda x, to=tag: SEEN.append((to, x)))
    run_pipeline(pipeline)
    for tag, value in SEEN:
        found.setdefault(tag, []).append(value)
    return found


def test_what_comes_out_is_in_the_order_of_what_goes_in():
    def slowly(n, step):
        time.sleep(0.02 if n % 2 else 0)
        yield n
        yield beam.pvalue.TaggedOutput("more", n * step)

    found = run(slowly, list(range(9)), 10, outputs=("more",))
    assert found == {"main": list(range(9)), "more": [n * 10 for n in range(9)]}


def test_two_are_worked_on_at_once_and_no_more():
    meet, now, most = threading.Barrier(2, timeout=30), [], []

    def together(n):
        now.append(n)
        most.append(len(now))
        meet.wait()  # alone it would wait in vain
        now.remove(n)
        yield n

    assert run(together, list(range(6)))["main"] == list(range(6))
    assert max(most) == 2


def test_after_a_failure_nothing_is_begun_and_what_runs_comes_to_its_end():
    begun, ended = [], []

    def failing(n):
        begun.append(n)
        if n == 0:
            raise UserError("the first one fails")
        time.sleep(0.1)
        ended.append(n)
        yield n

    with pytest.raises(UserError, match="the first one fails"):
        run(failing, list(range(8)))
    assert begun == [0, *ended]
    assert len(begun) < 4
    time.sleep(0.2)
    assert begun == [0, *ended]


def test_where_a_runner_has_workers_of_its_own_there_are_no_threads():
    assert cores() == 1
    with spill.spilling():
        assert cores() == 2
    step = FlatMapInThreads(lambda n: iter([n, threading.current_thread()]))
    step.start_bundle()
    assert list(step.process(1)) == [1, threading.current_thread()]
    assert list(step.finish_bundle()) == []
    step.teardown()
