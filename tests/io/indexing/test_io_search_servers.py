"""The writers for OpenSearch and Elasticsearch on real servers; run by ``make test-servers``."""

import threading

import polars as pl
import pytest
import requests
from search_servers_here import (
    LIMITS,
    documents,
    results_of_writes_through_a_kill,
    search_server,
)

from nutbeam.io.indexing.index_writer import IndexTarget
from nutbeam.io.indexing.writer_kinds import open_writer
from nutbeam.policy.components.index_routes import WriterRule
from nutbeam.web.base.errors import UserError
from nutbeam.web.indexing.server_answers import Blocked

pytestmark = pytest.mark.servers
NONE = pl.Series([], dtype=pl.String)
PASSWORD = "a-secret-of-tests"
LONG = "http://b.example/" + "x" * 600


@pytest.fixture(
    scope="module", params=["opensearch", "opensearch3", "elasticsearch", "elasticsearch7"]
)
def server(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("server") / "data"
    with search_server(request.param, folder, SETTINGS=LIMITS) as found:
        yield found


@pytest.fixture
def name(request):
    return "".join(c if c.isalnum() else "-" for c in request.node.name.lower())[:60].strip("-")


def writer(server, name, version=100, full=False, **parameters):
    given = {"url": server.url, "name": name, "replicas": "0", "patience": "300", **parameters}
    target = IndexTarget("main", "w", given, None, version, "op", full)
    opened = open_writer(WriterRule("w", server.kind, {}), target)
    opened.prepare()
    return opened


def found(server, name, query="*:*"):
    hits = server.get(f"/{name}/_search?size=1000&q={query}")["hits"]["hits"]
    return {hit["_id"]: hit["_source"] for hit in hits}


def test_documents_come_and_go_and_late_attempts_change_nothing(server, name):
    first = writer(server, name)
    odd = pl.DataFrame(
        {
            "id": ["http://a.example/", LONG, "http://c.example/"],
            "title": ["a\x00b \ufffe", "long", None],
            "tstamp": [1_700_000_000_000, -5_000_000_000, 10**18],
            "boost": [1.0, float("nan"), 2.0],
            "anchor": [["x", "y"], [], None],
            "meta.a": ["q", None, None],
        }
    )
    done = first.write(odd, pl.Series(["http://none.example/"]))
    assert {k: n for k, n in done.counts.items() if not k.startswith("cleaned")} == {
        "added": 3, "not_there": 1
    }  # fmt: skip
    first.finish()
    there = found(server, name)
    assert there["http://a.example/"]["title"] == "a b  "
    assert len([id_ for id_ in there if id_.startswith("sha256:")]) == 1
    assert "tstamp" not in there["http://c.example/"]
    assert set(found(server, name, "tstamp:[1960 TO 1970]")) == {i for i in there if "sha" in i}
    second = writer(server, name, version=200)
    assert second.write(documents(0), pl.Series([LONG])).counts == {"deleted": 1}
    assert first.write(odd.tail(2).head(1), NONE).counts["newer"] == 1
    second.finish()
    assert set(found(server, name)) == {"http://a.example/", "http://c.example/"}


def test_a_document_that_does_not_fit_the_mapping_is_refused_alone(server, name):
    body = {"mappings": {"properties": {"title": {"type": "long"}}}}
    requests.put(f"{server.url}/{name}", json=body, timeout=60).raise_for_status()
    mixed = documents(3).with_columns(title=pl.Series(["1", "no number", "3"]))
    done = writer(server, name).write(mixed, NONE)
    assert done.counts == {"added": 2, "refused": 1}
    assert done.refused["id"].to_list() == ["http://a.example/1"]
    assert "failed to parse field [title]" in done.refused["reason"][0]


def test_requests_that_are_too_large_are_split(server, name):
    """413 for a request of over 400 kB, 429 for ever for one of over 200 kB."""
    large = documents(12, text="x" * 50_000)
    huge = documents(2, text="y" * 500_000, begin=50)
    middle = documents(1, text="z" * 300_000, begin=60)
    opened = writer(server, name, max_bytes="5000000", patience="20")
    done = opened.write(pl.concat([large, huge, middle]), NONE)
    assert done.counts == {"added": 12, "refused": 3}
    reasons = dict(done.refused.select("id", "reason").rows())
    assert "413" in reasons["http://a.example/50"]
    assert "429" in reasons["http://a.example/60"]
    opened.finish()
    assert len(found(server, name)) == 12


def test_many_senders_get_429_and_all_documents_arrive(server, name):
    opened = writer(server, name)
    threads = [
        threading.Thread(
            target=writer(server, name, max_documents="5").write,
            args=(documents(30, text="w" * 5_000, begin=100 * n), NONE),
        )
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    opened.finish()
    assert server.get(f"/{name}/_count")["count"] == 240


def test_a_read_only_index_ends_the_work_and_loses_nothing(server, name):
    opened = writer(server, name)
    (index,) = server.get(f"/_alias/{name}")
    settings = f"{server.url}/{index}/_settings"
    requests.put(settings, json={"index.blocks.write": True}, timeout=60).raise_for_status()
    with pytest.raises(Blocked, match="cannot be written: the index is read-only"):
        opened.write(documents(), NONE)
    requests.put(settings, json={"index.blocks.write": None}, timeout=60).raise_for_status()
    assert opened.write(documents(), NONE).counts == {"added": 3}


def test_an_index_that_has_vanished_is_not_made_with_guessed_types(server, name):
    opened = writer(server, name)
    opened.write(documents(1), NONE)
    (index,) = server.get(f"/_alias/{name}")
    requests.delete(f"{server.url}/{index}", timeout=60).raise_for_status()
    with pytest.raises(Blocked, match="the index does not exist"):
        opened.write(documents(1), NONE)


def test_a_full_rebuild_is_visible_in_one_step(server, name):
    before = writer(server, name)
    before.write(documents(5), NONE)
    before.finish()
    full = writer(server, name, version=200, full=True)
    full.write(documents(2, begin=4), NONE)
    requests.post(f"{server.url}/{name}-200/_refresh", timeout=60)
    assert len(found(server, name)) == 5
    full.finish()
    full.finish()  # after a failure it is called again
    assert set(found(server, name)) == {"http://a.example/4", "http://a.example/5"}
    assert list(server.get(f"/{name}*/_settings")) == [f"{name}-200"]
    late = writer(server, name, version=150, full=True)
    late.finish()
    assert list(server.get(f"/_alias/{name}")) == [f"{name}-200"]


def test_an_index_that_is_made_during_its_first_rebuild_gives_way(server, name):
    full = writer(server, name, version=200, full=True)
    other = writer(server, name, version=300)  # has begun later, and makes the index
    other.write(documents(2, begin=7), NONE)
    assert writer(server, name, version=301).write(documents(1), NONE).counts == {"added": 1}
    full.write(documents(3), NONE)
    full.finish()
    assert set(found(server, name)) == {f"http://a.example/{n}" for n in range(3)}
    assert list(server.get(f"/{name}*/_settings")) == [f"{name}-200"]
    assert writer(server, name, version=400).write(documents(1), NONE).counts == {"added": 1}
    requests.put(f"{server.url}/{name}x-0", timeout=60).raise_for_status()
    with pytest.raises(UserError, match=r"has index '.*x-0' without the alias '.*x': delete it"):
        writer(server, f"{name}x")


def test_a_full_rebuild_leaves_an_index_that_is_no_alias(server, name):
    requests.put(f"{server.url}/{name}", timeout=60).raise_for_status()
    writer(server, name).write(documents(3), NONE)
    with pytest.raises(UserError, match=f"has an index '{name}' that nutbeam has not made"):
        writer(server, name, version=200, full=True)
    writer(server, name).finish()  # without a rebuild it is used as it is
    assert len(found(server, name)) == 3


def test_a_server_that_is_killed_in_the_middle_loses_nothing(server, name):
    opened = writer(server, name, max_documents="3")
    results = results_of_writes_through_a_kill(
        server, lambda n: opened.write(documents(10, begin=10 * n), NONE)
    )
    assert len(results) == 40
    writer(server, name).finish()
    assert len(found(server, name)) == 400


@pytest.mark.parametrize("which", ["elasticsearch", "elasticsearch7"])
def test_passwords(which, tmp_path):
    secrets = tmp_path / "secrets"
    with search_server(which, tmp_path / "data", PASSWORD=PASSWORD) as server:
        with pytest.raises(Exception, match="refuses the credentials") as raised:
            writer(server, "main")
        secrets.write_text(f"{server.url} basic elastic wrong\n")
        with pytest.raises(Exception, match="refuses the credentials"):
            writer(server, "main", credentials=str(secrets))
        secrets.write_text(f"{server.url} basic elastic {PASSWORD}\n")
        opened = writer(server, "main", credentials=str(secrets))
        assert opened.write(documents(), NONE).counts == {"added": 3}
        assert PASSWORD not in str(raised.value)
