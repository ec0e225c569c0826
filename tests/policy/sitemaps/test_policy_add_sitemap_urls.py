"""URLs of sitemaps brought into rows of the state, against a reference row by row."""

import random

import polars as pl
import pytest

from nutbeam.policy.components.schema import STATE, Status, conform, to_frame
from nutbeam.policy.hosting.merit import DomainRoom, Merits
from nutbeam.policy.sitemaps.sitemap_list import SitemapOptions
from nutbeam.policy.sitemaps.sitemap_urls import (
    SITEMAP_URLS,
    SitemapFacts,
    SitemapRules,
    add_sitemap_urls,
)

NOW = 1_790_000_000_000
FETCHED = {"status": int(Status.DB_FETCHED), "fetch_time": NOW + 10_000, "fetch_interval": 5_000,
           "score": 2.0, "last_fetch_time": NOW - 1_000, "modified_time": NOW - 9_000,
           "distance": 0}  # fmt: skip


def state(*rows):
    return to_frame(conform(pl.DataFrame(list(rows), infer_schema_length=None), STATE)).sort("key")


def urls(*rows):
    filled = [dict.fromkeys(("key", "score", "changefreq", "lastmod")) | row for row in rows]
    return to_frame(conform(pl.DataFrame(filled, infer_schema_length=None), SITEMAP_URLS))


def added(rows, changes, **options):
    """Returns (rows by key, counts)."""
    found, counts = add_sitemap_urls(
        rows, changes, SitemapFacts(NOW), SitemapRules(SitemapOptions(**options))
    )
    assert found.columns == STATE.names
    assert found.get_column("key").is_sorted()
    return {row["key"]: row for row in found.to_dicts()}, counts


def test_a_new_url_is_due_with_the_values_of_its_sitemap():
    said = {"key": "com.a:http/1", "score": 0.75, "changefreq": 3_600, "lastmod": NOW - 5}
    rows, counts = added(state().clear(), urls(said, {"key": "com.a:http/2"}))
    first, second = rows.values()
    names = (
        "status",
        "fetch_time",
        "fetch_interval",
        "score",
        "modified_time",
        "distance",
        "retries",
    )
    unfetched = int(Status.DB_UNFETCHED)
    assert [first[name] for name in names] == [unfetched, NOW, 3_600, 0.75, NOW - 5, 1, 0]
    assert [second[name] for name in names] == [unfetched, NOW, 2_592_000, 0.5, None, 1, 0]
    # Without a signature fetch makes no conditional request.
    assert first["signature"] is first["etag"] is first["last_modified"] is None
    assert counts == {"added": 2}


def test_a_known_url_stays_as_it_is():
    before = state({"key": "com.a:http/1", **FETCHED})
    said = {"key": "com.a:http/1", "score": 0.75, "changefreq": 60, "lastmod": NOW - 5}
    rows, counts = added(before, urls(said))
    assert list(rows.values()) == before.to_dicts()
    assert counts == {"known": 1}


@pytest.mark.parametrize(
    ("lastmod", "due"), [(NOW - 999, True), (NOW - 1_000, False), (None, False)]
)
def test_a_known_url_becomes_due_when_it_has_changed(lastmod, due):
    before = state({"key": "com.a:http/1", **FETCHED})
    changes = urls({"key": "com.a:http/1", "lastmod": lastmod})
    rows, counts = added(before, changes, sitemap_refetch=True)
    (row,) = rows.values()
    assert row["fetch_time"] == (NOW if due else NOW + 10_000)
    assert row | {"fetch_time": 0} == before.to_dicts()[0] | {"fetch_time": 0}
    assert counts.get("made_due", 0) == due


def test_overwriting_keeps_the_date_of_a_fetched_page():
    before = state({"key": "com.a:http/1", **FETCHED}, {"key": "com.a:http/2", **FETCHED, "fixed_interval": 7},
                   {"key": "com.a:http/3", "fetch_interval": 9, "score": 1.0})  # fmt: skip
    said = {"score": 0.25, "changefreq": 60, "lastmod": NOW - 5}
    changes = urls(*({"key": f"com.a:http/{n}", **said} for n in (1, 2, 3)))
    rows, _ = added(before, changes, sitemap_url_overwrite_existing=True)
    got = [(row["score"], row["fetch_interval"], row["modified_time"]) for row in rows.values()]
    assert got == [(0.25, 60, NOW - 9_000), (0.25, 5_000, NOW - 9_000), (0.25, 60, NOW - 5)]


