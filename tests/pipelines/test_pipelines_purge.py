"""purge takes a URL, a host or a domain out of all that a table holds, and keeps it out."""

import json
import re
import shutil

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from crawling import (
    asked,
    cells_of,
    crawl,
    files_of,
    manifest_of,
    manifests_of,
    nutbeam,
    open_batches,
    place_in,
    reach,
    rows_of,
    state_of,
    statuses_of,
    tree,
)
from simulated_web import served_web
from web_tables import copied_table, newest

from nutbeam.io.table.bigtable_web_table import BigtableWebTable
from nutbeam.io.table.opening import open_table
from nutbeam.pipelines.purge import Options, names_of
from nutbeam.policy.components.blocklist import blocklist_of
from nutbeam.policy.components.kinds import kinds_in_rows
from nutbeam.policy.purging import pattern_of_names
from nutbeam.web.urls.row_keys import host_key_of

# What other pages say in their own words is theirs.
THEIRS = ("body", "text", "title", "anchor")
# Say which snapshot is the newest, and are written over, and no URL.
OWN_ROWS = "row (b'\\x00manifest'"
WHAT = {
    "host": ["--host", "h1.example.com"],
    "domain": ["--domain", "example.com"],
    "url": ["--url", "http://h0.example.com/"],
}


web = served_web(hosts=3, pages=10, scope="module")


@pytest.fixture(scope="module")
def original(web, backend, tmp_path_factory):
    """A table with batches in every phase."""
    table = backend.fresh()
    seeds = tmp_path_factory.mktemp("purge") / "seeds.txt"
    seeds.write_text("\n".join([*web.seeds, "http://h1.example.com/", "http://h2.example.com/"]))
    assert nutbeam("crawl", table, seeds, "--rounds", "2", *reach(web)) == 0
    open_batches(table, web, 4)
    return table


table = copied_table()


@pytest.fixture
def whole(backend):
    """Asserts that nothing is wrong with a table."""
    return lambda table: all(nutbeam(command, table) == 0 for command in backend.commands)


def names(*words):
    given = {"url": (), "host": (), "domain": ()}
    for flag, value in zip(words[::2], words[1::2], strict=True):
        given[flag.removeprefix("--")] += (value,)
    return names_of(Options(**given))


def texts_in(table):
    """Yields (column, text) of each string and binary value of a table, however deep."""

    def values(name, array):
        kind = array.type
        if pa.types.is_map(kind):
            yield from values(name, array.keys)
            yield from values(name, array.items)
        elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
            yield from values(name, array.flatten())
        elif pa.types.is_struct(kind):
            for at in range(kind.num_fields):
                yield from values(kind.field(at).name, array.field(at))
        elif not pa.types.is_primitive(kind):
            yield from ((name, value) for value in array.to_pylist() if value is not None)

    for name, column in zip(table.column_names, table.columns, strict=True):
        for chunk in column.chunks:
            yield from values(name, chunk)


def found_in(what, words):
    """Returns the (column, value) of a file, or of rows, that name what was purged."""
    purged = names(*words)
    blocklist, pattern = blocklist_of(purged.rows(0)), re.compile(pattern_of_names(purged))

    def bad(name, value):
        text = value.decode("latin-1") if isinstance(value, bytes) else value
        if name in ("key", "source", "first", "last"):
            key = pl.Series([text])
            return blocklist.blocks(key)[0] if ":" in text else blocklist.blocks_hosts(key)[0]
        return bool(pattern.search(text))

    if isinstance(what, pa.Table) or what.suffix == ".parquet":
        rows = what if isinstance(what, pa.Table) else pq.read_table(what)
        return [(n, v) for n, v in texts_in(rows) if n not in THEIRS and bad(n, v)]
    text = what.read_bytes().decode("latin-1").lower()
    return [("", m[0]) for m in pattern.finditer(text)] + [
        ("", key)
        for key in re.findall(r"[a-z0-9.]+:https?[:/][^\"\s]*", text)
        if blocklist.blocks(pl.Series([key]))[0]
    ]


def traces(address, words):
    """Returns what names what was purged, in all that there is: files, and all versions of rows."""
    everything = {str(p): p for p in place_in(address, "").rglob("*") if p.is_file()}
    table = open_table(address)
    if isinstance(table, BigtableWebTable):
        everything |= versions_of(table)
    return {name: found for name, one in everything.items() if (found := found_in(one, words))}


def live_traces(table, words):
    """Returns what names what was purged in what the newest snapshot says."""
    manifest = manifest_of(table)
    live = {c.list: place_in(table, c.list) for c in manifest.components.values()}
    for name in manifest.components:
        if not open_table(table).in_files(name):
            live[name] = rows_of(table, name).to_arrow()
        else:
            live |= {str(path): path for path in files_of(table, name)}
    return {name: found for name, one in live.items() if (found := found_in(one, words))}


