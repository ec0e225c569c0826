"""Runs benchmarks and puts what they print into docs/performance.md.

``python benchmarks/record.py [WORD ...]``. Of each block there that begins with a line such as
``<!-- benchmarks/update.py --sizes -->`` the command is run anew, and what it prints becomes the
block; with words only of those whose command has one of them in it. A benchmark that fails leaves
its block as it was and ends this with 1. For figures that mean something nothing else may run.
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


def record(text: str, words: list[str]) -> tuple[str, int]:
    """Returns the page with the blocks that were chosen made anew, and how many failed."""
    failed = 0

    def made_anew(match: re.Match[str]) -> str:
        nonlocal failed
        command = match["command"]
        if words and not any(word in command for word in words):
            return match[0]
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
            return match[0]
        day, cores = datetime.datetime.now(datetime.UTC).date(), os.cpu_count()
        return f"{match['head']}```text\n{day}, {cores} cores\n\n{done.stdout.strip()}\n```\n"

    return BLOCK.sub(made_anew, text), failed


def main() -> int:
    """Does what the command line says."""
    text, failed = record(PAGE.read_text(), sys.argv[1:])
    PAGE.write_text(text)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
