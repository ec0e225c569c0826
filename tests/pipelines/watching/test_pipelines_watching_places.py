"""The commands that watch a table say the same of it in Bigtable and in stores as sql does."""

import json
import threading
import urllib.request

import pytest
from crawling import nutbeam
from simulated_web import served_web

from nutbeam.pipelines.base.served_address import ServedAddress
from nutbeam.pipelines.watching.console_command import Options
from nutbeam.pipelines.watching.console_serving import ConsoleServer, SearchedIndex
from nutbeam.pipelines.watching.table_watch import TableWatch

web = served_web(hosts=1, pages=3, scope="module")
PLACES = [
    pytest.param("bigtable", marks=pytest.mark.bigtable),
    pytest.param("s3", marks=pytest.mark.long),
    pytest.param("gs", marks=pytest.mark.long),
]


@pytest.fixture(params=PLACES)
def table(request, stores, tmp_path, monkeypatch):
    """The address of a table that does not exist yet, or is empty."""
    if request.param == "bigtable":
        return request.getfixturevalue("bigtable").make(tmp_path / "files")
    for name, value in stores.environ(request.param).items():
        monkeypatch.setenv(name, value)
    return stores.address(request.param)


@pytest.fixture
def record_of(capsys):
    """Runs a command that must end with 0; returns its record."""

    def run(*words):
        capsys.readouterr()
        assert nutbeam(*words, "--format", "json") == 0
        return json.loads(capsys.readouterr().out)

    return run


def asked(watch, page):
    """Returns the text of a page of the console of a table."""
    index = SearchedIndex(watch.address, "main", "")
    with ConsoleServer(watch, ServedAddress(), Options(), index) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            with opener.open(f"{server.urls[0]}{page}", timeout=60) as answer:
                return answer.read().decode()
        finally:
            server.shutdown()
            thread.join()


def test_all_commands_agree_wherever_a_table_is(table, web, here, tmp_path, record_of):
    assert nutbeam("copy", here[0], table) == 0
    assert nutbeam("dedup", table, "--metrics_file", tmp_path / "m.prom") == 0
    total = record_of("sql", table, "select count(*) as urls from state")["urls"]
    status = record_of("status", table)
    assert (status["state"], status["urls"]["total"]) == ("well", total)
    samples = (tmp_path / "m.prom").read_text().splitlines()
    urls = [line for line in samples if line.startswith("nutbeam_urls{")]
    assert sum(float(line.split()[-1]) for line in urls) == total
    assert nutbeam("report", table, "-o", tmp_path / "report.html") == 0
    assert f"{total:,}" in (tmp_path / "report.html").read_text()
    me = ["--agent_name", "mybot", "--agent_email", "me@example.com", "--look_seconds", "60"]
    findings = {one["subject"]: one["mark"] for one in record_of("doctor", table, *me)["findings"]}
    assert {findings[name] for name in ("table", "damage", "batches", "runs", "size")} == {"ok"}
    estimate = record_of("estimate", table, "--add_days", "40")
    assert 0 < estimate["urls"] <= total
    described = record_of("table", "describe", table)["components"]
    assert {one["what"]: one["current"] > 0 for one in described}["state"]
    watch = TableWatch(table, 3600.0, 1000)
    assert json.loads(asked(watch, "status.json"))["urls"]["total"] == total
    assert "not chosen now" in asked(watch, f"explain?url={web.seeds[0]}")
