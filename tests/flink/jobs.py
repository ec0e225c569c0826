"""Commands of nutbeam on a cluster, in processes of their own, and what they do to a table."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from crawling import nutbeam, reach

from .cluster import Cluster, wait_for

ENOUGH_S = 900.0  # for one job, on a machine that is busy


def choose(table: Path, web: Any, *words: object) -> list[str]:
    """Puts all pages of a simulated web into a new batch, in this process; returns their URLs."""
    urls = sorted(web.site.urls("page"))
    assert nutbeam("inject", table, *urls) == 0
    assert nutbeam("generate", table, "--top_n", len(urls), *words) == 0
    return urls


def bring_in(table: Path, web: Any, *jobs: str) -> None:
    """Runs jobs on a table in this process, one after the other."""
    for job in jobs:
        assert nutbeam(job, table, *(reach(web) if job == "fetch" else [])) == 0


class Launched:
    """A command that runs on a cluster, in a process of its own. Made by ``launched``.

    Attributes:
        said: What it has written to standard error, when it has ended.
    """

    said = ""

    def __init__(
        self,
        cluster: Cluster,
        words: Sequence[object],
        slots: int | None = None,
        one_worker_urls: int = 0,
    ) -> None:
        self._cluster = cluster
        self._earlier = set(cluster.jobs())
        options = [*cluster.options, *([f"--parallelism={slots}"] if slots else [])]
        small = ["--one_worker_urls", str(one_worker_urls)]
        words = [*map(str, words), *options, *small]
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "nutbeam", *words], env=cluster.environment,
            text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def jobs(self) -> list[str]:
        """Returns the ids of the jobs that it has submitted so far."""
        return [job for job in self._cluster.jobs() if job not in self._earlier]

    def wait_for(self, condition: Callable[[], Any], what: str) -> Any:
        """Waits for what it is going to do, and returns what the condition gave.

        Raises:
            RuntimeError: It has ended before.
        """

        def there() -> Any:
            if not (found := condition()) and self.process.poll() is not None:
                raise RuntimeError(f"ended before {what}: {self.process.communicate()}")
            return found

        return wait_for(there, what, ENOUGH_S)

    def ended(self) -> int:
        """Waits for its end; returns its exit code."""
        out, self.said = self.process.communicate(timeout=ENOUGH_S)
        print(out, self.said, sep="\n")  # pytest shows it where a test fails
        return self.process.returncode

    def kill(self) -> None:
        """Kills it, whatever becomes of its job."""
        self.process.kill()
        self.process.communicate()


@contextlib.contextmanager
def launched(
    cluster: Cluster, *words: object, slots: int | None = None, one_worker_urls: int = 0
) -> Iterator[Launched]:
    """Runs a command of nutbeam on a cluster; it is killed, and its jobs cancelled, at the end.

    By default its steps are for all workers, as those of a large table are.
    Waits before until no worker of an earlier job is left, so that those that come are its own.
    """
    wait_for(lambda: not cluster.running() and not cluster.workers(), "the job before to end")
    command = Launched(cluster, words, slots, one_worker_urls)
    try:
        yield command
    finally:
        command.kill()
        cluster.cancel()


def tasks_of(cluster: Cluster, job: str) -> int:
    """Returns how many tasks Flink has made of a job."""
    return sum(step["parallelism"] for step in cluster.rest(f"/jobs/{job}")["vertices"])


def kill(pid: int) -> None:
    """Kills one process, as a machine does that runs out of memory."""
    os.kill(pid, signal.SIGKILL)


def whole(table: Path, kind: str) -> list[Path]:
    """Returns the whole files of one kind of all batches, committed or not."""
    return sorted(table.glob(f"batches/*/{kind}/[!.]*.parquet"))


def flushed_by_partition(table: Path) -> dict[int, int]:
    """Returns how many pages each partition has flushed."""
    pages: dict[int, int] = {}
    for path in whole(table, "pages"):
        number = int(path.name.partition("-")[0].removeprefix("p"))
        pages[number] = (
            pages.get(number, 0) + pl.scan_parquet(path).select(pl.len()).collect().item()
        )
    return pages


def attempts(table: Path) -> dict[int, list[int]]:
    """Returns the ids of the processes that have held each partition's lease, in order."""
    found: dict[int, list[int]] = {}
    for path in sorted(table.glob("batches/*/leases/*.claim")):
        number = int(path.name.partition("-")[0].removeprefix("p"))
        found.setdefault(number, []).append(json.loads(path.read_text())["pid"])
    return found


def released(table: Path, partition: int) -> bool:
    """Returns whether the newest attempt at a partition has given its lease back."""
    beats = sorted(table.glob(f"batches/*/leases/p{partition:05d}-*.beat"))
    return bool(beats) and json.loads(beats[-1].read_text())["released"] is not None
