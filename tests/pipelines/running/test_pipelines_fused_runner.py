"""The runner for one machine: it gives what Beam's own runner gives, and starts what has elements."""

import functools
import logging
import queue
import random
import threading

import apache_beam as beam
import pytest
from apache_beam.runners.worker.log_handler import FnApiLogRecordHandler
from apache_beam.transforms.window import FixedWindows
from apache_beam.utils.windowed_value import WindowedValue
from running import run
from short_form import first

from nutbeam.pipelines.running.job_here import RoundPhase
from nutbeam.pipelines.running.runner import make_pipeline, run_pipeline
from nutbeam.transforms.tickets import Ticket
from nutbeam.web.base.errors import JobFailed

WINDOW = beam.window.GlobalWindow()


def split(number):
    yield beam.pvalue.TaggedOutput("odd" if number % 2 else "even", number)
    yield number


def add_all(number, others):
    return number + sum(others)


class Hold(beam.DoFn):
    """Gives its elements at the end of a bundle."""

    def start_bundle(self):
        self._held = []

    def process(self, number):
        self._held.append(number)

    def finish_bundle(self):
        for number in self._held:
            yield WindowedValue(number, WINDOW.max_timestamp(), (WINDOW,))


def add_step(collections, name, chance):
    """Adds a step of a kind that chance chooses, which takes some of the collections."""
    one, other = chance.choice(collections), chance.choice(collections)
    kind = chance.randrange(8)
    if kind == 0:
        return [one | name >> beam.Map(lambda number: number + 1)]
    if kind == 1:
        return [one | name >> beam.FlatMap(lambda number: range(number % 4))]
    if kind == 2:
        outputs = one | name >> beam.FlatMap(split).with_outputs("odd", "even", main="all")
        return [outputs.odd, outputs["all"]]
    if kind == 3:
        return [(one, other, chance.choice(collections)) | name >> beam.Flatten()]
    if kind == 4:
        return [one | name >> beam.Map(add_all, beam.pvalue.AsList(other))]
    if kind == 5:
        count = other | f"{name}Count" >> beam.combiners.Count.Globally()
        return [one | name >> beam.Map(lambda a, b: a * b % 97, beam.pvalue.AsSingleton(count))]
    if kind == 6:
        keyed = one | f"{name}Key" >> beam.Map(lambda number: (number % 3, number))
        groups = keyed | f"{name}Groups" >> beam.GroupByKey()
        return [groups | name >> beam.Map(lambda group: group[0] + sum(group[1]))]
    return [one | name >> beam.ParDo(Hold())]


def random_steps(pipeline, seed):
    chance = random.Random(seed)
    numbers = [chance.sample(range(100), chance.randrange(4)) for _ in range(2)]
    collections = [pipeline | f"Create{at}" >> beam.Create(some) for at, some in enumerate(numbers)]
    for step in range(chance.randrange(3, 14)):
        collections += add_step(collections, f"Step{step}", chance)
    return {str(at): collection for at, collection in enumerate(collections)}


@pytest.mark.parametrize("seed", first(6, range(150)))
def test_random_pipelines_give_the_same_on_beams_runner(seed):
    build = functools.partial(random_steps, seed=seed)
    here = run(build, make_pipeline([]))
    try:
        there = run(build, beam.Pipeline("FnApiRunner"))
    except AssertionError as error:  # a fault of Beam's, with some unions of several stages
        pytest.skip(f"Beam's runner cannot run it: {error}")
    assert {name: sorted(some) for name, some in here.items()} == {
        name: sorted(some) for name, some in there.items()
    }


def note(word, path):
    with path.open("a") as file:
        file.write(f"{word} ")


class Noting(beam.DoFn):
    """Notes the calls that it gets, and how many elements it has seen."""

    def __init__(self, path):
        self._path, self._seen = path, 0

    def setup(self):
        note("setup", self._path)

    def start_bundle(self):
        note("start", self._path)

    def process(self, number):
        self._seen += 1
        note(f"{number}:{self._seen}", self._path)
        if number < 0:
            raise ValueError("below zero")

    def finish_bundle(self):
        note("finish", self._path)

    def teardown(self):
        note("teardown", self._path)


