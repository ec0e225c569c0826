"""What a page and a link cost by phase: CPU, bytes shuffled, bytes written, files.

``python benchmarks/scale.py [--small]`` crawls a simulated web phase by phase, each in a fresh
process, and divides by the pages that were asked for and the links that were found on them.
Shuffled is what enters a grouping of Beam, encoded. CPU is the process's and its parsers'; the
simulated web is served by a process of its own. ``docs/scale.md`` works out from these figures what
many workers would do. ``--small`` is a quick form.

``python benchmarks/scale.py BLOCK ... [--small]`` runs other blocks instead, each of which simulates the
sizes of a large table: ``near``, ``generate``, ``rows`` and others, in ``scale_BLOCK.py`` beside this file.
"""

import contextlib
import importlib
import io
import json
import pathlib
import sys
import tempfile

import measure
import tables

from nutbeam.web.simweb.server import SimWeb

JOBS = ("inject", "generate", "fetch", "parse", "updatedb", "dedup")


def job(name: str, table: str, *words: str) -> dict[str, float]:
    """Runs one job in this process; returns what it shuffled, wrote, counted."""
    from apache_beam.runners.portability.fn_api_runner.execution import GroupingBuffer

    from nutbeam.pipelines.command_line.cli import main

    shuffled = 0
    append = GroupingBuffer.append

    def counted(buffer: GroupingBuffer, data: bytes) -> None:
        nonlocal shuffled
        shuffled += len(data)
        append(buffer, data)

    GroupingBuffer.append = counted
    before = measure.files_of(table)
    printed = io.StringIO()
    with measure.measured(), contextlib.redirect_stdout(printed):
        if main([name, table, *words, "--progress=false", "--format=json"]) > 1:
            raise SystemExit(f"nutbeam {name} failed")
        _end_parsers()
    new = {path: size for path, size in measure.files_of(table).items() if path not in before}
    return {
        "shuffled": shuffled, "written": sum(new.values()), "files": len(new),
        **json.loads(printed.getvalue())["counts"],
    }  # fmt: skip


def _end_parsers() -> None:
    """Ends the child processes, so that their CPU time is known."""
    from nutbeam.io.parsing.shared_pools import shared_pool
    from nutbeam.transforms.parsing import PoolOptions, parse_pool

    if shared_pool.cache_info().currsize:
        parse_pool(PoolOptions()).close()


def crawl(folder: pathlib.Path, hosts: int, pages: int) -> None:
    """Crawls until nothing is due, and prints what the last full rounds cost."""
    table = str(folder / "table")
    total = dict.fromkeys(JOBS, (0.0, 0.0, 0.0, 0.0))
    asked = links = 0
    with SimWeb(hosts=hosts, pages=pages, seed=7, crawl_delay=0) as web:
        doors = [f"--connect_to={door}" for door in web.connect_to]
        polite = (*doors, "--server_delay=0")
        words = {
            "inject": tuple(web.seeds),
            "generate": ("--top_n=1000000",),
            "fetch": polite,
            "parse": ("--scope=any",),
        }
        for number in range(30):
            for name in JOBS if number == 0 else JOBS[1:]:
                given = words.get(name, ())
                used = measure.fresh("scale", "job", name, table, *given)
                if name == "generate" and not used.result.get("chosen"):
                    return _show(total, asked, links)
                more = (used.cpu, used.result["shuffled"], used.result["written"],
                        used.result["files"])  # fmt: skip
                total[name] = tuple(a + b for a, b in zip(total[name], more, strict=True))
                asked += used.result.get("pages", 0) if name == "fetch" else 0
                links += used.result.get("outlinks", 0) if name == "parse" else 0
    return _show(total, asked, links)


def update(folder: str, rows: int, pages: int, links: int) -> dict[str, float]:
    """Updates a table of this many rows from a batch whose links lead everywhere in it."""
    table = pathlib.Path(folder) / f"rows-{rows}"
    tables.make_table(table, rows, rows // 50)
    tables.add_batch(table, rows, rows // 50, pages, links)
    return job("updatedb", str(table))


def updates(folder: str, sizes: tuple[int, ...], pages: int, links: int) -> None:
    """Prints what the same batch costs on tables of several sizes."""
    rows = []
    for size in sizes:
        used = measure.fresh("scale", "update", folder, size, pages, links)
        written = used.result["written"]
        rows.append((f"{size:,}", used.cpu, used.work, used.result["shuffled"] / (pages * links),
                     written / 1e6, written / (pages * links)))  # fmt: skip
    heads = ("rows in the table", "CPU s", "seconds", "shuffled B/link", "written MB",
             "written B/link")  # fmt: skip
    title = f"updatedb: {pages:,} pages of {links} links, spread over the whole table"
    measure.table(title, heads, rows)


def _show(total: dict[str, tuple[float, ...]], asked: int, links: int) -> None:
    rows = [
        (name, cpu, cpu / asked * 1e3, cpu / links * 1e6, shuffled / asked, shuffled / links,
         written / asked, files)
        for name, (cpu, shuffled, written, files) in total.items()
    ]  # fmt: skip
    sums = [sum(column) for column in zip(*(row[1:] for row in rows), strict=True)]
    heads = ("phase", "CPU s", "CPU ms/page", "CPU µs/link", "shuffled B/page",
             "shuffled B/link", "written B/page", "files")  # fmt: skip
    title = f"{asked:,} pages, {links:,} links, {links / asked:.1f} a page; in-process"
    measure.table(title, heads, [*rows, ("all", *sums)])


def run_blocks(names: list[str]) -> None:
    """Runs blocks by name, one after the other.

    Raises:
        SystemExit: A block does not exist.
    """
    blocks = sorted(path.stem.partition("_")[2] for path in measure.HERE.glob("scale_*.py"))
    if missing := sorted(set(names) - set(blocks)):
        raise SystemExit(f"no block {missing[0]!r}; blocks: {', '.join(blocks)}")
    for name in names:
        importlib.import_module(f"scale_{name}").main()


def run() -> None:
    """Prints the table, or runs the blocks that are named."""
    if names := [word for word in sys.argv[1:] if not word.startswith("-")]:
        run_blocks(names)
        return
    small = "--small" in sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="scale-") as name:
        crawl(pathlib.Path(name), *((20, 10) if small else (2_000, 10)))
        sizes = (20_000, 80_000) if small else (1_000_000, 4_000_000)
        updates(name, sizes, *((100, 60) if small else (10_000, 60)))


if __name__ == "__main__":
    run()
