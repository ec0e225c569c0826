"""What changes depend on of the rows before: redirects, unchanged pages, pages that answered 304."""

from itertools import pairwise, permutations

import polars as pl
import pytest
from file_changes import Earlier, changes_of, update_state
from frames import frame_of
from status_rows import MONTH, NOW, OPTIONS

from nutbeam.policy.components.document_schema import DOCUMENTS
from nutbeam.policy.components.host_rows import Seeds
from nutbeam.policy.components.page_facts import COLUMNS_OF_PAGES, DOCUMENT_COLUMNS, BatchOrigin
from nutbeam.policy.components.schema import CHANGES, FETCHLIST, PAGES, STATE, Status
from nutbeam.policy.links import LinkOptions
from nutbeam.policy.schedules.schedule import DAY_MS
from nutbeam.policy.updating.redirects import NO_URL, choose_representative
from nutbeam.web.exchange.status import (
    FETCH_NOTMODIFIED,
    FETCH_REDIR_PERM,
    FETCH_REDIR_TEMP,
    FETCH_SUCCESS,
)
from nutbeam.web.urls.row_keys import to_key

SOURCE, TARGET = "http://a.example.com/", "http://a.example.com/home"
ORIGIN = BatchOrigin(1, "b", "documents/d")
GIVEN = {"fetch_interval": 7 * 86_400, "fixed_interval": 86_400, "metadata": [("lang", "fr")]}


def updated(state, pages, documents=(), listed=(), old=(), alone=()):
    """The rows of a state by URL, after pages were fetched."""
    before = Earlier(frame_of(FETCHLIST, *listed), frame_of(DOCUMENTS, *old), alone)
    changes, _ = changes_of(
        frame_of(PAGES, *pages).select(COLUMNS_OF_PAGES),
        frame_of(DOCUMENTS, *documents).select(DOCUMENT_COLUMNS),
        ORIGIN,
        Seeds(),
        LinkOptions(scope="any"),
        before=before,
    )
    rows, *_ = update_state(frame_of(STATE, *state), changes, NOW, OPTIONS)
    return {row["key"]: row for row in rows.to_dicts()}


def row(url, **columns):
    return {"key": to_key(url), "status": 1, "fetch_time": NOW - 1, "fetch_interval": MONTH,
            "score": 1.0, "distance": 1, **columns}  # fmt: skip


def page(url, status, **columns):
    return {"key": to_key(url), "fetch_status": status, "fetch_time": NOW, "score": 1.0,
            "distance": 1, **columns}  # fmt: skip


def linking(url, *links, **columns):
    outlinks = [{"key": to_key(link), "anchor": "", "rel": ""} for link in links]
    return {"key": to_key(url), "score": 1.0, "distance": 1, "outlinks": outlinks, **columns}


def test_the_target_of_a_redirect_inherits_from_its_source():
    rows = updated(
        [row(SOURCE, **GIVEN)],
        [page(SOURCE, FETCH_REDIR_TEMP, redirect=TARGET)],
        listed=[{"key": to_key(SOURCE), **GIVEN}],
    )
    target = rows[to_key(TARGET)]
    assert {name: target[name] for name in GIVEN} == {**GIVEN, "metadata": {"lang": "fr"}}
    assert (target["score"], target["distance"], target["fetch_time"]) == (0.0, 1, NOW)
    assert target["repr_url"] == SOURCE  # the shorter URL of a temporary redirect


def test_a_known_target_keeps_its_own_and_is_shown_by_the_better_url():
    rows = updated(
        [row(SOURCE, **GIVEN), row(TARGET, score=3.0)],
        [page(SOURCE, FETCH_REDIR_TEMP, redirect=TARGET)],
        listed=[{"key": to_key(SOURCE), **GIVEN}],
    )
    target = rows[to_key(TARGET)]
    assert (target["fetch_interval"], target["metadata"], target["score"]) == (MONTH, None, 3.0)
    assert target["repr_url"] == SOURCE


def test_a_chain_of_redirects_is_shown_by_its_best_url():
    """The source of the second redirect is shown as that of the first."""
    middle = "http://a.example.com/login?next=home"
    rows = updated(
        [row(middle, repr_url=SOURCE)],
        [page(middle, FETCH_REDIR_TEMP, redirect=TARGET)],
        listed=[{"key": to_key(middle), "repr_url": SOURCE}],
    )
    assert rows[to_key(TARGET)]["repr_url"] == SOURCE


