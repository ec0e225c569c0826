import polars as pl
import pytest
from frames import frame_of

from nutbeam.policy.components.schema import OUTCOME, STATE, Status
from nutbeam.policy.dedup.duplicates import (
    SCHEME,
    VERDICTS,
    DedupOptions,
    apply_verdicts,
    comparable_rows,
    follow_twins,
    order_by,
    signature_rows,
    signatures_to_compare,
)
from nutbeam.transforms.dedup_by_hash import dedup_by_hash
from nutbeam.web.urls.row_keys import to_key

NOW = 1_700_000_000_000


def page(url, status=Status.DB_FETCHED, signature=b"s", score=1.0, last_fetch_time=1):
    return {
        "key": to_key(url),
        "status": int(status),
        "signature": signature,
        "score": score,
        "last_fetch_time": last_fetch_time,
    }


@pytest.mark.parametrize("status", list(Status))
def test_only_pages_with_content_can_be_duplicates(status):
    row = page("http://a.com/", status)
    if status == Status.DB_DUPLICATE:  # without the page that stays it is compared again
        row |= {"duplicate_of": to_key("http://b.com/")}
    found = comparable_rows(frame_of(STATE, row), NOW, pl.Series([], dtype=pl.String))
    assert len(found) == (status in (Status.DB_FETCHED, Status.DB_NOTMODIFIED))


def test_pages_without_a_signature_cannot():
    assert len(comparable_rows(frame_of(STATE, page("http://a.com/", signature=None)), NOW)) == 0


@pytest.mark.parametrize(
    ("url", "https"),
    [("https://a.com/", True), ("https://a.com:444/", True), ("http://a.com/:https/", False),
     ("https://[::1]/", True), ("http://[::1]/", False), ("http://https.com/https:/", False)],
)  # fmt: skip
def test_https(url, https):
    assert comparable_rows(frame_of(STATE, page(url)), NOW)["https"].to_list() == [https]


@pytest.mark.parametrize(
    ("shorter", "longer"),
    [
        ("http://a.com/ab", "http://a.com/abc"),
        ("http://a.com/%20%20", "http://a.com/abc"),  # 2 characters once decoded
        ("http://a.com/%C3%A9", "http://a.com/ab"),  # é
        ("http://a.com/%F0%9F%8C%B3", "http://a.com/ab"),  # a tree
        ("http://[::1]/", "http://[::1]/a"),
    ],
)
def test_the_length_of_a_url_is_that_of_its_decoded_form(shorter, longer):
    lengths = comparable_rows(frame_of(STATE, page(shorter), page(longer)), NOW)["url_length"]
    assert lengths[0] < lengths[1]


def survivor(*pages, **options):
    """The URL that stays, as what is left of its key."""
    chosen = DedupOptions(**options)
    rows = signature_rows(comparable_rows(frame_of(STATE, *pages), NOW), chosen, all_pages=True)
    if SCHEME in chosen.compare_order:
        rows = follow_twins(rows, chosen)
    kept, _ = dedup_by_hash(rows, "group", *map(tuple, order_by(chosen, twins=False)))
    assert len(rows) == len(pages)
    assert len(kept) == 1
    return kept["key"][0]


def test_a_page_that_was_fetched_later_than_now_is_not_the_newest():
    known = page("http://known.com/", last_fetch_time=5)
    assert survivor(known, page("http://ahead.com/", last_fetch_time=NOW + 10**9)) == known["key"]
    later = page("http://later.com/", last_fetch_time=NOW)
    assert survivor(known, later) == later["key"]


BEST = page("http://z.com/best/of/all", score=2.0, last_fetch_time=5)


@pytest.mark.parametrize(
    "other",
    [
        page("http://a.com/", score=1.0, last_fetch_time=9),
        page("http://a.com/", score=2.0, last_fetch_time=4),
        page("http://a.com/", score=2.0, last_fetch_time=None),
        page("http://a.com/", score=None, last_fetch_time=9),
        page("http://a.com/", score=float("nan"), last_fetch_time=9),
        page("http://a.com/but/a/longer/one", score=2.0, last_fetch_time=5),
    ],
    ids=["score", "time", "no_time", "no_score", "nan_score", "length"],
)
def test_score_then_time_then_length_decide(other):
    assert survivor(other, BEST) == survivor(BEST, other) == BEST["key"]


def test_in_the_end_the_key_decides():
    one, other = page("http://a.com/x"), page("http://b.com/x")
    assert survivor(one, other) == survivor(other, one) == one["key"]


def test_the_order_can_be_chosen():
    plain, other = page("http://a.com/", score=2.0), page("https://a.com/longer", last_fetch_time=9)
    assert survivor(plain, other, compare_order=("fetchTime", "score")) == other["key"]
    assert survivor(plain, other, compare_order=("urlLength",)) == plain["key"]


