"""DeleteDuplicates against the same rules document by document."""

import random

import polars as pl
import pytest

from nutbeam.policy.dedup.delete_duplicates import COLUMNS, Keep, delete_duplicates

NOW = 1_800_000_000_000
SCHEMA = {"url": pl.String, "time": pl.Int64, "segment": pl.String,
          "signature": pl.Binary, "score": pl.Float32}  # fmt: skip


def shard(*documents):
    return pl.DataFrame([dict(zip(COLUMNS, d, strict=True)) for d in documents], schema=SCHEMA)


def deleted(*shards, keep=Keep.HIGHEST_SCORE):
    return [numbers.to_list() for numbers in delete_duplicates(shards, NOW, keep)]


def plain(shards, keep):
    """Nutch's rules, one document after the other."""
    seen = [
        {**document, "at": (at, number), "time": time_of(document, number)}
        for at, documents in enumerate(shards)
        for number, document in enumerate(documents.rows(named=True))
    ]
    by_url = {}
    for new in seen:
        old = by_url.setdefault(new["url"], new)
        if new["time"] > old["time"]:
            by_url[new["url"]] = new
    by_signature, kept = {}, set()
    for new in seen:
        if by_url[new["url"]] is not new:
            continue
        if new["signature"] is None:
            kept.add(new["at"])
            continue
        old = by_signature.setdefault(new["signature"], new)
        if beats(new, old, keep):
            by_signature[new["signature"]] = new
    kept |= {document["at"] for document in by_signature.values()}
    return [
        [number for number in range(len(documents)) if (at, number) not in kept]
        for at, documents in enumerate(shards)
    ]


def time_of(document, number):
    if document["time"] is not None:
        return document["time"]
    begun = {"1700000000-aa": 1_700_000_000_000, "20240229120000": 1_709_208_000_000}
    return begun[document["segment"]] + number if document["segment"] in begun else NOW


def beats(new, old, keep):
    if keep is Keep.SHORTEST_URL:
        return len(new["url"]) < len(old["url"])
    if new["score"] != old["score"]:
        return new["score"] > old["score"]
    return keep is Keep.HIGHEST_SCORE_NEWEST and new["time"] > old["time"]


@pytest.mark.few(1)
@pytest.mark.parametrize("keep", Keep)
def test_random_shards_agree_with_the_rules_document_by_document(keep):
    numbers = random.Random(keep.name)
    for _ in range(200):
        shards = [
            shard(
                *(
                    (
                        "u" * numbers.randrange(1, 6),
                        numbers.choice((None, 1_700_000_000_001, 1_750_000_000_000)),
                        numbers.choice((None, "", "1700000000-aa", "20240229120000", "x-1")),
                        numbers.choice((None, b"a", b"b")),
                        numbers.choice((0.0, 1.0, 2.0)),
                    )
                    for _ in range(numbers.randrange(8))
                )
            )
            for _ in range(numbers.randrange(4))
        ]
        assert deleted(*shards, keep=keep) == plain(shards, keep)


def test_the_newest_document_of_a_url_stays_even_with_a_lower_score():
    old, new = ("u", 1, "", b"a", 9.0), ("u", 2, "", b"b", 1.0)
    assert deleted(shard(old), shard(new)) == [[0], []]
    assert deleted(shard(new), shard(old)) == [[], [0]]


def test_an_older_document_of_a_url_makes_no_other_document_a_duplicate():
    older, newer, other = ("u", 1, "", b"a", 9.0), ("u", 2, "", b"b", 1.0), ("v", 1, "", b"a", 0.0)
    assert deleted(shard(older, newer, other)) == [[0]]


def test_a_score_that_is_no_number_is_the_lowest():
    assert deleted(shard(("u", 1, "", b"a", float("nan")), ("v", 1, "", b"a", 0.0))) == [[0]]


def test_no_shards_and_empty_shards():
    assert deleted() == []
    assert deleted(shard(), shard(("u", 1, "", b"a", 1.0))) == [[], []]
