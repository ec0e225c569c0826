import contextlib
import fcntl
import itertools
import os
import pathlib
import signal
import sys
import tempfile
import termios
import threading
import time

import pyarrow.parquet as pq
import pytest
from frames import table_of
from hostile_files import SLOW_HTML

from nutbeam.io.parsing.parse_pool import ParsePool, ParserDied
from nutbeam.io.parsing.parse_worker import Job
from nutbeam.io.storage.parquet_files import ParquetWriter
from nutbeam.policy.components.schema import PAGES, ParseStatus
from nutbeam.policy.parsing.documents import DocumentOptions
from nutbeam.transforms.parsing import parse_task
from nutbeam.web.base.errors import UserError
from nutbeam.web.exchange.status import FETCH_SUCCESS
from nutbeam.web.urls.row_keys import to_key

OPTIONS = DocumentOptions()
FOLDER = tempfile.TemporaryDirectory()
NUMBERS = itertools.count()
HASTY = DocumentOptions(parser_timeout=2.0)


def page(name, body=None):
    return {
        "key": to_key(f"http://a.com/{name}"),
        "fetch_status": FETCH_SUCCESS,
        "content_type": "text/html",
        "body": f"<title>{name}".encode() if body is None else body,
    }


def job(*pages, options=OPTIONS):
    rows = table_of(PAGES, *pages)
    name = f"{next(NUMBERS)}.parquet"
    pq.write_table(rows, f"{FOLDER.name}/{name}")
    return Job(FOLDER.name, name, (0,), "", parse_task(options))


def documents(parsed):
    return parsed.documents.to_pylist()


def said(done):
    """Title of each page, or the reason why there is none."""
    return [
        document["title"]
        if document["parse_status"] == ParseStatus.SUCCESS
        else document["parse_message"]
        for document in documents(done)
    ]


def children(pool):
    return [child.process.pid for child in pool._children]


def unread_bytes(connection):
    size = bytearray(4)
    fcntl.ioctl(connection.fileno(), termios.FIONREAD, size)
    return int.from_bytes(size, sys.byteorder)


def left_behind(pool):
    return [path for path in pathlib.Path(pool._scratch).rglob("*") if path.is_file()]


def wait_until(condition, seconds=120.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.01)


def test_results_come_in_the_order_of_the_jobs(pool):
    # The first takes longest.
    jobs = [job(*(page(f"{n}-{m}") for m in range(300 if n == 0 else 2))) for n in range(12)]
    found = [said(done)[0] for done in pool.parse(jobs)]
    assert found == [f"{n}-0" for n in range(12)]


def test_pages_come_from_a_file(pool, tmp_path):
    with ParquetWriter(tmp_path / "p.parquet", PAGES) as writer:
        writer.write(table_of(PAGES, page("a")))
        writer.write(table_of(PAGES, page("b")))
    jobs = [Job(str(tmp_path), "p.parquet", (group,), "", parse_task(OPTIONS)) for group in (1, 0)]
    assert [said(done) for done in pool.parse(jobs)] == [["b"], ["a"]]


