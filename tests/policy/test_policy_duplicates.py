import pytest
from frames import frame_of

from nutbeam.policy.duplicates import DedupOptions, comparable, mark_duplicates, order_by
from nutbeam.policy.schema import SIGNATURES, STATE, Status
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
    found = comparable(frame_of(STATE, page("http://a.com/", status)), NOW)
    assert len(found) == (status in (Status.DB_FETCHED, Status.DB_NOTMODIFIED))


def test_pages_without_a_signature_cannot():
    assert len(comparable(frame_of(STATE, page("http://a.com/", signature=None)), NOW)) == 0


@pytest.mark.parametrize(
    ("url", "https"),
    [("https://a.com/", True), ("https://a.com:444/", True), ("http://a.com/:https/", False),
     ("https://[::1]/", True), ("http://[::1]/", False), ("http://https.com/https:/", False)],
)  # fmt: skip
def test_https(url, https):
    assert comparable(frame_of(STATE, page(url)), NOW)["https"].to_list() == [https]


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
    lengths = comparable(frame_of(STATE, page(shorter), page(longer)), NOW)["url_length"]
    assert lengths[0] < lengths[1]


def survivor(*pages, **options):
    """The URL that stays, as what is left of its key."""
    chosen = DedupOptions(**options)
    columns, descending = order_by(chosen)
    rows = comparable(frame_of(STATE, *pages), NOW)
    kept, lost = dedup_by_hash(rows, "signature", tuple(columns), tuple(descending))
    assert len(kept) + len(lost) == len(rows)
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
    plain, secure = page("http://a.com/", score=2.0), page("https://a.com/longer")
    assert survivor(plain, secure, compare_order=("httpsOverHttp", "score")) == secure["key"]
    assert survivor(plain, secure, compare_order=("urlLength",)) == plain["key"]


def test_losers_are_marked_and_nothing_else_changes():
    rows = frame_of(STATE, *(page(f"http://a.com/{n}") for n in range(4)))
    losers = frame_of(SIGNATURES, *({"key": rows["key"][n]} for n in (1, 3)))
    marked, count = mark_duplicates(rows, losers)
    assert count == 2
    assert marked["status"].to_list() == [2, 7, 2, 7]
    assert marked.drop("status").equals(rows.drop("status"))
    assert marked.schema == rows.schema


@pytest.mark.parametrize("losers", [[], [{"key": "com.other:http/"}]])
def test_who_is_not_there_is_not_marked(losers):
    rows = frame_of(STATE, page("http://a.com/"))
    marked, count = mark_duplicates(rows, frame_of(SIGNATURES, *losers))
    assert (marked.equals(rows), count) == (True, 0)
