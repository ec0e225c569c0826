"""A ``nutbeam`` command that starts at once: a process that has imported everything forks for each call.

Importing Beam takes seconds, and a guide has dozens of commands. The server has
no threads and opens no connections before it forks: those would not outlive it.
What a command prints, its exit code, its folder, its variables and its signals
are those of the caller. Tests of start-up, of signals and of kills run the real one.
"""

import contextlib
import importlib
import json
import logging
import os
import select
import shlex
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Self

# Plain Python, without site: it is up in some 20 ms.
CLIENT = """
import array, json, os, signal, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({path!r})
call = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
fds = array.array("i", [0, 1, 2])
server.sendmsg([len(call).to_bytes(8, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
server.sendall(call)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, lambda number, _: server.sendall(bytes([number])))
sys.exit(server.recv(1)[0])
"""


class WarmCommands:
    """The server, and a folder with the command; a context manager.

    Attributes:
        bin: Folder to put first in PATH.
    """

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir()
        path = str(folder / "socket")
        words = [sys.executable, "-I", "-S", "-c", CLIENT.format(path=path)]
        command = self.bin / "nutbeam"
        command.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        command.chmod(0o755)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen(64)
        self._process = subprocess.Popen(
            [sys.executable, "-P", __file__, str(self._listener.fileno())],
            pass_fds=[self._listener.fileno()],
            stdin=subprocess.PIPE,  # it ends when we do
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def serve(listener: socket.socket) -> None:
    """Forks for each call, until standard input ends."""
    from nutbeam.pipelines.command_line.cli import load, script
    from nutbeam.pipelines.command_line.commands import COMMANDS

    for command in COMMANDS:
        load(command)
    for name in ("apache_beam", "duckdb", "nutbeam.pipelines.running.runner", "rich.live"):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    # A command sets up its logs before it imports Beam, whose warnings set them up, too.
    logging.getLogger().handlers.clear()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # handlers are waited for by nobody
    while True:
        ready, _, _ = select.select([listener, sys.stdin], [], [])
        if sys.stdin in ready:
            return
        call, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            os._exit(_handle(call, script))
        call.close()


def _handle(call: socket.socket, script: object) -> int:
    """Runs one call in a child, passes signals on, and says how it has ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    head, fds, _, _ = socket.recv_fds(call, 8, 3)
    size, text = int.from_bytes(head, "big"), b""
    while len(text) < size:
        text += call.recv(size - len(text))
    words, folder, environ = json.loads(text)
    pid = os.fork()
    if pid == 0:
        call.close()
        _become(words, folder, environ, fds)
        script()  # type: ignore[operator]
    for fd in fds:
        os.close(fd)
    ended = os.pidfd_open(pid)
    while True:
        ready, _, _ = select.select([call, ended], [], [])
        if ended in ready:
            break
        sent = call.recv(1)
        os.kill(pid, sent[0] if sent else signal.SIGKILL)
        if not sent:  # the caller was killed
            return 0
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    call.sendall(bytes([code if code >= 0 else 128 - code]))
    return 0


def _become(words: list[str], folder: str, environ: dict[str, str], fds: list[int]) -> None:
    """Makes this process what the caller is: its streams, folder, variables and words."""
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
        os.close(fd)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environ)
    sys.argv = ["nutbeam", *words]
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, encoding="utf-8", closefd=False)  # noqa: SIM115


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
