"""What the benchmarks share: a function timed in a fresh process, medians, tables.

``fresh("generate", "ours", 1)`` starts Python, imports benchmarks/generate.py,
calls ``ours(1)`` there and returns what that took.
"""

import contextlib
import dataclasses
import importlib
import importlib.util
import json
import os
import pathlib
import pickle
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any, Self, TypeVar

HERE = pathlib.Path(__file__).parent
_Sizes = TypeVar("_Sizes")
importlib.import_module("nutbeam")  # before Polars, as in a command


@dataclasses.dataclass(frozen=True)
class Figures:
    """What a fresh process used.

    Attributes:
        process: From its start to its end, s.
        work: Spent in ``measured`` blocks, s; all of the call where there is none.
        cpu: CPU time of those, of the process and its children, s.
        peak: Largest resident memory of the process, bytes.
        result: What the function returned.
    """

    process: float
    work: float
    cpu: float
    peak: int
    result: Any


class _Measured:
    wall = cpu = 0.0
    used = False


@contextlib.contextmanager
def measured() -> Iterator[None]:
    """Counts only what is within, in a function that ``fresh`` calls."""
    wall, cpu = time.perf_counter(), _cpu_seconds()
    yield
    _Measured.used = True
    _Measured.wall += time.perf_counter() - wall
    _Measured.cpu += _cpu_seconds() - cpu


def fresh(module: str, function: str, *args: object) -> Figures:
    """Calls a function of a benchmark in a fresh Python process.

    Args:
        module: Name of the file in benchmarks/.
        function: Its name there.
        args: What JSON can hold.

    Raises:
        SystemExit: The process failed; its last words are shown.
    """
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        command = [sys.executable, __file__, report.name, module, function]
        given = json.dumps(args)  # not on the command line: it may be long
        start = time.perf_counter()
        done = subprocess.run(command, check=False, capture_output=True, text=True, input=given)
        process = time.perf_counter() - start
        if done.returncode:
            shown = str(args)[:300]
            raise SystemExit(f"{module}.{function}{shown} failed:\n{done.stderr or done.stdout}")
        return Figures(process=process, **json.loads(report.read()))


def command(*words: object) -> Figures:
    """Runs the ``nutbeam`` command as a user does; ``result`` is what it printed.

    CPU time is of the process and of all that it has started and ended.
    """
    line = [sys.executable, "-m", "nutbeam", *map(str, words)]
    with tempfile.TemporaryFile() as output:
        start = time.perf_counter()
        process = subprocess.Popen(line, stdout=output)
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{line} ended with {process.returncode}")
        output.seek(0)
        cpu = used.ru_utime + used.ru_stime
        return Figures(wall, wall, cpu, used.ru_maxrss << 10, output.read().decode())


def nutbeam(*words: object) -> None:
    """Runs a nutbeam command in this process; 1 (nothing to do) is a failure too."""
    from nutbeam.pipelines.command_line.cli import main

    code = main([str(word) for word in words])
    if code:
        raise SystemExit(f"nutbeam {' '.join(map(str, words))} ended with {code}")


