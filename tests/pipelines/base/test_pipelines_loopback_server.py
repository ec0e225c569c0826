"""Servers on loopback: they end when asked to, and answer only requests that name one host."""

import contextlib
import signal
import socket
import subprocess
import sys
import threading

import pytest

from nutbeam.pipelines.base.loopback_server import LoopbackHandler, LoopbackServer

FULL = """
import signal
import nutbeam.pipelines.base.loopback_server as loopback
loopback._MOST_CONNECTIONS = 1
class Server(loopback.LoopbackServer):
    def process_request(self, *words):
        print("connection", flush=True)
        super().process_request(*words)
with Server(0, loopback.LoopbackHandler) as server:
    signal.siginterrupt(signal.SIGINT, False)  # as in a command: no signal wakes a lock
    print(server.port, flush=True)
    server.serve_until_interrupted()
"""


def test_ctrl_c_ends_a_server_whose_connections_are_all_taken():
    command = [sys.executable, "-P", "-c", FULL]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    with process, contextlib.ExitStack() as stack:
        stack.callback(process.kill)
        port = int(process.stdout.readline())
        for _ in range(2):
            stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            assert process.stdout.readline() == "connection\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(LoopbackHandler.timeout / 2) == 0  # before a connection ends by itself


class Hello(LoopbackHandler):
    def do_GET(self):
        self.send_text(200, "text/plain", "hello")


@pytest.fixture(scope="module")
def port():
    with LoopbackServer(0, Hello) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server.port
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        (["GET / HTTP/1.1", "Host: a"], b"200"),
        (["GET / HTTP/1.1", "Host: a", "Host: b"], b"400"),
        (["GET / HTTP/1.1", "Host: a", "host: a"], b"400"),
        (["GET http://a/ HTTP/1.1", "Host: a", "Host: b"], b"400"),
        (["GET / HTTP/1.1"], b"400"),
        (["GET / HTTP/1.0"], b"200"),
        (["GET / HTTP/1.0", "Host: a", "Host: b"], b"400"),
    ],
    ids=str,
)
def test_a_request_names_one_host(port, lines, status):
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall("\r\n".join([*lines, "Connection: close", "", ""]).encode())
        assert connection.makefile("rb").readline().split()[1] == status
