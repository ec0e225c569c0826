import dataclasses
import os
import subprocess
import sys
import types

import pytest
from waiting import PATIENCE

from nutbeam.pipelines.base.command import Argument
from nutbeam.pipelines.command_line import cli, invocations
from nutbeam.pipelines.command_line.commands import Command
from nutbeam.web.base.errors import JobFailed, UsageError
from nutbeam.web.base.options import option


@dataclasses.dataclass(frozen=True)
class HttpOptions:
    server_delay: float = option(5.0, "Wait.", unit="s", nutch="fetcher.server.delay", minimum=0)
    verify: bool = option(True, "Check certificates.")

    def __post_init__(self):
        if self.server_delay == 13:
            raise ValueError(f"--server_delay must not be 13, got {self.server_delay!r}")


@dataclasses.dataclass(frozen=True)
class Options(HttpOptions):
    """What the fake command takes."""

    top_n: int = option(50, "How many are 100%.", nutch="generate.topN", minimum=1, short="n")
    scope: str = option("domain", "Where.", choices=("domain", "host", "any"))
    allow: tuple[str, ...] = option((), "Extra hosts.")

    def __post_init__(self):
        if self.scope == "any" and self.allow:
            raise ValueError(f"--allow needs --scope domain or host, got {self.allow!r}")


class Fake(types.ModuleType):
    """A command's module that remembers what it was run with."""

    Options = Options
    ARGUMENTS = (Argument("table", "Address of the table."), Argument("seeds", "Seeds.", nargs="*"))

    def __init__(self):
        super().__init__("nutbeam.pipelines.fake")
        self.does = lambda invocation: 0

    def run(self, invocation):
        self.invocation = invocation
        return self.does(invocation)


@pytest.fixture
def fake(monkeypatch, tmp_path):
    module = Fake()
    commands = {"fake": Command("fake", "Do nothing."), "simweb": cli.COMMANDS["simweb"]}
    for user in (cli, invocations):
        monkeypatch.setattr(user, "COMMANDS", commands)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("NUTBEAM_")]:
        monkeypatch.delenv(name)
    return module


