"""When pages are written: by size, and by the age of the first one that is not."""

import time

from nutbeam.io.batches.page_writer import PageWriter
from nutbeam.web.engine.tasks import Result, Task
from nutbeam.web.exchange.status import FETCH_SUCCESS, SUCCESS, Response


def result(name):
    url = f"http://a.com/{name}"
    response = Response(url, "HTTP/1.1", 200, "OK", body=name.encode())
    return Result(Task(url, f"com.a:http/{name}"), response, FETCH_SUCCESS, SUCCESS)


def test_the_age_is_that_of_the_first_page(tmp_path):
    writer = PageWriter(tmp_path, "1-x", 0, flush_seconds=0.3)
    assert writer.due_in() > 1e9
    time.sleep(0.4)  # there was nothing to write
    assert list(writer.add(result("a"))) == []
    assert 0 < writer.due_in() <= 0.3
    assert list(writer.flush_late()) == []
    time.sleep(0.2)
    assert list(writer.add(result("b"))) == []
    assert writer.due_in() <= 0.1  # the second page changes nothing
    time.sleep(0.11)
    (written,) = writer.flush_late()
    assert written.counts["pages"] == 2
    assert writer.due_in() > 1e9
