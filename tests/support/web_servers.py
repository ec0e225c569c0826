"""Servers on loopback for the tests of web/: they say what they are told to."""

import contextlib
import socket
import threading
import time


class Server:
    """Answers each request by calling ``answer(path, connection)``; see ``serve``.

    Attributes:
        requests: (path, head, monotonic time of arrival) of each request.
        ends: Monotonic times at which answers were sent.
        connections: How many were accepted.
        current: Its ``head`` is that of the request which this thread answers.
    """

    def __init__(self, answer, context=None, family=socket.AF_INET, address=None, port=0):
        self.answer, self.context = answer, context
        self.requests, self.ends = [], []
        self.current = threading.local()
        self.connections = self.active = self.most_active = 0
        self.lock = threading.Lock()
        self.closing = threading.Event()
        address = address or ("127.0.0.1" if family == socket.AF_INET else "::1")
        self.socket = socket.create_server((address, port), family=family, backlog=200)
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.socket.accept()
                self.connections += 1
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with contextlib.suppress(OSError, ValueError), connection:
            if self.context:
                connection = self.context.wrap_socket(connection, server_side=True)
            reader = connection.makefile("rb")
            while True:
                head = b""
                while not head.endswith(b"\r\n\r\n"):
                    line = reader.readline()
                    if not line:
                        return
                    head += line
                if not self._answer(head.decode(), connection):
                    return

    def _answer(self, head, connection):
        path = head.split(" ")[1]
        self.current.head = head
        with self.lock:
            self.requests.append((path, head, time.monotonic()))
            self.active += 1
            self.most_active = max(self.most_active, self.active)
        try:
            answer = self.answer(path, connection)
        finally:
            with self.lock:
                self.active -= 1
        if isinstance(answer, bytes):
            self.ends.append(time.monotonic())
            connection.sendall(answer)
        return answer

    @property
    def paths(self):
        return [path for path, _, _ in self.requests]

    def close(self):
        self.closing.set()
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


@contextlib.contextmanager
def serve(answer, **kwargs):
    """Runs a server whose ``answer(path, connection)`` returns the bytes to send.

    Where it returns None, it has sent what it wanted itself, and the connection
    is closed.
    """
    server = Server(answer, **kwargs)
    try:
        yield server
    finally:
        server.close()


def reply(body=b"", status="200 OK", *headers):
    """Returns the bytes of a whole response."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join((*lines, "\r\n")).encode("latin-1") + body


def connect_to(port, *names):
    """Returns connect_to entries for names, all at one port."""
    return tuple(f"{name}:80:127.0.0.1:{port}" for name in names or ("*.example.com",))
