"""Blocks of the benchmark of sizes, by name."""

import subprocess
import sys

import pytest
from here import ROOT

pytestmark = pytest.mark.skipif(
    not (ROOT / "benchmarks").is_dir(), reason="benchmarks are not part of the wheel"
)


def scale(*words):
    command = [sys.executable, str(ROOT / "benchmarks" / "scale.py"), *words]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def test_a_block_that_does_not_exist_is_named_with_those_that_do():
    done = scale("near", "nothing")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("no block 'nothing'; blocks: ")
    assert {"near,", "generate,", "rows"} <= set(done.stderr.split())


@pytest.mark.long
def test_no_place_gets_too_much_of_near_pairs_and_of_summaries():
    done = scale("near", "generate", "--small")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(": held") == 2
