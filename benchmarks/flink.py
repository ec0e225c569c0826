"""A crawl on a Flink cluster with one and with two workers, against the same crawl in one process.

``python benchmarks/flink.py [--bars] [--small]``. With ``--bars`` it prints what flink_bars.py
measures: the published settings, the limits of workers, and tasks and starts of a round. Else one round over 20,000 simulated pages of 2,000 hosts, no
delay: generate, fetch and parse, update, dedup. CPU is of the Python processes that do the work
(workers and their parsers) from the moment that the round is pinned to its last commit; what a
worker takes to start, and what Flink's own processes take, is told apart. Budget: a page costs on
Flink at most 1.5 times the CPU that it costs in one process. Needs what ``make test-flink`` makes.
"""

import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from typing import Self

import measure

from nutbeam.io.snapshots.manifest import load_manifest
from nutbeam.io.table.opening import open_table
from nutbeam.web.simweb.server import SimWeb

# Here "flink" is tests/flink, not this file.
sys.path[0] = str(measure.HERE.parent / "tests")
sys.modules.pop("flink", None)

from flink.cluster import Cluster, missing
from flink.processes import Keeper, marked

PHASES = ("generate", "fetch", "update", "dedup")
LOOK_S = 0.1
TICKS = 100.0  # of /proc, per second


class Watch(threading.Thread):
    """Notes how much CPU the processes with a mark have used, while they run.

    Attributes:
        samples: (time, CPU of Python in s, CPU of Java in s), each up to that time.
            Without what a parser takes to start, which it does in the middle of a phase.
    """

    def __init__(self, mark: str, parser_start: float) -> None:
        super().__init__(daemon=True)
        self._parser_start = parser_start
        self.samples: list[tuple[float, float, float]] = []
        self._mark, self._over = mark, threading.Event()
        self._python: dict[int, float] = {}
        self._java: dict[int, float] = {}

    def run(self) -> None:
        while not self._over.wait(LOOK_S):
            self._look()

    def _look(self) -> None:
        now = time.time()
        for process in marked(self._mark):
            with contextlib.suppress(OSError):  # what it had used when it was last seen counts
                seconds = _cpu_seconds(process.pid)
                if "parse_worker" in process.command:
                    seconds = max(0.0, seconds - self._parser_start)
                kind = self._java if "java" in process.command.split()[0] else self._python
                kind[process.pid] = seconds
        self.samples.append((now, sum(self._python.values()), sum(self._java.values())))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._look()
        self._over.set()
        self.join()

    def between(self, start: float, end: float) -> tuple[float, float]:
        """Returns the CPU of Python and of Java between two times, s."""
        before = [s for s in self.samples if s[0] <= start] or self.samples[:1]
        after = [s for s in self.samples if s[0] >= end] or self.samples[-1:]
        return after[0][1] - before[-1][1], after[0][2] - before[-1][2]


def parser_start() -> float:
    """Returns the CPU that a process that parses takes to start, s."""
    command = [sys.executable, "-P", "-c", "from nutbeam.io.parsing import parse_worker"]
    _, status, used = os.wait4(subprocess.Popen(command).pid, 0)
    if status:
        raise SystemExit("a parser does not start")
    return used.ru_utime + used.ru_stime


def _cpu_seconds(pid: int) -> float:
    fields = (pathlib.Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def phases(folder: pathlib.Path) -> Iterator[tuple[str, float, float, int]]:
    """Yields (phase, when it was pinned, when it was committed, pages) of a table's only round."""
    table = open_table(str(folder))
    for number in range(1, table.latest_snapshot() + 1):
        manifest = load_manifest(table, number)
        if manifest.job in PHASES:
            pinned = (folder / "operations" / f"{manifest.operation}.json").stat().st_mtime
            done = (folder / "manifest" / f"{number:08d}.json").stat().st_mtime
            yield manifest.job, pinned, done, manifest.counts.get("pages", 0)


def crawl(
    name: str, web: SimWeb, urls: list[str], keeper: Keeper | Cluster, options: list[str]
) -> list[tuple[object, ...]]:
    """Crawls one round of all pages; returns a row for each phase, and one for all."""
    with tempfile.TemporaryDirectory(prefix="benchmark-flink-") as folder:
        table, seeds = pathlib.Path(folder) / "table", pathlib.Path(folder) / "seeds.txt"
        seeds.write_text("\n".join(urls))
        measure.nutbeam("inject", table, seeds, "--progress", "false")
        doors = [f"--connect_to={door}" for door in web.connect_to]
        words = ["crawl", str(table), "--rounds=1", f"--top_n={len(urls)}", *doors,
                 "--server_delay=0", "--progress=false", "--format=json", *options]  # fmt: skip
        start = time.time()
        with Watch(keeper.mark, parser_start()) as watch:
            subprocess.run(
                [sys.executable, "-P", "-m", "nutbeam", *words],
                env=keeper.environment, check=True, stdout=subprocess.DEVNULL,
            )  # fmt: skip
        found = list(phases(table))
    if [phase for phase, *_ in found] != list(PHASES):
        raise SystemExit(f"{name}: the phases were {[phase for phase, *_ in found]}")
    pages = sum(count for *_, count in found)
    if pages != len(urls):
        raise SystemExit(f"{name}: {pages} pages instead of {len(urls)}")
    spans = [*((p, s, e) for p, s, e, _ in found), ("all", found[0][1], found[-1][2])]
    rows: list[tuple[object, ...]] = []
    for phase, begin, end in spans:
        python, java = watch.between(begin, end)
        rows.append(
            (f"{name}: {phase}", end - begin, pages / (end - begin), python / pages * 1e3,
             java / pages * 1e3)
        )  # fmt: skip
    started, of_java = watch.between(start, found[0][1])
    rows.append((f"{name}: start", found[0][1] - start, "", f"{started:.1f} s", f"{of_java:.1f} s"))
    return rows


def main() -> None:
    """Prints the table."""
    if missing():
        raise SystemExit(missing())
    small = "--small" in sys.argv[1:]
    if "--bars" in sys.argv[1:]:
        # Only now: before, "flink" would be this file.
        sys.path += [str(measure.HERE), str(measure.HERE.parent / "tests" / "support")]
        from flink_bars import print_bars

        print_bars(small)
        return
    hosts, pages = (50, 4) if small else (2_000, 10)
    rows: list[tuple[object, ...]] = []
    with SimWeb(hosts=hosts, pages=pages, seed=7, crawl_delay=0, processes=2) as web:
        urls = sorted(map(web.site.plan.url, web.site.plan.all_pages()))
        with contextlib.closing(Keeper(pathlib.Path(tempfile.mkdtemp()))) as keeper:
            rows += crawl("in-process", web, urls, keeper, [])
        for workers in (1, 2):
            with Cluster(workers, short=False) as cluster:
                options = [f"--num_fetchers={workers}", *cluster.options]
                rows += crawl(f"Flink, {workers}", web, urls, cluster, options)
    heads = ("runner: phase", "seconds", "pages/s", "CPU ms/page", "of Java")
    measure.table(f"{len(urls):,} pages of {hosts:,} hosts", heads, rows)
    cost = {str(row[0]): float(str(row[3])) for row in rows if not str(row[3]).endswith("s")}
    for workers in (1, 2):
        for phase in ("fetch", "all"):
            ratio = cost[f"Flink, {workers}: {phase}"] / cost[f"in-process: {phase}"]
            budget = " (budget: 1.5)" if phase == "all" else ""
            print(f"Flink, {workers}: {phase}: {ratio:.2f} x in-process{budget}")


if __name__ == "__main__":
    main()
