"""What millions of hosts cost: the hosts of seeds in each process, and sitemaps by partitions.

``python benchmarks/scale_hosts.py [--small]``. The first table is of ``--scope``: hosts of seeds as a
set of strings, as processes had them, against the sorted column that they search now. The second is of
``sitemap``: one element for all hosts against partitions of sites. Each figure is of a fresh process;
memory is that of its own, without pages that processes share. ``--small`` is a quick form.
"""

import pathlib
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import measure
import polars as pl

HOSTS, SMALL_HOSTS = 4_000_000, 40_000
SITES, SMALL_SITES = 1_000_000, 20_000
ASKED = 1_000  # targets of links that are judged at once
TIMES = 5


def write_hosts(table: str, number: int, seed: bool) -> None:
    """Makes a table whose host table has a number of hosts, each in a domain of its own."""
    from nutbeam.io.snapshots.commit import commit
    from nutbeam.io.snapshots.operations import begin
    from nutbeam.io.tablets.resolve import write_bases
    from nutbeam.io.tablets.written import Written
    from nutbeam.policy.components.schema import HOSTS as SCHEMA
    from nutbeam.policy.components.schema import conform_frame

    operation = begin(table, "inject", "hosts.inject")
    frames = []
    for start in range(0, number, 500_000):
        numbers = pl.int_range(start, min(number, start + 500_000), eager=True)
        padded = numbers.cast(pl.String).str.zfill(8)
        ending = pl.Series(["com", "org", "uk.co"]).gather(numbers % 3)
        keys = ending + ".site" + padded + ".www"
        rows = pl.DataFrame({"key": keys}).sort("key").with_columns(seed=pl.lit(seed), fetched=1)
        frames.append(conform_frame(rows, SCHEMA))
    commit(operation, [Written("hosts", write_bases(operation.table, "hosts", frames))])


def own_memory() -> int:
    """Returns the memory of this process that it shares with none, bytes."""
    status = pathlib.Path("/proc/self/status").read_text()
    return int(status.partition("RssAnon:")[2].split()[0]) << 10


def hold_seeds(table: str, way: str) -> dict[str, float]:
    """Reads the hosts of seeds, and judges targets; returns what both cost.

    Args:
        table: Address of the table.
        way: ``strings``, ``column``, or ``parser``: a parse process, which maps the file of another.
    """
    from nutbeam.io.snapshots.operations import begin

    operation = begin(table, "generate", "look.generate")
    asked = pl.Series([f"site{n:08}.com" for n in range(0, 3 * ASKED, 3)])
    read = {"strings": _as_strings, "column": _as_column, "parser": _as_parser}[way]
    prepared = _file_of_parent(operation) if way == "parser" else operation
    memory, cpu = own_memory(), time.process_time()
    covers = read(prepared)
    covers(asked[:1])
    start, held = time.process_time() - cpu, own_memory() - memory
    spent = []
    for _ in range(TIMES):
        cpu = time.process_time()
        covers(asked)
        spent.append(time.process_time() - cpu)
    return {"start_s": start, "memory": held, "judge_s": min(spent)}


def _as_strings(operation: Any) -> Callable[[pl.Series], pl.Series]:
    """Holds the hosts and domains of seeds as processes did until they were a column."""
    from nutbeam.io.storage.parquet_files import collect, scan
    from nutbeam.policy.components.schema import HOSTS as SCHEMA
    from nutbeam.web.urls.domains import registered_domain
    from nutbeam.web.urls.row_keys import from_host_key

    paths = [operation.table / file.path for file in operation.files("hosts")]
    rows = collect(scan(paths, SCHEMA).filter(pl.col("seed")).select("key"))
    hosts = frozenset(from_host_key(key) for key in rows.get_column("key"))
    domains = frozenset(map(registered_domain, hosts))
    _as_strings.held = hosts, domains  # type: ignore[attr-defined]
    return lambda names: names.is_in(list(domains))


