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


@pytest.mark.parametrize(
    ("command", "flags", "option"),
    [
        ("crawl", "--max_pages --maxpages --limit --CLOSESPIDER_PAGECOUNT --max-urls", "--top_n"),
        ("fetch", "--max_pages --maxpages --limit --max-requests", "--top_n of generate"),
        ("crawl", "--max_depth --level --DEPTH_LIMIT -l", "--depth"),
        ("fetch", "--num_threads --concurrency --CONCURRENT_REQUESTS -j", "--threads"),
        ("crawl", "--DOWNLOAD_DELAY --delay --random-wait --rate", "--server_delay"),
        ("crawl", "--user_agent --user-agent -U --agent", "--agent_name"),
        ("crawl", "--retries --tries -t", "--retry_max"),
        ("fetch", "--max-redirect --max_redirects", "--redirect_max"),
        ("crawl", "--no-check-certificate --insecure -k", "--insecure_host"),
        ("crawl", "--ignore_robots --ROBOTSTXT_OBEY", "--robots_allowlist"),
        ("crawl", "--accept-regex --no-parent -np", "--include"),
        ("crawl", "--reject --reject-regex", "--exclude"),
        ("crawl", "--domains --allowed_domains --span-hosts", "--scope"),
        ("fetch", "--headers --header", "--http_header"),
        ("crawl", "--http-user --password", "--http_credentials"),
        ("crawl", "--iterations --num_rounds", "--rounds"),
        ("crawl", "-q --quiet", "--progress"),
        ("crawl", "--url --start_urls --input-file", "seeds are arguments"),
        ("crawl", "-r --mirror", "a crawl follows links"),
    ],
)
def test_options_of_other_crawlers_get_the_option_of_the_same_meaning(
    capsys, command, flags, option
):
    for flag in flags.split():
        assert main([command, "T", flag, "5"]) == 2
        answer = capsys.readouterr().err.partition("; ")[2]
        assert option in answer, (flag, answer)
        assert "pdf" not in answer


@pytest.mark.parametrize("flag", ["--retries", "--urls", "--force", "--rate", "--user"])
def test_an_option_that_only_has_the_same_word_is_not_suggested(capsys, flag):
    for command in ("parse", "dedup", "readdb"):
        assert main([command, "T", flag, "5"]) == 2
        said = capsys.readouterr().err
        for wrong in ("throughput", "pdf", "sitemap", "hdfs", "pickle", "quant"):
            assert wrong not in said
