"""``kill -9`` of imports at random moments, and the next one brings each page once."""

import contextlib
import os
import random
import signal
import subprocess
import sys

import pytest
from crawling import manifest_of, nutbeam, rows_of
from waiting import wait_until
from written_archives import Archive


@pytest.mark.long
@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.long)])
def test_after_kills_the_same_import_brings_each_page_once(tmp_path, kills):
    archive, dice = Archive(), random.Random(kills)
    for number in range(600):
        archive.add(
            f"http://a.com/{number % 500}",
            dice.randbytes(3000),
            f"20{20 + number // 500}-01-01T00:00:00Z",
        )
    profile = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
    digest = archive.add("http://b.com/", b"same")
    for number in range(100):
        archive.add(f"http://b.com/{number}", b"", "2021-01-01T00:00:00Z", "revisit",
                    WARC_Payload_Digest=digest, WARC_Profile=profile)  # fmt: skip
    file, killed, whole = (
        archive.save(tmp_path / "a.warc.gz"),
        tmp_path / "killed",
        tmp_path / "whole",
    )
    words = [str(file), "--part_size", "65536", "--operation", "mine", "--progress", "false"]

    def written():
        return len(list(killed.glob("batches/*/pages/*")))

    for _ in range(kills):
        goal = written() + dice.randint(0, 30)
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "nutbeam", "import_warc", str(killed), *words],
            stdout=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        wait_until(lambda goal=goal: written() >= goal, process)
        with contextlib.suppress(ProcessLookupError):  # it has come to its end
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert nutbeam("import_warc", killed, *words) in (0, 1)
    assert nutbeam("import_warc", whole, *words) == 0
    rows = [
        rows_of(table, f"batches/{batch}/pages").sort("key")
        for table in (killed, whole)
        for batch in manifest_of(table).batches
    ]
    assert len(rows[1]) == 601
    assert rows[0].equals(rows[1])
    assert len(rows) == 2
    assert nutbeam("fsck", killed) == 0
