"""``kill -9`` of webgraph and of linkrank at work, and the next one brings the same graph and ranks."""

import dataclasses
import os
import shutil
import signal
import subprocess
import sys

import pytest
from crawling import manifest_of, nutbeam
from linked_tables import graph_in, make_linked, random_edges, ranks_in
from waiting import PATIENCE, wait_until

from nutbeam.io.graph.graph_files import RoundFiles
from nutbeam.policy.graph.link_limits import LinkLimits

pytestmark = pytest.mark.long
# All links count, so that the ranks still change after many rounds.
EVERY = [f"--{field.name}=false" for field in dataclasses.fields(LinkLimits)]


@pytest.fixture(scope="module")
def linked(tmp_path_factory):
    edges = random_edges(5, nodes=4_000, links=40_000)
    return make_linked(tmp_path_factory.mktemp("linked") / "table", edges)


@pytest.fixture
def tables(linked, tmp_path):
    """Two equal tables."""
    return [shutil.copytree(linked, tmp_path / name) for name in ("killed", "whole")]


def kill_when(condition, *words):
    """Starts a command and kills it, with all that it has started, once something is there."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "nutbeam", *map(str, words), "--progress", "false"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    try:
        wait_until(condition, process)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        error = process.communicate(timeout=PATIENCE)[1].decode()
    assert (process.returncode, error) == (-signal.SIGKILL, "")


def last_round(table):
    """Returns the number of the last round that has a file, or -1."""
    return max(
        (int(path.name[:4]) for path in table.glob("page_ranks/rounds-*/*.values")), default=-1
    )


@pytest.mark.parametrize("rounds", [1, 12])
def test_a_ranking_goes_on_after_the_last_whole_round(tables, monkeypatch, rounds):
    killed, whole = tables
    for table in tables:
        assert nutbeam("webgraph", table, *EVERY) == 0
    words = ("--rank_rounds", "150")
    kill_when(lambda: last_round(killed) >= rounds, "linkrank", killed, *words)
    assert "page_ranks" not in manifest_of(killed).components
    reached, made, write = last_round(killed), [], RoundFiles.write

    def noting(self, receipt, values):
        made.append(receipt.round)
        write(self, receipt, values)

    monkeypatch.setattr(RoundFiles, "write", noting)
    assert nutbeam("linkrank", killed, *words) == 0
    assert min(made, default=reached) >= reached
    made.clear()
    assert nutbeam("linkrank", whole, *words) == 0
    assert made == list(range(len(made)))  # it has one block
    assert len(made) > reached
    assert ranks_in(killed).equals(ranks_in(whole))
    assert nutbeam("fsck", killed) == 0


def test_a_graph_is_made_again(tables):
    killed, whole = tables
    kill_when(lambda: list(killed.glob("page_nodes/aside-*/*.parquet")), "webgraph", killed, *EVERY)
    assert "page_nodes" not in manifest_of(killed).components
    for table in tables:
        assert nutbeam("webgraph", table, *EVERY) == 0
    assert graph_in(killed) == graph_in(whole)
    assert nutbeam("fsck", killed) == 0
