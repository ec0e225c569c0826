"""The example pipeline of docs/guides/transforms.md, as typed, here and on a real cluster."""

import pytest
from flink.cluster import HERE
from guide_blocks import blocks, run_as_typed
from here import ROOT

GUIDE = ROOT / "docs" / "guides" / "transforms.md"
pytestmark = [
    pytest.mark.flink,
    pytest.mark.long,
    pytest.mark.skipif(not GUIDE.exists(), reason="docs/ is not part of the wheel"),
]


def test_the_guides_pipeline_gives_the_same_on_flink(flink, tmp_path, monkeypatch):
    monkeypatch.setenv("JOB_SERVER", f"localhost:{flink.job_port}")
    monkeypatch.setenv("ARTIFACTS", f"localhost:{flink.artifact_port}")
    monkeypatch.setenv("WORKER", str(HERE / "beam-worker"))
    before = flink.jobs()  # other tests on this cluster may have jobs that failed
    typed = blocks(GUIDE, "bash")
    # Up to the line for Flink, and the end of the simulated web.
    last = next(n for n, (_, reason) in enumerate(typed) if (reason or "").startswith("flink:"))
    lines = [text for text, _ in (*typed[: last + 1], typed[-1])]
    printed = run_as_typed("\n".join(lines), tmp_path, seconds=600)
    assert "the same links" in printed
    assert "the same dead letters" in printed
    assert [end for job, end in flink.jobs().items() if job not in before] == ["FINISHED"]
