"""Processes that parse fit the worker: its cores, its memory, and other workers beside it."""

import subprocess
import sys

import pytest

from nutbeam.io.parsing import parser_limits as module
from nutbeam.io.parsing.parser_limits import (
    ParserLimits,
    memory_of,
    parser_limits,
    share_of_worker,
    workers_here,
)

GIB = 1 << 30
WORKER = ["python", "-m", "apache_beam.runners.worker.sdk_worker_main"]


@pytest.fixture
def processes(tmp_path):
    """Makes a folder ``proc`` of the command lines of processes, the first of which is this one."""

    def make(*commands):
        for pid, words in (("self", commands[0]), *enumerate(commands, 100)):
            folder = tmp_path / "proc" / str(pid)
            folder.mkdir(parents=True)
            (folder / "cmdline").write_bytes(b"\0".join(word.encode() for word in words))
        (tmp_path / "proc" / "meminfo").write_text("")
        return tmp_path

    return make


def test_workers_of_beam_on_the_machine_are_counted(processes):
    shell = ["sh", "-c", " ".join(WORKER)]
    assert workers_here(processes(WORKER, ["java"], shell, WORKER, WORKER)) == 3


def test_a_crawl_here_shares_with_nobody(processes):
    assert workers_here(processes(["nutbeam", "crawl"], WORKER, WORKER)) == 1


@pytest.mark.parametrize(
    ("cores", "memory", "workers", "fit"),
    [
        (16, 2 * GIB, 1, ParserLimits(8, GIB)),  # a container with 2 GB on a large machine
        (16, 64 * GIB, 16, ParserLimits(1, 2 * GIB)),  # Dataflow: a worker for each CPU
        (16, 64 * GIB, 4, ParserLimits(4, 8 * GIB)),  # four TaskManagers
        (2, 64 * GIB, 4, ParserLimits(1, 8 * GIB)),
        (16, 64 << 20, 1, ParserLimits(1, 32 << 20)),
        (3, None, 1, ParserLimits(3, None)),
    ],
)
def test_a_worker_parses_with_its_share(cores, memory, workers, fit):
    assert share_of_worker(cores, memory, workers) == fit


@pytest.fixture
def container(monkeypatch):
    monkeypatch.setattr(module, "usable_cores", lambda: 16)
    monkeypatch.setattr(module, "usable_memory", lambda: 2 * GIB)


@pytest.mark.usefixtures("container")
def test_given_numbers_are_used():
    assert parser_limits() == ParserLimits(8, GIB)
    assert parser_limits(processes=3) == ParserLimits(3, GIB)
    assert parser_limits(memory=GIB // 2) == ParserLimits(4, GIB // 2)


@pytest.mark.usefixtures("container")
def test_processes_of_one_crawl_share_the_machine(monkeypatch):
    monkeypatch.setattr(module, "_beside", 4)
    assert parser_limits() == ParserLimits(2, GIB // 4)
    assert parser_limits(processes=6, memory=GIB // 2) == ParserLimits(2, GIB // 8)


def test_the_memory_of_a_process_is_its_own():
    code = "x = bytearray(200 << 20); print('', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        assert 200 << 20 < memory_of(process.pid) < 300 << 20
        process.communicate(b"\n")
    assert memory_of(process.pid) == 0
