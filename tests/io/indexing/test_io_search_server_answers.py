"""The writer for OpenSearch before odd answers: nothing is lost, and one line says what failed."""

import contextlib
import logging
import time

import polars as pl
import pytest
from bulk_servers import bulk_server, items, writer
from index_servers import index_server

from nutbeam.io.indexing import server_client
from nutbeam.io.indexing.index_writer import IndexTarget
from nutbeam.io.indexing.writer_kinds import open_writer
from nutbeam.policy.components.index_routes import WriterRule
from nutbeam.web.base.errors import Unavailable, UsageError, UserError
from nutbeam.web.indexing.server_answers import Blocked, RetryPlan

NONE = pl.Series([], dtype=pl.String)
TOO_MUCH = b'{"error":{"type":"rejected_execution_exception","reason":"busy"},"status":429}'
NEVER = TOO_MUCH.replace(
    b"busy", b"coordinating_operation_bytes=9, max_coordinating_and_primary_bytes=5"
)


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(
        RetryPlan, "wait", lambda self, text="", plain=RetryPlan.wait: _short(plain, self, text)
    )
    with bulk_server() as found:
        yield found


def _short(plain, plan, text):
    """Waits as long as the plan says in its account, and not in the test."""
    WAITED.append(text)
    return None if plain(plan, text) is None else 0.0


WAITED = []


def documents(*ids, text="x"):
    return pl.DataFrame({"id": list(ids), "title": [text] * len(ids)})


@pytest.mark.parametrize(("given", "coding"), [({}, None), ({"gzip": "true"}, "gzip")])
def test_documents_arrive_with_their_version(server, given, coding):
    done = writer(server, **given).write(documents("a", "b", text="x" * 2000), pl.Series(["c"]))
    assert done.counts == {"added": 2, "deleted": 1}
    assert server.bulks == [["a", "b", "c"]]
    assert server.documents["a"] == {"id": "a", "title": "x" * 2000}
    assert server.heads[-1][2].get("Content-Encoding") == coding


@pytest.mark.parametrize(
    "odd",
    [
        (503, b"<html>down</html>", {"Retry-After": "3"}),
        (502, b""),
        (429, TOO_MUCH),
        (200, b"<html>Please log in</html>"),
        (200, b'{"items": [{"index": {"_id": "a", '),
        (200, b"[]"),
        (200, b'{"items": [{"index": {"_id": "other", "status": 200}}]}'),
        lambda handler: handler.hang_up(),
        lambda handler: handler.hang_up(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{"),
    ],
    ids=["503", "502", "429", "html", "truncated", "list", "other", "reset", "short"],
)
def test_a_bulk_without_a_good_answer_is_sent_again(server, odd):
    server.script = [odd]
    done = writer(server).write(documents("a", "b"), NONE)
    assert done.counts == {"added": 2}
    assert server.bulks == [["a", "b"]] * 2
    assert set(server.documents) == {"a", "b"}


def test_a_server_that_is_too_slow_gets_the_bulk_again(server):
    server.script = [lambda handler: (time.sleep(0.6), handler.hang_up())]
    assert writer(server, timeout="0.3").write(documents("a"), NONE).counts == {"added": 1}
    assert server.bulks == [["a"]] * 2


def test_the_server_says_how_long_to_wait(server):
    server.script, WAITED[:] = [(503, b"", {"Retry-After": "4"})], []
    writer(server).write(documents("a"), NONE)
    assert WAITED == ["4"]


def test_only_items_without_success_are_sent_again(server):
    server.script = [(200, items(("a", 201), ("b", 429, "rejected"), ("c", 503, "x")))]
    done = writer(server).write(documents("a", "b", "c"), NONE)
    assert done.counts == {"added": 3}
    assert server.bulks == [["a", "b", "c"], ["b", "c"]]


def test_items_that_are_missing_in_an_answer_are_sent_again(server):
    server.script = [(200, items(("a", 201)))]
    assert writer(server).write(documents("a", "b", "c"), NONE).counts == {"added": 3}
    assert server.bulks == [["a", "b", "c"], ["b", "c"]]


def test_a_bad_document_is_refused_with_its_reason(server):
    server.script = [(200, items(("a", 201), ("b", 400, "mapper_parsing_exception")))]
    done = writer(server).write(documents("a", "b"), NONE)
    assert done.counts == {"added": 1, "refused": 1}
    ((url, reason, document),) = done.refused.rows()
    assert (url, reason) == ("b", "mapper_parsing_exception: a reason")
    assert document == '{"id":"b","title":"x"}'


def test_a_newer_version_on_the_server_is_no_failure(server):
    server.script = [(200, items(("a", 409, "version_conflict_engine_exception")))]
    assert writer(server).write(documents("a"), NONE).counts == {"newer": 1}


def test_a_delete_of_a_missing_document_is_no_failure(server):
    server.script = [(200, items(("a", 404), kind="delete"))]
    assert writer(server).write(documents(), pl.Series(["a"])).counts == {"not_there": 1}


@pytest.mark.parametrize("status", [(413, b""), (429, NEVER)], ids=["413", "429"])
def test_bulks_that_are_too_large_are_split_down_to_the_document_at_fault(server, status):
    server.script = [status, status, status]  # a b c, a, then b c
    done = writer(server).write(documents("a", "b", "c"), NONE)
    assert server.bulks == [["a", "b", "c"], ["a"], ["b", "c"], ["b"], ["c"]]
    assert done.counts == {"added": 2, "refused": 1}
    assert done.refused["id"].to_list() == ["a"]
    assert "413" in done.refused["reason"][0] or "429" in done.refused["reason"][0]


def test_a_busy_server_gets_smaller_requests_and_then_all(server):
    server.script = [(429, TOO_MUCH)] * 5
    done = writer(server, patience="1000").write(documents("a", "b", "c", "d"), NONE)
    assert done.counts == {"added": 4}
    assert len(server.bulks[-1]) < 4


def test_a_server_that_never_takes_anything_ends_the_work_in_one_line(server):
    server.script = [(503, b"<html>")] * 100
    tried = r"for .* s, and the next try would be after the patience of 20 s: status 503, <html>;"
    with pytest.raises(Unavailable, match=f"has taken no documents {tried}"):
        writer(server).write(documents("a"), NONE)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((401, b""), "refuses the credentials"),
        ((200, items(("a", 403, "cluster_block_exception"))), "read-only, or the disk"),
        ((403, b'{"error":{"type":"cluster_block_exception"}}'), "read-only, or the disk"),
        ((200, items(("a", 404, "index_not_found_exception"))), "the index does not exist"),
        ((302, b""), "refuses the request"),
    ],
)
def test_errors_that_no_document_causes_end_the_work(server, answer, message):
    server.script = [answer]
    with pytest.raises(Blocked, match=message):
        writer(server).write(documents("a"), NONE)


