"""The command that starts a worker: what it leaves behind, and what it costs.

The tests of Flink and Prism use it with Beam's own boot program.
"""

import subprocess
import sys

from flink.cluster import wait_for
from worker_starts import cpu_of, start_worker


def assert_nothing_is_left(folder):
    wait_for(lambda: not list((folder / "temporary").iterdir()), "its folder to be removed")


def test_a_worker_starts_with_little_more_cpu_than_beam_needs(tmp_path):
    """pip, which Beam runs three times, takes as much again; benchmarks/flink.py has the seconds."""
    process = start_worker(tmp_path)
    said = process.stdout.read()
    start = cpu_of(process)
    assert str(tmp_path / "temporary") in said  # an environment of its own
    code = "import apache_beam.runners.worker.sdk_worker_main"
    assert start < 1.5 * cpu_of(subprocess.Popen([sys.executable, "-c", code]))
    assert_nothing_is_left(tmp_path)


def test_a_worker_without_beam_is_refused(tmp_path):
    assert start_worker(tmp_path, libraries="/nowhere").wait() != 0
    assert_nothing_is_left(tmp_path)


def test_the_folder_of_a_killed_worker_is_removed(tmp_path):
    process = start_worker(tmp_path, "#!/bin/sh\necho begun\nexec sleep 600\n")
    assert process.stdout.readline() == "begun\n"
    assert list((tmp_path / "temporary").iterdir())
    process.kill()
    process.wait()
    assert_nothing_is_left(tmp_path)
