"""filterdb's functions on frames, against plain Python, row by row."""

import random

import polars as pl
import pytest
from frames import frame_of

from nutbeam.policy.base.key_columns import from_keys
from nutbeam.policy.components.blocklist import Blocklist, Names, blocklist_of
from nutbeam.policy.components.host_rows import seeds_of
from nutbeam.policy.components.schema import STATE, Status, empty
from nutbeam.policy.filtering import (
    REKEYED,
    DropOptions,
    FilterOptions,
    RowRules,
    arrivals,
    departures,
    filter_rows,
    hosts_of_seeds,
    kept_pages,
    leaving_pages,
    questioned_duplicates,
    rekey_rows,
)
from nutbeam.policy.scope import judge_known
from nutbeam.web.urls.row_keys import from_key

DAY, DAY_S = 86_400_000, 86_400
NOW = 20_000 * DAY
SEEDS = seeds_of(pl.Series(["com.a", "org.b.www"]))


def judged_reasons(rows, **options):
    """Returns what the rules say of rows: the target's URL, or the reason."""
    judged = judge_known(frame_of(STATE, *rows), FilterOptions(**options), SEEDS)
    return [reason or from_key(key) for key, reason in judged.select("key", "reason").iter_rows()]


def row(key, distance=1, **columns):
    return {"key": key, "distance": distance, **columns}


def test_keys_become_urls_as_one_by_one():
    keys = ["com.baz.bar:http:8983/a?b:c/d", "[::1]:http/", ":file/x", "1.0.0.10:https:1/[a]/b",
            "localhost:ftp/", "com.foo:http/a:b//c"]  # fmt: skip
    assert from_keys(pl.Series(keys)).to_list() == [from_key(key) for key in keys]
    assert from_keys(pl.Series([None, "a:http/"])).to_list() == [None, "http://a/"]
    assert from_keys(pl.Series([], dtype=pl.String)).to_list() == []


def test_links_must_match_include_scope_and_traps_and_seeds_need_not():
    trap = "com.a:http/x/x/x/x/x"
    rows = [row("com.a:http/in"), row("com.a:http/out"), row("net.c:http/in"), row(f"{trap}/in")]
    assert judged_reasons(rows, include=("in$",)) == [
        "http://a.com/in", "not_included", "out_of_scope", "repeated_segments",
    ]  # fmt: skip
    seeds = [{**one, "distance": 0} for one in rows]
    assert judged_reasons(seeds, include=("in$",)) == [from_key(one["key"]) for one in rows]
    assert judged_reasons(seeds, exclude=("in$",)) == [
        "excluded",
        "http://a.com/out",
        "excluded",
        "excluded",
    ]
    unknown = [{**one, "distance": None} for one in rows]
    assert judged_reasons(unknown, include=("in$",)) == judged_reasons(rows, include=("in$",))


@pytest.mark.parametrize(
    ("scope", "reasons"),
    [
        ("any", [None, None, None, None]),
        ("domain", [None, None, "out_of_scope", None]),
        ("host", ["out_of_scope", None, "out_of_scope", None]),
    ],
)
def test_a_page_is_in_the_scope_if_a_seed_is_of_its_host_or_domain(scope, reasons):
    rows = [row("org.b:http/"), row("org.b.www:http/"), row("com.c:http/"), row(":file/x")]
    found = judged_reasons(rows, scope=scope, schemes=("http", "file"))
    assert [reason if reason == "out_of_scope" else None for reason in found] == reasons


def test_rules_are_counted_and_reasons_too():
    rows = frame_of(STATE, row("com.a:http/x"), row("com.a:http/y"), row("com.a:http/z.gif"))
    options = FilterOptions(exclude=("x", "y"), count_by_rule=True)
    judged = judge_known(rows, options, SEEDS)
    found, counts = filter_rows(rows, judged, RowRules(Blocklist(), NOW))
    assert found["reason"].to_list() == ["excluded", "excluded", "filtered"]
    by_rule = {name: n for name, n in counts.items() if name.startswith(("excluded/", "filtered/"))}
    assert sum(by_rule.values()) == 3
    assert {n: c for n, c in counts.items() if n not in by_rule} == {
        "rows": 3, "dropped/excluded": 2, "dropped/filtered": 1,
    }  # fmt: skip


