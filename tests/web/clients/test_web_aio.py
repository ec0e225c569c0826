"""What the client on asyncio does in its own way; the rest is in the tests of both clients."""

import random
import socket
import struct
import threading
import time

import pytest
from web_servers import connect_to, reply, serve

from nutbeam.web.clients.aio_client import client_of
from nutbeam.web.engine.engine import Engine, FetchOptions, Task
from nutbeam.web.exchange.http_options import HttpOptions
from nutbeam.web.network.guard import Guard

URL = "http://a.example.com/"
OK = b"HTTP/1.1 200 OK\r\n"
ONE = b"Content-Length: 1\r\n\r\nx"


def test_a_body_that_ends_with_a_reset_is_not_whole():
    def answer(path, connection):
        connection.sendall(OK + b"\r\nhalf of it")
        time.sleep(0.05)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.shutdown(socket.SHUT_RD)
        connection.close()

    with serve(answer) as server:
        options = HttpOptions(
            connect_to=connect_to(server.port), http_client="asyncio", timeout=2.0
        )
        client = client_of(options)
        response = client.get(URL)
        client.close()
    assert (response.body, response.truncated) == (b"half of it", "disconnect")
    assert response.error == "reset"


@pytest.mark.parametrize(("limit", "truncated"), [(-1, "disconnect"), (100_000, "length")])
def test_the_start_of_a_body_that_breaks_off_is_kept(limit, truncated):
    body = random.Random(1).randbytes(150_000)
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {2 * len(body)}\r\n\r\n".encode()
    with serve(lambda path, connection: connection.sendall(head + body)) as server:
        options = {"connect_to": connect_to(server.port), "content_limit": limit}
        client = client_of(HttpOptions(http_client="asyncio", **options))
        responses = [client.get(URL) for _ in range(5)]
        client.close()
    assert {response.truncated for response in responses} == {truncated}
    assert {response.body for response in responses} == {body[:limit] if limit > 0 else body}


def test_an_unrequested_answer_ends_an_idle_connection():
    sent = threading.Event()

    def answer(path, connection):
        connection.sendall(reply(b"x"))
        if path == "/":
            time.sleep(0.05)
            connection.sendall(reply(b"") * 1000)
            sent.set()
        return b""

    with serve(answer) as server:
        client = client_of(HttpOptions(connect_to=connect_to(server.port), http_client="asyncio"))
        assert client.get(URL).body == b"x"
        assert sent.wait(10)
        assert client.get(f"{URL}again").body == b"x"
        assert server.connections == 2
        client.close()


def test_it_can_be_used_by_many_threads_and_after_it_was_closed():
    with serve(lambda path, connection: reply(path.encode())) as server:
        client = client_of(HttpOptions(connect_to=connect_to(server.port), http_client="asyncio"))
        found = {}

        def work(number):
            found[number] = client.get(f"{URL}{number}").body

        threads = [threading.Thread(target=work, args=(number,)) for number in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == {number: f"/{number}".encode() for number in range(20)}
        client.close()
        client.close()
        assert client.get(f"{URL}again").body == b"/again"
        client.close()
    assert not [t for t in threading.enumerate() if t.name == "nutbeam-loop" and not t.daemon]


def test_many_at_a_time_take_one_thread():
    many = 150
    together = threading.Barrier(many)

    def answer(path, connection):
        if path == "/robots.txt":
            return reply(b"", "404 Not Found")
        together.wait(20)  # nobody is answered before all have asked
        return reply(b"x")

    with serve(answer) as server:
        options = {"connect_to": connect_to(server.port), "http_client": "asyncio", "timeout": 30.0}
        client = client_of(HttpOptions(**options))
        tasks = [Task(f"http://h{number}.example.com/") for number in range(many)]
        results = Engine(FetchOptions(threads=many, server_delay=0.0), client).run(tasks)
        bodies = [next(results).response.body]
        names = [thread.name for thread in threading.enumerate()]
        bodies += [result.response.body for result in results]
        client.close()
    assert bodies == [b"x"] * many
    assert "nutbeam-fetch" not in names


def test_a_slow_name_server_holds_up_no_other_request():
    asked, answered = threading.Event(), threading.Event()

    def lookup(host, *_, **__):
        if host.startswith("slow"):
            asked.set()
            assert answered.wait(20)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0))]

    with serve(lambda path, connection: reply(b"x")) as server:
        allowed = {"allow_addresses": ("127.0.0.0/8",), "allowed_ports": ("1-65535",)}
        guard = Guard(**allowed, lookup=lookup)
        client = client_of(HttpOptions(http_client="asyncio"), guard)
        found = []
        slow = threading.Thread(
            target=lambda: found.append(client.get(f"http://slow.example.com:{server.port}/"))
        )
        slow.start()
        assert asked.wait(20)
        assert client.get(f"http://fast.example.com:{server.port}/").body == b"x"
        assert not found
        answered.set()
        slow.join(20)
        client.close()
    assert [response.body for response in found] == [b"x"]


def test_names_are_looked_up_after_it_was_closed_too():
    def lookup(*_, **__):
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0))]

    with serve(lambda path, connection: reply(b"x")) as server:
        allowed = {"allow_addresses": ("127.0.0.0/8",), "allowed_ports": ("1-65535",)}
        client = client_of(HttpOptions(http_client="asyncio"), Guard(**allowed, lookup=lookup))
        for host in ("a", "b"):
            thread = threading.Thread(
                target=client.get, args=(f"http://{host}.example.com:{server.port}/",), daemon=True
            )
            thread.start()
            thread.join(20)
            assert not thread.is_alive()
            client.close()
    assert server.connections == 2


@pytest.mark.parametrize("client", ["threads", "asyncio"])
def test_a_server_may_send_before_the_request(client):
    def greet(listening):
        connection, _ = listening.accept()
        with connection:
            connection.sendall(OK + ONE)
            connection.recv(4096)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=greet, args=(listening,))
        thread.start()
        port = listening.getsockname()[1]
        asking = client_of(
            HttpOptions(connect_to=connect_to(port), http_client=client, timeout=2.0)
        )
        response = asking.get(URL)
        asking.close()
        thread.join()
    assert (response.status, response.body) == (200, b"x")