def _as_column(operation: Any) -> Callable[[pl.Series], pl.Series]:
    from nutbeam.io.rows.seed_hosts import read_seed_hosts

    seeds = read_seed_hosts(operation)
    return lambda names: seeds.cover(names, "domain")


def _file_of_parent(operation: Any) -> str:
    from nutbeam.io.rows import seed_hosts

    path = seed_hosts.seed_hosts_file(operation)
    for function in (seed_hosts.map_seed_hosts, seed_hosts._seeds, seed_hosts._file):
        function.cache_clear()
    return path


def _as_parser(path: str) -> Callable[[pl.Series], pl.Series]:
    from nutbeam.io.rows.seed_hosts import map_seed_hosts

    seeds = map_seed_hosts(path)
    return lambda names: seeds.cover(names, "domain")


def divide_sites(table: str) -> dict[str, float]:
    """Divides the hosts of a table for ``sitemap``; returns sizes of partitions and costs."""
    from nutbeam.io.snapshots.operations import begin
    from nutbeam.pipelines.sitemaps import sitemap
    from nutbeam.transforms.wiring.chunk_coder import to_ipc

    operation = begin(table, "sitemap", "look.sitemap")
    sizes: dict[int, int] = {}
    shuffled, cpu = 0, time.process_time()
    for item in sitemap._list_starts(operation, (), ("all",)):
        if isinstance(item, tuple):
            (_, number), chunk = item
            sizes[number] = sizes.get(number, 0) + len(chunk)
            shuffled += len(to_ipc(chunk))
    spent = time.process_time() - cpu
    return {"partitions": len(sizes), "largest": max(sizes.values()), "hosts": sum(sizes.values()),
            "cpu_s": spent, "shuffled": shuffled}  # fmt: skip


def compare_seeds(folder: str, number: int) -> list[list[str]]:
    """Returns the rows of the table of the hosts of seeds."""
    table = f"{folder}/seeds-{number}"
    measure.fresh("scale_hosts", "write_hosts", table, number, True)
    rows = []
    for way in ("strings", "column", "parser"):
        found = measure.fresh("scale_hosts", "hold_seeds", table, way).result
        rows.append([f"{number:,}", way, f"{found['memory'] / 1e6:,.1f}", f"{found['start_s']:.2f}",
                     f"{1000 * found['judge_s']:,.1f}"])  # fmt: skip
    return rows


def compare_sitemaps(folder: str, number: int) -> list[list[str]]:
    """Returns the rows of the table of sitemaps."""
    table = f"{folder}/sites-{number}"
    measure.fresh("scale_hosts", "write_hosts", table, number, False)
    found = measure.fresh("scale_hosts", "divide_sites", table).result
    hosts, largest = found["hosts"], found["largest"]
    costs = [f"{1e6 * found['cpu_s'] / hosts:.1f}", f"{found['shuffled'] / hosts:.0f}"]
    return [
        [f"{hosts:,}", "one element", "1", f"{hosts:,}", "", ""],
        [f"{hosts:,}", "by sites", f"{found['partitions']:,}", f"{largest:,}", *costs],
    ]


def main() -> None:
    """Prints both tables."""
    small = "--small" in sys.argv[1:]
    numbers = (SMALL_HOSTS // 100, SMALL_HOSTS if small else HOSTS)
    with tempfile.TemporaryDirectory() as folder:
        seeds = [row for number in numbers for row in compare_seeds(folder, number)]
        sites = compare_sitemaps(folder, SMALL_SITES if small else SITES)
    heads = ("hosts", "way", "own MB", "start, CPU s", "1,000 domains, CPU ms")
    measure.table("hosts of seeds in a process", heads, seeds)
    heads = ("hosts", "way", "partitions", "largest", "CPU us a host", "shuffled bytes a host")
    measure.table("hosts of a sitemap job", heads, sites)


if __name__ == "__main__":
    main()
