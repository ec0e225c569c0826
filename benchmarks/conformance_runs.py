"""Runs a crawler: its memory and CPU are measured, it is ended in time, or killed many times."""

import os
import pathlib
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import psutil

MEMORY_LIMIT = 3 << 30
_SAMPLE_SECONDS = 0.05


class Used(NamedTuple):
    """What the commands of a crawler took.

    Attributes:
        seconds: From start to end.
        cpu: CPU seconds of the processes and of all that they have waited for.
        peak: Memory of all processes together at most, in bytes; shared pages count once.
        end: ``by itself``, ``time``, ``memory``, or ``exit N``.
    """

    seconds: float
    cpu: float
    peak: int
    end: str


class _Watch(threading.Thread):
    """Samples the memory of a process and its children, and ends them when a limit is reached."""

    def __init__(self, process: subprocess.Popen[bytes], seconds: float, stop: Callable[[], bool]):
        super().__init__(daemon=True)
        self._process, self._until, self._stop = process, time.monotonic() + seconds, stop
        self.peak, self.reason, self.ended = 0, "", threading.Event()

    def run(self) -> None:
        while not self.ended.wait(_SAMPLE_SECONDS):
            self.peak = max(self.peak, _memory_of(self._process.pid))
            if self.peak > MEMORY_LIMIT:
                self.reason = "memory"
            elif time.monotonic() > self._until:
                self.reason = "time"
            elif self._stop():
                self.reason = "killed"
            if self.reason:
                kill_all(self._process.pid)
                return


def _memory_of(pid: int) -> int:
    total = 0
    try:
        root = psutil.Process(pid)
        for process in (root, *root.children(recursive=True)):
            try:
                total += process.memory_full_info().pss
            except psutil.Error:
                continue
    except psutil.Error:
        pass
    return total


def kill_all(pid: int) -> None:
    """Kills a process and all below it."""
    try:
        root = psutil.Process(pid)
        processes = [root, *root.children(recursive=True)]
    except psutil.Error:
        return
    for process in processes:
        try:
            process.send_signal(signal.SIGKILL)
        except psutil.Error:
            continue


def run_commands(
    commands: Sequence[Sequence[str]], folder: pathlib.Path, environment: Mapping[str, str],
    seconds: float, stop: Callable[[], bool] = lambda: False,
) -> Used:  # fmt: skip
    """Runs commands one after another in a folder; what they print is in ``output.txt`` there.

    Args:
        commands: The commands.
        folder: Where they run.
        environment: Their environment.
        seconds: When they are killed, counted from the start of the first one.
        stop: Kills them as soon as it returns True.
    """
    start, cpu, peak, end = time.monotonic(), 0.0, 0, "by itself"
    with (folder / "output.txt").open("ab") as output:
        for words in commands:
            left = start + seconds - time.monotonic()
            process = subprocess.Popen(
                words, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
            watch = _Watch(process, left, stop)
            watch.start()
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            watch.ended.set()
            watch.join()
            cpu, peak = cpu + used.ru_utime + used.ru_stime, max(peak, watch.peak)
            if watch.reason:
                end = watch.reason
                break
            if process.returncode:
                end = f"exit {process.returncode}"
    return Used(time.monotonic() - start, cpu, peak, end)
