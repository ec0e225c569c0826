import io
import json
import logging
import re
import threading

import pytest

from nutbeam.web.base.json_logs import (
    JsonFormatter,
    set_logged_operation,
    uninstall,
    with_fields,
    working_on,
)

LOG = logging.getLogger("nutbeam.test_json_logs")


@pytest.fixture
def logged():
    """Logs, and returns the objects that were written."""
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(JsonFormatter())
    LOG.addHandler(handler)
    LOG.propagate = False
    LOG.setLevel(logging.INFO)
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


def test_job_and_worker_have_the_names_of_the_runner(logged, monkeypatch):
    monkeypatch.setenv("JOB_NAME", "crawl-1")
    monkeypatch.setenv("JOB_ID", "abc")
    monkeypatch.setenv("WORKER_ID", "1-1")
    LOG.error("x")
    assert (logged()[0]["job"], logged()[0]["worker"]) == ("crawl-1", "1-1")


def test_operation_and_batch_are_those_of_the_thread_or_of_the_only_one_at_work(logged):
    def elsewhere(inside):
        with working_on(operation="o2", batch="b2", round=2):
            LOG.error("second")
            inside()

    with working_on(operation="o1", batch=None):
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
    names = ("message", "operation", "batch", "round")
    assert [tuple(map(one.get, names)) for one in logged()] == [
        ("mine", "o1", None, None),
        ("its", "o1", None, None),
        ("second", "o2", "b2", 2),
        ("whose", None, None, None),
        ("after", None, None, None),
    ]


def test_logs_that_belong_to_no_phase_have_the_operation_of_the_command(logged):
    set_logged_operation("monday")
    LOG.error("first")
    with working_on(operation="monday.1.fetch"):
        LOG.error("second")
    uninstall()
    LOG.error("third")
    found = [one.get("operation") for one in logged()]
    assert found == ["monday", "monday.1.fetch", None]


def test_a_log_call_may_add_fields(logged):
    LOG.info("10 pages", extra=with_fields(counts={"pages": 10}, host="http://me:pw@p/"))
    LOG.warning("none")
    first, second = logged()
    assert (first["counts"], first["host"]) == ({"pages": 10}, "http://***@p/")
    assert set(second) == {"time", "severity", "logger", "message"}
