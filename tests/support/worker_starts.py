"""The start of a worker by ``tests/flink/beam-worker``, without a cluster.

The boot program is a stand-in that calls Python as Beam's does, until the worker would connect.
"""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

from here import TESTS

COMMAND = TESTS / "flink" / "beam-worker"
# As Beam's boot.go does before and when it starts the worker.
BOOT = """#!/bin/sh
set -e
python -m pip freeze --all
python -m pip show apache-beam
python -m pip freeze --all
test -d venv
python -c 'import apache_beam.runners.worker.sdk_worker_main, sys; print(sys.prefix)'
"""


def start_worker(folder, boot=BOOT, libraries=None):
    """Starts the command with a boot program; ``folder/temporary``, named by a relative path, has its files."""
    program = Path(folder) / "boot"
    program.write_text(boot)
    program.chmod(0o755)
    (Path(folder) / "temporary").mkdir()
    libraries = libraries or sysconfig.get_path("purelib")
    environment = {**os.environ, "BEAM_BOOT": str(program), "WORKER_PYTHON": sys.executable,
                   "LIBRARIES": f"import site; site.addsitedir({libraries!r})",
                   "TMPDIR": "temporary"}  # fmt: skip
    return subprocess.Popen(
        [COMMAND, "--id='1'"], env=environment, cwd=folder, stdout=subprocess.PIPE, text=True
    )


def cpu_of(process):
    """Waits for the end of a process; returns the CPU of it and of all that it has started, s."""
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return used.ru_utime + used.ru_stime
