"""What a command knows about itself, for its metrics: its times, its phases, its pages, its disks."""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from ...io.table.web_table import WebTable
from ...io.upkeep.table_figures import PAGE_STATUSES
from ...policy.metrics.samples import CommandFacts
from ...web.base.clock import now_ms
from ...web.base.json_logs import without_login
from ...web.base.progress import PROGRESS
from ...web.engine.request_times import REQUEST_TIMES


class CommandWatch:
    """Takes the facts about a command that runs now.

    Args:
        command: Its name.
        table: Its table, if it has one.

    Attributes:
        command: Its name.
        version: The version of nutbeam.
        address: Address of the table, in any working folder; empty without a table.
        started: When it began, s since 1970.
        failures: How often something could not be read or written for the metrics.
    """

    def __init__(self, command: str, table: WebTable | None) -> None:
        self.command, self.version = command, version("nutbeam")
        self.address = without_login(table.worker_address()) if table else ""
        self.started = now_ms() / 1000
        self.failures = 0
        self._places = {"tmpdir": Path(tempfile.gettempdir()).absolute()}
        if table is not None and table.files.needs_shared_path:
            self._places["table"] = Path(str(table.files)).absolute()
        self._ended: float | None = None
        self._exit_code: int | None = None
        self._fetched, self._last_page = 0, 0.0
        self._times_before = REQUEST_TIMES.so_far()  # of commands before it in this process

    def note_pages(self) -> None:
        """Notes the time if pages have come since the last call."""
        fetch = PROGRESS.snapshot().by_phase().get("fetch")
        fetched = sum(fetch.counts.get(status, 0) for status in PAGE_STATUSES) if fetch else 0
        if fetched > self._fetched:
            self._last_page = now_ms() / 1000
        self._fetched = fetched

    def end(self, exit_code: int) -> float:
        """Notes that the command has ended; returns when, s."""
        self._exit_code, self._ended = exit_code, now_ms() / 1000
        return self._ended

    def facts(self) -> CommandFacts:
        """Returns the facts as they are now."""
        self.note_pages()
        return CommandFacts(
            self.command,
            self.version,
            self.started,
            now_ms() / 1000,
            PROGRESS.snapshot(),
            REQUEST_TIMES.so_far().since(self._times_before),
            dict(self._disks()),
            self._ended,
            self._exit_code,
            self._last_page,
            self.failures,
        )

    def _disks(self) -> Iterator[tuple[str, tuple[int, int]]]:
        """Yields (name, (free bytes, bytes)) of the disks of this machine that a job fills."""
        for name, path in self._places.items():
            with contextlib.suppress(OSError):
                there = next(folder for folder in (path, *path.parents) if folder.exists())
                usage = shutil.disk_usage(there)
                yield name, (usage.free, usage.total)