@pytest.mark.parametrize("hops", [2, 3, 5])
@pytest.mark.parametrize("backwards", [False, True])
def test_a_chain_that_the_fetch_follows_hands_on_at_each_hop(hops, backwards):
    urls = [SOURCE, *(f"{SOURCE}{'/'.join('abcdef'[:hop])}" for hop in range(1, hops + 1))]
    pages = [page(url, FETCH_REDIR_TEMP, redirect=target) for url, target in pairwise(urls)]
    pages = [*(pages[::-1] if backwards else pages), page(urls[-1], FETCH_SUCCESS)]
    rows = updated([row(SOURCE, **GIVEN)], pages, listed=[{"key": to_key(SOURCE), **GIVEN}])
    for url in urls[1:]:
        target = rows[to_key(url)]
        assert {name: target[name] for name in GIVEN} == {**GIVEN, "metadata": {"lang": "fr"}}
        assert target["repr_url"] == SOURCE


def test_redirects_in_a_circle_hand_on_once():
    one, two = f"{SOURCE}one", f"{SOURCE}two"
    ways = [(SOURCE, one), (one, two), (two, one), (f"{SOURCE}3", f"{SOURCE}4"),
            (f"{SOURCE}4", f"{SOURCE}3")]  # fmt: skip
    pages = [page(url, FETCH_REDIR_PERM, redirect=target) for url, target in ways]
    rows = updated([row(SOURCE, **GIVEN)], pages, listed=[{"key": to_key(SOURCE), **GIVEN}])
    assert rows[to_key(two)]["fixed_interval"] == GIVEN["fixed_interval"]
    assert rows[to_key(f"{SOURCE}3")]["fixed_interval"] is None


@pytest.mark.parametrize("again", [False, True])
def test_a_page_for_which_no_url_stands_any_more_is_shown_as_itself(again):
    known = row(TARGET, repr_url="http://a.example.com/x")
    pages = [page(SOURCE, FETCH_REDIR_TEMP, redirect=TARGET)] if again else []
    rows = updated([known], [*pages, page(TARGET, FETCH_SUCCESS)], alone=[to_key(TARGET)])
    assert rows[to_key(TARGET)]["repr_url"] == (SOURCE if again else None)


def test_a_redirect_has_priority_over_no_redirect_of_another_file():
    shown = {"key": to_key(TARGET), "inlink_score": 0.0, "inlink_distance": 1}
    changes = frame_of(
        CHANGES,
        {"key": to_key(TARGET), "order": 1, "repr_url": NO_URL},
        {**shown, "order": 2, "repr_url": SOURCE, "metadata": [("a", "b")]},
    )
    rows, *_ = update_state(frame_of(STATE, row(TARGET, repr_url="x")), changes, NOW, OPTIONS)
    assert rows["repr_url"].to_list() == [SOURCE]


@pytest.mark.parametrize("order", list(permutations(range(3))))
@pytest.mark.parametrize("files", [1, 3])
def test_the_same_one_of_several_redirects_counts_in_any_order(order, files):
    """A permanent redirect says that the target is its own; the order of the fetch is by chance."""
    deep, plain = f"{SOURCE}old/5", f"{SOURCE}b"
    target = f"{SOURCE}long/home"
    ways = [(deep, FETCH_REDIR_PERM), (plain, FETCH_REDIR_TEMP), (f"{SOURCE}a", FETCH_REDIR_TEMP)]
    given = [{"fetch_interval": 86_400 * number} for number in (1, 2, 3)]
    fetched = [page(url, status, redirect=target) for url, status in ways]
    listed = [{"key": each["key"], **own} for each, own in zip(fetched, given, strict=True)]
    pages, listed = [fetched[at] for at in order], [listed[at] for at in order]
    parts = (
        [(pages, listed)]
        if files == 1
        else [([p], [o]) for p, o in zip(pages, listed, strict=True)]
    )
    changes = [
        changes_of(
            frame_of(PAGES, *some).select(COLUMNS_OF_PAGES),
            frame_of(DOCUMENTS).select(DOCUMENT_COLUMNS),
            BatchOrigin(number, "b"),
            Seeds(),
            LinkOptions(scope="any"),
            before=Earlier(frame_of(FETCHLIST, *own)),
        )[0]
        for number, (some, own) in enumerate(parts)
    ]
    state = [row(url) for url, _ in ways]
    rows, *_ = update_state(frame_of(STATE, *state), pl.concat(changes), NOW, OPTIONS)
    heir = rows.filter(pl.col("key") == to_key(target)).row(0, named=True)
    assert (heir["repr_url"], heir["fetch_interval"]) == (f"{SOURCE}a", 3 * 86_400)


