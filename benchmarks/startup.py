"""How long commands take to their first useful work, against the budget of 2.5 s.

``python benchmarks/startup.py [--small]``. Each is a fresh process on a table of one
URL, from its start to its end: what it does besides starting is next to nothing.
"""

import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import measure

BUDGET_SECONDS = 2.5
SEED = "http://docs.example.com/"


def seconds_of(words: list[str]) -> float:
    """Returns how long a fresh Python process takes, from start to end."""
    start = time.perf_counter()
    subprocess.run([sys.executable, *words], check=True, capture_output=True)
    return time.perf_counter() - start


def commands(folder: pathlib.Path, run: int) -> dict[str, list[str]]:
    """Returns what is started, by what it is called; generate gets a table of its own."""
    nutbeam = ["-m", "nutbeam"]
    tiny, own = folder / "tiny", folder / f"run-{run}"
    shutil.copytree(tiny, own)
    return {
        "python": ["-c", "pass"],
        "import apache_beam": ["-c", "import apache_beam"],
        "nutbeam --help": [*nutbeam, "--help"],
        "nutbeam crawl --help": [*nutbeam, "crawl", "--help"],
        "nutbeam readdb": [*nutbeam, "readdb", str(tiny)],
        "nutbeam inject": [*nutbeam, "inject", str(folder / f"new-{run}"), SEED],
        "nutbeam generate": [*nutbeam, "generate", str(own)],
    }


def main() -> None:
    """Prints the table."""
    repeats = 2 if "--small" in sys.argv[1:] else 7
    seconds: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        seconds_of(["-m", "nutbeam", "inject", str(folder / "tiny"), SEED])  # warms up
        for run in range(repeats):
            for command, words in commands(folder, run).items():
                seconds.setdefault(command, []).append(seconds_of(words))
    beam = statistics.median(seconds["import apache_beam"])
    rows = [
        (command, median, median / BUDGET_SECONDS, median / beam)
        for command, each in seconds.items()
        for median in [statistics.median(each)]
    ]
    heads = ("fresh process", "seconds", f"of {BUDGET_SECONDS} s", "of import apache_beam")
    measure.table(f"start to end, median of {repeats}", heads, rows)


if __name__ == "__main__":
    main()
