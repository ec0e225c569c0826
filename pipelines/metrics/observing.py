"""Runs a command and shows meanwhile how it does: metrics by a port or a file, and spans.

A thread reads the table every few seconds: what jobs have counted is in its snapshots, on every runner. What
runs now comes from ``PROGRESS`` of this process. Nothing that fails here ends the command, except options that
cannot be used, before it begins.
"""

import contextlib
import logging
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Self

from ...io.table.opening import open_table
from ...io.table.web_table import WebTable
from ...io.upkeep.table_figures import PAGE_STATUSES, manifests_after, read_table_figures
from ...policy.components.table_figures import TableFigures
from ...policy.metrics.samples import CommandFacts, MetricSample, samples_of
from ...web.base.clock import now_ms
from ...web.base.errors import UsageError, UserError
from ...web.base.json_logs import launched_operations, without_login
from ...web.base.progress import PROGRESS
from ...web.engine.request_times import REQUEST_TIMES
from ..base.command import Invocation
from ..base.ending import INTERRUPTED

if TYPE_CHECKING:
    from .metrics_file import MetricsFile
    from .metrics_server import MetricsServer
    from .traces import Traces

_LOG = logging.getLogger(__name__)
_INTERVAL_S = 10.0
_SHARE = 100  # reading the table takes at most a hundredth of the time
_PATIENCE_S = 30.0  # for a store that does not answer, at the end
_RENDERED_S = 1.0  # how long a text is good for further requests
_FAILED = 3


def run_observed(invocation: Invocation, run: Callable[[Invocation], int]) -> int:
    """Runs a command with the metrics and spans that its options ask for; returns its exit code.

    Raises:
        UsageError: One of these options cannot be used; the command has not begun.
    """
    with Observer(invocation) as observer:
        observer.exit_code = run(invocation)
    return observer.exit_code


