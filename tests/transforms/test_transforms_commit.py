"""What workers report reaches the commit in few bytes, however many files they have written."""

import pickle

import apache_beam as beam
import pytest
from crawling import manifest_of

from nutbeam.io.snapshots.commit import CommitTerms, commit
from nutbeam.io.snapshots.entries import Batch
from nutbeam.io.snapshots.operations import begin
from nutbeam.io.storage.files import remove_file
from nutbeam.io.storage.place_addresses import place_of
from nutbeam.io.table.opening import open_table
from nutbeam.io.tablets.file_lists import DataFile, load_files
from nutbeam.io.tablets.report_files import LARGEST_REPORTS, load_reports, store_reports
from nutbeam.io.tablets.written import Written, gather_written
from nutbeam.transforms.for_each import ForEach
from nutbeam.transforms.operations import Begin, Commit
from nutbeam.transforms.tickets import Ticket
from nutbeam.web.base.errors import UserError

FILES, ITEMS = 100, 20
COMPONENT = "batches/b1/pages"


class Item:
    """A partition whose worker has written many files."""

    def __init__(self, operation, number):
        self.operation, self.number = operation, number


def items(operation):
    return [Item(operation, number) for number in range(ITEMS)]


def write_files(item):
    for at in range(FILES):
        path = f"{COMPONENT}/p{item.number:05d}-1-{at:x}-{at}.parquet"
        yield Written(COMPONENT, (DataFile(path, 1, 10, order=at),), counts={"fetched": 1})


@pytest.fixture
def table(tmp_path):
    address = str(tmp_path / "table")
    first = begin(address, "generate", "first", batch="b1")
    commit(first, [], CommitTerms(batch=Batch("generated", 1, ITEMS, 10, 99)))
    return address


def test_a_commit_has_all_files_of_reports_that_were_too_large_to_be_sent(table):
    with beam.Pipeline() as pipeline:
        operations = (
            pipeline | beam.Create([Ticket(table, "x", "b1")]) | Begin("fetch", "generated")
        )
        written = operations | ForEach(items, write_files, (), Written, step="Partitions")
        _ = (operations, written) | Commit(phase="fetched", whole=("Partitions",))
    manifest = manifest_of(table)
    files = load_files(open_table(table), manifest.components[COMPONENT])
    assert len({file.path for file in files}) == FILES * ITEMS
    assert manifest.counts == {"fetched": FILES * ITEMS}
    assert list((place_of(table) / "manifest" / "reports").iterdir())


def test_reports_of_a_bundle_have_a_bounded_size(tmp_path):
    reports = [report for item in items(None) for report in write_files(item)]
    tidying = [
        Written("state", (), (f"state/{n}.parquet",), {"n": 1}, tidies=True) for n in range(500)
    ]
    small = store_reports(place_of(str(tmp_path)), gather_written(reports + tidying))
    assert len(pickle.dumps(small)) < LARGEST_REPORTS
    restored = list(load_reports(place_of(str(tmp_path)), small))
    assert [file for report in restored for file in report.files] == [r.files[0] for r in reports]
    # A commit judges reports that replace files one by one.
    assert [report for report in restored if report.tidies] == tidying


def test_a_lost_file_of_reports_fails_the_commit(tmp_path):
    root = place_of(str(tmp_path))
    reports = [report for item in items(None) for report in write_files(item)]
    (small,) = store_reports(root, gather_written(reports))
    remove_file(root / small.listed)
    with pytest.raises(UserError, match="manifest/reports"):
        list(load_reports(root, [small]))
