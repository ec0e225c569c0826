"""Runs a command and shows meanwhile how it does: metrics by a port or a file, and spans.

A thread reads the table every few seconds: what jobs have counted is in its snapshots, on every runner. What
runs now comes from ``PROGRESS`` of this process. Nothing that fails here ends the command, except options that
cannot be used, before it begins.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Self

from ...io.table.opening import open_table
from ...io.upkeep.table_figures import read_table_figures
from ...policy.components.table_figures import TableFigures
from ...policy.metrics.samples import MetricSample, samples_of
from ...web.base.errors import UsageError, UserError
from ...web.base.progress import PROGRESS
from ..base.command import Invocation
from ..base.ending import INTERRUPTED
from .command_watch import CommandWatch

if TYPE_CHECKING:
    from .metrics_file import MetricsFile
    from .traces import Traces

_LOG = logging.getLogger(__name__)
_INTERVAL_S = 10.0
_SHARE = 100  # reading the table takes at most a hundredth of the time
_PATIENCE_S = 30.0  # for a store that does not answer, at the end
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
        self._options = invocation.options
        self._table = open_table(str(invocation.table)) if invocation.table is not None else None
        self._watch = CommandWatch(invocation.command, self._table)
        self._figures: TableFigures | None = None
        self._read_due = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look_often, name="observing", daemon=True)
        self._opened = contextlib.ExitStack()
        self._file: MetricsFile | None = None
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
        options, watch = self._options, self._watch
        if options.metrics_file or options.metrics_port:
            _exposition()
        if options.metrics_file:
            from .metrics_file import MetricsFile

            self._file = MetricsFile(options.metrics_file, watch.address, watch.command)
            opened.callback(self._file.close)
        if options.metrics_port:
            from .metrics_server import MetricsServer

            server = MetricsServer(options.metrics_port, self._text_for)
            opened.callback(server.close)
            _LOG.info("metrics are at %s", server.address)
        if options.trace_to:
            from .traces import Traces

            self._traces = Traces(options.trace_to, watch, self._table)

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        running = PROGRESS.snapshot().current
        self._stop.set()
        self._thread.join(_PATIENCE_S)
        code = self.exit_code if error is None else exit_code_of(error)
        ended = self._watch.end(code)
        if not self._thread.is_alive():
            self._look(at_end=True)
        if self._traces is not None:
            with self._failures_counted():
                self._traces.end(ended, code, running.name if running else "")
        self._opened.close()

    def _look_often(self) -> None:
        while True:
            self._look()
            if self._stop.wait(_INTERVAL_S):
                return

    def _look(self, *, at_end: bool = False) -> None:
        """Reads the table if it is time, and writes the file."""
        began = time.monotonic()
        if at_end or began >= self._read_due:
            self._read_table()
            self._read_due = began + _SHARE * (time.monotonic() - began)
        self._watch.note_pages()
        if self._file is not None:
            with self._failures_counted():
                self._file.write(self._samples())

    def _read_table(self) -> None:
        if self._table is not None and (self._options.metrics_file or self._options.metrics_port):
            with self._failures_counted():
                self._figures = read_table_figures(self._table, self._figures)
        if self._traces is not None:
            with self._failures_counted():
                self._traces.add_jobs()

    @contextlib.contextmanager
    def _failures_counted(self) -> Iterator[None]:
        """Counts and logs an error in the block: what is observed is worth more than the observation."""
        try:
            yield
        except Exception as error:  # noqa: BLE001
            self._watch.failures += 1
            _LOG.debug("the metrics are not complete: %s", error, exc_info=True)

    def _samples(self) -> Iterator[MetricSample]:
        return samples_of(self._watch.facts(), self._figures or TableFigures())

    def _text_for(self, accept: str) -> tuple[bytes, str]:
        """Returns (the metrics as text, its content type) for a request."""
        return _exposition().scraped_text(self._samples(), self._watch.address, accept)


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
