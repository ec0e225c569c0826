"""Prism as a job server, with workers in processes that have what a test gives them."""

import os
import socket
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from flink.processes import Keeper
from free_ports import free_port
from here import TESTS
from running import PRISM, TOOLS
from waiting import wait_until

BOOT = TOOLS / "beam-boot"
WORKER = TESTS / "flink" / "beam-worker"
LIBRARIES = sysconfig.get_path("purelib")


def missing():
    """Returns what is missing, and the cure; empty if nothing is."""
    absent = [str(path) for path in (PRISM, BOOT) if not path.exists()]
    return f"{' and '.join(absent)} missing: make test-prism builds them" if absent else ""


TOO_LATE = "for which Prism waits"  # as the Makefile's `again` has it


class JobServer:
    """A job server for the length of a ``with`` block; its workers end with it.

    Args:
        libraries: Lines of a .pth file of the workers' Python; without any they
            have nutbeam's libraries, but not nutbeam.
        environment: Further variables of the workers.
    """

    def __init__(self, *libraries, **environment):
        self._libraries = "\n".join(libraries or [LIBRARIES])
        self._environment = environment

    def __enter__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="nutbeam-prism-"))
        self._keeper = Keeper(self.folder)
        port = free_port()
        environment = {
            **self._keeper.environment, "BEAM_BOOT": str(BOOT), "WORKER_PYTHON": sys.executable,
            "LIBRARIES": self._libraries, "TMPDIR": str(self.folder), **self._environment,
        }  # fmt: skip
        self.endpoint = f"localhost:{port}"
        with (self.folder / "prism.log").open("wb") as log:
            self._process = subprocess.Popen(
                [PRISM, f"-job_port={port}", "-serve_http=false", "-log_kind=json"],
                cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        assert wait_until(lambda: answers(port), self._process), self.log()
        return self

    def __exit__(self, *_):
        self._keeper.close()
        self._process.wait()

    @property
    def options(self):
        """What Beam must be told."""
        return [
            "--runner=PortableRunner", f"--job_endpoint={self.endpoint}",
            "--environment_type=PROCESS",
            f"--environment_options=process_command={WORKER}",
        ]  # fmt: skip

    def log(self):
        """Returns what the server has logged, its workers' logs included."""
        return (self.folder / "prism.log").read_text(errors="replace")


def answers(port):
    """Tells whether somebody listens on a port of this machine."""
    try:
        socket.create_connection(("localhost", port), timeout=5).close()
    except OSError:
        return False
    return True


def run(*words, cwd=None, timeout=400, **environment):
    """Runs a command as users do; returns (exit code, what it printed, what it said).

    Workers that a busy machine starts too late are named in the failure: such a test runs once more.
    """
    clean = {name: v for name, v in os.environ.items() if not name.startswith("NUTBEAM_")}
    done = subprocess.run(
        [sys.executable, "-m", "nutbeam", *map(str, words), "--progress", "false"],
        cwd=cwd, env={**clean, **environment}, capture_output=True, text=True, timeout=timeout,
        stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    assert TOO_LATE not in done.stderr, done.stderr.splitlines()[-1]
    return done.returncode, done.stdout, done.stderr
