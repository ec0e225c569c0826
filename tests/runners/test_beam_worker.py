"""The command that starts a worker: what it leaves behind, and what it costs.

The tests of Flink and Prism use it with Beam's own boot program.
"""

import socket
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


def test_a_worker_ends_when_its_runner_is_gone(tmp_path):
    """Beam's boot program starts a worker again that fails, but not one whose work is done."""
    with socket.create_server(("localhost", 0)) as runner:
        url = f'url:"localhost:{runner.getsockname()[1]}"'
        boot = f"""#!/bin/sh
export LOGGING_API_SERVICE_DESCRIPTOR='{url}' CONTROL_API_SERVICE_DESCRIPTOR='{url}'
python -m apache_beam.runners.worker.sdk_worker_main && echo "work done"
"""
        process = start_worker(tmp_path, boot)
        # It is asked whether it is there, and by Beam for its protocol, to which it does not answer.
        asking = [runner.accept()[0] for _ in range(3)]
        assert process.poll() is None
        for connection in asking:
            connection.close()
    # Beam waits 60 s for the server of its log, then 60 s for the one of its work.
    said, _ = process.communicate(timeout=50)
    assert said == "work done\n"
    assert_nothing_is_left(tmp_path)
