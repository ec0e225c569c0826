"""The writer for Solr on a real server; run by ``make test-servers``."""

import time

import polars as pl
import pytest
import requests
from search_servers_here import (
    create_core,
    documents,
    managed_configset,
    results_of_writes_through_a_kill,
    search_server,
)

from nutbeam.io.indexing.index_writer import IndexTarget
from nutbeam.io.indexing.writer_kinds import open_writer
from nutbeam.policy.components.index_routes import WriterRule
from nutbeam.web.base.errors import UserError

pytestmark = pytest.mark.servers
NONE = pl.Series([], dtype=pl.String)
LONG = "http://b.example/" + "x" * 600


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("solr") / "data"


@pytest.fixture(scope="module")
def server(folder):
    with search_server("solr", folder) as found:
        managed_configset(folder)
        yield found


@pytest.fixture(params=["pages", "managed"])
def core(request, server):
    """A core whose schema is fixed and whose chain tolerates errors, or the other way round."""
    return make_core(server, request.param)


def make_core(server, configset):
    return create_core(server, f"{configset}{time.monotonic_ns()}", configset)


def writer(core, version=100, full=False, **parameters):
    given = {"url": core, "unknown_fields": "drop", "patience": "300", **parameters}
    target = IndexTarget("main", "w", given, None, version, "op", full)
    opened = open_writer(WriterRule("w", "solr", {}), target)
    opened.prepare()
    return opened


def found(core, query="*:*"):
    given = {"q": query, "rows": "1000", "wt": "json"}
    answer = requests.get(f"{core}/select", params=given, timeout=60)
    assert answer.ok, answer.text
    return {record["id"]: record for record in answer.json()["response"]["docs"]}


def test_documents_come_and_go_and_are_visible_after_the_commit(core):
    opened = writer(core)
    odd = pl.DataFrame(
        {
            "id": ["http://a.example/", LONG, "http://c.example/"],
            "title": ["a\x00b \ufffe", "long", None],
            "date": [1_700_000_000_000, -5_000_000_000, 10**18],
            "boost": [1.0, float("nan"), 2.0],
        }
    )
    assert opened.write(odd, pl.Series(["http://none.example/"])).counts["added"] == 3
    assert found(core) == {}
    opened.finish()
    there = found(core)
    assert there["http://a.example/"]["title"] == "a b  "
    assert there["http://a.example/"]["date"] == "2023-11-14T22:13:20Z"
    assert [d["url"] for id_, d in there.items() if id_.startswith("sha256:")] == [LONG]
    opened.write(documents(0), pl.Series([LONG]))
    opened.finish()
    assert set(found(core)) == {"http://a.example/", "http://c.example/"}


@pytest.mark.parametrize("chain", [None, ""], ids=["found", "none"])
def test_bad_documents_are_refused_and_the_others_are_in(core, chain):
    opened = writer(core, **({} if chain is None else {"update_chain": chain}))
    mixed = documents(50).with_columns(
        boost=pl.Series([f"no{n}" if n in (3, 4, 49) else f"{n}" for n in range(50)])
    )
    done = opened.write(mixed, NONE)
    assert done.counts == {"added": 47, "refused": 3}
    assert done.refused["id"].to_list() == [f"http://a.example/{n}" for n in (3, 4, 49)]
    assert "boost" in done.refused["reason"][0]
    opened.finish()
    assert len(found(core)) == 47


def test_fields_that_the_schema_does_not_have(server):
    fixed = make_core(server, "pages")
    more = documents(2).with_columns(strange=pl.Series(["x", None]))
    done = writer(fixed, unknown_fields="refuse").write(more, NONE)
    assert done.counts == {"added": 1, "refused": 1}
    assert "unknown field 'strange'" in done.refused["reason"][0]
    assert writer(fixed).write(more, NONE).counts == {"added": 2}


def test_missing_fields_are_added_where_the_schema_can_be_changed(server):
    core = make_core(server, "managed")
    opened = writer(core, unknown_fields="refuse")
    more = documents(1).with_columns(
        content=pl.lit("words"), tstamp=pl.lit(0), type=pl.Series([["text/html", "text"]])
    )
    assert opened.write(more, NONE).counts == {"added": 1}
    opened.finish()
    (record,) = found(core, "type:text").values()
    assert record["tstamp"] == "1970-01-01T00:00:00Z"
    assert record["index_version"] == 100


def test_a_full_rebuild_is_visible_in_one_step(server):
    core = make_core(server, "managed")
    before = writer(core)
    before.write(documents(5), NONE)
    before.finish()
    full = writer(core, version=200, full=True)
    full.write(documents(2, begin=4), NONE)
    assert len(found(core)) == 5
    full.finish()
    full.finish()
    assert set(found(core)) == {"http://a.example/4", "http://a.example/5"}


def test_unusable_cores_are_reported_at_the_start(server):
    with pytest.raises(
        UserError, match=r"to build the index again, .* index_version, segment, digest"
    ):
        writer(make_core(server, "pages"), full=True)
    with pytest.raises(UserError, match="/solr/none does not show its schema: status 404"):
        writer(f"{server.url}/solr/none")
    with pytest.raises(UserError, match=r"does not answer: .*refused"):
        writer("http://127.0.0.1:1/solr/pages")


def test_commit_within(server):
    core = make_core(server, "managed")
    writer(core, commit_within="200", commit="never").write(documents(2), NONE)
    deadline = time.monotonic() + 60
    while len(found(core)) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(found(core)) == 2


def test_a_server_that_is_killed_in_the_middle_loses_nothing(server):
    core = make_core(server, "pages")
    opened = writer(core, max_documents="3")
    results = results_of_writes_through_a_kill(
        server, lambda n: opened.write(documents(10, begin=10 * n), NONE)
    )
    assert len(results) == 40
    opened.finish()
    assert len(found(core)) == 400
