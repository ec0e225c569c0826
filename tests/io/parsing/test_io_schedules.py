"""Schedules of plug-ins, and files of schedules, in jobs."""

import json
import re

import pytest
from crawling import nutbeam
from here import ROOT
from plugins import install

from nutbeam.web.plugins.plugins import forget_plugins

GUIDE = ROOT / "docs" / "guides" / "plugins.md"


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A site of one page, and the packages of this test on Python's path."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "a.html").write_text("<title>A</title>words")
    monkeypatch.syspath_prepend(str(tmp_path / "packages"))
    forget_plugins()
    yield tmp_path
    forget_plugins()


def crawl(folder, *words):
    return nutbeam(
        "crawl", folder / "table", f"file://{folder}/site/a.html", "--schemes", "file",
        "--file_roots", folder / "site", "--rounds", "1", "--add_days", "91", *words,
    )  # fmt: skip


def row_of(folder, capsys):
    capsys.readouterr()
    words = ("--url", f"file://{folder}/site/a.html", "--format", "json")
    assert nutbeam("readdb", folder / "table", *words) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.long
@pytest.mark.skipif(not GUIDE.exists(), reason="docs/ is not part of the wheel")
def test_the_schedule_of_the_guide_in_a_crawl(site, capsys):
    source = re.findall(r"^```python\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)[1]
    install(site / "packages", "my-schedules", {"my_schedules.py": source},
            {"by_score": "my_schedules:by_score"}, group="nutbeam.schedules")  # fmt: skip
    for days in (30, 60):  # the first visit; then it is not modified
        assert crawl(site, "--schedule", "by_score") == 0
        assert row_of(site, capsys)["fetch_interval"] == days * 86_400


@pytest.mark.long
def test_built_in_schedules_in_a_crawl(site, capsys):
    for schedule, days in (("default", 30), ("adaptive", 42), ("mime_adaptive", 42 * 1.2)):
        assert crawl(site, "--schedule", schedule, "--sync_delta", "false") == 0
        row = row_of(site, capsys)
        assert row["fetch_interval"] == round(days * 86_400)
        assert row["change_shape"] is None
    assert crawl(site, "--schedule", "rate", "--fetches_per_day", "0.02") == 0
    row = row_of(site, capsys)
    assert row["change_shape"] == pytest.approx(0.15)
    assert 15 < row["fetch_interval"] / 86_400 <= 90


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--schedule", "nope"), "no schedule 'nope' is installed: there are default, adaptive, "),
        (("--schedule", "broken"), "schedule 'broken' cannot be imported: ModuleNotFoundError"),
        (
            ("--schedule", "adaptive", "--host_intervals", "/none"),
            "--host_intervals must name a file that can be read, got '/none'",
        ),
        (("--schedule", "adaptive", "--max_interval", "91d"), "7776000, got 7862400"),
    ],
)
def test_a_schedule_that_does_not_do_is_refused_before_anything_is_written(
    site, capsys, words, message
):
    points = {"broken": "nowhere:schedule"}
    install(site / "packages", "my-schedules", {}, points, group="nutbeam.schedules")
    assert crawl(site, *words) == 2
    assert message in capsys.readouterr().err
    assert not (site / "table").exists()


def test_a_bad_line_of_a_file_is_quoted(site, capsys):
    (site / "hosts").write_text("a.com 1 5\n")
    assert crawl(site, "--schedule", "adaptive", "--host_intervals", site / "hosts") == 2
    assert "hosts:1: expected a host" in capsys.readouterr().err
