"""What is said about a command that cannot run: no wrong guesses, and JSON where logs are JSON."""

import json
import os
import subprocess
import sys

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


def said(*words, **environ):
    """Returns what a command of another process prints on standard error."""
    done = subprocess.run(
        [sys.executable, "-m", "nutbeam", *words], env=os.environ | environ, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    return done.stderr


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("words", "environ"),
    [
        (["crawl", "--log_format", "json"], {}),
        (["crawl", "T", "--nosuch", "--log-format=json"], {}),
        (["nosuch"], {"NUTBEAM_LOG_FORMAT": "json"}),
    ],
)
def test_usage_errors_are_json_where_logs_are(words, environ):
    record = json.loads(said(*words, **environ))
    assert (record["severity"], record["event"], record["exit_code"]) == ("ERROR", "end", 2)
    assert record["message"].startswith("nutbeam")


def test_other_usage_errors_are_text():
    assert said("nosuch").startswith("nutbeam: unknown command 'nosuch'")
