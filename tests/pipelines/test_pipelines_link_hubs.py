"""Hubs: pages with very many links to them, and pages with very many links."""

import pytest
from crawling import nutbeam, rows_of
from linked_web import fill_links

from nutbeam.transforms import apply_changes

HUB, LISTING = "http://hub.com/", "http://listing.com/"
MANY, MOST_BYTES = 3_000, 60_000


@pytest.fixture
def sizes(monkeypatch, resize_tables, tmp_path):
    """Divides changes into small ranges; returns the bytes of the changes of each range."""
    plan, resolve = apply_changes.plan_ranges, apply_changes._resolve
    noted = tmp_path / "sizes.txt"

    def small_ranges(known, samples):
        return plan(known, samples, MOST_BYTES)

    def noting(grouped, *more):
        chunks = list(grouped[1])
        with noted.open("a") as file:
            file.write(f"{sum(chunk.nbytes for chunk in chunks)}\n")
        yield from resolve((grouped[0], chunks), *more)

    noting.__annotations__ = resolve.__annotations__
    monkeypatch.setattr(apply_changes, "plan_ranges", small_ranges)
    monkeypatch.setattr(apply_changes, "_resolve", noting)
    resize_tables(tablet_rows=1_000)
    return lambda: [int(line) for line in noted.read_text().splitlines()]


@pytest.mark.long
def test_links_of_hubs_are_divided_and_each_is_there_once(tmp_path, sizes):
    some = [f"http://s{n % 40}.com/{n}" for n in range(MANY)]
    pairs = [*((HUB, source) for source in some), *((target, LISTING) for target in some)]
    tables = [str(tmp_path / name) for name in ("table", "older", "newer")]
    for table in tables:
        assert nutbeam("inject", table, HUB) == 0
    # Half of the links are in both tables: two changes of one link at once, the newer counts.
    fill_links(tables[1], dict.fromkeys(pairs[: MANY * 3 // 2], ("older", None, 1.0)), 1_000)
    fill_links(tables[2], dict.fromkeys(pairs[MANY // 2 :], ("newer", None, 1.0)), 2_000)
    for _ in range(2):
        assert nutbeam("mergelinkdb", *tables) in (0, 1)
    rows = rows_of(tables[0], "links")
    assert len(rows) == len(pairs) == rows["key"].n_unique()
    assert (rows["anchor"] == "older").sum() == MANY // 2
    in_both = rows.filter(anchor="newer", first_seen=1_000, last_seen=2_000)
    assert len(in_both) == MANY
    assert len(rows.filter(anchor="newer", first_seen=2_000)) == MANY // 2
    assert max(sizes()) < 2 * MOST_BYTES
    assert sum(sizes()) > 8 * MOST_BYTES
    assert nutbeam("fsck", tables[0]) == 0
