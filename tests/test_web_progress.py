import threading
import time

import pytest

from nutbeam.web.progress import Progress


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
    assert progress.snapshot().current.left is None
    progress.expect(4)
    progress.add()
    time.sleep(0.02)
    fetch = progress.snapshot().current
    assert fetch.rate == pytest.approx(1 / fetch.elapsed)
    assert fetch.left == pytest.approx(3 * fetch.elapsed)


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
