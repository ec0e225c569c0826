"""A real site to crawl: Debian's documentation, served by nginx on loopback.

``make docs-site`` installs what it needs. Used by tests and benchmarks.
"""

import http.client
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import time
from typing import Self

HOST = "docs.example.com"
# Path on the site, folder, Debian package.
PARTS = (
    ("/python3.11/html/", "/usr/share/doc/python3.11/html/", "python3.11-doc"),
    ("/debian-reference/", "/usr/share/debian-reference/", "debian-reference-en"),
    ("/postgresql-doc-15/html/", "/usr/share/doc/postgresql-doc-15/html/", "postgresql-doc-15"),
)
FRONT_PAGE = (
    "<!DOCTYPE html><html><head><title>Documentation</title></head><body><ul>"
    '<li><a href="/python3.11/html/">Python</a></li>'
    '<li><a href="/debian-reference/index.en.html">Debian Reference</a></li>'
    '<li><a href="/postgresql-doc-15/html/index.html">PostgreSQL</a></li>'
    "</ul></body></html>"
)
CONFIG = """\
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
worker_processes 1;
events {{ worker_connections 1024; }}
http {{
  types {{
    text/html html htm; text/plain txt; text/css css; application/xml xml;
    application/javascript js; application/json json; application/pdf pdf;
    image/png png; image/gif gif; image/jpeg jpg jpeg; image/svg+xml svg svgz;
  }}
  default_type application/octet-stream;
  charset utf-8;
  access_log off;
  sendfile on;
  keepalive_requests 10000000;
  absolute_redirect off;
  client_body_temp_path {folder}/client;
{temporary}
  server {{
    listen 127.0.0.1:{port};
    server_name _;
    location / {{ return 404; }}
    location = / {{ default_type text/html; return 200 '{front}'; }}
    location = /small.html {{ default_type text/html; alias {folder}/small.html; }}
    location /even/ {{ alias {folder}/even/; }}
{locations}
  }}
}}
"""
# Which of these modules nginx was built with differs; each wants a folder of its own.
TEMPORARY = ("proxy", "fastcgi", "uwsgi", "scgi")
SMALL_BYTES = 6_000
EVEN = 20
START_SECONDS = 10.0


def missing() -> str:
    """Says in one line what the site lacks on this machine; empty if it has all."""
    packages = [] if _nginx() else ["nginx-light"]
    packages += [package for _, folder, package in PARTS if not pathlib.Path(folder).is_dir()]
    if not packages:
        return ""
    return f"the documentation site needs {', '.join(packages)}: make docs-site"


class DocsSite:
    """Serves the documentation while its context lasts.

    Also, linked from nowhere, ``/small.html``, a page of ``SMALL_BYTES``, and ``/even/0.html`` and so
    on: ``EVEN`` pages as large, with twelve links each. They are there under any host's name.

    Attributes:
        port: Where it listens on 127.0.0.1; a free one.
        connect_to: The mapping that a crawl of ``http://docs.example.com/`` needs.
    """

    port: int

    def __enter__(self) -> Self:
        lacking = missing()
        if lacking:
            raise RuntimeError(lacking)
        self._folder = pathlib.Path(tempfile.mkdtemp(prefix="docs-site-"))
        self._folder.chmod(0o755)  # nginx's worker is another user where we are root
        (self._folder / "small.html").write_text(_page("Small"))
        (self._folder / "even").mkdir()
        for number in range(EVEN):
            links = [f'<a href="{(number + n) % EVEN}.html">page {n}</a>' for n in range(1, 13)]
            path = self._folder / "even" / f"{number}.html"
            path.write_text(_page(f"Page {number}", " ".join(links)))
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        process = getattr(self, "_process", None)
        if process is not None:
            process.terminate()
            process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def connect_to(self) -> str:
        return f"{HOST}:80:127.0.0.1:{self.port}"

    def _start(self) -> None:
        # Somebody else may take the port between our look and nginx's start.
        for _ in range(5):
            self.port = _free_port()
            self._launch()
            if self._answers():
                return
        log = (self._folder / "error.log").read_text().strip().splitlines()
        raise RuntimeError(f"nginx does not start: {log[-1] if log else 'it says nothing'}")

    def _launch(self) -> None:
        config = self._folder / "nginx.conf"
        config.write_text(_configuration(self._folder, self.port))
        log = self._folder / "error.log"
        # -e: else it also opens a log where only root may write.
        command = [_nginx(), "-p", str(self._folder), "-e", str(log), "-c", str(config)]
        self._process = subprocess.Popen(command, stderr=subprocess.DEVNULL)

    def _answers(self) -> bool:
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until and self._process.poll() is None:
            try:
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=1)
                connection.request("GET", "/")
                if connection.getresponse().read() == FRONT_PAGE.encode():
                    return self._process.poll() is None
            except OSError:
                time.sleep(0.02)
            finally:
                connection.close()
        return False


def _nginx() -> str:
    # In Debian it is where only root looks.
    path = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/usr/local/sbin"
    return shutil.which("nginx", path=path) or ""


def _configuration(folder: pathlib.Path, port: int) -> str:
    built = subprocess.run([_nginx(), "-V"], capture_output=True, text=True, check=True).stderr
    without = set(re.findall(r"--without-http_(\w+)_module", built))
    temporary = [
        f"  {name}_temp_path {folder}/{name};" for name in TEMPORARY if name not in without
    ]
    locations = [f"    location {path} {{ alias {where}; }}" for path, where, _ in PARTS]
    return CONFIG.format(
        folder=folder,
        port=port,
        front=FRONT_PAGE,
        temporary="\n".join(temporary),
        locations="\n".join(locations),
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _page(title: str, content: str = "") -> str:
    head = f"<!DOCTYPE html><html><head><title>{title}</title></head><body>{content}<p>"
    return head.ljust(SMALL_BYTES - 18, "x") + "</p></body></html>"