def test_the_budget_takes_the_best():
    changes = urls(*({"key": f"com.a:http/{n}", "score": n / 10} for n in range(1, 6)))
    rows, counts = added(state().clear(), changes, sitemap_max_new_per_host=2, max_new_per_host=1)
    assert list(rows) == ["com.a:http/4", "com.a:http/5"]
    assert counts == {"added": 2, "dropped/host_budget": 3}
    _, counts = added(state().clear(), changes, sitemap_max_new_per_host=-1, max_new_per_host=1)
    assert counts == {"added": 5}


def test_random_tables_agree_with_a_reference():
    chance = random.Random(4)
    for _ in range(25):
        keys = [f"com.h{n % 3}:http/{n}" for n in range(12)]
        known = [{"key": key, **FETCHED, "fetch_time": NOW + chance.randint(-5, 5),
                  "last_fetch_time": chance.choice([None, NOW - 10, NOW - 5])}
                 for key in keys if chance.random() < 0.5]  # fmt: skip
        said = [{"key": chance.choice(keys), "score": chance.choice([None, 0.25, 0.5]),
                 "changefreq": chance.choice([None, 60, 90]),
                 "lastmod": chance.choice([None, NOW - 7, NOW - 3])}
                for _ in range(chance.randint(1, 20))]  # fmt: skip
        options = {"sitemap_refetch": chance.random() < 0.5,
                   "sitemap_url_overwrite_existing": chance.random() < 0.5}  # fmt: skip
        rows, _ = added(state(*known) if known else state().clear(), urls(*said), **options)
        names = ("fetch_time", "score", "fetch_interval", "modified_time")
        got = {key: tuple(row[name] for name in names) for key, row in rows.items()}
        assert got == reference(known, said, **options)


def reference(known, said, sitemap_refetch, sitemap_url_overwrite_existing):
    def best(key, name, choose):
        values = [one[name] for one in said if one["key"] == key and one[name] is not None]
        return choose(values, default=None)

    rows = {row["key"]: row for row in known}
    result = {}
    for key in {*rows, *(one["key"] for one in said)}:
        score, freq, date = (
            best(key, name, choose)
            for name, choose in (("score", max), ("changefreq", min), ("lastmod", max))
        )
        if key not in rows:
            result[key] = (NOW, 0.5 if score is None else score, freq or 2_592_000, date)
            continue
        row = rows[key]
        due, old, modified = row["fetch_time"], row["last_fetch_time"], row["modified_time"]
        if sitemap_refetch and None not in (date, old) and date > old:
            due = min(due, NOW)
        values = row["score"], row["fetch_interval"]
        if sitemap_url_overwrite_existing:
            values = row["score"] if score is None else score, freq or row["fetch_interval"]
            modified = date if old is None and date is not None else modified
        result[key] = (due, *values, modified)
    return result


def test_a_domain_gets_no_more_than_its_room():
    many = [{"key": f"net.farm.h{n}:http/", "score": n / 10} for n in range(9)]
    changes = urls(*many, {"key": "com.seed:http/"})
    budgets = pl.DataFrame({"key": ["net.farm"], "budget": [2]})
    merits = Merits(pl.Series(["com.seed"]), budgets, 10)
    room = DomainRoom(merits, pl.DataFrame({"key": ["x"], "domain_urls": [1]}))
    found, counts = add_sitemap_urls(
        state().clear(), changes, SitemapFacts(NOW, room), SitemapRules(SitemapOptions())
    )
    assert found["key"].to_list() == ["com.seed:http/", "net.farm.h7:http/", "net.farm.h8:http/"]
    assert counts == {"added": 3, "dropped/domain_full": 7}