def test_credentials_are_sent_and_in_no_message(server, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    file = tmp_path / "secrets"
    file.write_text(f"{server.url} basic me topsecret\n")
    opened = writer(server, credentials=str(file))
    server.script = [(503, b"")] * 100
    with pytest.raises(Unavailable) as raised:
        opened.write(documents("a"), NONE)
    assert server.heads[-1][2]["Authorization"] == "Basic bWU6dG9wc2VjcmV0"
    said = f"{raised.value} {opened.__dict__} {caplog.text}"
    assert "topsecret" not in said
    assert "bWU6dG9wc2VjcmV0" not in said


def test_credentials_of_the_environment(server, monkeypatch):
    monkeypatch.setenv("NUTBEAM_INDEX_USER", "me")
    with pytest.raises(UsageError, match="must both be set"):
        writer(server)
    monkeypatch.setenv("NUTBEAM_INDEX_PASSWORD", "topsecret")
    writer(server).write(documents("a"), NONE)
    assert server.heads[-1][2]["Authorization"] == "Basic bWU6dG9wc2VjcmV0"


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"url": "http://me:topsecret@h:9200"},
            r"must not have user and password.*'http://h:9200'",
        ),
        ({"url": "localhost:9200"}, "must be http://HOST:PORT"),
        ({"url": "http://h/?a=b"}, "query or a fragment"),
        ({"ca_file": "none.pem"}, "ca_file must be a file"),
        ({"name": "Main"}, "lower case"),
        ({"max_bytes": "many"}, "max_bytes must be a number from 1 on, got 'many'"),
        ({"max_documents": "1.5"}, "max_documents must be a whole number, got '1.5'"),
        ({"gzip": "maybe"}, "gzip must be one of false, true"),
        ({"index_file": "none.json"}, "index_file must be a file"),
        ({"password": "topsecret"}, "user and password must be in a file"),
        ({"auth": "true", "password": "topsecret"}, "user and password must be in a file"),
        ({"type": "cloud"}, "must be http, with the url of one node, got 'cloud'"),
        ({"colour": "red"}, "has no parameter 'colour'"),
    ],
)
def test_wrong_parameters_are_refused_and_quoted(server, parameters, message):
    with pytest.raises(UsageError, match=message) as raised:
        writer(server, **parameters)
    assert "topsecret" not in str(raised.value)


