"""A component that only these tests declare takes in batches, beside the link table.

Its job is only here, too. No product code knows the names ``gists``, ``gist`` and ``drafts``.
"""

import polars as pl
import pytest
from crawling import files_of, manifest_of, nutbeam
from frames import frame_of
from interleaving import Running, gates
from linked_batches import document, outcome, put_batch
from marking import MARKS, newer, values_of

from nutbeam.io.snapshots.commit import commit
from nutbeam.io.snapshots.operations import begin
from nutbeam.io.storage.parquet_files import collect, scan
from nutbeam.io.tablets.resolve import write_bases
from nutbeam.io.tablets.written import Written
from nutbeam.io.upkeep.compaction import KEPT_UNTIL
from nutbeam.pipelines.base.command import Invocation
from nutbeam.pipelines.launch.job import run_job
from nutbeam.pipelines.launch.job_options import BatchOptions
from nutbeam.policy.components.declaration import Kept, Kind, Owner, RowLayout
from nutbeam.policy.components.kinds import KINDS
from nutbeam.transforms.apply_changes import RESOLVE, ApplyChanges, Target
from nutbeam.transforms.elements.chunks import Chunk, to_chunks
from nutbeam.transforms.for_each import ForEach
from nutbeam.transforms.operations import Begin, Commit
from nutbeam.web.base.errors import NothingToDo

pytestmark = pytest.mark.folder_first

DRAFTS = Kind("drafts", MARKS, owner=Owner.BATCH, kept=Kept.NO_LONGER)
FIRST, SECOND = "1000000001-a", "1000000002-b"
PAGES = {FIRST: "com.a:http/1", SECOND: "com.a:http/2"}
AT_ONCE = ("--snapshot_retention", "0", "--keep_batches", "0")


@pytest.fixture(params=["folder", "bigtable"])
def table(request, tmp_path, monkeypatch):
    """The address of a table with two updated batches; in Bigtable the component is in rows."""
    in_rows = request.param == "bigtable"
    gists = Kind("gists", MARKS, layout=RowLayout.ROWS if in_rows else RowLayout.TABLETS)
    monkeypatch.setitem(KEPT_UNTIL, "drafts", "gists")
    for kind in (gists, DRAFTS):
        monkeypatch.setitem(KINDS, kind.name, kind)
    table = str(tmp_path / "table")
    if in_rows:
        table = request.getfixturevalue("bigtable").make(tmp_path / "files")
    for days_ago, (batch, key) in zip((9, 8), PAGES.items(), strict=True):
        put_batch(table, batch, [[document(key, "com.b:http/")]], [outcome(key, 0)], days_ago)
        draft(table, batch, key)
    return table


def draft(table, batch, key):
    operation = begin(table, "draft", f"{batch}.draft")
    component, frame = f"batches/{batch}/drafts", frame_of(MARKS.schema, {"key": key})
    files = write_bases(operation.table.files, component, [frame], MARKS.schema)
    commit(operation, [Written(component, files)])


def take_in(table, batch="", operation=""):
    """Runs the job: it adds a row to the component for each document of a batch."""
    options = BatchOptions(batch=batch, operation=operation)
    how = Invocation("gist", {"table": table}, options, [], "json", table, False)
    return run_job(how, build, "gist")


def build(tickets, options):
    operations = tickets | "Begin" >> Begin("gist", needs="updated", takes_in="gists")
    gists = operations | "Gists" >> ForEach(files, gists_of, element=tuple[str, Chunk])
    written = (operations, gists) | ApplyChanges({"gists": Target(MARKS.schema, resolver)})
    reads = ("gists", "batches/{batch}/documents")
    return (operations, written) | Commit(reads=reads, takes_in="gists", whole=(RESOLVE,))


def files(operation):
    found = operation.files(f"batches/{operation.batch}/documents")
    return [operation.table / file.path for file in found]


def gists_of(path):
    marked = collect(scan([path], MARKS.pick("key").schema)).with_columns(mark=pl.lit(1))
    for chunk in to_chunks(frame_of(MARKS.schema, *marked.rows(named=True)), MARKS.schema):
        yield "gists", chunk