def versions_of(table):
    """Returns all cells of a table in Bigtable as rows, those of ours as texts."""
    from nutbeam.io.bigtable.cell_layout import cell_kind
    from nutbeam.io.bigtable.cells import decode

    cells, found = cells_of(table), {}
    kinds = [cell_kind(name) for name in kinds_in_rows()]
    for kind in kinds:
        ours = [(k, v) for (k, family, _, _), v in cells.items() if family == kind.family]
        keys = pa.array([key for key, _ in ours], pa.binary())
        found[f"keys of {kind.component}"] = pa.table({"key": keys.cast(pa.large_string())})
        full = [(k, v) for k, v in ours if v]
        packed = pa.table({"key": [k for k, _ in full], "cell": [v for _, v in full]})
        found[f"versions of {kind.component}"] = decode(packed, kind)
    known = {kind.family for kind in kinds}
    rest = [value for (_, family, _, _), value in cells.items() if family not in known]
    assert rest
    return found | {"other cells": pa.table({"text": rest})}


@pytest.mark.long
@pytest.mark.few(1)
@pytest.mark.parametrize("what", WHAT)
def test_the_new_snapshot_holds_none_of_it(table, whole, what, capsys):
    words = WHAT[what]
    assert live_traces(table, words)  # it was there
    others = set(statuses_of(table))
    before = tree(table, ignore=())
    capsys.readouterr()
    assert nutbeam("purge", table, *words) == 0
    out = capsys.readouterr().out
    assert re.match(r"purge: blocked 1, .*rows/state \d", out), out
    assert live_traces(table, words) == {}
    purged = names(*words)
    hit = blocklist_of(purged.rows(0))
    left = set(statuses_of(table)) if what != "domain" else set()
    assert left <= others
    assert others - left
    keys = state_of(table)["key"] if what != "domain" else pl.Series([], dtype=pl.String)
    assert not hit.blocks(keys).any()
    after = tree(table, ignore=())
    missing = {name for name in before if after.get(name) != before[name]}
    assert {
        n for n in missing if not n.startswith(OWN_ROWS)
    } == set()  # until those snapshots expire
    assert whole(table)


@pytest.mark.few(1)
@pytest.mark.parametrize("what", WHAT)
def test_at_once_nothing_that_is_left_holds_it(table, whole, what, capsys):
    words = WHAT[what]
    place_in(table, "seeds").mkdir(exist_ok=True)
    place_in(table, "seeds/0123456789abcdef.txt").write_text(
        "http://h1.example.com/\nHTTP://h0.example.com/\n"
    )
    assert nutbeam("purge", table, *words, "--now") == 0
    assert traces(table, words) == {}
    assert whole(table)
    assert nutbeam("history", table) == 0  # manifests hold no names: they stay
    assert len(manifests_of(table)) == newest(table)
    assert nutbeam("rollback", table, "--to", 3, "--past_purge") == 3


@pytest.mark.few(1)
@pytest.mark.parametrize("what", WHAT)
def test_when_older_snapshots_have_expired_nothing_holds_it(backend, table, whole, what):
    assert nutbeam("purge", table, *WHAT[what]) == 0
    assert traces(table, WHAT[what])
    backend.age(table, 9)
    # What the store's clock calls old is compared with what was written just now.
    assert nutbeam("compact", table, "--snapshot_retention", 0) == 0
    assert traces(table, WHAT[what]) == {}
    assert whole(table)


@pytest.mark.few(1)
def test_purged_urls_do_not_come_back(table, web, capsys):
    assert nutbeam("purge", table, *WHAT["host"], "--now") == 0
    already = len(asked(web))
    # The other pages still link to it, and somebody injects it again.
    assert nutbeam("inject", table, "http://h1.example.com/", "http://h1.example.com/9") == 0
    assert manifest_of(table).counts["dropped/purged"] == 2
    assert crawl(table, web) == 0
    assert not [url for url in statuses_of(table) if "//h1." in url]
    assert not [url for url in asked(web)[already:] if "//h1." in url]
    assert sum(m.counts.get("dropped/purged", 0) for m in manifests_of(table) if m.job == "update")
    hosts = rows_of(table, "hosts")["key"]
    assert not [key for key in hosts if host_key_of(key) == "com.example.h1"]


@pytest.mark.few(1)
def test_a_bar_can_be_lifted(table, web, capsys):
    assert nutbeam("purge", table, *WHAT["host"]) == 0
    assert nutbeam("purge", table, *WHAT["host"], "--unblock") == 0
    assert manifest_of(table).counts == {"unblocked": 1}
    assert nutbeam("inject", table, "http://h1.example.com/") == 0
    assert statuses_of(table)["http://h1.example.com/"] == "db_unfetched"
    capsys.readouterr()
    assert nutbeam("purge", table, *WHAT["host"], "--unblock") == 0
    assert capsys.readouterr().out == "purge: nothing changed\n"


@pytest.mark.few(1)
def test_generate_skips_purged_urls_that_a_rollback_restored(table, capsys):
    snapshot = newest(table)
    assert nutbeam("purge", table, *WHAT["domain"]) == 0
    capsys.readouterr()
    assert nutbeam("rollback", table, "--to", snapshot) == 2
    assert "is a purge: a rollback to snapshot" in capsys.readouterr().err
    assert nutbeam("rollback", table, "--to", snapshot, "--past_purge") == 0
    assert nutbeam("generate", table, "--add_days", 90) == 1
    assert manifest_of(table).counts["left_out/purged"] > 0


