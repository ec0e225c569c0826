"""Real search servers on this machine: OpenSearch, Elasticsearch, Solr."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import threading
import time

import polars as pl
import pytest
import requests
from free_ports import free_port
from here import ROOT, TESTS

SCRIPT = TESTS / "support" / "search_servers" / "server.sh"
BUILD = ROOT / "build" / "search_servers"
JAVA = {"opensearch3": 21}  # the others run on 17
# Small limits, so that 413 and 429 come soon; room for other tests on this machine.
LIMITS = "http.max_content_length: 400kb\nindexing_pressure.memory.limit: 200kb"


class SearchServer:
    """A server that can be killed and started again with the same data and port.

    Attributes:
        kind: ``opensearch``, ``elasticsearch`` or ``solr``.
        url: Its address.
    """

    def __init__(self, name, folder, java, **settings):
        self._java = java
        self.kind = name.rstrip("0123456789")
        self._name, self._folder, self._settings = name, folder, settings
        self._process, self._port = None, free_port()
        self.url = f"http://127.0.0.1:{self._port}"

    def start(self):
        environment = {
            **os.environ, "BUILD": str(BUILD), "HEAP": "256m", "PORT": str(self._port),
            "JAVA_HOME": str(self._java), **self._settings,
        }  # fmt: skip
        log = self._folder.with_suffix(".log")
        with log.open("w") as errors:
            self._process = subprocess.Popen(
                [str(SCRIPT), self._name, str(self._folder)], env=environment,
                stdout=subprocess.PIPE, stderr=errors, start_new_session=True,
            )  # fmt: skip
        line = self._process.stdout.readline()
        if not line.startswith(b"http"):
            self.stop()
            pytest.fail(f"{self._name} does not start: {log.read_text()[-2000:]}")

    def stop(self, how=signal.SIGTERM):
        """Ends it; SIGKILL gives it no time to store anything."""
        if how == signal.SIGKILL:
            os.killpg(self._process.pid, how)
        else:
            self._process.send_signal(how)
        self._process.wait(60)
        self._process.stdout.close()
        deadline = time.monotonic() + 60
        while _is_open(self._port) and time.monotonic() < deadline:
            time.sleep(0.05)

    def get(self, path, **more):
        answer = requests.get(self.url + path, timeout=60, **more)
        assert answer.ok, answer.text
        return answer.json()


@contextlib.contextmanager
def search_server(name, folder, **settings):
    """Yields a server, or skips where Java, Maven or curl are missing."""
    missing = [program for program in ("java", "mvn", "curl") if not shutil.which(program)]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    java = next((home for home in _java_homes() if _java_version(home) >= JAVA.get(name, 17)), None)
    if java is None:
        pytest.skip(f"{name} needs Java {JAVA.get(name, 17)}")
    server = SearchServer(name, folder, java, **settings)
    server.start()
    try:
        yield server
    finally:
        server.stop()


class ServerIndex:
    """An index on a server, and the words that choose it.

    Args:
        server: A ``SearchServer``.
        name: Name of the index, or of the core, which is created.
        configset: Of the core.
    """

    def __init__(self, server, name, configset="managed"):
        self.server, self.name = server, name
        if server.kind == "solr":
            self.parameters = f"url={create_core(server, name, configset)}"
        else:
            self.parameters = f"url={server.url},name={name},replicas=0"

    @property
    def words(self):
        return ("--writer", self.server.kind, "--writer_parameters", self.parameters)

    def visible(self, word=None):
        """Returns the text of each URL that searches find: of all, or of those with a word."""
        if self.server.kind == "solr":
            given = {"q": f"content:{word}" if word else "*:*", "rows": "1000"}
            found = self.server.get(f"/solr/{self.name}/select", params=given)["response"]["docs"]
        else:
            query = {"match": {"content": word}} if word else {"match_all": {}}
            answer = self.server.get(f"/{self.name}/_search?size=1000", json={"query": query})
            found = [hit["_source"] for hit in answer["hits"]["hits"]]
        shown = {record["url"]: record.get("content", "") for record in found}
        assert len(shown) == len(found)  # nothing is there twice
        return shown


def documents(number=3, text="a quick fox", begin=0):
    """Returns documents for an index, with ids that count from ``begin``."""
    ids = [f"http://a.example/{n}" for n in range(begin, begin + number)]
    return pl.DataFrame({"id": ids, "title": [f"page {text}"] * number, "boost": [1.0] * number})


def results_of_writes_through_a_kill(server, write):
    """Returns what ``write(number)`` returns 40 times, while the server is killed and started."""
    sent, results = threading.Event(), []

    def send():
        for n in range(40):
            results.append(write(n))
            if n == 10:
                sent.set()

    sender = threading.Thread(target=send)
    sender.start()
    assert sent.wait(200)
    server.stop(signal.SIGKILL)
    time.sleep(1)
    server.start()
    sender.join(300)
    return results


def create_core(server, name, configset):
    """Makes a core of Solr, and returns its address."""
    given = {"action": "CREATE", "name": name, "configSet": configset}
    server.get("/solr/admin/cores", params=given)
    return f"{server.url}/solr/{name}"


def managed_configset(folder):
    """Makes a configset whose schema Solr may change, and returns its name."""
    of = folder / "data" / "configsets"
    shutil.copytree(of / "pages", of / "managed", dirs_exist_ok=True)
    config = of / "managed" / "conf" / "solrconfig.xml"
    text = config.read_text()
    text = text.replace("ClassicIndexSchemaFactory", "ManagedIndexSchemaFactory")
    config.write_text(re.sub(r"<updateRequestProcessorChain.*?</updateRequestProcessorChain>", "",
                             text, flags=re.DOTALL))  # fmt: skip
    return "managed"


def fixed_configset(folder):
    """Makes a configset with a fixed schema of Nutch's fields, and returns its name."""
    of = folder / "data" / "configsets"
    shutil.copytree(of / "pages", of / "fixed", dirs_exist_ok=True)
    schema = of / "fixed" / "conf" / "schema.xml"
    names = ("content", "segment", "digest")
    more = "".join(f'<field name="{name}" type="string"/>' for name in names)
    schema.write_text(schema.read_text().replace("</schema>", f"{more}</schema>"))
    return "fixed"


def _java_homes():
    """Yields where Java is; the servers but one do not run on the newest versions."""
    yield pathlib.Path(os.environ.get("JAVA_HOME") or pathlib.Path(shutil.which("java")).resolve()
                       .parents[1])  # fmt: skip
    yield from sorted(home for home in pathlib.Path("/usr/lib/jvm").glob("*") if home.is_dir())


def _java_version(home):
    java = home / "bin" / "java"
    if not java.exists():
        return 0
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=True).stderr
    return int(re.search(r'version "(\d+)', said)[1])


def _is_open(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
