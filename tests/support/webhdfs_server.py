"""An HDFS of the tests' own: the part of the WebHDFS protocol that is used, and strict about it.

No Hadoop runs here. What is kept is what the REST API's page says: a name node
that redirects CREATE, APPEND and OPEN to a data node and takes no bytes itself,
files that are visible while they are written, RENAME that answers ``false``
where the name is taken, RemoteExceptions with their codes.
"""

import json
import posixpath
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, quote, unquote, urlsplit

METHODS = {"LISTSTATUS": "GET", "GETFILESTATUS": "GET", "OPEN": "GET", "CREATE": "PUT",
           "RENAME": "PUT", "MKDIRS": "PUT", "APPEND": "POST", "DELETE": "DELETE"}  # fmt: skip


class WebHdfs:
    """Runs while it is entered.

    Attributes:
        address: What a table's address begins with.
        files: The bytes of each file, by its path.
        requests: (operation, path) of all requests, in order.
        cut: Operations of the name node that are done, and whose answer is then lost.
    """

    def __enter__(self):
        self.lock = threading.RLock()
        self.files, self.folders, self.ids, self.times = {}, {"/"}, {}, {}
        self.requests, self.cut = [], []
        self._servers = [_serve(kind, self) for kind in (_NameNode, _DataNode)]
        self.address = f"hdfs://127.0.0.1:{self._servers[0].server_port}"
        self.datanode = f"http://127.0.0.1:{self._servers[1].server_port}"
        return self

    def __exit__(self, *_):
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def make_parents(self, path):
        parent = posixpath.dirname(path)
        if parent in self.files:
            raise _Refused(403, "ParentNotDirectoryException", f"{parent} is not a directory")
        if parent not in self.folders:
            self.make_parents(parent)
            self.folders.add(parent)

    def create(self, path, data):
        self.make_parents(path)
        self.files[path] = data
        self.ids[path] = len(self.requests) + 16_386
        self.times[path] = int(time.time() * 1000)

    def status(self, path, suffix=""):
        if path in self.folders:
            return {"pathSuffix": suffix, "type": "DIRECTORY", "length": 0, "fileId": 1,
                    "modificationTime": 0}  # fmt: skip
        return {"pathSuffix": suffix, "type": "FILE", "length": len(self.files[path]),
                "fileId": self.ids[path], "modificationTime": self.times[path]}  # fmt: skip

    def there(self, path):
        if path not in self.files and path not in self.folders:
            raise _Refused(404, "FileNotFoundException", f"File does not exist: {path}")

    def below(self, path):
        start = path.rstrip("/") + "/"
        return [p for p in (*self.files, *self.folders) if p.startswith(start) and p != "/"]


class _Refused(Exception):
    def __init__(self, code, exception, message):
        super().__init__(message)
        self.code, self.exception = code, exception


def _serve(kind, state):
    handler = type(kind.__name__, (kind,), {"state": state})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


class _Node(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or each answer waits for 40 ms
    state: WebHdfs

    def handle_any(self):
        parts = urlsplit(self.path)
        self.query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        path = unquote(parts.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            if not path.startswith("/webhdfs/v1/") and path != "/webhdfs/v1":
                raise _Refused(404, "FileNotFoundException", "not WebHDFS")
            path = path.removeprefix("/webhdfs/v1") or "/"
            path = path.rstrip("/") or "/"
            op = self.query.get("op", "").upper()
            if METHODS.get(op) != self.command:
                raise _Refused(400, "IllegalArgumentException", f"Invalid value for {op!r}")
            with self.state.lock:
                answer = self.answer(op, path, body)
        except _Refused as error:
            remote = {"exception": error.exception, "message": str(error), "javaClassName": "x"}
            self.reply(error.code, json.dumps({"RemoteException": remote}).encode())
        else:
            self.reply(*answer)

    do_GET = do_PUT = do_POST = do_DELETE = handle_any

    def reply(self, code, body=b"", headers=()):
        with suppress(OSError):
            self.send_response(code)
            for name, value in headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *_):
        pass


class _NameNode(_Node):
    def answer(self, op, path, body):
        state = self.state
        state.requests.append((op, path))
        if body:
            raise _Refused(400, "IllegalArgumentException", "the name node takes no data")
        if op in ("CREATE", "APPEND", "OPEN"):
            return self.redirect(op, path)
        done = getattr(self, op.lower())(path)
        if op in state.cut:
            state.cut.remove(op)
            self.close_connection = True
            self.connection.close()
            return 200, b""
        return 200, json.dumps(done).encode(), [("Content-Type", "application/json")]

    def redirect(self, op, path):
        state = self.state
        if op == "CREATE":
            if path in state.folders:
                raise _Refused(403, "FileAlreadyExistsException", f"{path} is a directory")
            if path in state.files and self.query.get("overwrite") != "true":
                raise _Refused(403, "FileAlreadyExistsException", f"{path} already exists")
        else:
            state.there(path)
            if path in state.folders:
                raise _Refused(404, "FileNotFoundException", f"Path is not a file: {path}")
        query = urlsplit(self.path).query
        where = f"{state.datanode}/webhdfs/v1{quote(path)}?{query}&namenoderpcaddress=nn:8020"
        return 307, b"", [("Location", where)]

    def liststatus(self, path):
        state = self.state
        state.there(path)
        if path in state.files:
            return {"FileStatuses": {"FileStatus": [state.status(path)]}}
        names = (p for p in state.below(path) if posixpath.dirname(p) == path)
        found = [state.status(p, posixpath.basename(p)) for p in sorted(names)]
        return {"FileStatuses": {"FileStatus": found}}

    def getfilestatus(self, path):
        self.state.there(path)
        return {"FileStatus": self.state.status(path)}

    def rename(self, path):
        state, target = self.state, self.query.get("destination", "")
        if not target.startswith("/"):
            raise _Refused(400, "IllegalArgumentException", "destination is not absolute")
        if target in state.folders:
            target = posixpath.join(target, posixpath.basename(path))
        free = target not in state.files and posixpath.dirname(target) in state.folders
        if path not in state.files or not free:
            return {"boolean": False}
        for known in (state.files, state.ids, state.times):
            known[target] = known.pop(path)
        return {"boolean": True}

    def mkdirs(self, path):
        self.state.make_parents(path + "/x")
        return {"boolean": True}

    def delete(self, path):
        state = self.state
        if path not in state.files and path not in state.folders:
            return {"boolean": False}
        below = state.below(path)
        if below and self.query.get("recursive") != "true":
            raise _Refused(403, "PathIsNotEmptyDirectoryException", f"{path} is non empty")
        for name in [path, *below]:
            state.files.pop(name, None)
            state.folders.discard(name)
        return {"boolean": True}


class _DataNode(_Node):
    def answer(self, op, path, body):
        state = self.state
        state.requests.append((f"{op} data", path))
        if "namenoderpcaddress" not in self.query:
            raise _Refused(400, "IllegalArgumentException", "not sent here by a name node")
        if op == "CREATE":
            state.create(path, body)
            return 201, b""
        if path not in state.files:
            raise _Refused(404, "FileNotFoundException", f"File does not exist: {path}")
        if op == "APPEND":
            state.files[path] += body
            return 200, b""
        start = int(self.query.get("offset", 0))
        data = state.files[path]
        if start > len(data):
            raise _Refused(403, "IOException", f"Offset={start} out of the range")
        length = int(self.query.get("length", len(data)))
        return 200, data[start : start + length]