def test_a_page_that_fetch_followed_has_nothing_to_give():
    rows = updated([], [page(SOURCE, FETCH_REDIR_PERM, redirect=TARGET)])
    assert rows[to_key(TARGET)]["fetch_interval"] == OPTIONS.fetch_interval


@pytest.mark.parametrize(
    ("source", "target", "temporary", "permanent"),
    [
        ("http://a.com/x", "http://b.com/", 1, 1),  # another domain: the target
        ("http://a.com/", "http://www.a.com/x", 0, 0),  # the root
        ("http://www.a.com/x", "http://a.com/", 1, 1),
        ("http://a.com/x/y", "http://a.com/z", 1, 1),  # fewer parts
        ("http://a.com/x/y", "http://a.com/products/", 1, 1),  # a slash at the end begins no part
        ("http://a.com/products/", "http://a.com/x/y", 0, 1),
        ("http://a.com/z", "http://a.com/x/y", 0, 1),
        ("http://a.com/x?id=1", "http://a.com/x", 1, 1),  # a shorter path
        ("http://a.com/x", "http://a.com/y", 0, 1),  # a tie: the source
        ("http://www.a.com/x", "http://a.com/x", 1, 1),  # fewer labels
        ("http://a.com/x", "http://www.a.com/x", 0, 1),
    ],
)
def test_nutchs_rule_of_representative_urls(source, target, temporary, permanent):
    ends = source, target
    assert choose_representative(*ends, temporary=True) == ends[temporary]
    assert choose_representative(*ends, temporary=False) == ends[permanent]


@pytest.mark.parametrize(("seconds", "stands"), [(None, True), (4, True), (5, False)])
def test_a_late_refresh_is_a_permanent_redirect(seconds, stands):
    short, target = "http://a.example.com/x", "http://a.example.com/x/y/z"
    known = {"key": to_key(short), "fetch_interval": MONTH}
    rows = updated(
        [row(short)],
        [page(short, FETCH_SUCCESS)],
        [linking(short, refresh=target, refresh_seconds=seconds, parse_status=1)],
        listed=[known],
    )
    assert rows[to_key(target)]["repr_url"] == (short if stands else None)


LEAF = "http://b.example.com/leaf"
LONG_AGO = NOW // DAY_MS - 50


@pytest.mark.parametrize("answer", ["304", "unchanged", "changed"])
def test_links_of_unchanged_pages_are_seen_and_give_no_score(answer):
    known = {"signature": b"s", "document": "old"}
    state = [
        row(SOURCE, status=int(Status.DB_FETCHED), **known),
        row(LEAF, last_inlink_day=LONG_AGO, distance=9, score=0.25),
    ]
    code = FETCH_NOTMODIFIED if answer == "304" else FETCH_SUCCESS
    signature = b"s" if answer == "unchanged" else b"t"
    document = linking(SOURCE, LEAF, signature=signature, parse_status=1)
    rows = updated(
        state,
        [page(SOURCE, code)],
        [] if answer == "304" else [document],
        [{"key": to_key(SOURCE), **known}],
        [linking(SOURCE, LEAF)] if answer == "304" else [],
    )
    leaf = rows[to_key(LEAF)]
    assert leaf["last_inlink_day"] == NOW // DAY_MS
    assert (leaf["score"], leaf["distance"]) == (1.25 if answer == "changed" else 0.25, 2)
    changed = Status.DB_FETCHED if answer == "changed" else Status.DB_NOTMODIFIED
    assert rows[to_key(SOURCE)]["status"] == changed
