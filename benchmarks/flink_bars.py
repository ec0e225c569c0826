"""The bars of a cluster on Flink: settings that start, workers that fit, few and cheap starts.

``python benchmarks/flink.py --bars [--small]`` prints them. It reuses what tests/ has for Flink.
"""

import contextlib
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from typing import Any

import measure
from flink import settings
from flink.cluster import JAR, Cluster
from flink_templates import compose, containers
from flink_templates import settings as published_settings
from guide_blocks import blocks
from here import ROOT
from tables import make_table
from worker_starts import cpu_of, start_worker

from nutbeam.io.parsing.parser_limits import memory_of, share_of_worker
from nutbeam.web.simweb.server import SimWeb

MIB = 1 << 20
MOST_START_S, MOST_ROUND_S = 3.0, 60.0
LOOK_S = 0.2
# Name, URLs that are not due, and --one_worker_urls.
TABLES = (
    ("these pages only", 0, 50_000),
    ("60,000 URLs more", 60_000, 50_000),
    ("3,000,000 URLs more", 3_000_000, 50_000),
    ("60,000 more, all workers", 60_000, 0),
)
Row = tuple[object, ...]


def settings_bar() -> Iterator[Row]:
    """Yields (setting, process size, heap of tasks, result) of Flink's own calculator."""
    [lines] = [text for text, _ in blocks(ROOT / "docs/guides/flink.md", "yaml")]
    guide = dict(line.split(": ", 1) for line in lines.splitlines() if ": " in line)
    names = ("guide", "Compose", "Kubernetes")
    for name, values in zip(names, (guide, *published_settings()), strict=True):
        with tempfile.TemporaryDirectory() as folder:
            settings.write_config(pathlib.Path(folder), values)
            size = values["taskmanager.memory.process.size"]
            try:
                java, _ = settings.java_words(
                    "java", JAR, settings.TASK_MANAGER, pathlib.Path(folder)
                )
            except ValueError as error:
                yield name, size, "", str(error).splitlines()[-1]
            else:
                heap = next(int(word[4:]) for word in java if word.startswith("-Xmx"))
                yield name, size, f"{heap // MIB} MiB", "starts"


def memory_bar() -> Iterator[Row]:
    """Yields (worker, cores, memory, its parsers, their memory) of each published limit."""
    limits = [
        ("Compose", service["cpus"], service["mem_limit"])
        for service in compose()["services"].values()
        if service.get("command") == ["--worker_pool"]
    ]
    for _, container in containers():
        if container["name"] == "worker":
            of_pod = container["resources"]["limits"]
            limits.append(("Kubernetes", int(of_pod["cpu"]), of_pod["memory"]))
    for name, cores, memory in dict.fromkeys(limits):
        bound = int(memory.rstrip("Ggi")) << 30
        fit = share_of_worker(cores, bound, workers=1)
        yield name, cores, memory, fit.processes, f"{(fit.memory or 0) // MIB} MiB"


class ClusterWatch(threading.Thread):
    """Counts the workers that start, and what the processes that parse hold at most.

    Attributes:
        workers: Ids of the workers that were seen, but for those that were there before.
        parsers: Most processes that parse, at once.
        parser_bytes: Most memory that they had together.
    """

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(daemon=True)
        self._cluster, self._over = cluster, threading.Event()
        self._before = {process.pid for process in cluster.workers()}
        self.workers: set[int] = set()
        self.parsers = self.parser_bytes = 0

    def run(self) -> None:
        while not self._over.wait(LOOK_S):
            self.workers |= {p.pid for p in self._cluster.workers()} - self._before
            parsers = [p.pid for p in self._cluster.processes() if "parse_worker" in p.command]
            self.parsers = max(self.parsers, len(parsers))
            self.parser_bytes = max(self.parser_bytes, sum(map(memory_of, parsers)))

    def close(self) -> None:
        self._over.set()
        self.join()


