"""What is said about a command that cannot run: no wrong guesses, and JSON where logs are JSON."""

import json

import pytest

from nutbeam.pipelines.command_line.cli import main


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["T", "--nosuch"], "unknown option '--nosuch'\n"),
        (["T", "--max_depth", "3"], "unknown option '--max_depth'; it is --depth\n"),
        (["T", "--roudns", "3"], "unknown option '--roudns'; did you mean '--rounds'?\n"),
    ],
)
def test_an_option_that_does_not_exist(capsys, words, said):
    assert main(["crawl", *words]) == 2
    assert capsys.readouterr().err == f"nutbeam crawl: {said}"


@pytest.mark.parametrize(
    "words", [["--log_format", "json"], ["--log-format=json"], ["--nosuch", "--log_format", "json"]]
)
def test_usage_errors_are_json_where_logs_are(capsys, words):
    assert main(["crawl", *words]) == 2
    record = json.loads(capsys.readouterr().err)
    assert (record["severity"], record["event"], record["exit_code"]) == ("ERROR", "end", 2)
    assert record["message"].startswith("nutbeam crawl: ")


def test_the_environment_asks_for_json_too(capsys, monkeypatch):
    monkeypatch.setenv("NUTBEAM_LOG_FORMAT", "json")
    assert main(["nosuch"]) == 2
    assert "unknown command 'nosuch'" in json.loads(capsys.readouterr().err)["message"]
    monkeypatch.delenv("NUTBEAM_LOG_FORMAT")
    assert main(["nosuch"]) == 2
    assert capsys.readouterr().err.startswith("nutbeam: unknown command 'nosuch'")