def refused(capsys, *words, code=2):
    """Runs the command, which must fail, and returns its only line."""
    assert cli.main(["fake", *words]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("nutbeam fake: ")
    assert captured.err.count("\n") == 1
    return captured.err.removeprefix("nutbeam fake: ").strip()


def test_defaults(fake):
    assert cli.main(["fake", "TABLE"]) == 0
    assert fake.invocation.options == Options()
    assert fake.invocation.table == "TABLE"
    assert fake.invocation.arguments == {"table": "TABLE", "seeds": []}
    assert fake.invocation.beam_args == []
    assert fake.invocation.format == "text"


def test_command_line_beats_environment_beats_file_beats_default(fake, monkeypatch, tmp_path):
    (tmp_path / "nutbeam.toml").write_text(
        'server_delay = "1m"\nport = 80\n[common]\nverify = false\n'
        "[fake]\ntop-n = 2\nserver_delay = 7\n[simweb]\nhosts = 3\n"
    )
    assert cli.main(["fake", "T"]) == 0
    assert fake.invocation.options == Options(top_n=2, server_delay=7.0, verify=False)
    monkeypatch.setenv("NUTBEAM_TOP_N", "3")
    monkeypatch.setenv("NUTBEAM_SERVER_DELAY", "100ms")
    assert cli.main(["fake", "T"]) == 0
    assert fake.invocation.options == Options(top_n=3, server_delay=0.1, verify=False)
    assert cli.main(["fake", "T", "--top_n", "4", "--verify"]) == 0
    assert fake.invocation.options == Options(top_n=4, server_delay=0.1, verify=True)


def test_config_names_another_file(fake, monkeypatch, tmp_path):
    (tmp_path / "other.toml").write_text("[fake]\nallow = ['a,b', 'c']\nformat = 'json'\n")
    assert cli.main(["fake", "T", "--config", "other.toml"]) == 0
    assert fake.invocation.options.allow == ("a,b", "c")
    assert fake.invocation.format == "json"
    monkeypatch.setenv("NUTBEAM_CONFIG", "other.toml")
    assert cli.main(["fake", "T"]) == 0
    assert fake.invocation.format == "json"


@pytest.mark.parametrize(
    "words",
    [
        ["--server-delay=2s", "T", "s1", "s2", "-n", "9", "--verify", "false", "--allow", "a,b"],
        ["T", "--server_delay", "2", "s1", "-n=9", "--verify=no", "s2", "--allow=a", "--allow=b"],
        [
            "--top_n=1",
            "--verify",
            "off",
            "-n",
            "9",
            "--allow=a,b",
            "--server_delay=2",
            "--",
            "T",
            "s1",
            "s2",
        ],
        [
            "--table",
            "T",
            "--seeds",
            "s1,s2",
            "--server_delay=2000ms",
            "--top-n=9",
            "--verify=0",
            "--allow",
            "a",
            "--allow",
            "b",
        ],
    ],
)
def test_ways_to_say_the_same(fake, words):
    assert cli.main(["fake", *words]) == 0
    assert fake.invocation.options == Options(
        server_delay=2.0, top_n=9, verify=False, allow=("a", "b")
    )
    assert fake.invocation.arguments == {"table": "T", "seeds": ["s1", "s2"]}


def test_a_boolean_flag_does_not_take_a_seed_for_its_value(fake):
    assert cli.main(["fake", "T", "--verify", "http://a/", "-"]) == 0
    assert fake.invocation.options.verify
    assert fake.invocation.arguments["seeds"] == ["http://a/", "-"]


def test_a_word_after_a_boolean_flag_is_a_wrong_value_if_it_can_be_nothing_else(
    fake, capsys, tmp_path
):
    wrong = "--verify must be true or false, got 'maybe'"
    assert refused(capsys, "T", "--verify", "maybe") == wrong
    assert refused(capsys, "T", "--verify", "maybe", "s") == wrong
    (tmp_path / "maybe").touch()  # a file of seeds
    assert cli.main(["fake", "T", "--verify", "maybe"]) == 0
    assert fake.invocation.arguments["seeds"] == ["maybe"]
    assert cli.main(["simweb", "--progress", "ture"]) == 2
    assert capsys.readouterr().err.endswith(": --progress must be true or false, got 'ture'\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["T", "--top_n", "many"], "--top_n must be a whole number, got 'many'"),
        (["T", "--top_n", "0"], "--top_n must be at least 1, got 0"),
        (["T", "--scope=web"], "--scope must be one of domain, host, any, got 'web'"),
        (["T", "--verify=maybe"], "--verify must be true or false, got 'maybe'"),
        (["T", "--top_n"], "--top_n needs a value, got nothing"),
        (
            ["T", "--scope", "----score>0"],
            "--scope needs a value, got '----score>0'; write --scope=VALUE if the value begins with -",
        ),
        (["T", "--top_n", "--verify"], "--top_n needs a value, got '--verify'"),
        (
            ["T", "--scope=any", "--allow=a"],
            "--allow needs --scope domain or host, got ('a',)",
        ),
        (["T", "--server_delay=13"], "--server_delay must not be 13, got 13.0"),
        ([], "missing argument TABLE: address of the table"),
        (
            ["T", "--format=xml"],
            "--format must be one of text, json, csv, jsonl, parquet, got 'xml'",
        ),
        (
            ["T", "--config", "none.toml"],
            "--config must be a readable file, got 'none.toml': no such file or directory",
        ),
    ],
)
def test_bad_usage_is_one_line_that_quotes_the_value(fake, capsys, words, message):
    assert refused(capsys, *words) == message


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["T", "--top_m", "5"], "unknown option '--top_m'; did you mean '--top_n'?"),
        (
            ["T", "--top", "5"],
            "'--top' is an option of nodedumper, readdb, readlinkdb, search, not of fake; did you mean '--top_n'?",
        ),
        (["T", "-top-n", "5"], "unknown option '-top-n'; did you mean '--top_n'?"),
        (["T", "--rounds", "5"], "'--rounds' is an option of crawl, not of fake"),
        # Beam has this one, and would run the job.
        (["T", "--dry_run"], "'--dry_run' is an option of filterdb, not of fake"),
        (["T", "-x"], "unknown option '-x'"),
        (
            ["T", "--direct_num_worker=2"],
            "unknown option '--direct_num_worker'; did you mean '--direct_num_workers'?",
        ),
        (["T", "--direct_num_workers=x"], "argument --direct_num_workers: invalid int value: 'x'"),
        (["T", "--direct_num_workers"], "--direct_num_workers needs a value, got nothing"),
    ],
)
def test_options_that_neither_we_nor_beam_know_are_refused(fake, capsys, words, message):
    assert refused(capsys, *words).startswith(message)


