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

from ...web.base.imports import safe_environment
from .parse_worker import OUT_OF_MEMORY, PIPE_CLOSED, Job, working_folder

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
        environment = safe_environment(os.environ) | _SPARING | {"TMPDIR": self._folder}
        # Imports the module by name: as __main__ it could not pickle its messages.
        call = f"w.main({theirs.fileno()}, {memory}, {self._folder!r}, {os.getpid()})"
        program = f"import {module}; from nutbeam.io.parsing import parse_worker as w; {call}"
        command = [sys.executable, "-c", program]
        self.process = subprocess.Popen(
            command, pass_fds=[theirs.fileno()], env=environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=stderr, process_group=0,
        )  # fmt: skip
        theirs.close()
        self.job: int | None = None
        self.row: int | None = None
        self.plugin = ""  # at work: what its fault is called
        self.deadline = 0.0

    def start(self, number: int, job: Job) -> None:
        """Sends it a job."""
        self.job, self.row, self.plugin = number, None, ""
        self.deadline = time.monotonic() + PARSER_GRACE_S
        self.connection.send_bytes(pickle.dumps((working_folder(), job)))

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
