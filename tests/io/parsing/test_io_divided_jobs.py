"""Jobs are divided among the processes that parse, where few wait."""

import os
import pathlib
import signal
import time

import pytest
from frames import table_of
from hostile_files import SLOW_HTML
from waiting import wait_until

from nutbeam.io.batches.documents import Parser
from nutbeam.io.batches.page_writer import PageWriter
from nutbeam.io.parsing.parse_pool import ParsePool
from nutbeam.io.parsing.parse_worker import Job
from nutbeam.io.storage.parquet_files import collect, scan
from nutbeam.policy.components.document_schema import DOCUMENTS
from nutbeam.policy.components.schema import PAGES
from nutbeam.policy.parsing.documents import DocumentOptions
from nutbeam.transforms.parsing import parse_task
from nutbeam.web.engine.tasks import Result, Task
from nutbeam.web.exchange.status import FETCH_SUCCESS, SUCCESS, Response
from nutbeam.web.urls.row_keys import to_key

TASK = parse_task(DocumentOptions())
SIZE = 100_000


@pytest.fixture
def children():
    """Two children, both idle."""
    pool = ParsePool(2, 0)
    pool.start_all()
    yield pool
    pool.close()


def body(name):
    return f"<title>{name}</title>".encode().ljust(SIZE)


def submit_last(pool, *bodies):
    pool.share_rest()
    return submit(pool, *bodies)


def submit(pool, *bodies):
    pages = [
        {"key": to_key(f"http://a.com/{number}"), "fetch_status": FETCH_SUCCESS,
         "content_type": "text/html", "body": each}
        for number, each in enumerate(bodies)
    ]  # fmt: skip
    return pool.submit(Job("", "pages", (), "", TASK), table_of(PAGES, *pages))


def busy(pool):
    return [child for child in pool._children if child.job is not None]


def titles(done):
    return done.documents.column("title").to_pylist()


def test_all_children_parse_one_large_job(children):
    number = submit_last(children, *(body(n) for n in range(42)))
    assert len(busy(children)) == 2
    done = children.result(number)
    assert titles(done) == [str(n) for n in range(42)]
    assert (done.rows, done.counts["parsed"]) == (42, 42)
    assert not list(pathlib.Path(children._scratch).rglob("*.arrow"))


def test_a_small_job_stays_whole(children):
    submit_last(children, *(body(n) for n in range(9)))
    assert len(busy(children)) == 1


def test_a_job_stays_whole_while_others_follow(children):
    submit(children, *(body(n) for n in range(42)))
    assert len(busy(children)) == 1


def test_the_last_jobs_are_divided_the_more_the_fewer_wait(children):
    numbers = [submit(children, *(body(n) for n in range(30))) for _ in range(12)]
    children.share_rest()
    sizes = []
    while not all(map(children.is_done, numbers)):
        children.pump()
        time.sleep(0.01)
        sizes += [stop - start for job in children._running.values() for start, stop in job.slices]
    assert max(sizes) == 30
    assert min(sizes) < 15
    assert [len(titles(children.result(number))) for number in numbers] == [30] * 12


def test_a_child_that_is_killed_costs_its_page_and_no_other_part(children):
    bodies = [body(n) for n in range(42)]
    bodies[0] = SLOW_HTML
    number = submit_last(children, *bodies)
    first_part = children._parts[number][0]
    (slow,) = (child for child in children._children if child.job == first_part)
    while slow.row != 0:
        children.pump()
        time.sleep(0.01)
    os.kill(slow.process.pid, signal.SIGKILL)
    done = children.result(number)
    assert titles(done)[1:] == [str(n) for n in range(1, 42)]
    assert done.documents.column("parse_message")[0].as_py() == "crashed: SIGKILL"


def test_children_get_jobs_while_the_caller_does_other_work(children):
    numbers = [submit(children, *(body(n) for n in range(9))) for _ in range(6)]
    with children.feeding():
        # Nobody asks for results, or hands out jobs.
        wait_until(lambda: all(map(children.is_done, numbers)))
    assert [len(titles(children.result(number))) for number in numbers] == [9] * 6


def test_a_divided_job_that_is_abandoned_leaves_nothing(children):
    number = submit_last(children, *(body(n) for n in range(42)))
    children.abandon([number])
    assert not busy(children)
    assert (children._parts, children._running, len(children._waiting)) == ({}, {}, 0)
    assert titles(children.result(submit(children, body("after")))) == ["after"]


def test_pages_are_parsed_before_their_row_group_is_complete(children, tmp_path):
    parser = Parser(children, TASK, "", lambda done: None)
    writer = PageWriter(tmp_path, "1-x", 0, flush_seconds=600.0, parser=parser)
    urls = [f"http://a.com/{number:02d}" for number in range(30)]
    for number, url in enumerate(urls):
        response = Response(url, "HTTP/1.1", 200, "OK", body=body(number))
        assert (
            list(writer.add(Result(Task(url, to_key(url)), response, FETCH_SUCCESS, SUCCESS))) == []
        )
        if number == 14:
            assert busy(children), "1.5 MB wait, and no child parses"
    pages, documents = writer.flush()
    assert pages.files[0].rows == documents.files[0].rows == 30
    rows = collect(scan([tmp_path / documents.files[0].path], DOCUMENTS).select("key", "title"))
    assert rows.to_dicts() == [
        {"key": to_key(url), "title": str(number)} for number, url in enumerate(urls)
    ]
