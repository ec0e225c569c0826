"""How long commands take to their first useful work, against the budget of 2.5 s.

``python benchmarks/startup.py [--small]``. Each is a fresh process on a table of one
URL, from its start to its end: what it does besides starting is next to nothing. "no bytecode" is
a place where there is none and none may be written, as in some containers. The last row is the time
to the first line on a terminal, for which the budget is 0.3 s. The second table has CPU time of commands that run
no pipeline, for which the budget is 0.25 s: CPU, because other work on the machine changes it less. Its last
column compares with the import of polars and pyarrow, 0.17 s on a quiet machine, so the budget is 1.47 of it. "first page" is the time until a server on
this machine gets the request for it, from ``nutbeam.fetch`` and from ``nutbeam.crawl``, which makes a table, injects the
seed and generates a batch before; for ``import nutbeam`` the budget is 0.15 s, for these pages 1.5 s. All are run
in an environment of its own with nutbeam and its extra ``sql``: Beam imports pandas and Google's clients if they are there,
and they are no part of nutbeam. ``--small`` takes the environment that runs it.
"""

import json
import os
import pathlib
import pty
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import install
import measure

from nutbeam.web.simweb.server import SimWeb

BUDGET_SECONDS = 2.5
PLAIN_BUDGET_SECONDS = 0.25  # of commands that run no pipeline
SEED = "http://docs.example.com/"
# Keys that filterchecker does not have.
CONFIG = "agent_name = 'mybot'\n[crawl]\nrounds = 5\n"
FIRST_LINE = "nutbeam generate: first line on a terminal"
# What a fresh process calls until it requests its first page.
CALLS = {
    "python -c nutbeam.fetch(...): first page": "nutbeam.fetch({url!r}, {options})",
    "python -c nutbeam.crawl(...): first page": "nutbeam.crawl({table!r}, {url!r}, rounds=1, {options})",
}

# Commands that run no pipeline, with ``{table}`` for a table; tests/ walk all of them.
WITHOUT_PIPELINE = (
    "readdb {table}", "domainstats {table}", "crawlcomplete {table}", "export {table} -o {table}.csv",
    "readhostdb {table}", "readlinkdb {table} " + SEED, "status {table}", "history {table}", "files {table} state",
    "fsck {table}", "estimate {table}", "table describe {table}", "explain {table} " + SEED,
    "sql {table} {query}", "filterchecker " + SEED, "normalizerchecker " + SEED, "config files",
    "showproperties files", "completion bash", "--help", "help crawl",
)  # fmt: skip


python = sys.executable


