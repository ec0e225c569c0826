"""A process that has imported all that jobs need, and forks a child for each: it works at once.

So a kill at a random moment hits the work, and seldom its start. As a script
it reads commands as JSON lines and says, line by line: the child's process id,
what the child has come to (``begun``, ``committing``, ``committed``, ``gone``),
and, once it may reap it, how it has ended. It has no threads and opens no connections itself: those would not
outlive a fork.
"""

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path


class Nursery:
    """Runs commands in forked processes; one at a time.

    Args:
        tablet_rows: How many rows a tablet has.
        environ: Further variables.
    """

    def __init__(self, tablet_rows=1_000_000, environ=None):
        self._process = subprocess.Popen(
            [sys.executable, "-P", __file__, str(tablet_rows)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, **(environ or {}), "POLARS_MAX_THREADS": "2"},
        )  # fmt: skip

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        self._process.wait()

    def warm(self, *words):
        """Runs a command, and imports whatever it has needed."""
        self._start(words, warm=True)
        assert "gone" in self._said()
        assert self._reap() == 0

    def run(self, *words):
        """Runs a command; returns its exit code and how many seconds it took once it had begun."""
        self._start(words)
        began = time.monotonic()
        for said in self._said():
            if said == "begun":
                began = time.monotonic()
            if said == "gone":
                seconds = time.monotonic() - began
                return self._reap(), seconds
        raise AssertionError("it has gone without a word")

    def kill(self, *words, after=0.0, at="begun"):
        """Runs a command and kills it, and all that it has started, some seconds after a moment.

        Returns:
            What it was about, last: ``begun`` (it was at work), ``committing``,
            ``committed`` or ``ended`` (it was too late).
        """
        pid = self._start(words)
        about = ""
        for said in self._said():
            if said == "gone":
                return "ended" if self._reap() >= 0 else about
            about = said
            if said == at:
                time.sleep(after)
                # Its number is nobody else's until it is reaped.
                os.killpg(pid, signal.SIGKILL)
        raise AssertionError("it has gone without a word")

    def _start(self, words, warm=False):
        self._tell({"words": [str(word) for word in words], "warm": warm})
        return next(self._said())

    def _reap(self):
        self._tell("reap")
        return next(self._said())

    def _tell(self, command):
        print(json.dumps(command), file=self._process.stdin, flush=True)

    def _said(self):
        while line := self._process.stdout.readline():
            yield json.loads(line)


def _main(tablet_rows):
    out = sys.stdout
    while line := sys.stdin.readline():
        command = json.loads(line)
        ours, theirs = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.setsid()
            os.close(ours)
            print(os.getpid(), file=out, flush=True)
            os._exit(_child(command["words"], tablet_rows, out, theirs))
        os.close(theirs)
        with os.fdopen(ours) as file:
            modules = file.read().split()
        print(json.dumps("gone"), file=out, flush=True)
        sys.stdin.readline()
        _, status = os.waitpid(pid, 0)
        for name in modules if command["warm"] else ():
            with contextlib.suppress(ImportError, ValueError):
                importlib.import_module(name)
        print(os.waitstatus_to_exitcode(status), file=out, flush=True)


def _child(words, tablet_rows, out, theirs):
    from nutbeam.io.snapshots import commit as written
    from nutbeam.io.storage.table_sizes import replaced_sizes
    from nutbeam.pipelines.command_line.cli import main
    from nutbeam.transforms import tickets as steps

    def announce(owner, name, before, after=""):
        real = getattr(owner, name)

        def function(*args, **kwargs):
            print(json.dumps(before), file=out, flush=True)
            result = real(*args, **kwargs)
            if after:
                print(json.dumps(after), file=out, flush=True)
            return result

        setattr(owner, name, function)

    announce(steps, "begin", "begun")
    announce(written, "store_manifest", "committing", "committed")
    sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - until it ends
    with replaced_sizes(tablet_rows=tablet_rows):
        code = main([*words, "--progress", "false"])
    with os.fdopen(theirs, "w") as file:
        file.write(" ".join(sys.modules))
    return code


if __name__ == "__main__":
    _main(int(sys.argv[1]))
