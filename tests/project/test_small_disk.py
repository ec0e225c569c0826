"""The small disks of tests do not outlive the next test run."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from here import TESTS
from small_disk import unmount_left

PROGRAM = """
import os, signal, sys
from pathlib import Path
from small_disk import mounted
with mounted(Path(sys.argv[1]), "64k"):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def is_mounted(folder: Path) -> bool:
    return f" {folder} " in Path("/proc/self/mounts").read_text()


def test_a_disk_is_unmounted_at_the_end_and_not_before(small_disk):
    folder = small_disk("64k")
    unmount_left()
    assert is_mounted(folder)
    assert os.statvfs(folder).f_frsize * os.statvfs(folder).f_blocks == 64 << 10


def test_the_small_disk_of_a_killed_run_is_unmounted(small_disk, tmp_path):
    small_disk("64k")  # skips where none can be mounted
    folder = tmp_path / "left"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder)],
        cwd=TESTS / "support",
        env=os.environ | {"PYTHONPATH": str(TESTS / "support")},
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert is_mounted(folder)
    unmount_left()
    assert not is_mounted(folder)
