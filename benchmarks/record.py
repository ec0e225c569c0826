"""Runs benchmarks and puts their output into docs/performance.md.

``python benchmarks/record.py [WORD ...]``. A block of that page begins with a line such as
``<!-- benchmarks/update.py --sizes -->``. The command is run again, and its output replaces the
block. With words, only the commands that contain one of them are run. If a benchmark fails, its
block stays as it was, and the exit code is 1. Nothing else may run meanwhile, or the figures are
wrong.

``benchmarks/last_figures.json`` has the seconds and the ratios of the last run of each command. Those that are
worse by more than 15 % than there are shown at the end. ``--full`` takes the full sizes, where a benchmark has
smaller ones, and changes neither file.
"""

import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import time

from ratios import WORSE, Regression, ratios_of, regressions

ROOT = pathlib.Path(__file__).parent.parent
PAGE = ROOT / "docs" / "performance.md"
LAST = ROOT / "benchmarks" / "last_figures.json"
FULL = "--full"
MINUTES = 45  # that all benchmarks may take
BLOCK = re.compile(r"(?P<head><!-- (?P<command>benchmarks/.+?) -->\n)```text\n.*?```\n", re.DOTALL)


def record(
    page: pathlib.Path, last: pathlib.Path, words: list[str]
) -> tuple[int, list[Regression]]:
    """Runs the chosen benchmarks, and writes the figures of each into the page at once.

    So what was measured stays if a later benchmark fails, or if somebody ends the run.

    Args:
        page: The page with the blocks.
        last: File with the figures of the last run.
        words: The chosen benchmarks have one of them in their command; ``FULL`` takes full sizes.

    Returns:
        (how many benchmarks failed, the ratios that are worse than in the last run).
    """
    failed, worse = 0, list[Regression]()
    figures = json.loads(last.read_text()) if last.exists() else {}
    more = [FULL] if FULL in words else []
    chosen = [word for word in words if word != FULL]
    for command in [match["command"] for match in BLOCK.finditer(page.read_text())]:
        if chosen and not any(word in command for word in chosen):
            continue
        print(f"{command} ...", flush=True)
        start = time.monotonic()
        done = subprocess.run(
            [sys.executable, *command.split(), *more],
            cwd=ROOT,
            check=False,
            capture_output=True,
            text=True,
        )
        print(done.stdout + done.stderr, flush=True)
        if done.returncode:
            failed += 1
            continue
        ratios = ratios_of(done.stdout)
        if command in figures and not more:
            worse += regressions({command: figures[command]["ratios"]}, {command: ratios})
        if not more:
            figures[command] = {"seconds": round(time.monotonic() - start), "ratios": ratios}
            last.write_text(json.dumps(figures, indent=1) + "\n")
            day, cores = datetime.datetime.now(datetime.UTC).date(), os.cpu_count()
            block = f"```text\n{day}, {cores} cores\n\n{done.stdout.strip()}\n```\n"
            page.write_text(with_block(page.read_text(), command, block))
    return failed, worse


def with_block(text: str, command: str, block: str) -> str:
    """Returns the page with a new block for a command."""

    def made_anew(match: re.Match[str]) -> str:
        return match["head"] + block if match["command"] == command else match[0]

    return BLOCK.sub(made_anew, text)


def main() -> int:
    """Does what the command line says; returns the exit code."""
    start = time.monotonic()
    failed, worse = record(PAGE, LAST, sys.argv[1:])
    minutes = (time.monotonic() - start) / 60
    print(f"{minutes:.0f} minutes, of {MINUTES}; {failed} failed")
    print(f"worse by more than {WORSE:.0%} than in the last run: {len(worse) or 'none'}")
    for each in worse:
        print(f"  {each}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