def test_parameters_of_nutch_are_known(server):
    host, port = server.url.removeprefix("http://").split(":")
    given = {"host": host, "port": port, "index": "nutch", "max.bulk.docs": "1", "auth": "false",
             "username": "u", "password": "p", "exponential.backoff.retries": "10"}  # fmt: skip
    target = IndexTarget("main", "w", given, None, 7, "op")
    writer = open_writer(WriterRule("w", "opensearch", {}), target)
    writer.write(documents("a", "b"), NONE)
    assert server.bulks == [["a"], ["b"]]
    assert server.heads[-1][1].startswith("/nutch/_bulk")


@pytest.mark.parametrize(
    ("url", "why"),
    [("http://127.0.0.1:1", "connection refused"), ("http://no.invalid:1", "host name not known")],
)
def test_a_server_that_is_down_is_named_at_once_once_and_in_words(server, caplog, url, why):
    with pytest.raises(Unavailable) as raised:
        writer(server, url=url, patience="8").prepare()
    assert str(raised.value) == f"{url} does not answer: {why}"
    said = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
    assert said == [f"{url} does not answer: {why}; trying again for up to 8 s"]


def test_a_server_that_goes_away_in_the_middle_is_named_before_the_patience_ends(server, caplog):
    server.script = [lambda handler: handler.hang_up()] * 2
    assert writer(server).write(documents("a"), NONE).counts == {"added": 1}
    said = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
    assert said == [
        f"{server.url} does not answer: it closed the connection; trying again for up to 20 s"
    ]


def test_another_server_is_named_at_the_start(server):
    with pytest.raises(UserError, match="is opensearch: choose that writer, got 'elasticsearch'"):
        writer(server, kind="elasticsearch").prepare()
    server.root = {"hello": 1}
    with pytest.raises(UserError, match=r"is no OpenSearch or Elasticsearch: .* status 200"):
        writer(server).prepare()


@pytest.fixture
def indexes(server):
    with index_server() as found:
        yield found


BUSY = [(503, b"<html>", {"Retry-After": "1"}), (429, b"{}"), (200, b"<html>Please wait</html>")]


@pytest.mark.parametrize("busy", BUSY, ids=["503", "429", "html"])
@pytest.mark.parametrize("full", [False, True], ids=["first", "full"])
def test_short_requests_wait_while_the_server_is_busy(indexes, busy, full):
    given = {"url": indexes.url, "patience": "20"}
    target = IndexTarget("main", "w", given, None, 7, "op", full)
    one = open_writer(WriterRule("w", "opensearch", {}), target)
    requests = [("GET", "/"), ("HEAD", "/main"), ("PUT", "/main"), ("GET", "/_alias/"),
                ("POST", "/_refresh"), ("POST", "/_aliases"), ("GET", "/_mapping")]  # fmt: skip
    indexes.before = [(method, part, busy) for method, part in requests if method != "HEAD"]
    indexes.before.append(("HEAD", "/main", (503, b"")))
    one.prepare()
    assert one.write(documents("a"), NONE).counts == {"added": 1}
    one.finish()
    assert indexes.texts() == {"a": ""}
    assert {part for _, part, _ in indexes.before} <= ({"/_aliases", "/_mapping"} - {full})


def test_a_server_that_stays_busy_is_named(indexes, caplog):
    indexes.before = [("GET", "/_alias/", (503, b"down"))] * 1_000
    with pytest.raises(UserError, match=r"does not show alias 'main': status 503, down"):
        writer(indexes).write(documents("a"), NONE)
    (waits,) = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert waits == f"{indexes.url} answers with status 503; trying again for up to 20 s"
    assert indexes.indexes == {}
    indexes.before = [("GET", "/", (200, b"<html>Log in</html>"))] * 1_000
    with pytest.raises(UserError, match=r"does not answer in JSON, but with '<html>Log in"):
        writer(indexes).prepare()


def dribble(handler):
    """Sends an answer byte by byte."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    with contextlib.suppress(OSError):  # the client has gone
        for _ in range(600):
            handler.wfile.write(b" ")
            handler.wfile.flush()
            time.sleep(0.05)


def endless(handler):
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n" + b" " * 200_000)
    handler.close_connection = True


@pytest.mark.parametrize("act", [dribble, endless])
def test_an_answer_that_is_too_slow_or_too_large_is_none(server, monkeypatch, act):
    monkeypatch.setattr(server_client, "_LONGEST_ANSWER", 100_000)
    server.script = [act]
    begun = time.monotonic()
    assert writer(server, timeout="0.4").write(documents("a"), NONE).counts == {"added": 1}
    assert time.monotonic() - begun < 20  # the whole answer takes 30
    assert server.bulks == [["a"]] * 2
