"""The reference of the scorings: its examples, and what the product makes of the same pages."""

import doctest
import functools
import random

import pytest
import reference_scoring
from reference_adapter import product_shares
from reference_attached import rows_of_urls, sort_values, update_with_links
from reference_scoring import (
    Factors,
    cash_distribute,
    cash_update,
    depth_of_links,
    depth_sort,
    depth_update,
    hand_on,
    link_sort,
    max_depth_of,
    opic_sort,
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


@pytest.mark.few(3)
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


@pytest.mark.long
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
