import threading
import time

import pytest

from nutbeam.web.base.progress import Phase, Progress
from nutbeam.web.engine.host_reports import HostActivity, WaitingHost, host_activity


def test_counts_belong_to_the_phase_under_way():
    progress = Progress()
    progress.add(5)  # nothing is under way: lost
    progress.start("fetch", total=10)
    progress.add(2, gone=1)
    progress.add(gone=1, retried=1)
    fetch = progress.snapshot().current
    assert (fetch.name, fetch.unit, fetch.done, fetch.total) == ("fetch", "pages", 3, 10)
    assert fetch.counts == {"gone": 2, "retried": 1}
    progress.start("parse", unit="files")  # finishes fetch
    snapshot = progress.snapshot()
    assert snapshot.current.name == "parse"
    assert [(phase.name, phase.done, phase.finished) for phase in snapshot.history] == [
        ("fetch", 3, True)
    ]
    progress.finish()
    progress.finish()
    assert progress.snapshot().current is None
    assert len(progress.snapshot().history) == 2


def test_rate_and_time_left():
    progress = Progress()
    progress.start("fetch", total=None)
    assert progress.snapshot().current.seconds_left is None
    progress.start("fetch", total=4)
    progress.add()
    time.sleep(0.02)
    fetch = progress.snapshot().current
    assert fetch.rate == pytest.approx(1 / fetch.elapsed)
    assert fetch.seconds_left == pytest.approx(3 * fetch.elapsed)


def test_rounds_add_up_by_phase():
    progress = Progress()
    for _ in range(3):
        progress.start("generate", unit="rows")
        progress.add(1)
        progress.start("fetch", total=2)
        progress.add(2, gone=1)
    by_phase = progress.snapshot().by_phase()
    assert list(by_phase) == ["generate", "fetch"]
    assert (by_phase["generate"].done, by_phase["generate"].total) == (3, None)
    assert (by_phase["fetch"].done, by_phase["fetch"].total) == (6, 6)
    assert by_phase["fetch"].counts == {"gone": 3}
    progress.reset()
    assert progress.snapshot().by_phase() == {}


def test_phases_belong_to_a_round():
    progress = Progress()
    progress.start("inject", unit="lines")
    progress.begin_round(1, 3)
    assert (progress.snapshot().current, progress.snapshot().round) == (None, "1 of 3")
    progress.start("fetch", total=2)
    progress.begin_round(2, -1)
    progress.start("fetch", total=2)
    snapshot = progress.snapshot()
    assert [phase.round for phase in (*snapshot.history, snapshot.current)] == ["", "1 of 3", "2"]
    progress.reset()
    assert progress.snapshot().round == ""


def test_threads_lose_no_count():
    progress = Progress()
    progress.start("fetch")

    def work():
        for _ in range(2000):
            progress.add(1, seen=2)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    fetch = progress.snapshot().current
    assert (fetch.done, fetch.counts["seen"]) == (16_000, 32_000)


def test_hosts_are_looked_at_now_and_then_while_the_phase_lasts():
    progress, looks = Progress(), []

    def look():
        looks.append(1)
        return HostActivity(2, 1, (WaitingHost("a.com", 9, 40.0),))

    progress.watch(look)  # nothing is under way
    assert progress.snapshot().current is None
    progress.start("fetch", total=10)
    assert progress.snapshot().current.hosts is None
    progress.watch(look)
    progress.add(1)
    assert progress.snapshot().current.hosts.active == 2
    assert progress.snapshot().current.seconds_left >= 40.0  # the slowest host is the tail
    assert len(looks) == 1
    progress.add(9)
    assert progress.snapshot().current.seconds_left == 0
    progress.start("parse")
    assert progress.snapshot().current.hosts is None
    assert progress.snapshot().history[0].hosts is None


class Waiting:
    def __init__(self, host, pages, ready_at=0.0, crawl_delay=None, in_progress=0):
        self.name, self.tasks, self.in_progress = host, [None] * pages, in_progress
        self.ready_at, self.crawl_delay = ready_at, crawl_delay

    def delay_after_request(self, usual):
        return usual(self.crawl_delay)


def test_the_tail_is_the_host_that_politeness_makes_slowest():
    queues = [
        Waiting("done.com", 0),
        Waiting("last.com", 0, in_progress=1),
        Waiting("many.com", 11, ready_at=103.0, in_progress=1),
        Waiting("slow.com", 3, ready_at=90.0, crawl_delay=30.0),
        Waiting("one.com", 1, ready_at=101.0),
        Waiting("two.com", 2),
    ]
    activity = host_activity(queues, lambda asked: asked or 5.0, 100.0)
    assert (activity.active, activity.waiting) == (2, 4)
    assert activity.slowest[:3] == (
        WaitingHost("slow.com", 3, 60.0, 90.0),
        WaitingHost("many.com", 11, 53.0, 103.0, active=True),
        WaitingHost("two.com", 2, 5.0),
    )
    assert activity.seconds == 60.0
    last = host_activity(queues[:2], lambda asked: 5.0, 100.0)
    assert last.slowest == (WaitingHost("last.com", 0, 0.0, active=True),)
    assert host_activity([], lambda asked: 5.0, 0.0) == HostActivity()


def test_a_phase_of_other_processes_is_shown_with_the_round_and_kept_when_it_ends():
    progress = Progress()
    progress.begin_round(2, 3)
    progress.relay(Phase("fetch", "pages", 9, 4, {}, 2.0, finished=False))
    current = progress.snapshot().current
    assert (current.name, current.done, current.round) == ("fetch", 4, "2 of 3")
    progress.relay(Phase("fetch", "pages", None, 9, {}, 3.0, finished=True))
    snapshot = progress.snapshot()
    assert snapshot.current is None
    assert [(phase.done, phase.round) for phase in snapshot.history] == [(9, "2 of 3")]
    progress.relay(Phase("parse", "pages", None, 0, {}, 0.1, finished=False))
    progress.start("wait")  # what this process does comes first
    assert progress.snapshot().current.name == "wait"
