"""NearPairs over chunks, with values of a band that are too frequent for one key."""

from typing import NamedTuple

import apache_beam as beam
import numpy as np
import polars as pl
import pytest
from running import STEP_FAILED, apply, run

from nutbeam.policy.dedup import near_pairs as pairs_of_hashes
from nutbeam.transforms.join_by_hash import JoinByHash
from nutbeam.transforms.near_pages import lead_near_pages as lead_module
from nutbeam.transforms.near_pages import near_pairs as module
from nutbeam.transforms.near_pages.lead_near_pages import LeadNearPages, lead_near_pages
from nutbeam.transforms.near_pages.near_pairs import NearPairs, make_layout, near_pairs


class Page(NamedTuple):
    key: str
    scope: str
    hash: bytes | None
    score: float


class Owner(NamedTuple):
    hash: bytes
    names: list[str]


def hashes_of(count, scopes=1):
    """Distinct hashes, most with equal upper bits, so that three bands have one value."""
    random = np.random.default_rng(count)
    low = random.integers(0, 2**14, count).astype(np.uint64)
    high = (random.random(count) < 0.1) * random.integers(0, 2**63, count).astype(np.uint64)
    scope = random.integers(0, scopes, count).astype(np.uint64) * np.uint64(2**60 + 7)
    return pl.DataFrame({"scope": scope, "hash": low ^ high.astype(np.uint64)}).unique(
        maintain_order=True
    )


def plain(frame, distance):
    rows = frame.rows()
    return {
        (a[0], *sorted((a[1], b[1])))
        for at, a in enumerate(rows)
        for b in rows[:at]
        if a[0] == b[0] and (a[1] ^ b[1]).bit_count() <= distance
    }


def as_set(frames):
    rows = [(scope, *sorted(pair)) for frame in frames for scope, *pair in frame.rows()]
    assert len(rows) == len(set(rows))
    return set(rows)


@pytest.mark.few(1)
@pytest.mark.parametrize(("scopes", "distance"), [(1, 1), (1, 3), (5, 3)])
def test_slices_of_a_band_value_find_each_pair_once(monkeypatch, scopes, distance):
    monkeypatch.setattr(module, "MOST_ROWS", 60)  # so the frequent values have several slices
    frame = hashes_of(300, scopes)
    chunks = [part.to_arrow() for part in frame.iter_slices(70)]
    found = apply(chunks, NearPairs(distance))
    expected = plain(frame, distance)
    assert expected
    assert as_set([pl.from_arrow(chunk) for chunk in found]) == expected
    assert as_set([near_pairs(frame, distance)]) == expected


def test_a_key_has_two_slices_at_most():
    counts = np.zeros((1, 4_096), np.int64)
    counts[0, 7], counts[0, 8] = 5_000_000, 3
    layout = make_layout(counts, module.MOST_ROWS)
    assert layout.slices[0, 7] == 5
    assert layout.slices[0, 8] == 1
    assert layout.partitions[0, 7] != layout.partitions[0, 8]


def test_no_hashes():
    assert apply([], NearPairs(3)) == []


def test_a_distance_that_is_none():
    with pytest.raises(ValueError, match="distance must be from 0 to 63, got 64"):
        NearPairs(64)


@pytest.mark.parametrize("rounds", [0, 2])
def test_leaders_over_partitions_are_those_of_the_whole_frame(rounds):
    frame = hashes_of(400, 3)
    rows = frame.with_columns(
        key=pl.int_range(len(frame)).cast(pl.String), status=pl.lit(2, pl.UInt8), group=pl.lit("")
    )
    lone = pl.DataFrame({"key": ["lone"], "status": [7], "group": ["x"]})
    chunks = [
        part.to_arrow() for part in pl.concat([rows, lone], how="diagonal_relaxed").iter_slices(90)
    ]
    found = apply(chunks, LeadNearPages(2, ("key",), (False,), 4, rounds))
    led = {k: w for chunk in found for k, w in pl.from_arrow(chunk).select("key", "winner").rows()}
    twin = lead_near_pages(rows, 2, ("key",), (False,))
    assert led == {**dict(twin.select("key", "winner").rows()), "lone": "lone"}
    assert 0 < twin["leads"].sum() < len(twin)


def test_no_key_has_the_pairs_of_a_crowd(monkeypatch):
    """Hashes that differ in few of 10 bits are all connected; their pairs are found where they meet."""
    frame = pl.DataFrame({"hash": np.arange(1024, dtype=np.uint64)})
    rows = frame.with_columns(key=pl.format("p{}", pl.col("hash").hash() % 9973), hash="hash")
    rows = rows.with_columns(key=pl.col("key") + "-" + pl.col("hash").cast(pl.String))
    sizes, real = [], lead_module._lead

    def lead(grouped, *how):
        chunks = list(grouped[1])
        sizes.append(sum(chunk.nbytes for chunk in chunks))
        return real((grouped[0], chunks), *how)

    lead.__annotations__ = real.__annotations__
    monkeypatch.setattr(lead_module, "_lead", lead)
    monkeypatch.setattr(pairs_of_hashes, "LED_PAIRS", 300)
    chunks = [part.to_arrow() for part in rows.iter_slices(90)]
    found = apply(chunks, LeadNearPages(3, "key", descending=False))
    led = {k: w for chunk in found for k, w in pl.from_arrow(chunk).select("key", "winner").rows()}
    assert led == led_in_order(rows.sort("key"))
    pairs = len(near_pairs(rows.with_columns(scope=pl.lit(0, pl.UInt64)), 3))
    assert sum(sizes) < 100 * len(rows) < 24 * pairs


