"""A proxy before a store's emulator: counts requests, refuses some, loses some answers."""

import http.client
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


class Proxy:
    """Runs while it is entered.

    Args:
        url: Address of the emulator.

    Attributes:
        url: Its own address.
        requests: (method, path with query) of all requests, in order.
        every: Each so-many-th request is answered with ``code``; 0 is none.
        sent: Bytes of all answers' bodies.
        code: Status of what is refused.
        drop: Names of headers, in lower case, that the emulator does not get to see.
        cut: Says of a (method, path) whether its answer is to be lost, once it is done.
    """

    def __init__(self, url):
        self.target = urlsplit(url)
        self.requests, self.refused, self.sent = [], 0, 0
        self.every, self.code = 0, 503
        self.drop = set()
        self.cut = lambda method, path: False
        self.lock = threading.Lock()

    def __enter__(self):
        handler = type("Handler", (_Handler,), {"proxy": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()

    def refuses(self, method, path):
        """Notes a request; returns whether it is one to refuse."""
        with self.lock:
            self.requests.append((method, path))
            refused = bool(self.every) and len(self.requests) % self.every == 0
            self.refused += refused
            return refused


class _Server(ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        pass  # a client that leaves is none of the test's words on standard error


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or each answer waits for 40 ms
    proxy: Proxy

    def handle_any(self):
        proxy = self.proxy
        body = self._body()
        if proxy.refuses(self.command, self.path):
            self._reply(proxy.code, b"slow down", {})
            return
        connection = http.client.HTTPConnection(proxy.target.hostname, proxy.target.port, 60)
        headers = {n: v for n, v in self.headers.items() if n.lower() not in _HOP | proxy.drop}
        connection.request(self.command, self.path, body, headers)
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        if proxy.cut(self.command, self.path):
            self.close_connection = True
            self.connection.close()
            return
        with proxy.lock:
            proxy.sent += len(data)
        self._reply(answer.status, data, dict(answer.getheaders()))

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = do_PATCH = handle_any

    def _body(self):
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            parts = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _reply(self, status, data, headers):
        with suppress(OSError):
            self.send_response_only(status)
            for name, value in headers.items():
                if name.lower() not in _HOP:
                    # An upload goes on where it began.
                    self.send_header(
                        name, value.replace(self.proxy.target.geturl(), self.proxy.url)
                    )
            length = headers.get("Content-Length") if self.command == "HEAD" else len(data)
            self.send_header("Content-Length", str(length or 0))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

    def log_message(self, *_):
        pass


_HOP = {"connection", "content-length", "expect", "keep-alive", "transfer-encoding"}
