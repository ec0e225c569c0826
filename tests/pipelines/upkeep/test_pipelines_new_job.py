"""A job that only these tests declare runs beside compact and purge, as the product's jobs do."""

import polars as pl
import pyarrow as pa
import pytest
from crawling import manifest_of, nutbeam, state_of
from interleaving import Running, gates, launch

from nutbeam.io.tablets.resolve import Resolved
from nutbeam.io.tablets.tablets import tablets
from nutbeam.pipelines.base.command import Invocation
from nutbeam.pipelines.launch.job import run_job
from nutbeam.pipelines.launch.job_options import JobOptions
from nutbeam.policy.components.schema import TEXT
from nutbeam.transforms.apply_changes import RESOLVE, ApplyChanges, Target
from nutbeam.transforms.elements.chunks import Chunk, to_chunks
from nutbeam.transforms.for_each import ForEach
from nutbeam.transforms.operations import Begin, Commit
from nutbeam.web.base.dataclass import dataclass

URLS = [f"http://h{number}.example.com/" for number in range(8)]
KEYS = pa.schema([("key", TEXT)])


@dataclass(frozen=True)
class Options(JobOptions):
    """Options of the job."""


def lift_scores(table):
    """Runs the job: it sets the score of every row to 9."""
    options, table = Options(operation="slow"), str(table)
    how = Invocation("lift", {"table": table}, options, [], "json", table, False)
    return run_job(how, build, "lift")


def build(tickets, options):
    operations = tickets | "Begin" >> Begin("lift")
    keys = operations | "Keys" >> ForEach(parts, keys_of, element=tuple[str, Chunk])
    written = (operations, keys) | ApplyChanges({"state": Target(KEYS, resolver)})
    return (operations, written) | Commit(reads=("state",), whole=(RESOLVE,))


def parts(operation):
    return [(operation, tablet) for tablet in tablets(operation.files("state"))]


def keys_of(part):
    operation, tablet = part
    for chunk in to_chunks(operation.table.read("state", [tablet], ("key",)), KEYS):
        yield "state", chunk


def resolver(operation):
    lifted = pl.lit(9.0, pl.Float32)
    return lambda rows, _: Resolved(rows.with_columns(score=lifted))


@pytest.fixture
def table(backend):
    made = backend.fresh()
    launch("inject", made, {"seeds": URLS[:4]})
    launch("inject", made, {"seeds": URLS[4:]}, operation="more")
    yield made
    backend.remove(made)


def under_way(table):
    """Returns the job, stopped after it has read the table and before it writes rows."""
    job = Running("lift", lambda: lift_scores(table))
    while not job.at.endswith("Table.resolve"):
        job.advance()
        assert not job.done, job.error
    return job


@pytest.mark.folder_first
def test_compact_leaves_its_tablets(table):
    with gates():
        job = under_way(table)
        assert nutbeam("compact", table, "--full") == 0
        job.finish()
    assert job.error is None
    assert manifest_of(table).operation == "slow.lift"
    assert state_of(table)["score"].to_list() == [9.0] * len(URLS)
    assert nutbeam("compact", table, "--full") == 0
    assert nutbeam("fsck", table) == 0


@pytest.mark.long
@pytest.mark.folder_first
def test_purge_waits_for_it(table, caplog):
    with gates(waits=True):
        job = under_way(table)
        purge = Running("purge", lambda: launch("purge", table, operation="p", url=(URLS[0],)))
        purge.advance()
        while not (purge.done or purge.at.endswith(".pause_in_hold")):
            purge.advance()
        assert "purge 'p.purge' waits for lift 'slow.lift' to commit" in caplog.text
        job.finish()
        purge.finish()
    assert (job.error, purge.error) == (None, None)
    found = state_of(table)
    assert dict(found.select("url", "score").rows()) == dict.fromkeys(URLS[1:], 9.0)
