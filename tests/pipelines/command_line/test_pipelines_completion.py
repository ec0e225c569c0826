"""Completion in real shells: commands, options and values, without a start of Python."""

import os
import shutil
import subprocess

import pytest

from nutbeam.pipelines.command_line.cli import main, option_names
from nutbeam.pipelines.command_line.commands import COMMANDS

SHELLS = os.environ.get("NUTBEAM_SHELLS", "")  # folder with other shells
LINES = {
    ("nutbeam", "crawlc"): ["crawlcomplete"],
    ("nutbeam", "help", "indexch"): ["indexchecker"],
    ("nutbeam", "generate", "mine", "--top"): ["--top_n"],
    ("nutbeam", "crawlcomplete", "mine", "--mode", ""): ["domain", "host"],
    ("nutbeam", "domainstats", "mine", "--mode", "d"): ["domain"],
    ("nutbeam", "sql", "mine", "--format", ""): ["csv", "json", "text"],
    ("nutbeam", "completion", ""): ["bash", "fish", "zsh"],
}  # fmt: skip


@pytest.fixture(params=["bash", "zsh", "fish"])
def shell(request):
    """The path of a shell, and its name."""
    path = shutil.which(request.param, path=os.pathsep.join([SHELLS, os.environ["PATH"]]))
    if path is None:
        pytest.skip(f"{request.param} is not installed")
    return request.param, path


@pytest.fixture
def script(shell, capsys, tmp_path):
    assert main(["completion", shell[0]]) == 0
    file = tmp_path / f"completion.{shell[0]}"
    file.write_text(capsys.readouterr().out)
    return file


def complete(shell, script, words):
    """Returns what a shell offers for the last of some words; it finds no program."""
    name, path = shell
    if name == "bash":
        program = (
            f'source {script}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _nutbeam; '
            'printf "%s\\n" "${COMPREPLY[@]}"'
        )
        command = [path, "--norc", "-c", program, "bash", *words]
    elif name == "zsh":
        # compadd writes what it would show; in a real line zsh leaves out what does not begin so.
        program = (
            "compdef() { }; _files() { }; compset() { }; "
            'compadd() { shift; print -l -- "$@" }; '
            '_describe() { print -l -- "${commands[@]%%:*}" }; '
            f'source {script}; words=("$@"); CURRENT=$#; PREFIX="${{words[CURRENT]}}"; _nutbeam'
        )
        command = [path, "-f", "-c", program, "zsh", *words]
    else:
        line = " ".join(words)
        command = [path, "--no-config", "-c", f"source {script}; complete -C '{line}'"]
    done = subprocess.run(command, env={"PATH": "", "HOME": str(script.parent)}, check=True,
                          capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)  # fmt: skip
    offered = {line.split("\t")[0] for line in done.stdout.splitlines() if line}
    return sorted(each for each in offered if each.startswith(words[-1]))


@pytest.mark.parametrize("words", LINES)
def test_a_shell_completes_a_word(shell, script, words):
    assert complete(shell, script, words) == LINES[words]


def test_a_shell_offers_each_command_and_each_option(shell, script):
    assert set(COMMANDS) <= set(complete(shell, script, ("nutbeam", "")))
    offered = complete(shell, script, ("nutbeam", "crawl", "mine", "--"))
    assert {f"--{name}" for name in option_names("crawl")} <= set(offered)


def test_a_shell_offers_files_where_an_argument_is_one(shell, script):
    if shell[0] == "fish":
        (script.parent / "mine").mkdir()
        assert complete(shell, script, ("nutbeam", "crawl", f"{script.parent}/mi")) == [
            f"{script.parent}/mine/"
        ]
    else:  # the shell itself completes files then
        assert complete(shell, script, ("nutbeam", "crawl", "mi")) == []


def test_another_shell_is_refused(refuse):
    assert refuse("completion", "ksh") == "the shell must be one of bash, zsh, fish, got 'ksh'"
