"""What is said about a command that cannot run: no wrong guesses, and JSON where logs are JSON."""

import json
import os
import re
import subprocess
import sys

import pytest

from nutbeam.pipelines.command_line.cli import main


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["T", "--nosuch"], "unknown option '--nosuch'\n"),
        (["T", "--max_depth", "3"], "unknown option '--max_depth'; it is --depth\n"),
        (
            ["T", "--max-pages", "3"],
            "unknown option '--max-pages'; it is --top_n, the most URLs of a round\n",
        ),
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


@pytest.mark.parametrize(
    ("words", "environ"),
    [
        (["search", "T", b"caf\xe9"], {}),
        (["inject", "T", b"http://a.example.com/caf\xe9"], {}),
        (["crawl", b"caf\xe9"], {}),
        ([b"caf\xe9"], {}),
        (["crawl", "T", b"--exclude=caf\xe9"], {}),
        (["crawl", "T"], {"NUTBEAM_EXCLUDE": b"caf\xe9"}),
    ],
)
def test_words_that_are_not_utf_8_are_refused_in_plain_words(words, environ):
    assert re.search(r" must be UTF-8, got '[^ ]*caf\\xe9'\n$", said(*words, **environ))


def test_other_usage_errors_are_text():
    assert said("nosuch").startswith("nutbeam: unknown command 'nosuch'")


@pytest.mark.parametrize("given", ["line", "file"])
def test_an_interval_that_is_given_and_too_long_is_refused_even_if_it_is_the_usual_one(
    given, tmp_path, capsys
):
    """Who lowers the limit alone gets shorter intervals."""
    table, limit = str(tmp_path / "table"), ["--max_fetch_interval", "10d"]
    assert main(["updatedb", table, *limit]) != 0
    assert "fetch_interval" not in capsys.readouterr().err  # there is no table
    words = ["--fetch_interval", "30d"]
    if given == "file":
        config = tmp_path / "config.toml"
        config.write_text('fetch_interval = "30d"\n')
        words = ["--config", str(config)]
    assert main(["updatedb", table, *limit, *words]) == 2
    assert capsys.readouterr().err == (
        "nutbeam updatedb: --fetch_interval must be at most --max_fetch_interval 864000, got 2592000\n"
    )
