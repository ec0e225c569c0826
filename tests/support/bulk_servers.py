"""A little server on loopback that answers bulk requests as a script says, and else as it should."""

import contextlib
import gzip
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from nutbeam.io.indexing.index_writer import IndexTarget
from nutbeam.io.indexing.writer_kinds import open_writer
from nutbeam.policy.components.index_routes import WriterRule


class BulkServer(ThreadingHTTPServer):
    """Takes the documents of bulk requests, as OpenSearch does.

    Attributes:
        script: (status, body, headers) of the next answers to bulk requests; a callable gets the
            connection's handler and answers itself.
        bulks: Ids of each bulk request.
        heads: (method, path, headers) of each request.
        documents: The documents that are there, by id.
    """

    daemon_threads = True

    def __init__(self, context=None, handler=None):
        super().__init__(("127.0.0.1", 0), handler or Handler)
        self.scheme = "http" if context is None else "https"
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_side=True)
        self.script, self.bulks, self.heads, self.documents = [], [], [], {}
        self.root = {"version": {"number": "2.19.0", "distribution": "opensearch"}}

    @property
    def url(self):
        return f"{self.scheme}://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, status, body=b"", headers=()):
        self.send_response(status)
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def hang_up(self, part=b""):
        """Breaks the connection off after a part of an answer."""
        self.wfile.write(part)
        self.wfile.flush()
        self.connection.shutdown(2)
        self.close_connection = True

    def do_GET(self):
        self.server.heads.append(("GET", self.path, self.headers))
        if self.path == "/":
            self.answer(200, json.dumps(self.server.root).encode())
        elif self.path.startswith("/_alias/"):
            self.answer(404, b"{}")
        else:
            self.answer(200, b"{}")

    def do_HEAD(self):
        self.answer(200)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.heads.append(("POST", self.path, self.headers))
        if self.headers["Content-Encoding"] == "gzip":
            body = gzip.decompress(body)
        if "/_bulk" not in self.path:
            self.answer(200, b"{}")
            return
        actions = list(read_actions(body))
        self.server.bulks.append([id_ for _, id_, _ in actions])
        if self.server.script:
            wished = self.server.script.pop(0)
            if callable(wished):
                wished(self)
            else:
                self.answer(*wished)
            return
        self.answer(200, json.dumps(self.apply(actions)).encode())

    def apply(self, actions):
        items = []
        for kind, id_, document in actions:
            self.server.documents.pop(id_, None)
            if kind == "index":
                self.server.documents[id_] = document
            items.append({kind: {"_id": id_, "status": 200}})
        return {"errors": False, "items": items}


def read_actions(body):
    lines = iter(body.decode().split("\n"))
    for line in lines:
        if line:
            ((kind, head),) = json.loads(line).items()
            yield kind, head["_id"], json.loads(next(lines)) if kind == "index" else None


def items(*statuses, kind="index"):
    """Returns the body of an answer: an item for each (id, status), perhaps with an error's type."""
    found = []
    for id_, status, *error in statuses:
        item = {"_id": id_, "status": status}
        if error:
            item["error"] = {"type": error[0], "reason": "a reason"}
        found.append({kind: item})
    return json.dumps({"errors": True, "items": found}).encode()


def writer(server, kind="opensearch", **parameters):
    """Opens a writer for the server, which takes these parameters, too."""
    given = {"url": server.url, "patience": "20", "timeout": "10", **parameters}
    return open_writer(WriterRule("w", kind, {}), IndexTarget("main", "w", given, None, 7, "op"))


@contextlib.contextmanager
def bulk_server(context=None):
    """Yields a server; with a context of ``ssl`` it speaks TLS."""
    server = BulkServer(context)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