def cpu_seconds_of(words: list[str]) -> float:
    """Returns the CPU time of a fresh Python process and its children."""
    process = subprocess.Popen(
        [python, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode in (0, 1), words
    return used.ru_utime + used.ru_stime


def measure_plain(folder: pathlib.Path, repeats: int) -> None:
    """Prints the CPU time of commands that run no pipeline, the least of some runs."""
    table, least = str(folder / "tiny"), dict[str, float]()
    runs = {"import apache_beam": ["-c", "import apache_beam"],
            "import polars, pyarrow": ["-c", "import polars, pyarrow"]}  # fmt: skip
    for line in WITHOUT_PIPELINE:
        words = [word.format(table=table, query="select 1") for word in line.split()]
        runs[f"nutbeam {words[0]}"] = ["-m", "nutbeam", *words]
    runs["nutbeam help crawl"] = runs.pop("nutbeam help")
    for _ in range(repeats):
        for command, words in runs.items():
            seconds = cpu_seconds_of(words)
            least[command] = min(least.get(command, seconds), seconds)
    beam, frames = least["import apache_beam"], least["import polars, pyarrow"]
    rows = [
        (name, cpu, cpu / PLAIN_BUDGET_SECONDS, cpu / beam, cpu / frames)
        for name, cpu in least.items()
    ]
    heads = ("fresh process", "CPU s", f"of {PLAIN_BUDGET_SECONDS} s", "of import apache_beam",
             "of import polars, pyarrow")  # fmt: skip
    measure.table(f"without a pipeline, least of {repeats}", heads, rows)


def seconds_of(words: list[str], **environ: str) -> float:
    """Returns how long a fresh Python process takes, from start to end."""
    start = time.perf_counter()
    subprocess.run(
        [python, *words], check=True, env=os.environ | environ,
        stdin=subprocess.DEVNULL, capture_output=True,
    )  # fmt: skip
    return time.perf_counter() - start


def seconds_to_first_line(words: list[str]) -> float:
    """Returns how long the installed command takes to show anything on a terminal."""
    master, slave = pty.openpty()
    command = [str(pathlib.Path(python).with_name("nutbeam")), *words]
    start = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=slave, stderr=slave, env=os.environ | {"TERM": "xterm"}
    )
    os.close(slave)
    os.read(master, 1)
    seconds = time.perf_counter() - start
    process.kill()
    process.wait()
    os.close(master)
    return seconds


def seconds_to_first_page(call: str, table: pathlib.Path) -> float:
    """Returns how long a fresh process with one of ``CALLS`` takes to request the first page."""
    with tempfile.TemporaryFile("a+b") as log, SimWeb(
        hosts=1, pages=1, crawl_delay=0, log=log.fileno()
    ) as web:  # fmt: skip
        options = f"connect_to={web.connect_to!r}, server_delay=0"
        code = f"import nutbeam; {call.format(table=str(table), url=web.seeds[0], options=options)}"
        start = time.monotonic()
        seconds_of(["-c", code])
        requests = [json.loads(line) for line in os.pread(log.fileno(), 1 << 20, 0).splitlines()]
        return min(when for when, _, path in requests if path != "/robots.txt") - start


def commands(folder: pathlib.Path, run: int) -> dict[str, list[str]]:
    """Returns what is started, by what it is called; generate gets a table of its own."""
    nutbeam = ["-m", "nutbeam"]
    tiny, own = folder / "tiny", folder / f"run-{run}"
    shutil.copytree(tiny, own)
    return {
        "python": ["-c", "pass"],
        "import apache_beam": ["-c", "import apache_beam"],
        "import nutbeam": ["-c", "import nutbeam"],
        "nutbeam --help": [*nutbeam, "--help"],
        "nutbeam crawl --help": [*nutbeam, "crawl", "--help"],
        "nutbeam filterchecker": [*nutbeam, "filterchecker", "--config", os.devnull],
        "nutbeam filterchecker, with nutbeam.toml": [
            *(*nutbeam, "filterchecker", "--config", str(folder / "nutbeam.toml")),
        ],
        "nutbeam readdb": [*nutbeam, "readdb", str(tiny)],
        "nutbeam inject": [*nutbeam, "inject", str(folder / f"new-{run}"), SEED],
        "nutbeam generate": [*nutbeam, "generate", str(own)],
    }


def main() -> None:
    """Prints the tables."""
    global python
    repeats = measure.sized(2, 5, 7)
    seconds: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if "--small" not in sys.argv[1:]:
            python = install.make_environment(f"{folder}/venv", "sql")
        seconds_of(["-m", "nutbeam", "inject", str(folder / "tiny"), SEED])  # warms up
        (folder / "nutbeam.toml").write_text(CONFIG)
        bare = {"PYTHONPYCACHEPREFIX": f"{folder}/none", "PYTHONDONTWRITEBYTECODE": "1"}
        measure_plain(folder, repeats)
        for run in range(repeats):
            started = commands(folder, run)
            for command, words in started.items():
                seconds.setdefault(command, []).append(seconds_of(words))
            readdb = started["nutbeam readdb"]
            seconds.setdefault("nutbeam readdb, no bytecode", []).append(seconds_of(readdb, **bare))
            first = seconds_to_first_line(["generate", str(folder / f"run-{run}")])
            seconds.setdefault(FIRST_LINE, []).append(first)
            for number, (name, call) in enumerate(CALLS.items()):
                page = seconds_to_first_page(call, folder / f"crawled-{run}-{number}")
                seconds.setdefault(name, []).append(page)
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
