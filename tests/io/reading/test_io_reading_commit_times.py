"""When snapshots were committed: a copy of a table says it as the table does."""

import json
import os

import pytest
from growing_old import make, written

from nutbeam.io.reading.round_facts import phase_seconds
from nutbeam.io.reading.watched_table import read_watched
from nutbeam.io.snapshots.manifest import load_manifest
from nutbeam.io.table.opening import open_table
from nutbeam.io.upkeep.table_figures import read_table_figures

LATER = 7_000  # s


@pytest.fixture
def copied_table(tmp_path):
    """A table whose files are as late as those that a copy has just written."""
    make(tmp_path, "one", written(tmp_path, "state", "state/a"), batch="b", phase="updated",
         created=1, partitions=1, urls=5, blocks_until=1)  # fmt: skip
    for path in (tmp_path / "manifest").glob("*.json"):
        os.utime(path, (path.stat().st_mtime + LATER,) * 2)
    return tmp_path


def test_a_copied_table_says_when_its_jobs_have_committed(copied_table):
    table = open_table(str(copied_table))
    manifest = load_manifest(table, 1)
    assert read_watched(str(copied_table), 0)[0].committed == manifest.committed
    assert read_table_figures(table, None).committed == manifest.committed / 1000
    ((seconds, urls),) = phase_seconds(table, ["update"])["update"]
    took = (manifest.committed - manifest.time) / 1000
    assert (seconds, urls) == (pytest.approx(took, abs=1e-5), 5)


def test_of_a_snapshot_of_an_older_version_the_time_of_its_file_counts(copied_table):
    (path,) = (copied_table / "manifest").glob("*.json")
    record = json.loads(path.read_text())
    del record["committed"], record["digest"]
    path.write_text(json.dumps(record))
    os.utime(path, (2_000_000_000, 2_000_000_000))
    assert read_watched(str(copied_table), 0)[0].committed == 2_000_000_000_000
