"""What is blocked, and what a purge takes out of rows."""

import polars as pl
import pyarrow as pa
import pytest
from frames import table_of
from hypothesis import given
from hypothesis import strategies as st

from nutbeam.policy.components.blocklist import Blocklist, Names, blocklist_of, digest, drop_blocked
from nutbeam.policy.components.document_schema import DOCUMENTS
from nutbeam.policy.components.kinds import kind_of
from nutbeam.policy.components.schema import BLOCKLIST, HOSTS, PAGES, STATE, conform
from nutbeam.policy.purging import pattern_of_names, purge_rows
from nutbeam.web.urls.row_keys import from_host_key, from_key

NAMES = Names(urls=("com.foo:http/a?b=1",), hosts=("com.bar", "[::1]"), domains=("org.evil",))
HIT = [
    "com.foo:http/a?b=1",
    "com.bar:https/x",
    "[::1]:http/",
    "org.evil:http/",
    "org.evil.w.w:http/",
]
MISSED = ["com.foo:http/a", "com.foo:https/a?b=1", "com.bar.www:http/", "[::2]:http/",
          "org.evil1:http/", "org:http/"]  # fmt: skip


def test_which_keys_are_blocked():
    blocklist = blocklist_of(NAMES.rows(7))
    assert blocklist.blocks(pl.Series(HIT)).all()
    assert not blocklist.blocks(pl.Series(MISSED)).any()
    assert blocklist.blocks(pl.Series([None, HIT[0]])).to_list() == [False, True]
    assert blocklist.blocks_hosts(pl.Series(["com.bar", "com.foo", None, "org.evil.a"])).to_list() == [
        True, False, False, True,
    ]  # fmt: skip


def test_no_blocklist():
    assert not Blocklist()
    assert not Blocklist().blocks(pl.Series(HIT)).any()
    rows = pl.DataFrame({"key": HIT})
    assert drop_blocked(rows, Blocklist()) == (rows, {})


def test_rows_are_dropped_under_a_reason():
    rows = pl.DataFrame({"key": [*HIT, *MISSED]})
    kept, counts = drop_blocked(rows, blocklist_of(NAMES.rows(0)))
    assert kept.get_column("key").to_list() == MISSED
    assert counts == {"dropped/purged": len(HIT)}


def test_the_list_of_bars_is_hashes_and_sorted():
    rows = NAMES.rows(7)
    assert rows.schema == pl.from_arrow(BLOCKLIST.empty_table()).schema
    assert rows.get_column("key").is_sorted()
    text = str(rows.rows())
    assert not [name for name in ("foo", "bar,", "evil", "com") if name in text]
    assert rows.filter(pl.col("key") == f"host:{digest('com.bar')}").height == 1


LABEL = st.text("ab1-", min_size=1, max_size=3)
HOST = st.lists(LABEL, min_size=1, max_size=4).map(".".join)


@given(st.lists(HOST), HOST)
def test_a_domain_blocks_itself_and_its_subdomains(hosts, domain):
    hit = blocklist_of(Names(domains=(domain,)).rows(0)).blocks_hosts(
        pl.Series(hosts, dtype=pl.String)
    )
    assert hit.to_list() == [h == domain or h.startswith(f"{domain}.") for h in hosts]


@pytest.mark.parametrize("key", HIT)
def test_the_pattern_finds_texts_that_name_purged_urls(key):
    pattern = pattern_of_names(NAMES)
    for text in (from_key(key), f"<{from_key(key).upper()}>; rel=next", f"x={from_key(key)}"):
        assert pl.Series([text]).str.contains(pattern)[0], text


@pytest.mark.parametrize("key", MISSED)
def test_a_text_that_names_something_else(key):
    assert not pl.Series([from_key(key)]).str.contains(pattern_of_names(NAMES))[0]


def purged(table, kind):
    return purge_rows(table, kind_of(kind), blocklist_of(NAMES.rows(0)), pattern_of_names(NAMES))


def test_rows_of_pages():
    ours = {
        "key": "com.other:http/", "body": b"http://bar.com/", "redirect": "http://bar.com/x",
        "headers": [{"name": "Location", "value": "http://bar.com/x"}, {"name": "Server", "value": "a"}],
    }  # fmt: skip
    calm = {"key": "com.other:http/2", "redirect": "http://foo.com/", "headers": []}
    found, rows, mentions = purged(
        table_of(PAGES, {"key": HIT[0], "body": b"1"}, ours, calm), "pages"
    )
    left = {**ours, "redirect": None, "headers": [{"name": "Server", "value": "a"}]}
    assert found.equals(table_of(PAGES, left, calm))
    assert (rows, mentions) == (1, 2)


def test_rows_of_documents():
    links = [{"key": key, "anchor": "see bar.com", "rel": None} for key in (HIT[1], MISSED[0])]
    page = {
        "key": "com.other:http/", "title": "about bar.com", "text": "bar.com", "outlinks": links,
        "metadata": [("canonical", "http://bar.com/"), ("author", "me")],
    }  # fmt: skip
    found, rows, mentions = purged(
        table_of(DOCUMENTS, page, {"key": "com.other:http/2"}), "documents"
    )
    left = {**page, "outlinks": links[1:], "metadata": [("author", "me")]}
    assert found.equals(table_of(DOCUMENTS, left, {"key": "com.other:http/2"}))
    assert (rows, mentions) == (0, 2)


def test_rows_of_hosts():
    robots = "User-agent: *\nSitemap: http://www.evil.org/s.xml\nDisallow: /x"
    other = {"key": "com.other", "robots_text": robots}
    found, rows, mentions = purged(table_of(HOSTS, {"key": "com.bar"}, other), "hosts")
    left = {**other, "robots_text": "User-agent: *\n\nDisallow: /x"}
    assert found.equals(table_of(HOSTS, left))
    assert (rows, mentions) == (1, 1)


def test_rows_of_the_state_that_say_nothing_stay_as_they_are():
    table = table_of(STATE, *({"key": key, "document": "batches/bar.com/1"} for key in MISSED))
    found, rows, mentions = purged(table, "state")
    assert found.equals(table)
    assert (rows, mentions) == (0, 0)


def test_links_of_a_table_that_this_version_does_not_know():
    kind = pa.large_list(pa.struct([("source", pa.large_string()), ("anchor", pa.large_string())]))
    schema = pa.schema([("key", pa.large_string()), ("inlinks", kind)])
    links = [{"source": HIT[3], "anchor": "x"}, {"source": MISSED[0], "anchor": "y"}]
    rows = [{"key": HIT[0], "inlinks": links}, {"key": MISSED[0], "inlinks": links}]
    found, gone, mentions = purged(pa.Table.from_pylist(rows, schema=schema), "unknown")
    right = [{"key": MISSED[0], "inlinks": links[1:]}]
    assert found.equals(pa.Table.from_pylist(right, schema=schema))
    assert (gone, mentions) == (1, 1)


def test_host_keys_are_shown_as_host_names():
    assert [from_host_key(host) for host in NAMES.hosts] == ["bar.com", "[::1]"]
    assert conform(NAMES.rows(0), BLOCKLIST).num_rows == 4
