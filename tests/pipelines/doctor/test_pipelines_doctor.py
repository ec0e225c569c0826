"""doctor: a line for each look, with a cure; it needs neither a network nor a table, and never fails."""

import json
import resource
import shutil
import socket
import threading
import time

import pytest
from crawling import manifest_of, nutbeam, reach
from simulated_web import served_web
from web_servers import reply, serve

from nutbeam.pipelines.doctor.findings import FindingMark, Look, ok, run_looks
from nutbeam.pipelines.doctor.table_looks import SeenTable, look_at_damage
from nutbeam.web.base.clock import replaced_clock
from nutbeam.web.base.errors import UserError

web = served_web(hosts=2, pages=6, scope="module")
ME = ["--agent_name", "mybot", "--agent_email", "me@localhost"]


@pytest.fixture(scope="module")
def crawled(web, tmp_path_factory):
    table = tmp_path_factory.mktemp("doctor") / "table"
    assert nutbeam("crawl", table, *web.seeds, "--rounds", "1", *reach(web)) == 0
    return table


def doctor(capsys, *words, code=0):
    """Returns the marks by subject; of several findings of a subject the worst, and its line."""
    capsys.readouterr()
    assert nutbeam("doctor", *words, "--format", "json") == code
    order = [mark.value for mark in FindingMark]
    found = {}
    for one in json.loads(capsys.readouterr().out)["findings"]:
        before = found.get(one["subject"])
        if before is None or order.index(one["mark"]) > order.index(before["mark"]):
            found[one["subject"]] = one
    return found


def test_a_sound_table_is_well(crawled, capsys):
    found = doctor(capsys, crawled, *ME)
    subjects = (
        "table",
        "disk",
        "runner",
        "damage",
        "clock of the table",
        "batches",
        "holds",
        "runs",
    )
    assert {name: found[name]["mark"] for name in subjects} == dict.fromkeys(subjects, "ok")
    (in_no_time,) = look_at_damage(SeenTable(str(crawled)), 0.0)
    assert in_no_time.mark == "warning"
    assert in_no_time.text.startswith("only 1 of ")
    assert in_no_time.text.endswith(" files were looked at in the time; none is damaged")
    assert nutbeam("doctor", crawled, *ME, "--all_findings", "false") == 0
    assert "ok " not in capsys.readouterr().out


def test_without_a_table_and_without_a_name(capsys):
    found = doctor(capsys, code=3)
    assert found["identity"]["mark"] == "wrong"
    assert "--agent_name NAME" in found["identity"]["cure"]
    assert {"memory", "TMPDIR", "open files", "clock", "DNS", "TLS roots"} <= found.keys()
    assert "disk" not in found


def test_faults_of_a_table_have_cures(crawled, tmp_path, capsys):
    table = tmp_path / "table"
    shutil.copytree(crawled, table)
    assert nutbeam("generate", table, "--add_days", "40") == 0
    (table / "operations" / "purge.hold").write_text("{}")
    (table / manifest_of(table).components["hosts"].list).write_bytes(b"broken")
    later = manifest_of(table).time + 1000 * 86_400 * 30
    with replaced_clock(lambda: later):
        found = doctor(capsys, table, *ME, "--least_free", "1000T", code=3)
    assert found["damage"]["mark"] == "wrong"
    assert found["damage"]["cure"].startswith(f"nutbeam fsck {table}")
    assert found["disk"]["mark"] == "wrong"
    assert found["batches"]["mark"] == "warning"
    assert "is generated for 30.0 days" in found["batches"]["text"]
    assert found["holds"]["mark"] == "warning"  # no process renews it


def test_an_early_clock_is_wrong(crawled, capsys):
    with replaced_clock(lambda: 1000):
        found = doctor(capsys, crawled, *ME, code=3)
    assert found["clock"]["mark"] == found["clock of the table"]["mark"] == "wrong"


def test_no_table_there(tmp_path, capsys):
    found = doctor(capsys, tmp_path / "none", *ME, code=3)
    assert "no web table at" in found["table"]["text"]
    assert nutbeam("doctor", "bigtable://p/i") == 2
    assert "must be bigtable://PROJECT" in capsys.readouterr().err


def test_the_page_of_the_crawler(capsys):
    answers = {"/": "200 OK", "/gone": "404 Not Found"}

    def answer(path, _):
        date = "Date: Sat, 01 Jan 2000 00:00:00 GMT"
        return reply(b"", answers.get(path, "404 Not Found"), date)

    with serve(answer) as server:
        words = ["--connect_to", f"bot.example.com:80:127.0.0.1:{server.port}", "--agent_name", "b"]
        well = doctor(capsys, *words, "--agent_url", "http://bot.example.com/", code=3)
        gone = doctor(capsys, *words, "--agent_url", "http://bot.example.com/gone", code=3)
    assert well["contact page"]["mark"] == "ok"
    assert "ahead of that of the server" in well["clock"]["text"]
    assert gone["contact page"]["text"].endswith("/gone answers 404")
    silent = doctor(capsys, *words, "--agent_url", "http://bot.example.com/")
    assert silent["contact page"]["mark"] == "warning"


def test_proxy_certificates_and_credentials(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    assert "HTTPS_PROXY" in doctor(capsys, *ME)["proxy"]["text"].upper()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        proxy = ["--http_proxy", f"http://127.0.0.1:{listener.getsockname()[1]}"]
        assert doctor(capsys, *ME, *proxy)["proxy"]["mark"] == "ok"
    (tmp_path / "secret").write_text("http://a.example.com/ basic me pw\n")
    (tmp_path / "secret").chmod(0o644)
    words = [*proxy, "--ca_file", tmp_path / "none", "--http_credentials", tmp_path / "secret"]
    found = doctor(capsys, *ME, *words, code=3)
    assert found["proxy"]["mark"] == found["TLS roots"]["mark"] == "wrong"
    assert found["credentials"]["cure"] == f"chmod 600 {tmp_path / 'secret'}"


def test_open_files_and_inodes(small_disk, capsys):
    table = small_disk("256k,nr_inodes=500") / "table"
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (500, limits[1]))
    try:
        found = doctor(capsys, table, *ME, "--threads", "300", code=3)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert found["open files"]["cure"].startswith("ulimit -n 800")
    assert found["disk inodes"]["mark"] == "wrong"


def test_a_silent_runner_is_wrong(crawled, capsys):
    words = ["--runner=PortableRunner", "--job_endpoint=127.0.0.1:1", "--environment_type=LOOPBACK"]
    assert doctor(capsys, crawled, *ME, *words, code=3)["runner"]["mark"] == "wrong"


def test_looks_that_hang_or_fail_are_warnings():
    never = threading.Event()

    def hang():
        yield ok("a", "first")
        never.wait()

    def fail():
        raise RuntimeError("two\nlines")

    def refuse():
        raise UserError("it is refused")

    began = time.monotonic()
    looks = [Look("a", hang), Look("b", fail), Look("c", refuse), Look("d", lambda: [ok("d", "x")])]
    found = [(one.subject, one.mark.value, one.text) for one in run_looks(looks, 0.5)]
    assert time.monotonic() - began >= 0.5
    never.set()
    assert found == [
        ("a", "ok", "first"),
        ("a", "warning", "no answer within 0.5 s"),
        ("b", "warning", "it cannot be looked at: RuntimeError: two lines"),
        ("c", "wrong", "it is refused"),
        ("d", "ok", "x"),
    ]
