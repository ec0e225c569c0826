import io
import json
import logging
import re
import threading

import pytest

from nutbeam.web.base.json_logs import JsonFormatter, working_on

LOG = logging.getLogger("nutbeam.test_json_logs")


@pytest.fixture
def logged():
    """Logs, and returns the objects that were written."""
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(JsonFormatter())
    LOG.addHandler(handler)
    LOG.propagate = False
    yield lambda: [json.loads(line) for line in out.getvalue().splitlines()]
    LOG.removeHandler(handler)
    LOG.propagate = True


def test_a_record_is_one_object_on_one_line(logged):
    LOG.warning("two\nlines, %d of %s", 2, "é")
    (one,) = logged()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", one.pop("time"))
    assert one == {"severity": "WARNING", "logger": LOG.name, "message": "two\nlines, 2 of é"}


def test_an_exception_is_a_field_and_passwords_are_left_out(logged):
    try:
        raise OSError("proxy https://me:secret@proxy:1/ failed, http://a.com/@b stays")
    except OSError:
        LOG.exception("no way through %s", "https://me:secret@proxy:1/")
    (one,) = logged()
    assert one["message"] == "no way through https://***@proxy:1/"
    assert one["exception"].endswith("https://***@proxy:1/ failed, http://a.com/@b stays")
    assert "secret" not in json.dumps(one)


def test_job_and_worker_are_what_the_runner_calls_them(logged, monkeypatch):
    monkeypatch.setenv("JOB_NAME", "crawl-1")
    monkeypatch.setenv("JOB_ID", "abc")
    monkeypatch.setenv("WORKER_ID", "1-1")
    LOG.error("x")
    assert (logged()[0]["job"], logged()[0]["worker"]) == ("crawl-1", "1-1")


def test_operation_and_batch_are_those_of_the_thread_or_of_the_only_one_at_work(logged):
    def elsewhere(inside):
        with working_on("o2", "b2"):
            LOG.error("second")
            inside()

    with working_on("o1", None):
        LOG.error("mine")
        thread = threading.Thread(target=LOG.error, args=("its",))
        thread.start()
        thread.join()

        def two_at_work():
            third = threading.Thread(target=LOG.error, args=("whose",))
            third.start()
            third.join()

        thread = threading.Thread(target=elsewhere, args=(two_at_work,))
        thread.start()
        thread.join()
    LOG.error("after")
    found = [(one["message"], one.get("operation"), one.get("batch")) for one in logged()]
    assert found == [
        ("mine", "o1", None),
        ("its", "o1", None),
        ("second", "o2", "b2"),
        ("whose", None, None),
        ("after", None, None),
    ]
