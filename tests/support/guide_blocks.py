"""Blocks of commands in the documentation, and how they are run."""

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys

# "not run: REASON", or by whom else: "flink: run by make test-flink".
NOT_RUN = re.compile(r"<!-- (?:not run: |(?=\w+: run by ))(.+?) -->\n$")


# What is left in the background by a command that failed would keep the pipes open.
END_ALL = "trap 'kill $(jobs -p) 2> /dev/null || true' EXIT\n"


BLOCK = re.compile(r"^```(bash|text|yaml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(path, language):
    """Returns (text, reason why it is not run or None) of each fenced block."""
    text = path.read_text("utf-8")
    return [
        (found[2], reason[1] if (reason := NOT_RUN.search(text[: found.start()])) else None)
        for found in BLOCK.finditer(text)
        if found[1] == language
    ]


def run_as_typed(script, folder, commands=None, seconds=300):
    """Runs lines in a shell, as a user does one after the other; returns what they print.

    Args:
        script: The lines.
        folder: Where they run.
        commands: Folder whose programs come first in PATH, such as that of ``warm_commands``.
        seconds: Longest time for all of them.
    """
    folders = [*filter(None, [commands]), pathlib.Path(sys.executable).parent, os.environ["PATH"]]
    path = os.pathsep.join(map(str, folders))
    clean = {name: v for name, v in os.environ.items() if not name.startswith("NUTBEAM_")}
    shell = subprocess.Popen(
        ["bash", "-eu", "-o", "pipefail", "-c", END_ALL + script], cwd=folder,
        env={**clean, "PATH": path},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        printed, said = shell.communicate(timeout=seconds)
    finally:
        with contextlib.suppress(ProcessLookupError):  # what was left in the background
            os.killpg(shell.pid, signal.SIGKILL)
    assert shell.returncode == 0, f"{printed}\n{said}"
    return printed
