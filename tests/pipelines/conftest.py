"""Fixtures of tests of jobs: tables in Bigtable's emulator, and commands that must fail.

Other tests have tables of their own.
"""

from collections.abc import Iterator

import pytest
from bigtable_emulator import Counter
from crawling import nutbeam
from simulated_web import served_web

from nutbeam.policy.components.reasons import find_reason, reasons_by_section
from nutbeam.transforms.wiring import metrics

# Families whose names are all reasons. Words after ``skipped/`` may be of plug-ins; names after
# ``protocol/`` are statuses, of which few are reasons.
FAMILIES = {
    pair.partition(" ")[2]
    for reasons in reasons_by_section().values() for reason in reasons for pair in reason.counted
} - {"-", "skipped", "protocol"}  # fmt: skip
NO_FAILURES = {"outlinks/followed", "redirects/followed", "redirects/own_url"}
UPKEEP = {"compact"}  # it counts files and rows, by kind

web = served_web(hosts=3, pages=6, scope="module")


@pytest.fixture
def out(backend):
    """The address of a table that does not exist yet, on the back end under test."""
    made = str(backend.fresh())
    yield made
    backend.remove(made)


@pytest.fixture(autouse=True)
def reasons_are_in_the_catalogue(monkeypatch) -> Iterator[None]:
    """Each test: what jobs of this process count as a reason is in the catalogue, for that job."""
    unknown, metrics_of = set[str](), metrics.metrics_of

    def note(job: str, count: str) -> tuple[tuple[str, str], ...]:
        family, _, name = count.partition("/")
        job_name = job.removesuffix("_dry_run")
        is_reason = family in FAMILIES and job_name not in UPKEEP and count not in NO_FAILURES
        if name and is_reason and find_reason(name, f"{job_name} {family}") is None:
            unknown.add(f"{job} {count}")
        return metrics_of(job, count)

    monkeypatch.setattr(metrics, "metrics_of", note)
    yield
    assert unknown == set(), (
        "policy/components/reasons.toml lacks reasons, or the jobs that count them"
    )


@pytest.fixture
def table(bigtable, tmp_path):
    return bigtable.make(tmp_path / "files")


@pytest.fixture
def counted(bigtable, tmp_path):
    """A table behind what counts the rows that are read and written."""
    with Counter(bigtable.host) as counter:
        yield bigtable.make(tmp_path / "files", counter.host), counter


@pytest.fixture
def refuse(capsys):
    """Runs a command that must fail with one line, and returns that line."""

    def run(*words, code=2):
        capsys.readouterr()
        assert nutbeam(*words) == code
        captured = capsys.readouterr()
        assert captured.out == ""
        start = f"nutbeam {words[0]}: "
        lines = captured.err.removesuffix("\n").split("\n")
        if lines[0].startswith(
            f"{start}as in Nutch; "
        ):  # the line in our form, before it has failed
            del lines[0]
        (line,) = lines
        assert line.startswith(start)
        assert "Traceback" not in line
        assert "internal error" not in line
        return line.removeprefix(start)

    return run
