"""Stores of the tests' own, and tables' addresses in each: what holds on disk must hold there.

Cloud Storage is fake-gcs-server, S3 is moto's server, HDFS a small server that
keeps to the WebHDFS protocol, and Hadoop's own HDFS in the long tests. Each starts
when it is first asked for.
"""

import contextlib
import itertools
import os
import subprocess
import sys
import threading
import urllib.request
from importlib.util import find_spec

import pytest
from free_ports import free_port
from gcs_server import PROGRAM, GcsServer
from hdfs_cluster import HdfsCluster, why_no_hdfs
from here import TESTS
from short_form import first
from waiting import wait_until
from webhdfs_server import WebHdfs

KINDS = ("local", "gs", "s3", "hdfs")
STORES = KINDS[1:]
HADOOP = pytest.param("hadoop", marks=pytest.mark.long)
BUCKET = "tables"
# For tests that must hold wherever a table is, and for those of stores alone.
everywhere = pytest.mark.parametrize("address", [*KINDS, HADOOP], indirect=True)
# For tests with a proxy before the server of a store; see the fixture ``proxied``.
PROXIED = pytest.mark.parametrize("kind", ["gs", "s3"])
in_stores = pytest.mark.parametrize("address", [*STORES, HADOOP], indirect=True)
# For tests that take long, and do nothing that others do not do in each store.
here_and_in_a_store = pytest.mark.parametrize("address", first(2, KINDS), indirect=True)
# No account of the user who runs the tests.
_AWS = {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1", "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull, "AWS_EC2_METADATA_DISABLED": "true"}  # fmt: skip


class Stores:
    """The servers that were started, until it is closed."""

    def __init__(self):
        self._running = contextlib.ExitStack()
        self._known = {}
        self._numbers = itertools.count(1)

    def close(self):
        self._running.close()

    def server(self, kind):
        """Returns the server of a kind; skips the test where it cannot be started."""
        missing = why_not(kind)
        if missing:
            pytest.skip(missing)
        if kind not in self._known:
            made = _SERVERS[kind]()
            self._known[kind] = self._running.enter_context(made)
            if kind in ("gs", "s3"):
                self._known[kind].make_bucket(BUCKET)
        return self._known[kind]

    def address(self, kind):
        """Returns an address that nobody has used."""
        server, name = self.server(kind), f"test-{next(self._numbers)}/table"
        return f"{kind}://{BUCKET}/{name}" if kind in ("gs", "s3") else f"{server.address}/{name}"

    def environ(self, kind, url=None):
        """Returns the variables that lead clients to a server, or to a proxy before it."""
        server = self.server(kind)
        if kind == "gs":
            return {"STORAGE_EMULATOR_HOST": url or server.url}
        return {**_AWS, "AWS_ENDPOINT_URL": url or server.url} if kind == "s3" else {}


def why_not(kind):
    """Returns why there is no server of a kind here, or an empty text."""
    if kind == "gs" and not PROGRAM.exists():
        return f"no fake-gcs-server at {PROGRAM}: make test builds it where Go is"
    if kind == "hadoop" and (missing := why_no_hdfs()):
        return missing
    needs = {"gs": ("gcsfs",), "s3": ("s3fs", "moto")}.get(kind, ("fsspec",))
    gone = [name for name in needs if find_spec(name) is None]
    return f"{' and '.join(gone)} are not installed" if gone else ""


class MotoServer:
    """An S3, of moto; its process is another one, so that requests are answered at once."""

    def __enter__(self):
        for _ in range(5):  # a port that was free may be taken before the server binds it
            port = free_port()
            self.url = f"http://127.0.0.1:{port}"
            program = f"from stores_here import serve_moto; serve_moto({port})"
            self._process = subprocess.Popen(
                [sys.executable, "-c", program], stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, cwd=TESTS / "support",
            )  # fmt: skip
            if wait_until(self._answers, self._process):
                return self
            self.__exit__()
        raise RuntimeError("moto's server does not start")

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait()

    def make_bucket(self, name):
        urllib.request.urlopen(urllib.request.Request(f"{self.url}/{name}", method="PUT")).close()

    def _answers(self):
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"{self.url}/moto-api/", timeout=10).close()
            return True


_SERVERS = {"gs": GcsServer, "s3": MotoServer, "hdfs": WebHdfs, "hadoop": HdfsCluster}


def serve_moto(port):
    """Serves S3; what changes something one after another, for moto looks first and then writes."""
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import run_simple

    app = DomainDispatcherApplication(create_backend_app)
    lock = threading.Lock()

    def in_turn(environ, start_response):
        if environ["REQUEST_METHOD"] in ("GET", "HEAD"):
            return app(environ, start_response)
        with lock:
            return app(environ, start_response)

    run_simple("127.0.0.1", port, in_turn, threaded=True)
