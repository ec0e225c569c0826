"""Servers that are too slow, with both HTTP clients."""

import time

import pytest
from http_clients import Client, HttpOptions
from one_request import URL, ask
from web_servers import connect_to, reply, serve

from nutbeam.web.exchange.status import classify

pytestmark = pytest.mark.usefixtures("each_client")


def test_a_server_that_hangs_times_out():
    response, _ = ask(lambda _: time.sleep(4), timeout=0.2)
    assert response.error == "timeout"


@pytest.mark.parametrize("part", ["head", "body"])
def test_a_server_that_drips_is_too_slow(part):
    def answer(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\nX: " + (b"" if part == "head" else b"y\r\n\r\n"))
        for _ in range(100):
            connection.sendall(b"x")
            time.sleep(0.05)

    began = time.monotonic()
    response, _ = ask(answer, timeout=1, http_time_limit=0.3)
    assert response.error == "too_slow"
    assert time.monotonic() - began > 0.25


def test_an_answer_that_drips_is_cut():
    def answer(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        for _ in range(500):
            connection.sendall(b"x")
            time.sleep(0.02)

    response, _ = ask(answer, min_rate=1000, min_rate_grace=0.1)
    assert (response.error, response.truncated) == ("low_rate", "time")
    assert classify(response)[:3] == (34, 16, "low_rate")
    assert ask(lambda _: reply(b"x" * 10), min_rate=1e9, min_rate_grace=1)[0].error is None


@pytest.mark.parametrize("grace", [0.1, 60])
def test_a_head_that_drips_is_cut_too(grace):
    def answer(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\n")
        for _ in range(20):
            connection.sendall(b"x")
            time.sleep(0.02)
        connection.sendall(b": y\r\nContent-Length: 0\r\n\r\n")

    response, _ = ask(answer, min_rate=1000, min_rate_grace=grace)
    assert response.error == ("low_rate" if grace < 1 else None)


def test_the_time_before_an_answer_does_not_count_as_slow():
    def answer(connection):
        time.sleep(0.3)
        return reply(b"x")

    with serve(lambda path, connection: answer(connection)) as server:
        options = HttpOptions(connect_to=connect_to(server.port), min_rate=1000, min_rate_grace=0.1)
        client = Client(options)
        assert [client.get(URL).error for _ in range(2)] == [None, None]
        assert server.connections == 1
