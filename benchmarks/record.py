"""Runs benchmarks and puts their output into docs/performance.md.

``python benchmarks/record.py [WORD ...]``. A block of that page begins with a line such as
``<!-- benchmarks/update.py --sizes -->``. The command is run again, and its output replaces the
block. With words, only the commands that contain one of them are run. If a benchmark fails, its
block stays as it was, and the exit code is 1. Nothing else may run meanwhile, or the figures are
wrong.
"""

import datetime
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).parent.parent
PAGE = ROOT / "docs" / "performance.md"
BLOCK = re.compile(r"(?P<head><!-- (?P<command>benchmarks/.+?) -->\n)```text\n.*?```\n", re.DOTALL)


def record(page: pathlib.Path, words: list[str]) -> int:
    """Runs the chosen benchmarks, and writes the figures of each into the page at once.

    So what was measured stays if a later benchmark fails, or if somebody ends the run.

    Returns:
        How many benchmarks failed.
    """
    failed = 0
    commands = [match["command"] for match in BLOCK.finditer(page.read_text())]
    for command in commands:
        if words and not any(word in command for word in words):
            continue
        print(f"{command} ...", flush=True)
        done = subprocess.run(
            [sys.executable, *command.split()],
            cwd=ROOT,
            check=False,
            capture_output=True,
            text=True,
        )
        print(done.stdout + done.stderr, flush=True)
        if done.returncode:
            failed += 1
            continue
        day, cores = datetime.datetime.now(datetime.UTC).date(), os.cpu_count()
        block = f"```text\n{day}, {cores} cores\n\n{done.stdout.strip()}\n```\n"
        page.write_text(with_block(page.read_text(), command, block))
    return failed


def with_block(text: str, command: str, block: str) -> str:
    """Returns the page with a new block for a command."""

    def made_anew(match: re.Match[str]) -> str:
        return match["head"] + block if match["command"] == command else match[0]

    return BLOCK.sub(made_anew, text)


def main() -> int:
    """Does what the command line says."""
    return int(record(PAGE, sys.argv[1:]) > 0)


if __name__ == "__main__":
    sys.exit(main())
