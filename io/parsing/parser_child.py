"""A child process that parses: how it starts, gets its job, and ends."""

import contextlib
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from multiprocessing.connection import Connection, Pipe
from pathlib import Path

from ...web.base.imports import safe_environment
from ..storage.processes import writing_scratch
from .parse_worker import OUT_OF_MEMORY, PIPE_CLOSED, Call, Job, RowMark, working_folder

# Longest time for the start of a child, and for the work on all pages of a job together.
PARSER_GRACE_S = 60.0
_GONE_S = 5.0
# One thread per child: the pool itself uses all cores. Memory that allocators only reserve
# counts against the limit, too; without these settings they reserve gigabytes.
_SPARING = {
    **dict.fromkeys(("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "ARROW_IO_THREADS"), "1"),
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "2",
}


class ParserChild:
    """A process that works on one job at a time.

    Args:
        module: Module that it imports by name.
        memory: Its largest memory, bytes.
        scratch: Folder in which it gets one of its own.
        stderr: Descriptor for its standard error; None if it inherits ours.
    """

    def __init__(self, module: str, memory: int, scratch: str, stderr: int | None) -> None:
        # This folder and the temporary files of plug-ins are removed with the child.
        self._folder = tempfile.mkdtemp(dir=scratch)
        ours, theirs = Pipe()
        self.connection: Connection = ours
        with writing_scratch(Path(self._folder)):
            # It lives as long as the child, and has no name.
            self._marked = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115
            self._mark = RowMark(self._marked.fileno())
            self._mark.write(-1)
        environment = safe_environment(os.environ) | _SPARING | {"TMPDIR": self._folder}
        # Imports the module by name: as __main__ it could not pickle its messages.
        descriptors = theirs.fileno(), self._marked.fileno()
        call = f"w.main(*{descriptors}, {memory}, {self._folder!r}, {os.getpid()})"
        program = f"import {module}; from nutbeam.io.parsing import parse_worker as w; {call}"
        command = [sys.executable, "-c", program]
        self.process = subprocess.Popen(
            command, pass_fds=descriptors, env=environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=stderr, process_group=0,
        )  # fmt: skip
        theirs.close()
        self.job: int | None = None
        self.row: int | None = None
        self.call: Call | None = None  # of the plug-in that works or has worked
        self.deadline = 0.0

    def start(self, number: int, job: Job) -> None:
        """Sends it a job."""
        self.job, self.row, self.call = number, None, None
        self._mark.write(-1)
        self.deadline = time.monotonic() + PARSER_GRACE_S
        self.connection.send_bytes(pickle.dumps((working_folder(), job)))

    def note_row(self, job: Job) -> None:
        """Looks which row of its job it works on; each has its own time."""
        row = self._mark.read()
        if row is None or not job.slices or row == self.row:
            return
        # After the last row comes the work on all rows of a slice together.
        stop = job.slices[0][1]
        limit = job.task.page_timeout if row < stop else PARSER_GRACE_S
        self.row, self.deadline = min(row, stop), time.monotonic() + limit

    @property
    def plugin(self) -> str:
        """What a fault of the plug-in at work is called; empty if none works."""
        is_current = self.call is not None and self.call.row == self.row
        return self.call.reason if self.call is not None and is_current else ""

    def end(self) -> str:
        """Ends the process and its child processes; returns the reason of its end."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            # The pipe closes a moment before the process is gone.
            self.process.wait(_GONE_S if self.connection.closed else 0)
        code = self.process.poll()
        if code is None and self.connection.closed:
            code = PIPE_CLOSED  # the process has not noticed it yet
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.connection.close()
        self._marked.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        return _why(code)


def _why(code: int | None) -> str:
    """Returns the reason for the end of a process, with details after a space.

    >>> _why(-11), _why(3), _why(OUT_OF_MEMORY), _why(None)
    ('crashed SIGSEGV', 'crashed exit code 3', 'out_of_memory', 'timeout')
    >>> _why(PIPE_CLOSED)
    'crashed its pipe was closed'
    """
    if code is None or code == -signal.SIGALRM:
        return "timeout"
    reasons = {OUT_OF_MEMORY: "out_of_memory", PIPE_CLOSED: "crashed its pipe was closed"}
    reasons |= {-number: f"crashed {number.name}" for number in signal.Signals}
    other = f"crashed exit code {code}" if code >= 0 else f"crashed signal {-code}"
    return reasons.get(code, other)