def dropped(rows, now, **options):
    """The last letters of the keys of rows that go because of their age, with the reasons."""
    judged = rows.select("key", reason=pl.lit(None, pl.String))
    found, _ = filter_rows(rows, judged, RowRules(Blocklist(), now, DropOptions(**options)))
    return {key[-1]: reason for key, _, reason in found.iter_rows()}


def test_gone_pages_go_by_how_long_they_are_gone():
    row_of_gone = {"status": int(Status.DB_GONE), "fetch_interval": 45 * DAY_S}
    rows = frame_of(
        STATE,
        row("com.a:http/1", last_fetch_time=NOW - 10 * DAY, **row_of_gone),
        row("com.a:http/2", last_fetch_time=NOW - 10 * DAY + 1, **row_of_gone),
        row("com.a:http/3", status=int(Status.DB_FETCHED), last_fetch_time=1),
    )
    assert dropped(rows, NOW) == {}
    assert dropped(rows, NOW, drop_gone=10 * DAY_S) == {"1": "gone"}
    assert dropped(rows, NOW, drop_gone=0) == {"1": "gone", "2": "gone"}


def test_orphans_go_by_the_time_without_a_link_whether_or_not_they_are_marked():
    orphan, fetched = int(Status.DB_ORPHAN), int(Status.DB_FETCHED)
    recent = {"last_fetch_time": NOW - DAY}  # they are fetched again and again
    rows = frame_of(
        STATE,
        row("com.a:http/1", status=orphan, last_inlink_day=19_939, **recent),
        row("com.a:http/2", status=fetched, last_inlink_day=19_939, **recent),
        row("com.a:http/3", status=fetched, last_inlink_day=19_939, **recent) | {"distance": 0},
        row("com.a:http/4", status=orphan, last_inlink_day=19_940, **recent),
        row("com.a:http/5", status=fetched, last_inlink_day=19_959, **recent),
        row("com.a:http/6", status=fetched, last_inlink_day=19_960, **recent),
        row("com.a:http/7", status=fetched, **recent),
    )
    orphans = dict.fromkeys("1245", "orphan")
    assert dropped(rows, NOW, drop_orphans=0) == orphans
    assert dropped(rows, NOW, drop_orphans=60 * DAY_S) == {"1": "orphan", "2": "orphan"}
    later = {"mark_orphan_after": 50 * DAY_S}
    assert "5" not in dropped(rows, NOW, drop_orphans=0, **later)
    assert dropped(rows, NOW) == {}


def test_duplicates_of_a_page_that_leaves_name_no_page_any_more():
    duplicate = {"status": int(Status.DB_DUPLICATE), "duplicate_of": "com.w:http/"}
    rows = frame_of(STATE, row("com.a:http/1", **duplicate), row("com.a:http/2", **duplicate),
                    row("com.a:http/3", **duplicate | {"duplicate_of": "com.v:http/"}))  # fmt: skip
    leaving = pl.DataFrame(
        {"key": ["com.w:http/", "com.a:http/2"], "target": [None, "com.b:http/2"],
         "reason": ["excluded", None]},
        schema_overrides={"target": pl.String},
    )  # fmt: skip
    joined = kept_pages(rows).join(leaving_pages(leaving), on="kept", how="left")
    changes = [empty(REKEYED), departures(leaving), arrivals(rows, leaving),
               questioned_duplicates(joined)]  # fmt: skip
    left, _ = rekey_rows(rows, pl.concat(changes, how="diagonal"), NOW)
    assert dict(left.select("key", "duplicate_of").iter_rows()) == {
        "com.a:http/1": None, "com.b:http/2": None, "com.a:http/3": "com.v:http/",
    }  # fmt: skip


