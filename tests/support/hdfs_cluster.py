"""A real HDFS on this machine, of Hadoop's own classes: one name node and one data node."""

import shutil
import subprocess
import tempfile
from pathlib import Path

from running import TOOLS

HDFS = TOOLS / "hdfs"
# As Hadoop's scripts start it on Java 17.
_JAVA = ("java", "--add-opens", "java.base/java.lang=ALL-UNNAMED", "-Xmx300m", "-XX:+UseSerialGC")


def why_no_hdfs():
    """Returns why there is no HDFS here, or an empty text."""
    if not shutil.which("java"):
        return "no Java: HDFS needs it"
    if not (HDFS / "classes" / "Hdfs.class").exists():
        return f"no HDFS at {HDFS}: .ci/tools hdfs fetches it with Maven"
    return ""


class HdfsCluster:
    """Runs while it is entered; all users may write at its top.

    Attributes:
        address: What addresses in it begin with.
        rpc_address: The same with the port that Hadoop's own clients use.
    """

    def __enter__(self):
        self._folder = Path(tempfile.mkdtemp(prefix="hdfs-"))
        with (self._folder / "log").open("w") as log:
            self._process = subprocess.Popen(
                [*_JAVA, "-cp", f"{HDFS}/classes:{HDFS}/lib/*", "Hdfs", str(self._folder)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
            )  # fmt: skip
        ports = self._process.stdout.readline().split()
        if len(ports) != 2:
            errors = (self._folder / "log").read_text()[-3000:]
            self.__exit__()
            raise RuntimeError(f"HDFS does not start: {errors}")
        self.address, self.rpc_address = (f"hdfs://127.0.0.1:{port}" for port in ports)
        self.run("-chmod", "1777", "/")
        return self

    def __exit__(self, *_):
        self._process.stdin.close()  # which ends it
        self._process.wait(60)
        self._process.stdout.close()
        shutil.rmtree(self._folder)

    def run(self, *words):
        """Runs a command of ``hdfs dfs`` as the user who may do all; returns the lines it prints."""
        print(*words, file=self._process.stdin, flush=True)
        lines = []
        for line in self._process.stdout:
            if line.startswith("exit code "):
                assert line == "exit code 0\n", (words, line, lines)
                return lines
            lines.append(line.rstrip("\n"))
        raise RuntimeError(f"HDFS has ended: {(self._folder / 'log').read_text()[-3000:]}")
