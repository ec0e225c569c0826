"""The command that starts a worker: what it leaves behind, and what it costs.

The boot program is a stand-in here that calls Python as Beam's does; the tests of Flink and Prism use
Beam's own.
"""

import os
import subprocess
import sys
import sysconfig

import pytest
from flink.cluster import HERE, wait_for

COMMAND = HERE / "beam-worker"
# As Beam's boot.go does before and when it starts the worker.
BOOT = """#!/bin/sh
set -e
python -m pip freeze --all
python -m pip show apache-beam
python -m pip freeze --all
test -d venv
python -c 'import apache_beam.runners.worker.sdk_worker_main, sys; print(sys.prefix)'
"""


@pytest.fixture
def worker(tmp_path):
    """Starts the command with a boot program."""

    def start(boot):
        program = tmp_path / "boot"
        program.write_text(boot)
        program.chmod(0o755)
        folder = tmp_path / "temporary"
        folder.mkdir()
        libraries = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})"
        environment = {**os.environ, "BEAM_BOOT": str(program), "WORKER_PYTHON": sys.executable,
                       "LIBRARIES": libraries, "TMPDIR": str(folder)}  # fmt: skip
        return folder, subprocess.Popen(
            [COMMAND, "--id='1'"], env=environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True
        )

    return start


def cpu_of(process):
    """Waits for the end of a process; returns the CPU of it and of all that it has started, s."""
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return used.ru_utime + used.ru_stime


def test_a_worker_starts_with_little_more_cpu_than_beam_needs(worker):
    """pip, which Beam runs three times, takes as much again; benchmarks/flink.py has the seconds."""
    folder, process = worker(BOOT)
    said = process.stdout.read()
    start = cpu_of(process)
    assert str(folder) in said  # an environment of its own
    code = "import apache_beam.runners.worker.sdk_worker_main"
    assert start < 1.5 * cpu_of(subprocess.Popen([sys.executable, "-c", code]))
    wait_for(lambda: list(folder.iterdir()) == [], "its folder to be removed")


def test_a_worker_without_beam_is_refused(worker, monkeypatch):
    monkeypatch.setattr(sysconfig, "get_path", lambda _: "/nowhere")
    folder, process = worker(BOOT)
    assert process.wait() != 0
    wait_for(lambda: list(folder.iterdir()) == [], "its folder to be removed")


def test_the_folder_of_a_killed_worker_is_removed(worker):
    folder, process = worker("#!/bin/sh\necho begun\nexec sleep 600\n")
    assert process.stdout.readline() == "begun\n"
    assert list(folder.iterdir())
    process.kill()
    process.wait()
    wait_for(lambda: list(folder.iterdir()) == [], "its folder to be removed")
