"""When pages are written: by size, and by the age of the first one that is not."""

import types

from nutbeam.io.batches import page_writer
from nutbeam.io.batches.page_writer import PageWriter
from nutbeam.web.engine.tasks import Result, Task
from nutbeam.web.exchange.status import FETCH_SUCCESS, SUCCESS, Response


def result(name):
    url = f"http://a.com/{name}"
    response = Response(url, "HTTP/1.1", 200, "OK", body=name.encode())
    return Result(Task(url, f"com.a:http/{name}"), response, FETCH_SUCCESS, SUCCESS)


def test_the_age_is_that_of_the_first_page(tmp_path, monkeypatch):
    clock = types.SimpleNamespace(now=100.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(page_writer, "time", clock)
    writer = PageWriter(tmp_path, "1-x", 0, flush_seconds=0.3)
    assert writer.due_in() > 1e9
    clock.now += 0.4  # there was nothing to write
    assert list(writer.add(result("a"))) == []
    assert abs(writer.due_in() - 0.3) < 1e-6
    assert list(writer.flush_late()) == []
    clock.now += 0.2
    assert list(writer.add(result("b"))) == []
    assert abs(writer.due_in() - 0.1) < 1e-6  # the second page changes nothing
    clock.now += 0.11
    (written,) = writer.flush_late()
    assert written.counts["pages"] == 2
    assert writer.due_in() > 1e9
