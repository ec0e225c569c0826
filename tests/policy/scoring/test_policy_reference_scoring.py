"""The reference of the scorings: what the specification promises of them, and today's product."""

import doctest
import functools
import random

import pytest
import reference_scoring
from reference_adapter import product_shares
from reference_attached import rows_of_urls, sort_values, update_with_links
from reference_scoring import (
    Factors,
    boost,
    cash_distribute,
    cash_of_seed,
    cash_update,
    depth_of_links,
    depth_sort,
    depth_update,
    hand_on,
    link_sort,
    max_depth_of,
    opic_sort,
    opic_update,
    share_out,
    sort_value,
    urlboost,
)

from nutbeam.policy.links import LinkOptions
from nutbeam.policy.scoring.scoring import ScoringOptions
from nutbeam.policy.scoring.scorings import chosen_scorings

KEYS = [f"com.h{at % 5}:http/{at}" for at in range(30)]


def test_examples_of_the_reference():
    assert doctest.testmod(reference_scoring).failed == 0


def graph(numbers):
    """Returns the links of each page; some have none, and some have a link twice."""
    return {key: numbers.choices(KEYS, k=numbers.choice((0, 1, 2, 7))) for key in KEYS}


@pytest.mark.parametrize("seed", range(20))
def test_cash_is_conserved(seed):
    numbers = random.Random(seed)
    links = graph(numbers)
    pages = {key: cash_of_seed({"key": key, "score": 1.0}) for key in KEYS}
    for _ in range(30):
        pages, changed = cash_round(numbers, pages, links)
        assert sum(page["cash"] for page in pages.values()) == pytest.approx(len(KEYS), rel=1e-6)
        assert all(page["cash"] >= 0 for page in pages.values())
        assert changed


def cash_round(numbers, pages, links):
    """Fetches half the pages, of which some are unchanged."""
    after, shares, changed = dict(pages), {key: [] for key in KEYS}, 0
    for key in numbers.sample(KEYS, 15):
        is_changed = numbers.random() < 0.7
        after[key], given = cash_distribute(pages[key], links[key], Factors(), changed=is_changed)
        changed += is_changed
        for target, share in given.items():
            shares[target].append(share)
    return {key: cash_update(after[key], shares[key]) for key in KEYS}, changed


def test_opic_of_nutch_1_only_grows():
    numbers = random.Random(1)
    links = graph(numbers)
    pages = {key: {"key": key, "score": 1.0} for key in KEYS}
    for _ in range(5):
        before = {key: page["score"] for key, page in pages.items()}
        for key in numbers.sample(KEYS, 10):
            for target, share in share_out(before[key], key, links[key], Factors()).items():
                pages[target] = opic_update(pages[target], [share])
        assert all(page["score"] >= before[key] for key, page in pages.items())
        assert sum(page["score"] for page in pages.values()) > sum(before.values())


@pytest.mark.parametrize("seed", range(20))
def test_depth_becomes_that_of_the_shortest_way(seed):
    links = graph(random.Random(seed))
    pages = {key: {"distance": None, "max_depth": None} for key in KEYS}
    pages[KEYS[0]] = {"distance": 0, "max_depth": 4}
    expected = {KEYS[0]: 0}
    for distance in range(1, 4):  # at depth 4, which is distance 3, links are dropped
        near = [key for key, at in expected.items() if at == distance - 1]
        expected |= {t: distance for key in near for t in links[key] if t not in expected}
    for _ in range(6):
        brought = {key: [] for key in KEYS}
        for key in KEYS:
            link = depth_of_links(pages[key]) if pages[key]["distance"] is not None else None
            for target in links[key] if link else []:
                brought[target].append(link)
        for key, links_to_it in brought.items():
            if links_to_it:
                known = None if pages[key]["distance"] is None else pages[key]
                distance, limit = depth_update(known, links_to_it)
                pages[key] = {"distance": distance, "max_depth": limit}
    assert {k: p["distance"] for k, p in pages.items() if p["distance"] is not None} == expected