def interleaved(
    runs: Mapping[Any, Callable[[], Figures]], repeats: int
) -> dict[Any, list[Figures]]:
    """Runs each in turn, ``repeats`` times, so that what else the machine does hits all alike."""
    found: dict[Any, list[Figures]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            found[name].append(run())
    return found


def sized(small: _Sizes, usual: _Sizes, full: _Sizes | None = None) -> _Sizes:
    """Returns the sizes that ``--small`` or ``--full`` on the command line chooses, or the usual ones.

    ``make bench`` takes the usual ones. They are smaller than the full ones where that does not change the ratio.
    """
    if "--small" in sys.argv[1:]:
        return small
    return full if full is not None and "--full" in sys.argv[1:] else usual


class KeySizes:
    """Sizes of the groupings of a pipeline in one process: ``with KeySizes() as sizes: ...``.

    Attributes:
        fullest: Bytes of the largest key of all groupings: what one worker gets at once.
        shuffled: Bytes of all of them.
    """

    fullest = shuffled = 0

    def __enter__(self) -> Self:
        from apache_beam.runners.portability.fn_api_runner.execution import GroupingBuffer

        self._buffer, self._partition = GroupingBuffer, GroupingBuffer.partition

        def weighed(buffer: Any, n: int) -> Any:
            for values in buffer._table.values():
                size = sum(map(_bytes_of, values))
                self.fullest, self.shuffled = max(self.fullest, size), self.shuffled + size
            return self._partition(buffer, n)

        GroupingBuffer.partition = weighed
        return self

    def __exit__(self, *_: object) -> None:
        self._buffer.partition = self._partition


def _bytes_of(value: Any) -> int:
    """Returns the size of a value that is shuffled; large chunks lie in files meanwhile."""
    if hasattr(value, "nbytes"):
        return int(value.nbytes)
    if isinstance(value, list | tuple):
        return sum(map(_bytes_of, value))
    return len(pickle.dumps(value))


def files_of(table: str) -> dict[str, int]:
    """Returns the sizes of the files of a table."""
    paths = [path for path in pathlib.Path(table).rglob("*") if path.is_file()]
    return {str(path): path.stat().st_size for path in paths}


def duckdb(first: str, query: str, output: str, threads: int) -> dict[str, int]:
    """Runs a query of DuckDB, after one on a tiny table; returns the size of the file it writes.

    Args:
        first: The query on the tiny table.
        query: The query, which is measured.
        output: The file that it writes.
        threads: Number of DuckDB's threads.
    """
    import duckdb

    connection = duckdb.connect(config={"threads": threads})
    connection.execute(first)
    with measured():
        connection.execute(query)
    return {"written": pathlib.Path(output).stat().st_size}


def median(figures: Iterable[Figures], name: str) -> float:
    """Returns the median of one of the figures."""
    return statistics.median(getattr(figure, name) for figure in figures)


def table(title: str, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Prints rows under heads, the first column to the left."""
    cells = [list(heads), *([_cell(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    print(f"\n{title}")
    for at, row in enumerate(cells):
        padded = [
            cell.ljust(width) if not column else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  " + "  ".join(padded))
        if at == 0:
            print("  " + "  ".join("-" * width for width in widths))
    sys.stdout.flush()


def need(*names: str) -> None:
    """Ends with one line where a library that a baseline needs is not installed."""
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    if missing:
        raise SystemExit(f"needs {', '.join(missing)}: pip install -e '.[bench]'")


def docs_site_helper() -> ModuleType:
    """Returns tests/support/docs_site.py, or ends with one line where its site cannot be served."""
    # By path: a benchmark has the same name.
    path = HERE.parent / "tests" / "support" / "docs_site.py"
    spec = importlib.util.spec_from_file_location("docs_site_helper", path)
    assert spec is not None
    assert spec.loader is not None
    helper = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(helper)
    if helper.missing():
        raise SystemExit(helper.missing())
    return helper


def _cell(value: object) -> str:
    if not isinstance(value, float):
        return f"{value:,}" if isinstance(value, int) else str(value)
    return f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}" if value < 100 else f"{value:.1f}"


def _cpu_seconds() -> float:
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime + _cpu_of_living_children()


def _cpu_of_living_children() -> float:
    """Returns the CPU seconds of children that have not ended, such as processes that parse."""
    ticks = 0
    for path in pathlib.Path("/proc/self/task").glob("*/children"):
        for pid in path.read_text().split():
            with contextlib.suppress(OSError):
                fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
                ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _peak_bytes() -> int:
    # Not ru_maxrss: it begins with what the parent had when it started us.
    with contextlib.suppress(OSError):
        status = pathlib.Path("/proc/self/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _main(report: str, module: str, function: str) -> None:
    args = json.load(sys.stdin)
    shared = importlib.import_module("measure")  # the copy that the benchmark imports
    call = getattr(importlib.import_module(module), function)
    wall, cpu = time.perf_counter(), _cpu_seconds()
    result = call(*args)
    wall, cpu = time.perf_counter() - wall, _cpu_seconds() - cpu
    if shared._Measured.used:
        wall, cpu = shared._Measured.wall, shared._Measured.cpu
    figures = {"work": wall, "cpu": cpu, "peak": _peak_bytes(), "result": result}
    pathlib.Path(report).write_text(json.dumps(figures))


if __name__ == "__main__":
    _main(*sys.argv[1:])
