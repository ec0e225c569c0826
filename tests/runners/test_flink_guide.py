"""The commands of docs/guides/flink.md, as typed, on a real cluster."""

import re

import pytest
from crawling import statuses_of
from flink.cluster import HERE
from guide_blocks import blocks, run_as_typed
from here import ROOT

GUIDE = ROOT / "docs" / "guides" / "flink.md"
pytestmark = [
    pytest.mark.flink,
    pytest.mark.long,
    pytest.mark.skipif(not GUIDE.exists(), reason="docs/ is not part of the wheel"),
]


def test_the_guide_runs_as_typed(flink, tmp_path, monkeypatch):
    before = flink.jobs()
    endpoint = f"localhost:{flink.job_port}"
    monkeypatch.setenv("JOB_SERVER", endpoint)
    monkeypatch.setenv("ARTIFACTS", f"localhost:{flink.artifact_port}")
    monkeypatch.setenv("WORKER", str(HERE / "beam-worker"))
    monkeypatch.setenv("TABLES", str(tmp_path / "tables"))
    typed = [text for text, reason in blocks(GUIDE, "bash") if (reason or "").startswith("flink:")]
    assert len(typed) == 3
    printed = run_as_typed("\n".join(typed), tmp_path, seconds=900)
    assert re.search(
        r"requests? in 1 round, \d+ pages? fetched; the table is in", printed
    )  # crawl waits
    assert "generate: submitted as operation next-" in printed  # next does not
    assert re.search(r"batch \S+: updated, 1 URL\nbatch \S+: fetched, 13 URLs\n", printed)
    found = statuses_of(tmp_path / "tables" / "first")
    assert found["http://h0.example.com/"] == "db_fetched"
    assert "db_unfetched" in found.values()
    states = [state for job, state in flink.jobs().items() if job not in before]
    assert set(states) == {"FINISHED"}
    assert len(states) >= 4
