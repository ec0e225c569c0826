"""What ``--log_format json`` says: phases, hosts that fail for good, and nothing of Beam's."""

import json

import pytest
from crawling import nutbeam
from job_server import run
from simulated_web import SimWeb

from nutbeam.pipelines.launch.launch import LaunchOptions, launch_args
from nutbeam.pipelines.running.runner import make_pipeline


def test_worker_processes_get_the_option_for_json_logs():
    args = launch_args(LaunchOptions(log_format="json"), [])
    given = make_pipeline(args)._options.get_all_options()["beam_plugins"]
    assert given == ["nutbeam.pipelines.launch.json_worker"]


@pytest.fixture(scope="module")
def logged(tmp_path_factory):
    """The JSON logs of a crawl of two rounds, with a host that does not exist."""
    table = tmp_path_factory.mktemp("logged") / "table"
    with SimWeb(hosts=2, pages=4, seed=7, crawl_delay=0) as web:
        connect_to = [word for mapping in web.connect_to for word in ("--connect_to", mapping)]
        code, _, said = run(
            "crawl", table, *web.seeds, "http://no-such.invalid/", *connect_to, "--server_delay", "0",
            "--rounds", "2", "--log_format", "json", "--agent_name", "t", "--agent_email", "t@a.com",
        )  # fmt: skip
    assert code == 0, said
    return [json.loads(line) for line in said.splitlines()]


@pytest.mark.long
def test_json_logs_are_of_nutbeam_only(logged):
    assert {one["logger"].partition(".")[0] for one in logged} == {"nutbeam"}
    assert {one["severity"] for one in logged} <= {"INFO", "WARNING"}


def test_each_phase_logs_its_start_its_end_and_its_counts(logged):
    phases = [one for one in logged if one["logger"] == "nutbeam.phases"]
    names = ["generate", "fetch", "update", "dedup"]
    expected = [("inject", None), *((name, number) for number in (1, 2) for name in names)]
    for event in ("start", "end"):
        found = [one for one in phases if one["event"] == event]
        assert [(one["phase"], one.get("round")) for one in found] == expected
        assert all(one["operation"].endswith(f".{one['phase']}") for one in found)
        assert all(one["batch"] for one in found if one["phase"] in ("fetch", "update"))
    fetched = next(one for one in phases if one["event"] == "end" and one["phase"] == "fetch")
    assert fetched["counts"]["pages"] > 0
    assert fetched["message"].startswith("fetch of round 1 ends: ")


def test_a_host_that_fails_for_good_is_logged_with_its_round(logged):
    (failed,) = [one for one in logged if one.get("event") == "host_failed"]
    assert (failed["host"], failed["pages"]) == ("no-such.invalid", 1)
    assert (failed["phase"], failed["round"], bool(failed["batch"])) == ("fetch", 1, True)


def test_error_messages_are_json_if_logs_are_json(tmp_path):
    code, _, said = run("next", "none", "--log_format", "json", cwd=tmp_path)
    (one,) = map(json.loads, said.splitlines())
    assert code == 2
    assert one["severity"] == "ERROR"
    assert one["message"] == "nutbeam next: no web table at 'none': it does not exist"


@pytest.mark.long
def test_text_logs_show_phases_only_from_info_on(tmp_path):
    for level, shown in (("warning", []), ("info", ["begins", "ends"])):
        code, _, said = run("inject", tmp_path / level, "http://a.com/", "--log_level", level)
        lines = said.splitlines()
        assert code == 0
        assert [line.split()[3].rstrip(":") for line in lines] == shown, said
        assert all(line.startswith("INFO nutbeam.phases: inject ") for line in lines)


def test_json_logs_are_those_of_one_command(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert nutbeam("next", "none", "--log_format", "json") == 2
    capsys.readouterr()
    assert nutbeam("next", "none") == 2
    assert capsys.readouterr().err == "nutbeam next: no web table at 'none': it does not exist\n"