@pytest.mark.few(1)
def test_pages_and_texts_of_the_others_are_still_found(table, tmp_path):
    def pages(name):
        path = tmp_path / name
        assert nutbeam("pages", table, "-o", path) == 0
        return pl.read_ndjson(path, infer_schema_length=None)

    before = pages("before.jsonl")
    assert nutbeam("purge", table, *WHAT["host"]) == 0
    after = pages("after.jsonl")
    others = before.filter(~pl.col("url").str.contains("//h1."))
    assert len(others) < len(before)
    kept = ["url", "title", "text", "status", "last_fetch_time"]
    assert after.select(kept).sort("url").equals(others.select(kept).sort("url"))
    links = after["links"].explode().struct.field("url").drop_nulls()
    assert not links.str.contains("//h1.").any()
    assert links.str.contains("//h2.").any()


@pytest.mark.few(1)
def test_open_batches_go_on(table, web, whole):
    assert nutbeam("purge", table, *WHAT["host"], "--now") == 0
    already = len(asked(web))
    for _ in range(30):
        if all(b.phase == "updated" for b in manifest_of(table).batches.values()):
            break
        assert nutbeam("next", table, *reach(web)) == 0
    assert not [url for url in asked(web)[already:] if "//h1." in url]
    assert whole(table)


@pytest.mark.few(1)
def test_flushed_pages_of_a_fetch_that_died_are_purged_too(backend, original, web):
    """A fetch flushed pages and died: what another fetch adopts has none of what was purged."""
    table, fetched = backend.copy(original), backend.copy(original)
    batch = next(n for n, b in manifest_of(table).batches.items() if b.phase == "generated")
    assert nutbeam("fetch", fetched, "--batch", batch, *reach(web)) == 0
    for folder in ("batches", "operations"):  # as if it had died before it could commit
        shutil.copytree(place_in(fetched, folder), place_in(table, folder), dirs_exist_ok=True)
    pages = list(place_in(table, f"batches/{batch}/pages").iterdir())
    host = next(key for path in pages for key in pl.read_parquet(path)["key"]).partition(":")[0]
    name = ".".join(reversed(host.split(".")))
    assert nutbeam("purge", table, "--host", name, "--now") == 0
    assert traces(table, ["--host", name]) == {}
    already = len(asked(web))
    assert nutbeam("fetch", table, "--batch", batch, *reach(web)) == 0
    assert live_traces(table, ["--host", name]) == {}
    assert not [url for url in asked(web)[already:] if f"//{name}/" in url]
    backend.remove(table)
    backend.remove(fetched)


@pytest.mark.few(1)
def test_the_same_purge_again_changes_nothing_and_two_names_are_one_operation(table, capsys):
    words = ["purge", table, *WHAT["host"], *WHAT["url"], "--operation", "order-7"]
    assert nutbeam(*words) == 0
    snapshot = newest(table)
    assert manifest_of(table).counts["blocked"] == 2
    assert nutbeam(*words) == 0
    assert newest(table) == snapshot
    assert nutbeam("purge", table, *WHAT["host"], "--format", "json") == 0
    record = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert record["counts"] == {}


def test_names_are_normalized_as_those_of_urls(backend):
    table = backend.fresh()
    words = ("http://example.com./a", "http://sub.example.com/b", "http://[2001:DB8::1]/",
             "http://b\u00fccher.example/", "http://kept.example.org/")  # fmt: skip
    assert nutbeam("inject", table, *words) == 0
    assert len(statuses_of(table)) == len(words)
    names = [
        "--domain",
        "EXAMPLE.com.",
        "--host",
        "[2001:db8:0::1]",
        "--host",
        "B\u00dcCHER.example.",
    ]
    assert nutbeam("purge", table, *names) == 0
    assert list(statuses_of(table)) == ["http://kept.example.org/"]
    backend.remove(table)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "--url, --host or --domain must say what to purge"),
        (["--host", "http://a.com/"], "--host must be a name such as www.example.com"),
        (["--domain", "a b"], "--domain must be a name such as www.example.com"),
        (["--host", "*.a.com"], "--host must be a name such as www.example.com, got '*.a.com'"),
        (["--host", "::1"], "an IPv6 address in brackets, got '::1'"),
        (["--domain", "co.uk"], "--domain must be a registered domain"),
        (["--domain", "COM."], "--domain must be a registered domain"),
        (["--url", "a.com"], "--url is no URL that can be crawled"),
        (["--host", "a.com", "--unblock", "--now"], "contradict each other"),
    ],
)
def test_invalid_names_are_refused_and_purge_nothing(original, capsys, words, message):
    snapshot = newest(original)
    assert nutbeam("purge", original, *words) == 2
    assert message in capsys.readouterr().err
    assert newest(original) == snapshot
