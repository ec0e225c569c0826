import threading
import time

import apache_beam as beam
import pytest

from nutbeam.pipelines.running.runner import make_pipeline, run_pipeline
from nutbeam.transforms.wiring import in_process
from nutbeam.transforms.wiring.in_process import FlatMapInThreads, elements_at_once
from nutbeam.web.base.errors import UserError

# Functions of a step are pickled, those of a module by name: so what they note is here.
SEEN: list[tuple[str, int]] = []
BEGUN: list[int] = []
ENDED: list[int] = []
BUSY: list[int] = []
MEET = threading.Barrier(2, timeout=30)


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    for noted in (SEEN, BEGUN, ENDED, BUSY):
        noted.clear()
    monkeypatch.setattr(in_process, "MOST", 2)
    monkeypatch.setattr(in_process, "usable_cores", lambda: 2)


def slowly(n, step):
    time.sleep(0.02 if n % 2 else 0)
    yield n
    yield beam.pvalue.TaggedOutput("more", n * step)


def together(n):
    BEGUN.append(n)
    BUSY.append(len(BEGUN) - len(ENDED))
    MEET.wait()  # alone it would wait in vain
    ENDED.append(n)
    yield n


def failing(n):
    BEGUN.append(n)
    if n == 0:
        raise UserError("the first one fails")
    time.sleep(0.1)
    ENDED.append(n)
    yield n


def see(value, tag):
    SEEN.append((tag, value))


def run(function, elements, *args, outputs=()):
    """Runs a step in this process and returns what came out, by tag, in order."""
    pipeline = make_pipeline([])
    step = beam.ParDo(FlatMapInThreads(function), *args).with_outputs(*outputs, main="main")
    made = pipeline | beam.Create(elements, reshuffle=False) | step
    for tag in ("main", *outputs):
        made[tag] | tag >> beam.Map(see, tag)
    run_pipeline(pipeline)
    return {tag: [value for to, value in SEEN if to == tag] for tag in ("main", *outputs)}


def test_outputs_are_in_the_order_of_inputs():
    found = run(slowly, list(range(9)), 10, outputs=("more",))
    assert found == {"main": list(range(9)), "more": [n * 10 for n in range(9)]}


def test_two_are_worked_on_at_once_and_no_more():
    assert run(together, list(range(6)))["main"] == list(range(6))
    assert max(BUSY) == 2


def test_no_element_begins_after_a_failure_and_running_ones_end():
    with pytest.raises(UserError, match="the first one fails"):
        run(failing, list(range(8)))
    assert sorted(BEGUN) == sorted([0, *ENDED])
    assert len(BEGUN) < 8
    time.sleep(0.2)
    assert sorted(BEGUN) == sorted([0, *ENDED])


@pytest.mark.parametrize(
    ("cores", "spare", "most"), [(1, 1, 1), (2, 0, 2), (2, 1, 3), (4, 1, 4), (16, 0, 4)]
)
def test_a_step_may_work_on_more_than_there_are_cores_but_never_on_many(
    monkeypatch, cores, spare, most
):
    monkeypatch.undo()
    monkeypatch.setattr(in_process, "usable_cores", lambda: cores)
    with in_process.spilling():
        assert elements_at_once(spare) == most


def test_no_threads_are_used_if_the_runner_has_its_own_workers():
    assert elements_at_once() == 1
    with in_process.spilling():
        assert elements_at_once() == 2
    step = FlatMapInThreads(lambda n: iter([n, threading.current_thread()]))
    step.start_bundle()
    assert list(step.process(1)) == [1, threading.current_thread()]
    assert list(step.finish_bundle()) == []
    step.teardown()
