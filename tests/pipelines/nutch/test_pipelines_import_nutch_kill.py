"""``kill -9`` of imports of Nutch at random moments: nothing is half imported, and the next run does all."""

import contextlib
import os
import random
import signal
import subprocess
import sys

import pytest
from crawling import contents, manifest_of, nutbeam
from nutch_crawls import DAY_MS, NOW, NutchCrawl, datum, page
from waiting import wait_until

FETCHED = NOW - 10 * DAY_MS


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.long)])
def test_after_kills_the_same_import_has_each_row_and_each_page_once(tmp_path, kills):
    crawl, dice = NutchCrawl(tmp_path / "nutch"), random.Random(kills)
    urls = [f"http://a.com/{number:04d}" for number in range(600)]
    crawl.crawldb(*(datum(url, 2, FETCHED + 30 * DAY_MS) for url in urls))
    crawl.segment(
        "20261022000000",
        listed=[datum(url) for url in urls],
        fetched=[datum(url, 33, FETCHED) for url in urls],
        contents={url: page(dice.randbytes(3000)) for url in urls},
        parsed=True,
    )
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    words = [
        str(crawl.folder),
        "--part_size",
        "65536",
        "--operation",
        "mine",
        "--progress",
        "false",
    ]

    def written():
        return len(list(killed.glob("batches/*/*/*")))

    for _ in range(kills):
        goal = written() + dice.randint(0, 40)
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "nutbeam", "import_nutch", str(killed), *words],
            stdout=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        wait_until(lambda goal=goal: written() >= goal, process)
        with contextlib.suppress(ProcessLookupError):  # it has come to its end
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if (killed / "manifest").exists() and (manifest := manifest_of(killed)).snapshot:
            assert manifest.counts["pages"] == 600
    assert nutbeam("import_nutch", killed, *words) == 0
    assert nutbeam("import_nutch", whole, *words) == 0
    assert manifest_of(killed).snapshot == 1
    rows = [contents(table) for table in (killed, whole)]
    assert rows[0].keys() == rows[1].keys()
    for name, frame in rows[0].items():
        assert frame.equals(rows[1][name]), name
    assert nutbeam("fsck", killed) == 0