def led_in_order(rows):
    """Returns the page that stays instead of each, of rows from the best to the worst."""
    stays, winner = [], {}
    for key, hash in rows.select("key", "hash").iter_rows():
        near = (other for other, one in stays if (one ^ hash).bit_count() <= 3)
        winner[key] = next(near, key)
        if winner[key] == key:
            stays.append((key, hash))
    return winner


@pytest.mark.parametrize("most", [1, 40, 1 << 22])
@pytest.mark.parametrize("scopes", [1, 4])
def test_leaders_do_not_depend_on_the_pairs_in_memory(monkeypatch, most, scopes):
    frame = hashes_of(300, scopes)
    scope, hashes = frame["scope"].to_numpy(), frame["hash"].to_numpy()
    right = []
    for at in range(len(frame)):
        near = (
            n for n in range(at)
            if right[n] < 0 and scope[n] == scope[at] and (hashes[n] ^ hashes[at]).bit_count() <= 3
        )  # fmt: skip
        right.append(next(near, -1))
    monkeypatch.setattr(pairs_of_hashes, "LED_PAIRS", most)
    assert pairs_of_hashes.near_leaders(scope, hashes, 3).tolist() == right


def random_pages():
    """Rows with signatures, some of which are equal, in two hosts; one has none."""
    random = np.random.default_rng(4)
    hashes = random.choice(hashes_of(60)["hash"].to_numpy(), 80)
    pages = [
        Page(f"p{n}", random.choice(["a.com", "b.com"]), int(number).to_bytes(8, "big"), n % 7)
        for n, number in enumerate(hashes)
    ]
    return [*pages, Page("none", "a.com", None, 9.0)]


def bits_apart(one, other):
    return (int.from_bytes(one.hash, "big") ^ int.from_bytes(other.hash, "big")).bit_count()


def led_row_by_row(pages, distance):
    """Returns the page that stays instead of each, by comparing all pairs."""
    left = sorted((p for p in pages if p.hash), key=lambda page: (-page.score, page.key))
    winner = {page.key: page.key for page in pages}
    stays = []
    for page in left:
        near = (s for s in stays if s.scope == page.scope and bits_apart(s, page) <= distance)
        leader = next(near, None)
        if leader is None:
            stays.append(page)
        else:
            winner[page.key] = leader.key
    return winner


@pytest.mark.few(1)
@pytest.mark.parametrize("distance", [0, 3])
def test_rows_are_led_as_row_by_row(distance):
    pages = random_pages()
    lead = LeadNearPages(distance, ["score", "key"], [True, False])
    found = run(lambda pipeline: pipeline | beam.Create(pages).with_output_types(Page) | lead)
    right = led_row_by_row(pages, distance)
    assert {row.key: row.winner for row in found} == right
    stay = {winner for key, winner in right.items() if key != winner}
    assert {row.key for row in found if row.leads} == stay
    assert stay


def test_pairs_of_rows_have_the_type_of_their_hashes():
    pages = list({page.hash: page for page in random_pages() if page.hash}.values())
    found = run(
        lambda pipeline: pipeline | beam.Create(pages).with_output_types(Page) | NearPairs(3)
    )
    right = {
        frozenset({a.hash, b.hash})
        for at, a in enumerate(pages)
        for b in pages[:at]
        if a.scope == b.scope and bits_apart(a, b) <= 3
    }
    assert {frozenset({row.hash, row.other}) for row in found} == right
    assert right
    assert not hasattr(found[0], "scope")


@pytest.mark.parametrize("known", [0, 9])
def test_rows_are_joined_with_columns_of_any_type(known):
    pages = random_pages()
    owners = [Owner(h, [str(n)]) for n, h in enumerate(sorted({p.hash for p in pages if p.hash}))]
    owners = owners[:known]

    def build(pipeline):
        rows = pipeline | "Pages" >> beam.Create(pages).with_output_types(Page)
        others = pipeline | "Owners" >> beam.Create(owners).with_output_types(Owner)
        return {"rows": rows, "others": others} | JoinByHash("hash", {"names": "owners"}, 3)

    names = {owner.hash: owner.names for owner in owners}
    assert {row.key: row.owners for row in run(build)} == {p.key: names.get(p.hash) for p in pages}


def test_invalid_parameters_and_inputs_are_refused():
    with pytest.raises(ValueError, match="one of these for each of order_by"):
        LeadNearPages(3, "score", [True, False])
    with pytest.raises(ValueError, match="distance must be at least 0, got -1"):
        LeadNearPages(-1, "score")
    chunk = pl.DataFrame({"hash": ["text"]}).to_arrow()
    with pytest.raises(STEP_FAILED, match="NearPairs needs a column 'hash' of numbers or bytes"):
        apply([chunk], NearPairs(3))
    rows = [Page("a", "b", None, 1.0)]
    with pytest.raises(STEP_FAILED, match="LeadNearPages needs the column 'best'"):
        run(lambda p: p | beam.Create(rows).with_output_types(Page) | LeadNearPages(3, "best"))
    with pytest.raises(ValueError, match="inputs rows and others, got \\['others'\\]"):
        run(lambda p: {"others": p | beam.Create(rows)} | JoinByHash("hash", {}))