def noting(path, numbers):
    pipeline = make_pipeline([])
    pipeline | beam.Create(numbers, reshuffle=False) | "Note" >> beam.ParDo(Noting(path))
    return pipeline


def test_each_run_begins_with_a_function_that_has_seen_nothing(tmp_path):
    pipeline = noting(tmp_path / "calls", [1, 2])
    for _ in range(2):
        run_pipeline(pipeline)
    calls = (tmp_path / "calls").read_text().split()
    assert calls == ["setup", "start", "1:1", "2:2", "finish", "teardown"] * 2


def test_a_step_without_elements_is_never_started(tmp_path):
    run_pipeline(noting(tmp_path / "calls", []))
    assert not (tmp_path / "calls").exists()


def test_a_step_that_fails_is_named_and_torn_down_and_the_next_run_is_whole(tmp_path):
    pipeline = noting(tmp_path / "calls", [1, -1])
    for _ in range(2):
        with pytest.raises(JobFailed) as caught:
            run_pipeline(pipeline)
        assert str(caught.value) == "ValueError: below zero (in step 'Note')"
    calls = (tmp_path / "calls").read_text().split()
    assert calls == ["setup", "start", "1:1", "-1:2", "teardown"] * 2


def test_a_collection_can_be_its_own_side_input():
    def build(pipeline):
        numbers = pipeline | beam.Create([1, 2, 3])
        return numbers | beam.Map(add_all, beam.pvalue.AsIter(numbers))

    assert sorted(run(build, make_pipeline([]))) == [7, 8, 9]


def test_a_group_can_be_read_twice():
    def build(pipeline):
        groups = pipeline | beam.Create([("a", 1), ("a", 2)]) | beam.GroupByKey()
        return groups | beam.Map(lambda group: (sorted(group[1]), sum(group[1])))

    assert run(build, make_pipeline([])) == [([1, 2], 3)]


def test_an_element_that_no_worker_could_pass_on_fails_here_too():
    pipeline = make_pipeline([])
    locks = pipeline | beam.Create([1]) | beam.Map(lambda number: (number, threading.Lock()))
    _ = locks | beam.GroupByKey() | beam.Map(str)
    with pytest.raises(JobFailed, match="pickle"):
        run_pipeline(pipeline)


def test_a_step_can_log_as_workers_do():
    def log(_):
        handler = FnApiLogRecordHandler.__new__(FnApiLogRecordHandler)  # without its connection
        logging.Handler.__init__(handler)
        handler._log_entry_queue = entries = queue.Queue()
        handler.emit(logging.LogRecord("nutbeam", logging.INFO, __file__, 1, "hello", (), None))
        yield entries.get_nowait().message

    assert run(lambda p: p | beam.Create([1]) | beam.FlatMap(log), make_pipeline([])) == ["hello"]


def test_windows_are_refused_before_a_step_runs(tmp_path):
    pipeline = noting(tmp_path / "calls", [1])
    _ = pipeline | "Two" >> beam.Create([2]) | beam.WindowInto(FixedWindows(10))
    with pytest.raises(JobFailed, match="WindowInto"):
        run_pipeline(pipeline)
    assert not (tmp_path / "calls").exists()


def passing(ticket, path, name):
    note(f"run-{name}", path)
    return ticket


def test_a_phase_is_built_when_its_turn_comes_and_once(tmp_path):
    def build(tickets, options):
        note(f"build-{options}", tmp_path / "calls")
        return tickets | beam.Map(passing, tmp_path / "calls", options)

    pipeline = make_pipeline([])
    start = pipeline | beam.Create([Ticket("table", "op")])
    _ = start | RoundPhase("First", build, "one") | RoundPhase("Second", build, "two")
    assert not (tmp_path / "calls").exists()
    for _ in range(2):
        run_pipeline(pipeline)
    assert (tmp_path / "calls").read_text().split() == [
        "build-one", "run-one", "build-two", "run-two", "run-one", "run-two",
    ]  # fmt: skip