def test_nothing_moves_to_a_purged_name():
    rows = frame_of(STATE, row("com.a.www:http/"), row("com.a:http/x"))
    judged = pl.DataFrame({"key": ["com.a:http/", "com.a:http/x"], "reason": [None, None]},
                          schema_overrides={"reason": pl.String})  # fmt: skip
    blocklist = blocklist_of(Names(urls=("com.a:http/",)).rows(0))
    found, counts = filter_rows(rows, judged, RowRules(blocklist, NOW))
    assert found.rows() == [("com.a.www:http/", "com.a:http/", "purged")]
    assert counts == {"rows": 2, "dropped/purged": 1}


def test_hosts_that_seeds_move_to_become_hosts_of_seeds():
    arrived = frame_of(
        REKEYED,
        {"key": "com.a:http/", "origin": "com.a.www:http/", "distance": 0},
        {"key": "com.a:http/2", "origin": "com.a.www:http/2", "distance": 0},
        {"key": "com.b:http/", "origin": "com.b:http/?", "distance": 0},
        {"key": "com.c:http/", "origin": "com.c.www:http/", "distance": 1},
    )
    assert hosts_of_seeds(arrived).select("key", "seed").rows() == [("com.a", True)]


# The reference: one row after the other.
BODY = ("signature", "simhash", "etag", "last_modified", "modified_time", "content_type",
        "parse_status", "document", "page", "batch_id", "usage")  # fmt: skip


def expected(rows, fates):
    """Returns the rows that must be left, by key, and the counts.

    Args:
        rows: Rows of the state, as dictionaries.
        fates: By key, to which key a row goes; None drops it.
    """
    groups, counts = {}, {"moved": 0, "merged": 0, "due_again": 0}
    for one in rows:
        target = fates.get(one["key"], one["key"])
        if target is not None:
            groups.setdefault(target, []).append(one)
            counts["moved"] += target != one["key"]
    left = {}
    for target, group in groups.items():
        counts["merged"] += len(group) - 1
        stayed = [one for one in group if one["key"] == target]
        by_age = sorted(group, key=lambda one: one["key"], reverse=True)
        by_age.sort(key=lambda one: (
            -1 if one["last_fetch_time"] is None else one["last_fetch_time"],
            -1 if one["fetch_time"] is None else one["fetch_time"], one["key"] == target,
        ))  # fmt: skip
        best = dict(by_age[-1])
        had_body = best["document"] or best["page"]
        metadata = {}
        for one in by_age:
            metadata.update(one["metadata"] or {})
        distances = [one["distance"] for one in group if one["distance"] is not None]
        best |= {"key": target, "distance": min(distances, default=None)}
        days = [one["last_inlink_day"] for one in group if one["last_inlink_day"] is not None]
        has_cash = any(one["cash"] is not None for one in group)
        cash = [one["score"] if one["cash"] is None else one["cash"] for one in group if has_cash]
        best |= {"last_inlink_day": max(days, default=None), "cash": sum(cash) if cash else None}
        best["metadata"] = metadata if any(one["metadata"] is not None for one in group) else None
        best |= {name: stayed[0][name] if stayed else None for name in BODY}
        # A duplicate that has moved is compared again, and one of a page that has become itself is none.
        if best["status"] == 7 and best["duplicate_of"] in [one["key"] for one in group]:
            best["status"] = 2
        if best["status"] != 7 or by_age[-1]["key"] != target:
            best["duplicate_of"] = None
        if had_body and not (best["document"] or best["page"]):
            best["fetch_time"] = min(best["fetch_time"], NOW)
            counts["due_again"] += 1
        left[target] = best
    return left, {name: number for name, number in counts.items() if number}


def random_rows(dice, number):
    def some(*values):
        return dice.choice([None, *values])

    return [
        {
            "key": f"com.a:http/{at:03}",
            "status": dice.choice([1, 2, 3, 6, 7]),
            "fetch_time": NOW + dice.choice([-5, 0, 5]),
            "last_fetch_time": some(1, 2, 3),
            "score": dice.randrange(64) / 64,
            "distance": some(0, 1, 2),
            "last_inlink_day": some(5, 6),
            "cash": some(0.5, 0.25),
            "document": some("d1", "d2"),
            "page": some("p1"),
            "etag": some("e"),
            "signature": some(b"s"),
            "metadata": some([("a", str(at))], [("b", str(at)), ("a", "b")], []),
        }
        for at in range(number)
    ]