def test_several_scorings_in_an_order():
    row = {"score": 0.5, "distance": 1, "max_depth": 10}
    news = urlboost([("news", 4.0)])
    url = "http://example.com/news"
    assert sort_value(row, url, [opic_sort, depth_sort]) == 0.5 * 9
    assert sort_value(row, url, [opic_sort, news]) == 2.0
    assert sort_value(row, url, [news, link_sort]) == 0.5  # link does not use the value before
    assert sort_value(row, url, []) == 1.0
    assert boost(0.25) == 0.5


DOCUMENTS = [
    {"key": key, "score": score, "distance": distance, "outlinks": targets}
    for key, score, distance, targets in (
        (KEYS[0], 6.0, 0, KEYS[1:7]),
        (KEYS[5], 1.0, 3, [KEYS[0], KEYS[10], KEYS[0]]),
        (KEYS[7], 0.75, 4, KEYS[10:13]),
        (KEYS[8], 5.0, 1, []),
    )
]


@pytest.mark.parametrize("factors", [Factors(), Factors(internal=0.5), Factors(0.25, 2.0)])
def test_opic_of_the_product_shares_as_the_reference(factors):
    expected: dict[str, list] = {}
    for page in DOCUMENTS:
        shares = share_out(page["score"], page["key"], page["outlinks"], factors)
        for target, share in shares.items():
            expected.setdefault(target, []).append((share, page["distance"] + 1))
    product = product_shares(DOCUMENTS, factors)
    assert product.keys() == expected.keys()
    for target, brought in expected.items():
        score, distance = sum(share for share, _ in brought), min(at for _, at in brought)
        assert product[target] == (pytest.approx(score, abs=1e-9), distance)


def table_of_pages(numbers, **columns):
    """Returns a table in which each page links to some; scores have no rounding errors."""
    return [
        {"key": key, "status": 2, "fetch_time": 0, "fetch_interval": 86_400, "retries": 0,
         "score": numbers.randrange(64) / 8, "cash": numbers.randrange(64) / 8,
         "distance": numbers.choice((0, 1, 2, 3)), "max_depth": None, "signature": b"new",
         "targets": [target for target in targets if target != key], "metadata": None} | columns
        for key, targets in graph(numbers).items()
    ]  # fmt: skip


@pytest.mark.parametrize("factors", [Factors(), Factors(0.5, 1.0)])
@pytest.mark.parametrize("seed", range(5))
def test_cash_of_the_product(seed, factors):
    numbers = random.Random(seed)
    table = table_of_pages(numbers)
    fetched = sorted(numbers.sample(table, 15), key=lambda page: page["key"])
    expected, brought = {page["key"]: page for page in table}, {key: [] for key in KEYS}
    for page in fetched:
        expected[page["key"]], shares = cash_distribute(
            page, page["targets"], factors, changed=True
        )
        for target, share in shares.items():
            brought[target].append(share)
    links = LinkOptions(
        internal_link_factor=factors.internal, external_link_factor=factors.external
    )
    before = [page | {"signature": b"old"} for page in table]
    rows = update_with_links(before, fetched, ScoringOptions(scoring=("opic_cash",)), links)
    for key, row in rows.items():
        after = cash_update(expected[key], brought[key])
        assert (row["cash"], row["score"]) == pytest.approx((after["cash"], after["score"]))
    if factors == Factors():
        assert sum(row["cash"] for row in rows.values()) == pytest.approx(
            sum(page["cash"] for page in table)
        )


@pytest.mark.parametrize("scoring", ["opic", "opic_cash"])
def test_an_unchanged_page_of_the_product_gives_nothing(scoring):
    table = table_of_pages(random.Random(1), score=1.0, cash=1.0)
    rows = update_with_links(
        table,
        [page for page in table if page["targets"]],
        ScoringOptions(scoring=(scoring,)),
        LinkOptions(),
    )
    assert {row["status"] for row in rows.values()} == {2, 6}
    assert {(row["score"], row["cash"]) for row in rows.values()} == {(1.0, 1.0)}


