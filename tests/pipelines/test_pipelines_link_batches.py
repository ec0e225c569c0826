"""invertlinks of batches whose documents and outcomes are given: what stays, and what ends."""

import zlib
from types import SimpleNamespace

import pytest
from crawling import manifest_of, nutbeam, rows_of
from linked_batches import document, outcome, put_batch
from linked_web import fill_links, stored_links

from nutbeam.pipelines import invertlinks
from nutbeam.policy.components.schema import Status
from nutbeam.policy.inlinks.edges import InvertTableOptions
from nutbeam.web.exchange.status import FETCH_GONE, FETCH_NOTMODIFIED

A, B, C, D = (f"com.{letter}:http/" for letter in "abcd")


def links(table):
    """Pairs of target and source."""
    return set(stored_links(table))


@pytest.fixture
def table(tmp_path):
    return str(tmp_path / "table")


@pytest.mark.parametrize(
    "files",
    [
        [[document(A, B)], [document(A, C)]],
        [[document(A, C), document(A, B, part_of=D)]],
        [[document(A, B, part_of=D), document(A, C)]],
        [[document(A, B)], [document(A, C), document(D)]],
    ],
)
def test_only_the_document_of_its_row_counts_for_a_page_that_is_twice_in_a_batch(table, files):
    """An attempt of fetch was resumed, or a part of another page has the same URL."""
    put_batch(table, "17-1", files, [outcome(A, len(files) - 1)])
    assert nutbeam("invertlinks", table) == 0
    assert links(table) == {(C, A)}


@pytest.mark.parametrize("status", [Status.DB_GONE, Status.DB_ORPHAN])
def test_pages_that_a_scoring_marks_as_orphans_lose_their_links(table, status):
    files = [[document(A, B), document(C, B), document(D, B)]]
    (old,) = put_batch(table, "17-1", files, [outcome(key, 0) for key in (A, C, D)])
    assert nutbeam("invertlinks", table) == 0
    assert links(table) == {(B, A), (B, C), (B, D)}
    put_batch(table, "17-2", [[document(A, B, D)]], [
        outcome(A, 0, old, status), outcome(C, old, old, status, FETCH_NOTMODIFIED),
        outcome(D, old, old, Status.DB_NOTMODIFIED, FETCH_NOTMODIFIED),
    ])  # fmt: skip
    assert nutbeam("invertlinks", table) == 0
    assert links(table) == {(B, D)}


def test_a_page_that_was_fetched_and_not_parsed_keeps_its_links(table):
    (old,) = put_batch(table, "17-1", [[document(A, B)]], [outcome(A, 0)])
    assert nutbeam("invertlinks", table) == 0
    put_batch(table, "17-2", [], [outcome(A, None, old)])
    assert nutbeam("invertlinks", table) == 0
    assert links(table) == {(B, A)}


def test_compact_keeps_the_outcome_that_invertlinks_still_needs(table):
    (old,) = put_batch(
        table, "17-1", [[document(A, B), document(C, B)]], [outcome(A, 0), outcome(C, 0)]
    )
    assert nutbeam("invertlinks", table) == 0
    put_batch(table, "17-2", [], [outcome(A, None, old, Status.DB_GONE, FETCH_GONE)])
    drops = ("compact", table, "--snapshot_retention", "0", "--keep_batches", "0")
    assert nutbeam(*drops) == 0
    assert len(rows_of(table, "batches/17-2/outcome")) == 1
    assert nutbeam("invertlinks", table) == 0
    assert links(table) == {(B, C)}
    assert nutbeam(*drops) == 0
    assert len(rows_of(table, "batches/17-1/outcome")) == 2  # it still has documents
    assert "batches/17-2/outcome" not in manifest_of(table).components


@pytest.mark.long
@pytest.mark.parametrize("kind", ["folder", pytest.param("bigtable", marks=pytest.mark.bigtable)])
def test_links_that_cannot_be_compared_end_by_age_and_nothing_else(request, tmp_path, kind):
    table = str(tmp_path / "table")
    if kind == "bigtable":
        table = request.getfixturevalue("bigtable").make(tmp_path / "files")
    (old,) = put_batch(
        table, "17-1", [[document(key, B) for key in (A, C, D)]], [outcome(key, 0) for key in (A, C, D)],
        days_ago=200,
    )  # fmt: skip
    fill_links(table, {("http://b.com/", "http://nowhere.com/"): (None, None, 1.0)})
    assert nutbeam("invertlinks", table) == 0
    # The first lives, of the second the document before was lost, the third fails for now.
    put_batch(table, "17-2", [[document(C, D)]], [
        outcome(C, 0), outcome(D, None, old, Status.DB_FETCHED, None),
    ], days_ago=190)  # fmt: skip
    assert nutbeam("invertlinks", table) == 0
    assert links(table) >= {(B, A), (B, D), (D, C)}
    put_batch(table, "17-3", [[document("com.e:http/", B)]], [outcome("com.e:http/", 0)])
    assert nutbeam("invertlinks", table) == 0
    assert links(table) == {(B, A), (B, D), (D, C), (B, "com.e:http/")}


def test_each_tablet_is_checked_for_old_links_with_any_numbers_of_snapshots(monkeypatch):
    """In Bigtable no zone map names the tablets that have old links."""
    monkeypatch.setattr(invertlinks, "tablets", list)
    known = [SimpleNamespace(min_time=None) for _ in range(40)]
    seen = set()
    for number in range(200):
        seed = zlib.crc32(f"crawl-{number}.invertlinks".encode())
        operation = SimpleNamespace(snapshot=16 * number, seed=seed, now=0, files=lambda _: known)
        items = list(invertlinks._aging(operation, InvertTableOptions()))
        assert len(items) <= 3
        seen.update(id(item.tablet) for item in items)
    assert len(seen) == 40
