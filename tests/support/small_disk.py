"""Small disks for tests: mounted where root may, unmounted by the next run if this one is killed."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from nutbeam.io.storage.processes import is_dead, this_process

# A disk's source names the process that mounted it: nutbeam-test-PID-START.
_NAME = "nutbeam-test"


@contextlib.contextmanager
def mounted(folder: Path, size: str) -> Iterator[Path]:
    """Mounts a disk of some size, such as ``64k``, on a new folder; skips the test where it cannot."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    unmount_left()
    folder.mkdir()
    me = this_process()
    source = f"{_NAME}-{me['pid']}-{me['start']}"
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", source, str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no small disk can be mounted here")
    try:
        yield folder
    finally:
        # Lazily: the traceback of a test that failed may hold a file open.
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def unmount_left() -> None:
    """Unmounts the disks of test runs that were killed."""
    for line in Path("/proc/self/mounts").read_text().splitlines():
        source, folder = line.split(" ")[:2]
        words = source.removeprefix(f"{_NAME}-").split("-")
        if source.startswith(f"{_NAME}-") and len(words) == 2 and all(map(str.isdigit, words)):
            pid, start = map(int, words)
            if is_dead({**this_process(), "pid": pid, "start": start}):
                subprocess.run(["umount", "--lazy", folder], check=False)