def test_an_option_of_others_suggests_one_with_a_longer_name(capsys):
    assert cli.main(["generate", "T", "--min_interval", "86400"]) == 2
    assert capsys.readouterr().err.endswith(
        "not of generate; did you mean '--generate_min_interval'?\n"
    )


def test_options_of_beam_are_taken_with_their_values(fake):
    words = ["--direct_num_workers", "2", "T", "--direct-running-mode=multi_processing", "s"]
    assert cli.main(["fake", *words, "--streaming", "--runner", "DirectRunner"]) == 0
    assert fake.invocation.arguments == {"table": "T", "seeds": ["s"]}
    assert fake.invocation.beam_args == [
        *("--direct_num_workers", "2", "--direct_running_mode=multi_processing"),
        *("--streaming", "--runner", "DirectRunner"),
    ]


def test_options_of_a_job_server_pass_with_a_portable_runner(fake):
    words = ["T", "--runner=FlinkRunner", "--execution_mode_for_batch=BATCH_FORCED"]
    assert cli.main(["fake", *words, "--object_reuse", "true"]) == 0
    assert fake.invocation.beam_args == [*words[1:], "--object_reuse", "true"]


@pytest.mark.parametrize(
    ("flag", "advice"),
    [
        ("--top_m", "did you mean '--top_n'?"),
        ("--paralelism", "did you mean '--parallelism'?"),
        ("--num_fetchers", "an option of "),
    ],
)
def test_misspelt_options_are_not_left_to_a_job_server(fake, capsys, flag, advice):
    assert cli.main(["fake", "T", "--runner=FlinkRunner", flag, "2"]) == 2
    message = capsys.readouterr().err
    assert (repr(flag) in message, advice in message) == (True, True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[fake]\ntop_m = 1",
            "unknown option 'top_m' in [fake] of nutbeam.toml, line 2; did you mean",
        ),
        ("[simweb]\ntop_n = 1", "unknown option 'top_n' in [simweb] of nutbeam.toml, line 2"),
        ("nonsense = 1", "unknown option 'nonsense' in nutbeam.toml, line 1"),
        ("[fakes]\ntop_n = 1", "unknown section 'fakes' in nutbeam.toml; did you mean 'fake'?"),
        ("[fake]\nconfig = 'x'", "unknown option 'config' in [fake] of nutbeam.toml, line 2"),
        (
            "[fake]\ntop_n = 'x'",
            "--top_n must be a whole number, got 'x' (from [fake] of nutbeam.toml, line 2)",
        ),
        (
            "top_n = true",
            "--top_n must be a whole number, got True (from nutbeam.toml, line 1)",
        ),
        ("top_n = ", "--config must be a toml file, got 'nutbeam.toml': invalid value (at "),
    ],
)
def test_a_bad_file_is_one_line(fake, capsys, tmp_path, text, message):
    (tmp_path / "nutbeam.toml").write_text(text)
    assert refused(capsys, "T").startswith(message)


def test_all_errors_of_a_file_are_named_with_their_lines(fake, capsys, tmp_path):
    text = '# top_m = 0\nseeds = """\ntop_m = 1\n"""\n\n[fake]\ntop-m = 2\ntop_n = \'x\'\n'
    (tmp_path / "nutbeam.toml").write_text(text)
    message = refused(capsys, "T")

    assert message.startswith(
        "3 errors in nutbeam.toml: (1) unknown option 'seeds' in nutbeam.toml, line 2"
    )
    assert "(2) unknown option 'top_m' in [fake] of nutbeam.toml, line 7; did you mean" in message
    assert (
        "(3) --top_n must be a whole number, got 'x' (from [fake] of nutbeam.toml, line 8)"
        in message
    )


def test_a_binary_file_is_one_line(fake, capsys, tmp_path):
    (tmp_path / "nutbeam.toml").write_bytes(b"\xff\x00\n\n")
    assert "must be a toml file, got 'nutbeam.toml'" in refused(capsys, "T")


def test_a_bad_environment_is_one_line(fake, capsys, monkeypatch):
    monkeypatch.setenv("NUTBEAM_TOP_N", "x\ny")
    message = "--top_n must be a whole number, got 'x\\ny' (from NUTBEAM_TOP_N)"
    assert refused(capsys, "T") == message
    monkeypatch.delenv("NUTBEAM_TOP_N")
    monkeypatch.setenv("NUTBEAM_SERVER_DELAI", "1")
    message = "unknown environment variable 'NUTBEAM_SERVER_DELAI'; did you mean"
    assert refused(capsys, "T").startswith(message)