def resolver(operation):
    return newer


def waiting(table):
    """Returns the batches that the component, and the link table, have not taken in."""
    manifest = manifest_of(table)
    return manifest.waiting_for("gists"), manifest.waiting_for("links")


def keys_of(table):
    return sorted(values_of(table, component="gists"))


@pytest.mark.long
def test_each_takes_in_the_batches_that_it_has_not_taken_in(table):
    assert take_in(table) == 0
    assert waiting(table) == ([SECOND], [FIRST, SECOND])
    assert keys_of(table) == [PAGES[FIRST]]
    assert nutbeam("invertlinks", table, "--batch", SECOND) == 0
    assert waiting(table) == ([SECOND], [FIRST])
    assert take_in(table) == 0
    assert waiting(table) == ([], [FIRST])
    assert keys_of(table) == list(PAGES.values())
    with pytest.raises(NothingToDo, match=r"^nothing to do: all updated batches are in gists$"):
        take_in(table)
    assert nutbeam("fsck", table) == 0


@pytest.mark.long
def test_next_inverts_the_links_of_batches_that_another_component_has_taken_in(table):
    assert take_in(table) == 0
    assert nutbeam("next", table, "--links") == 0
    assert waiting(table) == ([SECOND], [SECOND])
    assert nutbeam("next", table, "--links") == 0
    assert waiting(table) == ([SECOND], [])
    assert nutbeam("next", table, "--links") == 1  # no page is due, and no links are left


@pytest.mark.long
def test_compact_keeps_files_until_the_component_that_needs_them_has_taken_them_in(table):
    def kept(name):
        return [b for b in PAGES if files_of(table, f"batches/{b}/{name}")]

    both = [FIRST, SECOND]
    assert take_in(table) == 0
    assert nutbeam("invertlinks", table, "--batch", SECOND) == 0
    assert nutbeam("purge", table, "--url", "http://elsewhere.com/", "--now") == 0
    assert nutbeam("compact", table, *AT_ONCE) == 0
    assert (kept("drafts"), waiting(table)) == ([SECOND], ([SECOND], [FIRST]))
    assert take_in(table) == 0
    assert nutbeam("compact", table, *AT_ONCE) == 0
    assert (kept("drafts"), waiting(table)) == ([], ([], [FIRST]))
    assert kept("documents") == both
    assert nutbeam("fsck", table) == 0


def test_purge_and_copy_keep_the_list_of_processed_batches(table, tmp_path):
    assert take_in(table) == 0
    assert nutbeam("purge", table, "--url", "http://a.com/1", "--now") == 0
    assert waiting(table) == ([SECOND], [FIRST, SECOND])
    assert keys_of(table) == []
    assert nutbeam("copy", table, tmp_path / "copy") == 0
    assert waiting(tmp_path / "copy") == ([SECOND], [FIRST, SECOND])


@pytest.mark.few(1)
@pytest.mark.parametrize(("taken", "left"), [(0, [FIRST, SECOND]), (1, [SECOND])])
def test_after_a_rollback_it_is_taken_in_again(table, taken, left):
    before = manifest_of(table).snapshot
    assert take_in(table) == 0
    assert nutbeam("invertlinks", table, "--batch", FIRST) == 0
    assert nutbeam("rollback", table, "--to", before + taken) == 0
    assert waiting(table) == (left, [FIRST, SECOND])
    for batch in left:
        assert PAGES[batch] not in keys_of(table)
        assert take_in(table) == 0
    assert keys_of(table) == list(PAGES.values())
    assert waiting(table) == ([], [FIRST, SECOND])
    assert nutbeam("fsck", table) == 0


def test_two_that_take_in_a_batch_at_once_both_note_it(table):
    with gates():
        job = Running("gist", lambda: take_in(table, FIRST, "slow"))
        while not job.at.endswith("Table.resolve"):
            job.advance()
            assert not job.done, job.error
        assert nutbeam("invertlinks", table, "--batch", FIRST) == 0
        job.finish()
    assert job.error is None
    assert manifest_of(table).operation == "slow.gist"
    assert waiting(table) == ([SECOND], [SECOND])
