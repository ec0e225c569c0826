"""The memory that a command takes at most, in a process of its own."""

import subprocess
import sys

# Not ru_maxrss, which begins with what the parent had.
_PROGRAM = """
import sys
from pathlib import Path
from nutbeam.pipelines.command_line.cli import main
code = main(sys.argv[1:])
kilobytes = Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]
print("peak", int(kilobytes) >> 10)
sys.exit(code)
"""


def peak_memory(*words):
    """Runs a command that must end well; returns (the peak of its memory, MiB; what it printed)."""
    command = [sys.executable, "-P", "-c", _PROGRAM, *map(str, words)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    output, _, peak = done.stdout.rpartition("peak ")
    return int(peak), output