def test_environment_variables_of_kubernetes_are_ignored(fake, monkeypatch):
    monkeypatch.setenv("NUTBEAM_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("NUTBEAM_PORT_80_TCP", "tcp://10.0.0.1:80")
    assert cli.main(["fake", "T"]) == 0


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (JobFailed("the disk is full"), 3, "the disk is full"),
        (UsageError("--agent must be set, got ''"), 2, "--agent must be set, got ''"),
        (KeyboardInterrupt(), 130, f"interrupted; {cli._GO_ON}"),
        (KeyboardInterrupt("a job goes on"), 130, "interrupted; a job goes on"),
        (PermissionError(13, "Permission denied", "/x"), 3, "permission denied: '/x'"),
    ],
)
def test_errors_are_one_line_with_their_code(fake, capsys, error, code, message):
    def fail(invocation):
        raise error

    fake.does = fail
    assert refused(capsys, "T", code=code) == message


def test_a_defect_says_how_to_see_the_traceback(fake, capsys, monkeypatch):
    fake.does = lambda invocation: 1 // 0
    assert cli.main(["fake", "T"]) == 3
    assert capsys.readouterr().err.splitlines() == [
        "nutbeam fake: internal error: ZeroDivisionError: integer division or modulo by zero",
        "set NUTBEAM_DEBUG=1 for the traceback",
    ]
    monkeypatch.setenv("NUTBEAM_DEBUG", "1")
    assert cli.main(["fake", "T"]) == 3
    assert "Traceback" in capsys.readouterr().err


def test_the_exit_code_is_the_commands(fake):
    fake.does = lambda invocation: 1
    assert cli.main(["fake", "T"]) == 1


def test_the_whole_help_shows_unit_default_and_nutch_property(fake, capsys):
    assert cli.main(["fake", "--help_all", "--whatever"]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "usage: nutbeam fake TABLE [SEEDS...]" in words
    assert "--server_delay S Wait. [s; default 5; Nutch: fetcher.server.delay]" in words
    assert "How many are 100%. [default 50; Nutch: generate.topN]" in words
    assert "--scope {domain,host,any}" in words


def nutbeam(*words, **options):
    return subprocess.run(
        [sys.executable, "-m", "nutbeam", *words],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        **options,
    )


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["fecth"], 2, "nutbeam: unknown command 'fecth'; did you mean 'fetch'?\n"),
        (["simweb", "--prot=1"], 2, "unknown option '--prot'; did you mean '--port'?\n"),
        (["simweb", "x"], 2, "nutbeam simweb: unexpected argument 'x'\n"),
        (
            ["purge", "mine", "http://a.org/x"],
            2,
            "unexpected argument 'http://a.org/x'; a URL is given as --url URL\n",
        ),
        (
            ["search", "mine", "buy", "pills"],
            2,
            "unexpected argument 'pills'; a query of several words stands in quotation marks: 'buy pills'\n",
        ),
        ([], 2, "nutbeam: a command is missing; nutbeam --help lists them"),
        (["help", "fecth"], 2, "nutbeam: unknown command 'fecth'; did you mean 'fetch'?\n"),
        (["blub"], 2, "nutbeam: unknown command 'blub'; nutbeam --help lists the commands\n"),
        (
            ["https://a.org/"],
            2,
            "unknown command 'https://a.org/'; to crawl a site: nutbeam crawl TABLE https://a.org/",
        ),
        (
            ["crawl", "https://a.org/"],
            2,
            "missing argument TABLE before 'https://a.org/': folder of the web table",
        ),
    ],
)
def test_the_installed_command_fails_in_one_line(words, code, message):
    done = nutbeam(*words)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_reader_that_leaves_is_no_error():
    done = subprocess.run(
        f"(sleep 0.3; {sys.executable} -m nutbeam --help; echo $? >&2) | true",
        shell=True,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.stderr == "0\n"


def test_streams_that_are_closed_are_empty():
    done = subprocess.run(
        f"{sys.executable} -m nutbeam filterchecker <&- >&-; echo $? >&2",
        shell=True,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.stderr.endswith("\n0\n")
    assert "error" not in done.stderr


def test_a_broken_pipe_elsewhere_is_a_failure(fake, capsys):
    def fail(invocation):
        raise BrokenPipeError(32, "Broken pipe")

    fake.does = fail
    assert refused(capsys, "T", code=3) == "broken pipe"
