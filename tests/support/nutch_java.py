"""Nutch's own classes, where Java and they are: tests that need them have the mark ``NEEDS_NUTCH``."""

import shutil
import subprocess

import pytest
from hadoop_files import java_records
from running import TOOLS

NUTCH = TOOLS / "nutch"
NEEDS_NUTCH = pytest.mark.skipif(
    not (shutil.which("java") and (NUTCH / "classes" / "Dump.class").exists()),
    reason=f"no Java, or no Nutch at {NUTCH}: .ci/tools nutch fetches it",
)


def read_with_nutch(folders):
    """Returns what Java reads in map files of a CrawlDb; it looks each key up in the index."""
    classes = f"{NUTCH}/classes:{NUTCH}/nutch-1.22.jar:{NUTCH}/lib/*"
    command = ["java", "-Xmx300m", "-XX:+UseSerialGC", "-cp", classes, "Dump", *map(str, folders)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return java_records(ran.stdout)
