"""A round on one core and on two: what the second one gains, and how many parsers an engine feeds.

``python benchmarks/cores.py [--small] [--full] [CORES ...]``. 20,000 pages (``--full``: 100,000) of 6 KB with 12
links each, on 1,000 (5,000) hosts, are in a table: ``nutbeam crawl --rounds=1`` does a round, from generate to dedup,
without delays. The seconds count from the start of the process, in which one core works for a second.
The crawl is pinned to one core and to two (or to as many as are named), by turns, 3 times each; parsers
and threads of polars follow from that. Budget: a round on two cores gains 1.8 times.

The last row is what the machine can give: as many crawls at once as there are cores, each with a table of
its own and pinned to a core of its own, know nothing of each other and share caches and memory only.

nginx serves the pages. It is pinned outside of the crawl's cores if the machine has another one, else to
the same ones; its CPU time is shown. The machine must be quiet: the gain is that of the time that passed.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import measure

REPEATS = 3
_INTERVAL_S = (
    1.0  # between two looks at CPU times: what a process uses after the last one is not seen
)


@dataclasses.dataclass
class Round:
    """What a round took.

    Attributes:
        wall: Time, s.
        cpu: CPU time of the crawl, s, and of the processes by kind: ``engines``, ``parsers``.
        server: CPU time of nginx, s.
        uses: What the crawl says that it uses.
    """

    wall: float = 0.0
    cpu: dict[str, float] = dataclasses.field(default_factory=dict)
    server: float = 0.0
    uses: str = ""


class Sampler(threading.Thread):
    """Adds up the CPU time of a process and its children.

    Args:
        root: Id of the process.
        server: Ids of the processes of nginx.
    """

    def __init__(self, root: int, server: Sequence[int]) -> None:
        super().__init__(daemon=True)
        self._root, self._server = root, server
        self._over = threading.Event()
        self._seen: dict[tuple[int, int], float] = {}
        self._at = 0.0
        self.round = Round()
        self.counts = False
        self._lock = threading.Lock()

    def run(self) -> None:
        while not self._over.wait(_INTERVAL_S):
            self.look()

    def end(self) -> None:
        """Ends it."""
        self._over.set()
        self.join()

    def look(self) -> None:
        """Takes a sample, which counts if ``counts`` is set."""
        with self._lock:
            used = {"engines": 0.0, "parsers": 0.0, "server": 0.0}
            for pid, kind in [*self._crawl(), *((pid, "server") for pid in self._server)]:
                used[kind] += sum(self._threads(pid))
            now = time.monotonic()
            if self.counts:
                self._add(now - self._at, used)
            self._at = now

    def _add(self, seconds: float, used: dict[str, float]) -> None:
        self.round.wall += seconds
        self.round.server += used.pop("server")
        for kind, cpu in used.items():
            self.round.cpu[kind] = self.round.cpu.get(kind, 0.0) + cpu

    def _crawl(self) -> Iterator[tuple[int, str]]:
        ids = [self._root]
        for pid in ids:
            with contextlib.suppress(OSError):
                line = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
                yield pid, "parsers" if b"parse_worker" in line else "engines"
                for path in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
                    ids += map(int, path.read_text().split())

    def _threads(self, pid: int) -> Iterator[float]:
        """Yields the CPU time of each thread since the last look, s."""
        for folder in pathlib.Path(f"/proc/{pid}/task").glob("*"):
            with contextlib.suppress(OSError):
                seconds = int((folder / "schedstat").read_text().split()[0]) / 1e9
                key = pid, int(folder.name)
                yield seconds - self._seen.get(key, 0.0)
                self._seen[key] = seconds


def crawl_round(
    table: pathlib.Path, port: int, server: Sequence[int], cores: set[int], *more: str
) -> Round:
    """Does a round on some cores; returns what it took from generate to dedup."""
    words = [
        "crawl", str(table), "--rounds=1", "--top_n=10000000", "--server_delay=0", "--threads=50",
        f"--connect_to=*.example.com:80:127.0.0.1:{port}", "--log_format=json", *more,
    ]  # fmt: skip
    own = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)  # the process inherits it
    process = subprocess.Popen(
        [sys.executable, "-m", "nutbeam", *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    os.sched_setaffinity(0, own)
    sampler = Sampler(process.pid, server)
    sampler.start()
    assert process.stderr is not None
    for line in process.stderr:
        event = json.loads(line)
        match event.get("event"), event.get("phase"):
            case "uses", _:
                sampler.round.uses = event["message"]
            case "start", "generate":
                sampler.look()
                sampler.counts = True
            case "end", "dedup":
                sampler.look()
                sampler.counts = False
    sampler.end()
    if process.wait():
        raise SystemExit(f"nutbeam crawl ended with {process.returncode}")
    return sampler.round


def compare(
    folder: pathlib.Path, hosts: int, pages: int, cores: Sequence[int], repeats: int
) -> None:
    """Does the rounds by turns, and prints what they took."""
    helper = measure.docs_site_helper()
    seeds, base = folder / "seeds.txt", folder / "base"
    seeds.write_text(
        "\n".join(
            f"http://h{h}.example.com/even/{n}.html" for h in range(hosts) for n in range(pages)
        )
    )
    measure.fresh("cores", "inject", str(base), str(seeds))
    own = sorted(os.sched_getaffinity(0))
    runs: dict[int, list[Round]] = {number: [] for number in cores}
    apart: list[list[Round]] = []
    with helper.DocsSite() as site:
        server = [site._process.pid, *_children(site._process.pid)]
        for turn in range(repeats):
            for number in cores:
                pinned = set(own[:number])
                for pid in server:
                    os.sched_setaffinity(pid, set(own[number:]) or pinned)
                table = folder / f"table-{turn}-{number}"
                shutil.copytree(base, table)
                runs[number].append(crawl_round(table, site.port, server, pinned))
                _check(table, hosts * pages)
                shutil.rmtree(table)
            apart.append(crawl_apart(folder, base, site.port, server, own[: cores[-1]]))
    _show(runs, apart, hosts * pages, len(own))


def crawl_apart(
    folder: pathlib.Path, base: pathlib.Path, port: int, server: Sequence[int], cores: Sequence[int]
) -> list[Round]:
    """Does a round of a crawl of its own on each of some cores, all at once."""
    tables = [folder / f"apart-{core}" for core in cores]
    for table in tables:
        shutil.copytree(base, table)
    with ThreadPoolExecutor(len(cores)) as pool:  # a thread has an affinity of its own
        rounds = [
            pool.submit(crawl_round, table, port, server, {core})
            for table, core in zip(tables, cores, strict=True)
        ]
        done = [one.result() for one in rounds]
    for table in tables:
        shutil.rmtree(table)
    return done


def inject(table: str, seeds: str) -> None:
    """Makes the table."""
    measure.nutbeam("inject", table, seeds, "--progress=false")


def _children(pid: int) -> list[int]:
    return list(map(int, pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def _check(table: pathlib.Path, pages: int) -> None:
    import polars as pl

    outcome = pl.scan_parquet(list(table.glob("batches/*/outcome/*.parquet")))
    parsed = outcome.filter(pl.col("document").is_not_null()).select(pl.len()).collect().item()
    if parsed != pages:
        raise SystemExit(f"{parsed} of {pages} pages were parsed")


def _show(runs: dict[int, list[Round]], apart: list[list[Round]], pages: int, there: int) -> None:
    rows = []
    medians = {number: _median(rounds) for number, rounds in runs.items()}
    first = medians[min(medians)]
    for number, one in medians.items():
        where = "outside" if number < there else "on these cores"
        cpu = sum(one.cpu.values())
        rows.append((number, one.wall, first.wall / one.wall, cpu, one.server, where))
    wall = statistics.median(max(one.wall for one in each) for each in apart)
    cpu = statistics.median(sum(sum(one.cpu.values()) for one in each) for each in apart)
    # Each has counted the server for all.
    served = statistics.median(max(one.server for one in each) for each in apart)
    number = len(apart[0])
    where = "outside" if number < there else "on these cores"
    rows.append((f"{number} crawls apart", wall, number * first.wall / wall, cpu, served, where))
    heads = ("cores", "seconds", "gain", "CPU s", "nginx CPU s", "nginx runs")
    measure.table(
        f"a round of {pages:,} pages; median of {len(next(iter(runs.values())))}", heads, rows
    )
    for number, rounds in runs.items():
        print(f"  on {number}: {rounds[0].uses}")
    one = medians[max(medians)]
    ratio = one.cpu["parsers"] / one.cpu["engines"]
    print(
        f"  processes that parse took {ratio:.1f} x the CPU time of the engine and all other work"
    )


def _median(rounds: Sequence[Round]) -> Round:
    def median(name: str) -> float:
        return statistics.median(getattr(one, name) for one in rounds)

    cpu = {
        kind: statistics.median(one.cpu[kind] for one in rounds) for kind in ("engines", "parsers")
    }
    return Round(median("wall"), cpu, median("server"))


def main() -> None:
    """Does what the command line says."""
    words = [word for word in sys.argv[1:] if not word.startswith("-")]
    hosts, repeats = measure.sized((100, 1), (1_000, REPEATS), (5_000, REPEATS))
    cores = sorted(map(int, words)) or [1, 2]
    if cores[-1] > len(os.sched_getaffinity(0)):
        raise SystemExit(f"needs {cores[-1]} cores, there are {len(os.sched_getaffinity(0))}")
    with tempfile.TemporaryDirectory(prefix="cores-") as name:
        compare(pathlib.Path(name), hosts, 20, cores, repeats)


if __name__ == "__main__":
    main()