class Observer:
    """Looks at a command and its table while it is entered.

    Attributes:
        exit_code: The exit code of the command, if it ends without an exception.
    """

    exit_code = 0

    def __init__(self, invocation: Invocation) -> None:
        self._invocation = invocation
        self._table: WebTable | None = None
        if invocation.table is not None:
            self._table = open_table(str(invocation.table))
        self._address = without_login(self._table.worker_address()) if self._table else ""
        self._version = version("nutbeam")
        self._started = now_ms() / 1000
        self._ended: float | None = None
        self._code: int | None = None
        self._figures: TableFigures | None = None
        self._due = 0.0
        self._read_failures = 0
        self._fetched, self._last_page = 0, 0.0
        self._traced, self._launched_before = 0, len(launched_operations())
        self._rendered: dict[str, tuple[float, tuple[bytes, str]]] = {}
        self._rendering = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="observing", daemon=True)
        self._opened = contextlib.ExitStack()
        self._file: MetricsFile | None = None
        self._server: MetricsServer | None = None
        self._traces: Traces | None = None

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as opened:
            self._open(opened)
            self._opened = opened.pop_all()
        self._thread.start()
        return self

    def _open(self, opened: contextlib.ExitStack) -> None:
        """Opens what the options ask for.

        Raises:
            UsageError: Something cannot be used, or a package is missing.
        """
        options = self._invocation.options
        if options.metrics_file or options.metrics_port:
            _exposition()
        if options.metrics_file:
            from .metrics_file import MetricsFile

            self._file = MetricsFile(options.metrics_file, self._address, self._invocation.command)
            opened.callback(self._file.close)
        if options.metrics_port:
            from .metrics_server import MetricsServer

            self._server = MetricsServer(options.metrics_port, self._scraped)
            opened.callback(self._server.close)
            _LOG.info("metrics are at %s", self._server.address)
        if options.trace_to:
            from .traces import CommandBegin, Traces

            begin = CommandBegin(
                self._invocation.command, self._version, self._address, self._started
            )
            self._traces = Traces(options.trace_to, begin)
            with self._failures_counted():
                self._traced = self._table.latest_snapshot() if self._table else 0

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        self._stop.set()
        self._thread.join(_PATIENCE_S)
        self._ended = now_ms() / 1000
        self._code = self.exit_code if error is None else exit_code_of(error)
        running = PROGRESS.snapshot().current
        if not self._thread.is_alive():
            self._look(at_end=True)
        if self._traces is not None:
            with self._failures_counted():
                self._traces.end(self._ended, self._code, running.name if running else "")
        self._opened.close()

    def _watch(self) -> None:
        while True:
            self._look()
            if self._stop.wait(_INTERVAL_S):
                return

    def _look(self, *, at_end: bool = False) -> None:
        """Reads the table if it is time, and writes the file."""
        began = time.monotonic()
        if at_end or began >= self._due:
            with self._failures_counted():
                self._read_table()
            self._due = began + _SHARE * (time.monotonic() - began)
        self._note_pages()
        if self._file is not None:
            with self._failures_counted():
                self._file.write(self._samples())

    @contextlib.contextmanager
    def _failures_counted(self) -> Iterator[None]:
        """Counts and logs an error in the block: what is observed is worth more than the observation."""
        try:
            yield
        except Exception as error:  # noqa: BLE001
            self._read_failures += 1
            _LOG.debug("the metrics are not complete: %s", error, exc_info=True)

    def _read_table(self) -> None:
        if self._table is None:
            return
        if self._file is not None or self._server is not None:
            self._figures = read_table_figures(self._table, self._figures)
        if self._traces is not None:
            self._trace_jobs(self._table, self._traces)

    def _trace_jobs(self, table: WebTable, traces: "Traces") -> None:
        newest = table.latest_snapshot()
        if newest > self._traced:
            commit_times = dict(table.commit_times())
            launches = launched_operations()[self._launched_before :]
            for manifest in manifests_after(table, self._traced, newest):
                own = [one for one in launches if manifest.operation.startswith(f"{one}.")]
                if own:
                    traces.add(manifest, own[-1], commit_times.get(manifest.snapshot, 0.0))
            self._traced = newest
            traces.send()

    def _note_pages(self) -> None:
        fetch = PROGRESS.snapshot().by_phase().get("fetch")
        fetched = sum(fetch.counts.get(status, 0) for status in PAGE_STATUSES) if fetch else 0
        if fetched > self._fetched:
            self._last_page = now_ms() / 1000
        self._fetched = fetched

    def _samples(self) -> Iterator[MetricSample]:
        facts = CommandFacts(
            self._invocation.command,
            self._version,
            self._started,
            now_ms() / 1000,
            PROGRESS.snapshot(),
            REQUEST_TIMES.so_far(),
            dict(self._disks()),
            self._ended,
            self._code,
            self._last_page,
            self._read_failures,
        )
        return samples_of(facts, self._figures or TableFigures())

    def _disks(self) -> Iterator[tuple[str, tuple[int, int]]]:
        """Yields (name, (free bytes, bytes)) of the disks of this machine that a job fills."""
        places = {"tmpdir": Path(tempfile.gettempdir())}
        if self._table is not None and self._table.files.needs_shared_path:
            places["table"] = Path(str(self._table.files))
        for name, path in places.items():
            with contextlib.suppress(OSError):
                there = next(p for p in (path.absolute(), *path.absolute().parents) if p.exists())
                usage = shutil.disk_usage(there)
                yield name, (usage.free, usage.total)

    def _scraped(self, accept: str) -> tuple[bytes, str]:
        """Returns the text for a request; one text serves all requests of a second."""
        kind = "openmetrics" if "openmetrics" in accept else ""
        with self._rendering:
            made, text = self._rendered.get(kind, (float("-inf"), (b"", "")))
            if time.monotonic() >= made + _RENDERED_S:
                self._note_pages()
                text = _exposition().scraped_text(
                    self._samples(), self._address, accept if kind else ""
                )
                self._rendered[kind] = time.monotonic(), text
            return text


def _exposition() -> ModuleType:
    """Returns the module that makes text of samples; it is imported when metrics are wanted.

    Raises:
        UsageError: Its package is not installed.
    """
    try:
        from . import exposition
    except ImportError as error:
        raise UsageError("metrics need a package: pip install 'nutbeam[metrics]'") from error
    return exposition


def exit_code_of(error: BaseException) -> int:
    """Returns the exit code of a command that ends with an exception."""
    if isinstance(error, UserError):
        return error.exit_code
    return INTERRUPTED if isinstance(error, KeyboardInterrupt) else _FAILED
