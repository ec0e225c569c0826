"""A Cloud Storage of the tests' own: fake-gcs-server, and the metadata server of a launcher's VM."""

import json
import os
import subprocess
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

from free_ports import free_port
from here import ROOT
from waiting import wait_until

PROGRAM = ROOT / "build" / "tools" / "fake-gcs-server"
PROJECT = "my-project-123"
_METADATA = {
    "/computeMetadata/v1/project/project-id": PROJECT,
    "/computeMetadata/v1/universe/universe-domain": "googleapis.com",
    "/computeMetadata/v1/instance/service-accounts/default/": json.dumps(
        {"aliases": ["default"], "email": "launcher@example.com", "scopes": ["all"]}
    ),
    "/computeMetadata/v1/instance/service-accounts/default/token": json.dumps(
        {"access_token": "token", "expires_in": 3600, "token_type": "Bearer"}
    ),
}


class GcsServer:
    """Runs while it is entered; ``environ`` leads Google's clients to it.

    Attributes:
        url: Address of the server.
        environ: Variables that a process needs to use it, as if on a VM of Google's.
    """

    def __enter__(self):
        self._metadata = ThreadingHTTPServer(("127.0.0.1", 0), _Metadata)
        threading.Thread(target=self._metadata.serve_forever, daemon=True).start()
        for _ in range(5):  # a port that was free may be taken before the server binds it
            self._start(free_port())
            if wait_until(self._answers, self._process):
                break
            self._stop()
        else:
            self.__exit__()
            raise RuntimeError("fake-gcs-server does not start")
        vm = f"127.0.0.1:{self._metadata.server_port}"
        self.environ = {
            "STORAGE_EMULATOR_HOST": self.url,
            "GCE_METADATA_HOST": vm,
            "GCE_METADATA_ROOT": vm,
            "GCE_METADATA_IP": vm,
            "GOOGLE_CLOUD_PROJECT": PROJECT,
            "CLOUDSDK_CONFIG": os.devnull,  # no login of the user who runs the tests
        }
        return self

    def __exit__(self, *_):
        self._stop()
        self._metadata.shutdown()
        self._metadata.server_close()

    def make_bucket(self, name):
        """Makes a bucket."""
        body = json.dumps({"name": name}).encode()
        self._get(f"/storage/v1/b?project={PROJECT}", body)

    def names(self, bucket, prefix=""):
        """Returns the size in bytes of each object, by name."""
        found = json.loads(self._get(f"/storage/v1/b/{bucket}/o?prefix={quote(prefix, safe='')}"))
        return {item["name"]: int(item["size"]) for item in found.get("items", [])}

    def read(self, url):
        """Returns the bytes of the object at a ``gs://`` address."""
        bucket, _, name = url.removeprefix("gs://").partition("/")
        return self._get(f"/storage/v1/b/{bucket}/o/{quote(name, safe='')}?alt=media")

    def _start(self, port):
        self.url = f"http://127.0.0.1:{port}"
        here = f"127.0.0.1:{port}"
        self._process = subprocess.Popen(
            [PROGRAM, "-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-backend",
             "memory", "-public-host", here, "-external-url", self.url, "-log-level", "error"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def _stop(self):
        with suppress(ProcessLookupError):
            self._process.terminate()
        self._process.wait()

    def _answers(self):
        with suppress(OSError):
            return bool(self._get(f"/storage/v1/b?project={PROJECT}"))

    def _get(self, path, body=None):
        request = Request(self.url + path, body, {"Content-Type": "application/json"})
        try:
            with urlopen(request, timeout=30) as answer:
                return answer.read()
        except HTTPError as error:
            raise FileNotFoundError(f"{error.code} for {path}") from error


class _Metadata(BaseHTTPRequestHandler):
    """The metadata server as far as ``google.auth`` asks it."""

    def do_GET(self):
        path = self.path.partition("?")[0].replace("universe_domain", "universe-domain")
        body = _METADATA.get(path, "" if path == "/" else None)
        self.send_response(404 if body is None else 200)
        self.send_header("Metadata-Flavor", "Google")
        self.send_header(
            "Content-Type", "application/json" if "{" in (body or "") else "text/plain"
        )
        self.send_header("Content-Length", str(len((body or "").encode())))
        self.end_headers()
        self.wfile.write((body or "").encode())

    def log_message(self, *_):
        pass
