"""The guide to serving a search: nginx and systemd run or check what it shows."""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest
from crawling import nutbeam
from free_ports import free_port
from here import ROOT
from index_shards import commit_shards, page, write_shards

from nutbeam.pipelines.base.served_address import ServedAddress
from nutbeam.pipelines.searching.search_serving import SearchServer
from nutbeam.pipelines.searching.searched_table import SearchedTable

GUIDE = ROOT / "docs" / "guides" / "serving-search.md"
NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
SYSTEMD = shutil.which("systemd-analyze")
HOST = "search.example.com"
USER = "user root;\n" if os.getuid() == 0 else ""  # whose folders of tests are its own
pytestmark = pytest.mark.skipif(not GUIDE.exists(), reason="docs/ is not part of the wheel")
WHOLE = """\
{user}daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
worker_processes 1;
events {{ }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  types {{ text/html html; text/javascript js; application/json json; image/svg+xml svg; }}
  server {{ listen 127.0.0.1:{files}; location /find/ {{ alias {folder}/export/; }} }}
  {block}
}}
"""


def block(language):
    (text,) = re.findall(
        rf"^```{language}\n(.*?)^```$", GUIDE.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    return text


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("serving")
    assert nutbeam("inject", folder / "table", "http://a.com/") == 0
    pages = [page(f"http://a.com/{n}", f"Pear {n}", "a green pear") for n in range(12)]
    commit_shards(folder / "table", write_shards(folder / "table", pages), "first")
    return SearchedTable(str(folder / "table"), "main", str(folder / "cache"))


@pytest.fixture(scope="module")
def proxied(table, tmp_path_factory):
    """Runs nginx with the block of the guide before a search page; returns how to ask it."""
    folder = tmp_path_factory.mktemp("nginx")
    assert nutbeam("search", table.address, "--export", folder / "export",
                   "--cache_folder", folder / "cache") == 0  # fmt: skip
    port, files = free_port(), free_port()
    address = ServedAddress(allowed_hosts=(HOST,), base_path="/search/")
    with SearchServer(table, address, 10) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        text = block("nginx").replace("listen 80;", f"listen 127.0.0.1:{port};")
        text = text.replace("127.0.0.1:8080", f"127.0.0.1:{server.port}")
        (folder / "nginx.conf").write_text(
            WHOLE.format(user=USER, folder=folder, files=files, block=text)
        )
        nginx = subprocess.Popen(
            [NGINX, "-p", folder, "-e", folder / "error.log", "-c", folder / "nginx.conf"]
        )

        def ask(path, host=HOST, at=port, **fields):
            request = urllib.request.Request(f"http://127.0.0.1:{at}{path}")
            for name, value in {"Host": host, **fields}.items():
                request.add_header(name, value)
            try:
                with urllib.request.urlopen(request, timeout=10) as answer:
                    return answer.status, answer.headers, answer.read()
            except urllib.error.HTTPError as error:
                return error.code, error.headers, error.read()

        def find(path):
            return ask(path, at=files), folder / "export"

        end = time.monotonic() + 10
        try:
            while True:
                try:
                    ask("/search/")
                    break
                except OSError:
                    assert nginx.poll() is None, (folder / "error.log").read_text()
                    assert time.monotonic() < end
                    time.sleep(0.05)
            ask.find = find
            yield ask
        finally:
            nginx.terminate()
            nginx.wait(10)
            server.shutdown()
            thread.join()


needs_nginx = pytest.mark.skipif(NGINX is None, reason="needs nginx: make docs-site")


@needs_nginx
def test_nginx_passes_on_the_search_page_as_the_guide_says(proxied):
    status, fields, text = proxied("/search/?q=pear")
    assert status == 200
    assert b"10 of 12 pages" in text
    assert "script-src 'self'" in fields["Content-Security-Policy"]
    assert proxied("/search/search.js")[0] == proxied("/search/combobox.js")[0] == 200
    assert json.loads(proxied("/search/search.json?q=pear")[2])["total"] == 12
    assert f"http://{HOST}/search/?q=".encode() in proxied("/search/opensearch.xml")[2]
    _, fields, _ = proxied("/search/search.json?q=pear", **{"Accept-Encoding": "gzip"})
    assert fields["Content-Encoding"] == "gzip"


@needs_nginx
def test_nginx_passes_no_request_for_another_name(proxied):
    assert proxied("/search/?q=pear", "evil.example")[0] == 421


@pytest.mark.long
@needs_nginx
def test_nginx_limits_the_requests_of_a_client(proxied):
    def status(_: int) -> int:
        return proxied("/search/complete.json?q=pe")[0]

    assert status(0) == 200
    # At once: on a busy machine, one after the other may be slow enough.
    with ThreadPoolExecutor(40) as clients:
        assert 503 in clients.map(status, range(400))


@needs_nginx
def test_nginx_delivers_an_export_as_it_is(proxied):
    (status, fields, text), export = proxied.find("/find/")
    assert (status, fields["Content-Type"]) == (200, "text/html")
    assert text == (export / "index.html").read_bytes()
    data = json.loads((export / "about.json").read_text())["data"]
    (_, fields, text), _ = proxied.find(f"/find/{data}/words-0.bin")
    assert (fields["Content-Encoding"], text[:2]) == (None, b"\x1f\x8b")  # the browser unpacks it


@pytest.mark.skipif(SYSTEMD is None, reason="needs systemd-analyze")
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path):
    unit = tmp_path / "nutbeam-search.service"
    text = block("ini")
    assert "/usr/local/bin/nutbeam" in text
    unit.write_text(text.replace("/usr/local/bin/nutbeam", sys.executable))
    command = [SYSTEMD, "verify", "--man=no", unit]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, [line for line in done.stderr.splitlines() if unit.name in line]) == (
        0,
        [],
    )
    unit.write_text(text.replace("[Service]", "[Service]\nNoSuchSetting=1"))
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert "NoSuchSetting" in done.stderr  # a fault would be found


def test_the_command_of_the_unit_is_one_that_nutbeam_takes(table, capsys):
    (command,) = re.findall(r"^ExecStart=(.*(?:\\\n.*)*)", block("ini"), re.MULTILINE)
    words = [word.strip('"') for word in re.findall(r'"[^"]*"|\S+', command.replace("\\\n", " "))]
    changed = {
        "/srv/crawl/mine": table.address,
        "8080": "99999",
        "/var/cache/nutbeam-search": "/tmp",
    }
    assert nutbeam(*(changed.get(word, word) for word in words[1:])) == 2
    assert "--port must be at most 65535" in capsys.readouterr().err  # all else is right