@pytest.mark.few(8)
@pytest.mark.parametrize("seed", range(30))
def test_dropped_moved_and_merged_rows_agree_with_plain_python(seed):
    dice = random.Random(seed)
    records = random_rows(dice, 40)
    keys = [one["key"] for one in records]
    for one in records:
        if one["status"] == int(Status.DB_DUPLICATE):
            one["duplicate_of"] = dice.choice([*keys[::4], "com.a:http/elsewhere"])
    targets = [*keys[::4], *(f"com.a:http/new{n}" for n in range(4))]
    fates = {key: dice.choice([None, *targets]) for key in keys if dice.random() < 0.6}
    rows = frame_of(STATE, *records)
    judged = pl.DataFrame(
        {
            "key": [fates.get(key, key) for key in keys],
            "reason": ["excluded" if fates.get(key, key) is None else None for key in keys],
        },
        schema={"key": pl.String, "reason": pl.String},
    )
    leaving, _ = filter_rows(rows, judged, RowRules(Blocklist(), NOW))
    changes = [departures(leaving), arrivals(rows, leaving)]
    dice.shuffle(changes)
    together = pl.concat([frame_of(REKEYED), *changes], how="diagonal")
    left, counts = rekey_rows(rows, together.sample(fraction=1, shuffle=True, seed=seed), NOW)
    right, numbers = expected(rows.to_dicts(), fates)
    assert left.schema == rows.schema
    assert left["key"].to_list() == sorted(right)
    assert {one["key"]: one for one in left.to_dicts()} == right
    assert counts == numbers


@pytest.mark.parametrize("stays", ["page", "duplicate", "neither"])
def test_a_page_that_meets_its_own_duplicate_is_no_duplicate(stays):
    """Nothing would compare it again: no other page has its content."""
    page, duplicate = (f"com.a:http/{name}" for name in ("page", "duplicate"))
    rows = frame_of(
        STATE,
        row(page, status=int(Status.DB_FETCHED), last_fetch_time=1),
        row(duplicate, status=int(Status.DB_DUPLICATE), duplicate_of=page, last_fetch_time=2),
    )
    target = {"page": page, "duplicate": duplicate, "neither": "com.a:http/new"}[stays]
    judged = rows.with_columns(key=pl.lit(target), reason=pl.lit(None, pl.String))
    leaving, _ = filter_rows(rows, judged, RowRules(Blocklist(), NOW))
    joined = kept_pages(rows).join(leaving_pages(leaving), on="kept", how="left")
    changes = [empty(REKEYED), arrivals(rows, leaving), departures(leaving),
               questioned_duplicates(joined)]  # fmt: skip
    left, counts = rekey_rows(rows, pl.concat(changes, how="diagonal"), NOW)
    found = left.select("key", "status", "duplicate_of").rows()
    assert found == [(target, int(Status.DB_FETCHED), None)]
    assert counts["merged"] == 1


def test_cash_that_is_not_written_down_is_not_lost():
    """Of a row without cash the score is its cash."""
    cash = [0.5, None]
    rows = frame_of(STATE, *(row(f"com.a:http/{n}", score=n + 1.0, cash=some)
                             for n, some in enumerate(cash)))  # fmt: skip
    judged = rows.with_columns(key=pl.lit("com.a:http/0"), reason=pl.lit(None, pl.String))
    leaving, _ = filter_rows(rows, judged, RowRules(Blocklist(), NOW))
    changes = [empty(REKEYED), departures(leaving), arrivals(rows, leaving)]
    left, _ = rekey_rows(rows, pl.concat(changes, how="diagonal"), NOW)
    assert left.get_column("cash").to_list() == [2.5]


def test_a_range_without_arrivals_only_loses_rows():
    rows = frame_of(STATE, row("com.a:http/1"), row("com.a:http/2"))
    changes = pl.concat([frame_of(REKEYED), pl.DataFrame({"key": ["com.a:http/1"], "gone": [True]})],
                        how="diagonal")  # fmt: skip
    left, counts = rekey_rows(rows, changes, NOW)
    assert (left["key"].to_list(), counts) == (["com.a:http/2"], {})
