"""A few inputs of each fuzz target (tests/fuzz), without a fuzzer; ``make fuzz`` runs them for longer."""

import subprocess
import sys

import pytest
from fuzz import run
from fuzz.target import Clock, Target, mutated

TARGETS = run.targets()
# One of these takes as long as forty of the others.
FEW = {"columns": 20, "expressions": 100}


@pytest.mark.parametrize("name", TARGETS)
def test_some_inputs(name):
    for data in mutated(TARGETS[name], FEW.get(name, 200)):
        TARGETS[name].check(data)


# What fuzzing has found, as it was found or shorter.
@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("robots", b"http://a(x[\nUser-agent *\nDisallow: /map"),
        ("rules", b"\x01+<" + b"x" * 5000 + b">\n"),
        ("rules", b"\x00" + b"x" * 5000),
    ],
)
def test_inputs_of_past_findings_pass(name, data):
    TARGETS[name].check(data)


def test_each_reader_has_a_target_with_seeds():
    assert {
        "urls",
        "columns",
        "rules",
        "html",
        "charset",
        "robots",
        "xml",
        "sitemap",
        "expressions",
        "sequence_files",
        "nutch_values",
    } <= TARGETS.keys()
    for target in TARGETS.values():
        assert len(set(target.seeds())) > 4


def _fails(data):
    assert b"x" not in data, "x is no good"


@pytest.fixture
def broken(monkeypatch, tmp_path):
    """A target that fails at once, and where its finding goes."""
    monkeypatch.setattr(run, "BUILD", tmp_path)
    broken = Target("broken", _fails, lambda: [b"a"], [b"x"])
    monkeypatch.setattr(run, "targets", lambda: {"broken": broken})
    monkeypatch.setattr(run.importlib.util, "find_spec", lambda name: None)
    return tmp_path


def test_a_finding_is_reported_and_its_input_kept(broken, capsys):
    assert run.main(["--seconds", "60"]) == 1
    printed = capsys.readouterr().out
    assert "broken: " in printed
    assert " executions, 1 finding" in printed
    assert "x is no good" in printed
    (kept,) = (broken / "found").iterdir()
    assert b"x" in kept.read_bytes()
    assert str(kept) in printed


def test_an_input_that_takes_too_long_is_a_finding():
    with pytest.raises(AssertionError, match=r"took \d"), Clock(0.0):
        sum(range(100_000))


@pytest.mark.long
def test_with_coverage():
    pytest.importorskip("atheris", reason="make fuzz installs the extra fuzz")
    command = [sys.executable, run.__file__, "--seconds", "2", "robots"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "robots: " in done.stdout
    assert "no finding" in done.stdout