def test_paths_of_a_job_are_relative_to_where_it_is_sent(pool, tmp_path, monkeypatch):
    """A pool outlives changes of the folder, as in a notebook."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        pq.write_table(table_of(PAGES, page(name)), "p.parquet")
        jobs = [Job("", "p.parquet", (0,), "", parse_task(OPTIONS))] * 4  # some for each child
        assert [said(done) for done in pool.parse(jobs)] == [[name]] * 4


def test_no_jobs(pool):
    assert list(pool.parse([])) == []


def test_few_jobs_are_under_way_at_a_time(pool):
    taken = []

    def jobs():
        for n in range(50):
            taken.append(n)
            yield job(page(str(n)))

    results = pool.parse(jobs())
    next(results)
    assert len(taken) <= 6
    assert len(list(results)) == 49


def test_abandoned_results_are_discarded(pool):
    results = pool.parse([job(page("slow", SLOW_HTML)), *(job(page(str(n))) for n in range(9))])
    number = pool.submit(job(page("mine")))
    results.close()
    assert said(pool.result(number)) == ["mine"]
    started = pool.parse(
        [job(page("a")), job(page("slow", SLOW_HTML)), job(page("slow", SLOW_HTML))] * 2
    )
    next(started)
    before = time.monotonic()
    started.close()
    assert said(next(pool.parse([job(page("after"))]))) == ["after"]
    assert time.monotonic() - before < 15.0  # not the thirty seconds of a slow page
    assert (pool._waiting, pool._running, pool._finished) == (type(pool._waiting)(), {}, {})


def test_a_page_that_stalls_costs_its_time_and_one_record(pool):
    (done,) = pool.parse([job(page("a"), page("slow", SLOW_HTML), page("c"), options=HASTY)])
    assert said(done) == ["a", "timeout", "c"]
    assert done.counts["failed/timeout"] == 1


def test_pages_that_stall_hold_up_no_others(pool):
    jobs = [job(page("slow", SLOW_HTML), page("a"), options=HASTY)]
    jobs += [job(page(str(n))) for n in range(20)]
    found = [said(done) for done in pool.parse(jobs)]
    assert found == [["timeout", "a"], *([str(n)] for n in range(20))]


def test_a_child_that_is_killed_at_a_page_costs_that_page():
    pool = ParsePool(1, 0)
    try:
        number = pool.submit(job(page("a"), page("slow", SLOW_HTML), page("c")))
        child = pool._children[0]
        wait_until(lambda: pool.pump() or child.row == 1)
        os.kill(child.process.pid, signal.SIGKILL)
        assert said(pool.result(number)) == ["a", "crashed: SIGKILL", "c"]
    finally:
        pool.close()


def test_a_child_that_is_killed_after_its_answer_costs_nothing():
    pool = ParsePool(1, 0)
    try:
        number = pool.submit(job(page("big", b"<title>big</title>" + b"words " * 500_000)))
        child = pool._children[0]
        wait_until(lambda: pool.pump() or child.row is not None)
        # It was heard that it begins, so all that is unread is its answer.
        wait_until(lambda: unread_bytes(child.connection) > 100)
        os.kill(child.process.pid, signal.SIGKILL)
        assert said(pool.result(number)) == ["big"]
    finally:
        pool.close()


def test_rows_are_marked_without_messages():
    pool = ParsePool(1, 0)
    try:
        number = pool.submit(job(*(page(str(n)) for n in range(300))))
        child = pool._children[0]
        wait_until(lambda: child._mark.read() == 300)  # it works on all of them together
        assert unread_bytes(child.connection) < 1_000  # 300 numbers would take 3,000
        assert len(said(pool.result(number))) == 300
    finally:
        pool.close()


def test_children_that_are_killed_while_idle_are_replaced(pool):
    list(pool.parse([job(page("a"))] * 3))
    before = children(pool)
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    assert [said(done) for done in pool.parse([job(page("b"))] * 4)] == [["b"]] * 4
    assert not set(before) & set(children(pool))


def test_a_job_that_fails_for_another_reason_is_one_clear_line(pool):
    bad = Job("/nowhere", "missing.parquet", (0,), "", parse_task(OPTIONS))
    good = pool.submit(job(page("a")))
    number = pool.submit(bad)
    missing = "data file is missing: /nowhere/missing.parquet"
    with pytest.raises(
        UserError, match=rf"^cannot parse missing.parquet: {missing}: run nutbeam fsck /nowhere$"
    ):
        pool.result(number)
    assert said(pool.result(good)) == ["a"]  # others do not suffer
    number = pool.submit(
        Job("/nowhere", "pages", (), "", parse_task(OPTIONS), pages="/nowhere/pages.arrow")
    )
    with pytest.raises(UserError, match=r"^cannot parse pages: FileNotFoundError: [^\n]+$"):
        pool.result(number)


@pytest.mark.long
def test_no_memory_for_a_group_of_pages_is_no_damage_of_the_file():
    """Another child tries it; if the file is at fault, the error would say to check the table."""
    pool = ParsePool(1, 1 << 30)
    try:
        number = pool.submit(job(*(page(f"{n}", bytes(1 << 20)) for n in range(400))))
        with pytest.raises(ParserDied, match=r"failed twice at \d+.parquet, .*memory"):
            pool.result(number)
        assert said(pool.result(pool.submit(job(page("a"))))) == ["a"]
    finally:
        pool.close()


def test_a_child_that_never_works_is_given_up():
    pool = ParsePool(1, 50 << 20)  # not enough to start with
    try:
        number = pool.submit(job(page("a")))
        with pytest.raises(UserError, match=r"^parser process failed twice at \d+.parquet, row"):
            pool.result(number)
    finally:
        pool.close()


def test_a_child_starts_when_a_job_finds_none_idle():
    pool = ParsePool(3, 0)
    try:
        counts = [len(children(pool))]
        numbers = [pool.submit(job(page("slow", SLOW_HTML))), pool.submit(job(page("a")))]
        counts.append(len(children(pool)))
        pool.result(numbers[1])
        pool.result(pool.submit(job(page("b"))))
        pool.abandon(numbers[:1])
        assert [*counts, len(children(pool))] == [1, 2, 2]
    finally:
        pool.close()


def test_the_largest_is_ended_if_all_together_have_too_much_memory():
    """No limit of its own stops the large page. The other process goes on."""
    pool = ParsePool(2, 0, total_memory=350 << 20)
    large = page("large", b"<title>large</title>" + b"<p><a href='/x'>y</a> text</p>" * 400_000)
    try:
        number = pool.submit(job(page("before"), large, page("after")))
        found = [said(done) for done in pool.parse(job(page(f"{n}")) for n in range(20))]
        assert found == [[f"{n}"] for n in range(20)]
        before, message, after = said(pool.result(number))
        assert (before, after) == ("before", "after")
        assert (
            message
            == "out_of_memory: all processes that parse had more than all_parsers_memory together"
        )
    finally:
        pool.close()


def test_threads_share_a_pool(pool):
    found = {}

    def parse(name):
        found[name] = [
            said(done) for done in pool.parse(job(page(f"{name}{n}")) for n in range(15))
        ]

    threads = [threading.Thread(target=parse, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert found == {name: [[f"{name}{n}"] for n in range(15)] for name in "abc"}


def test_children_end_with_the_pool():
    pool = ParsePool(2, 0)
    list(pool.parse([job(page("a"))] * 3))
    pids = children(pool)
    pool.close()
    assert len(pids) == 2
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_pages_that_are_in_no_file_yet_leave_no_temporary_files(pool):
    rows = table_of(PAGES, page("new"))
    number = pool.submit(Job("/nowhere", "pages.parquet", (), "", parse_task(OPTIONS)), rows)
    assert said(pool.result(number)) == ["new"]
    assert left_behind(pool) == []


def test_all_children_can_start_before_there_is_a_job():
    with contextlib.closing(ParsePool(3, 0)) as pool:
        first = [child.process.pid for child in pool._children]
        pool.start_all()
        assert len(first) == 1
        assert len({*first, *(child.process.pid for child in pool._children)}) == 3