@pytest.mark.parametrize("own", [None, 2, 4])
@pytest.mark.parametrize("distance", [0, 1, 2, 3])
def test_depth_of_the_product(distance, own):
    page = table_of_pages(random.Random(1))[0]
    page |= {
        "distance": distance,
        "max_depth": own,
        "signature": b"new",
        "targets": ["com.new:http/"],
    }
    options = ScoringOptions(scoring=("depth",), depth_max=3)
    rows = update_with_links([page | {"signature": b"old"}], [page], options, LinkOptions())
    expected = depth_of_links(page, 3)
    assert ("com.new:http/" in rows) == (expected is not None)
    if expected:
        new = rows["com.new:http/"]
        assert (new["distance"], max_depth_of(new, 3)) == (distance + 1, max_depth_of(expected, 3))
    if distance < (own or 3):
        assert sort_values([page], chosen_scorings(options)) == [depth_sort(page, "", 1.0, 3)]


@pytest.mark.parametrize("seed", range(20))
def test_depths_of_many_links_of_the_product(seed):
    numbers = random.Random(seed)
    new = [f"com.new:http/{at}" for at in range(10)]
    table = [
        page | {"distance": numbers.choice((None, 0, 1, 2, 3)),
                "max_depth": numbers.choice((None, 2, 4)),
                "targets": page["targets"] + numbers.sample(new, 2)}
        for page in table_of_pages(numbers)
    ]  # fmt: skip
    fetched, brought = numbers.sample(table, 15), {}
    for page in fetched:
        link = depth_of_links(page, 3)
        for target in page["targets"] if link else []:
            brought.setdefault(target, []).append(link)
    options = ScoringOptions(scoring=("depth",), depth_max=3)
    before = [page | {"signature": b"old"} for page in table]
    rows = update_with_links(before, fetched, options, LinkOptions())
    known = {page["key"]: page for page in table}
    assert rows.keys() == known.keys() | brought.keys()
    for key, row in rows.items():
        found = row["distance"], max_depth_of(row, 3)
        assert found == depth_update(known.get(key), brought.get(key, []), 3)


def test_chains_of_the_product(tmp_path):
    patterns = [("/1", 2.0), ("h3", 0.5), ("/13", 8.0)]
    file = tmp_path / "boosts"
    file.write_text("".join(f"{factor} {pattern}\n" for pattern, factor in patterns))
    urls = [f"http://h{at % 5}.com/{at}" for at in range(30)]
    rows = [row | {"score": 3.0, "max_depth": None} for row in rows_of_urls(urls)]
    mine = {"urlboost": urlboost(patterns), "opic": opic_sort, "link": link_sort,
            "depth": functools.partial(depth_sort, usual=3)}  # fmt: skip
    for names in [("urlboost",), ("opic", "urlboost"), ("urlboost", "link"), ("depth", "opic")]:
        options = ScoringOptions(scoring=names, depth_max=3, url_boost_file=str(file))
        chain = [mine[name] for name in names]
        expected = [sort_value(row, url, chain) for row, url in zip(rows, urls, strict=True)]
        assert sort_values(rows, chosen_scorings(options)) == expected


@pytest.mark.parametrize("metadata", [None, {"topic": "news", "lang": "de"}, {"other": "x"}])
def test_metadata_of_the_product(metadata):
    page = table_of_pages(random.Random(1))[0]
    page |= {"metadata": metadata, "targets": ["com.new:http/"]}
    options = ScoringOptions(scoring=("opic", "metadata"), metadata_to_links=("topic", "absent"))
    rows = update_with_links([page | {"signature": b"old"}], [page], options, LinkOptions())
    expected = hand_on({"metadata": None}, metadata, ("topic", "absent"))["metadata"]
    assert (rows["com.new:http/"]["metadata"] or None) == expected