def run_watched(cluster: Cluster, *words: object) -> tuple[object, ...]:
    """Runs a command on a cluster.

    Returns:
        (jobs, tasks, starts of workers, seconds, parsers at once, their MiB).
    """
    earlier, start = set(cluster.jobs()), time.time()
    with contextlib.closing(ClusterWatch(cluster)) as watch:
        watch.start()
        command = [sys.executable, "-P", "-m", "nutbeam", *map(str, words), "--progress", "false"]
        done = subprocess.run(
            [*command, *cluster.options], env=cluster.environment, check=False,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
    if done.returncode > 1:  # 1: nothing was to do
        raise SystemExit(f"{words[0]} ended with {done.returncode}")
    seconds = time.time() - start
    jobs = set(cluster.jobs()) - earlier
    tasks = sum(step["parallelism"] for job in jobs for step in _steps(cluster, job))
    parsed = watch.parsers, watch.parser_bytes // MIB
    return len(jobs), tasks, len(watch.workers), f"{seconds:.0f}", *parsed


def _steps(cluster: Cluster, job: str) -> Any:
    return cluster.rest(f"/jobs/{job}")["vertices"]


def starts_bar(cluster: Cluster, sizes: tuple[int, ...]) -> Iterator[Row]:
    """Yields a row for a round of each number of pages, and for a dedup after it, on tables of each size.

    With all phases on all workers a round has as many tasks as before phases were placed.
    """
    for pages in sizes:
        hosts = max(1, pages // 100)
        with SimWeb(hosts=hosts, pages=100, seed=7, crawl_delay=0, processes=2) as web:
            urls = sorted(map(web.site.plan.url, web.site.plan.all_pages()))[: max(pages, 1)]
            doors = [f"--connect_to={door}" for door in web.connect_to]
            for kind, more_urls, most in TABLES:
                with tempfile.TemporaryDirectory(prefix="benchmark-flink-") as folder:
                    table = pathlib.Path(folder) / "table"
                    if more_urls:
                        make_table(table, more_urls, 1_000, due_share=0.0)
                    _inject(table, urls)
                    words = ["crawl", table, "--server_delay=0", *doors]
                    if not pages:  # until nothing is due
                        measure.nutbeam(*words, "--rounds=-1", "--progress=false")
                    words += ["--rounds=1", f"--top_n={len(urls)}", "--num_fetchers=2"]
                    limit = f"--one_worker_urls={most}"
                    yield f"{kind}: {pages:,} pages", *run_watched(cluster, *words, limit)
                    yield f"{kind}: dedup", *run_watched(cluster, "dedup", table, limit)


def _inject(table: pathlib.Path, urls: list[str]) -> None:
    seeds = table.parent / "seeds.txt"
    seeds.write_text("\n".join(urls))
    measure.nutbeam("inject", table, seeds, "--progress", "false")


def start_seconds() -> float:
    """Returns the CPU that a worker takes to start, s: the least of three."""
    seconds = []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            process = start_worker(folder)
            assert process.stdout is not None
            process.stdout.read()
            seconds.append(cpu_of(process))
            process.stdout.close()
            time.sleep(LOOK_S)  # its folder is removed
    return min(seconds)


def print_bars(small: bool) -> None:
    """Prints the three bars."""
    measure.table("Settings that start", ("setting", "process", "heap", "Flink"), settings_bar())
    heads = ("worker", "cores", "memory", "parsers", "of them")
    measure.table("Workers that fit", heads, memory_bar())
    print(f"a worker's start: {start_seconds():.1f} s of CPU (at most {MOST_START_S})")
    heads = ("round", "jobs", "tasks", "starts", "seconds", "parsers", "MiB")
    with Cluster(2, short=False) as cluster:
        rows = list(starts_bar(cluster, (0, 100) if small else (0, 100, 10_000)))
    measure.table("Fewer, cheaper starts", heads, rows)
    seconds = max(float(str(row[4])) for row in rows if str(row[0]).endswith(": 100 pages"))
    held = "held" if seconds <= MOST_ROUND_S else "MISSED"
    print(f"a round of 100 pages, seconds: {seconds:.0f}, at most {MOST_ROUND_S:.0f}: {held}")