def test_the_scheme_counts_only_where_nothing_else_differs():
    plain, secure = page("http://a.com/", score=2.0), page("https://a.com/")
    order = ("httpsOverHttp", "score", "urlLength")
    assert survivor(plain, secure, compare_order=order) == secure["key"]
    assert survivor(plain, secure, compare_order=("score", "httpsOverHttp")) == plain["key"]
    other = page("https://a.com/x", score=1.5)
    assert survivor(plain, other, compare_order=order) == plain["key"]
    # The twin goes first, then the others are compared by the rest of the order.
    assert survivor(plain, secure, other, compare_order=order) == other["key"]


def duplicate(url, winner, **columns):
    return {**page(url, Status.DB_DUPLICATE, **columns), "duplicate_of": winner and to_key(winner)}


def verdicts(**winners):
    """Pages of a.com, with the page that stays instead."""
    rows = ({"key": to_key(f"http://a.com/{name}"), "duplicate_of": winner and to_key(winner)}
            for name, winner in winners.items())  # fmt: skip
    return frame_of(VERDICTS, *rows)


def test_losers_are_marked_and_nothing_else_changes():
    rows = frame_of(STATE, *(page(f"http://a.com/n{n}") for n in range(4)))
    winner = "http://a.com/n0"
    marked, counts = apply_verdicts(rows, verdicts(n1=winner, n3=winner))
    assert counts == {"duplicates": 2}
    assert marked["status"].to_list() == [2, 7, 2, 7]
    assert marked["duplicate_of"].to_list() == [None, to_key(winner), None, to_key(winner)]
    assert marked.drop("status", "duplicate_of").equals(rows.drop("status", "duplicate_of"))
    assert marked.schema == rows.schema


def test_duplicates_whose_page_that_stays_is_another_one_are_counted():
    """Of imported duplicates it is not known; those of the first page stay as they are."""
    first, second = "http://a.com/first", "http://a.com/second"
    pages = {"n0": first, "n1": second, "n2": None}
    rows = frame_of(STATE, *(duplicate(f"http://a.com/{name}", of) for name, of in pages.items()))
    _, counts = apply_verdicts(rows, verdicts(n0=first, n1=first, n2=first))
    assert counts == {"other_representative": 2}


@pytest.mark.parametrize("losers", [{}, {"other": "http://a.com/x"}])
def test_pages_without_a_verdict_are_not_marked(losers):
    rows = frame_of(STATE, page("http://a.com/"))
    marked, counts = apply_verdicts(rows, verdicts(**losers))
    assert (marked.equals(rows), counts) == (True, {})


def test_a_page_that_is_no_duplicate_any_more_is_fetched():
    rows = frame_of(STATE, duplicate("http://a.com/x", "http://b.com/"))
    marked, counts = apply_verdicts(rows, verdicts(x=None))
    assert (marked["status"].to_list(), counts) == ([Status.DB_FETCHED], {"revived": 1})
    assert marked["duplicate_of"].to_list() == [None]


def outcome(url, old, new, before=b"s", after=b"s"):
    return {"key": to_key(url), "old_status": int(old), "status": int(new),
            "old_signature": before, "signature": after}  # fmt: skip


FETCHED, GONE = Status.DB_FETCHED, Status.DB_GONE


@pytest.mark.parametrize(
    ("old", "new", "after", "lost"),
    [
        (FETCHED, FETCHED, b"s", False),
        (FETCHED, Status.DB_NOTMODIFIED, b"s", False),
        (FETCHED, GONE, b"s", True),
        (FETCHED, Status.DB_REDIR_TEMP, b"s", True),
        (FETCHED, FETCHED, b"t", True),
        (Status.DB_DUPLICATE, GONE, b"s", True),
        (GONE, GONE, b"s", False),
        (Status.DB_UNFETCHED, FETCHED, b"t", True),  # inject may have replaced the row
        # A page that is to be tried again keeps its duplicates until the result is known.
        (FETCHED, Status.DB_UNFETCHED, b"s", False),
        (Status.DB_UNFETCHED, Status.DB_UNFETCHED, b"s", False),
        (Status.DB_UNFETCHED, FETCHED, b"s", False),
        (Status.DB_UNFETCHED, GONE, b"s", True),
    ],
)
def test_lost_pages_and_new_signatures_of_a_batch_are_compared_again(old, new, after, lost):
    found = signatures_to_compare(
        frame_of(OUTCOME, outcome("http://a.com/", old, new, after=after))
    )
    assert found.lost.to_list() == ([to_key("http://a.com/")] if lost else [])
    assert set(found.signatures) == {after, *([b"s"] if lost else [])}


def test_only_duplicates_of_lost_pages_are_compared_again():
    rows = frame_of(STATE, duplicate("http://a.com/", "http://w.com/"), page("http://b.com/"),
                    duplicate("http://c.com/", "http://v.com/"))  # fmt: skip
    unknown = frame_of(STATE, {**duplicate("http://d.com/", "http://v.com/"), "duplicate_of": None})
    lost = pl.Series([to_key("http://w.com/")])
    assert len(comparable_rows(rows, NOW, lost)) == 2
    assert len(comparable_rows(unknown, NOW, lost)) == 1
    assert len(comparable_rows(rows, NOW, lost.clear())) == 1
    assert len(comparable_rows(rows, NOW)) == 3  # without a batch all are
