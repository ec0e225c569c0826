import polars as pl
import pytest

from nutbeam.policy.scope import TrapOptions, trap_reasons
from nutbeam.policy.traps import BudgetOptions, within_budget
from nutbeam.web.urls.row_keys import to_key


def reasons(urls, **options):
    keys = pl.Series([None if url is None else to_key(url) for url in urls], dtype=pl.String)
    return trap_reasons(keys, TrapOptions(**options)).to_list()


@pytest.mark.parametrize(
    ("rest", "reason"),
    [
        ("", None),
        ("a/a/a/", None),
        ("a/a/a/a", "repeated_segments"),
        ("a/b/c/a/b/c/a/b/c/a/b/c/", "repeated_segments"),
        ("a/x/a/y/a/z/a.html", None),
        ("a/x/a/y/a/z/a/index.html", "repeated_segments"),
        ("////////", None),  # nothing stands between them
        ("2024/01/01/01", None),
        ("a/b/c/d/e/f/g/h/i/j/k/l", None),
        ("?q=/a/a/a/a/a", None),  # a path in a query is no path
        ("?" + "&".join(f"p{n}=1" for n in range(20)), None),
        ("?" + "&".join(f"p{n}=1" for n in range(21)), "too_many_parameters"),
        ("?q=" + "x" * 498, None),
        ("?q=" + "x" * 499, "parameter_too_long"),
        ("?" + "&".join("q=" + "x" * 100 for n in range(10)), None),
        ("a/a/a/a?" + "x" * 501, "repeated_segments"),
    ],
)
def test_urls_with_signs_of_a_trap_are_recognized(rest, reason):
    assert reasons([f"http://foo.com/{rest}"]) == [reason]


def test_rows_stay_in_their_places_and_limits_can_be_lifted():
    urls = ["http://a.com/x/x/x/x", None, "http://a.com/", "http://a.com/?a&b&c"]
    assert reasons(urls, max_parameters=2) == [
        "repeated_segments", None, None, "too_many_parameters",
    ]  # fmt: skip
    off = {"max_parameters": -1, "max_segment_repeats": -1, "max_parameter_length": -1}
    assert reasons(urls, **off) == [None] * 4
    assert reasons([]) == []
    assert reasons(["http://a.com/x/y", "http://a.com/x/x"], max_segment_repeats=1) == [
        None, "repeated_segments",
    ]  # fmt: skip


def news(urls, score=None):
    scores = [1.0] * len(urls) if score is None else score
    return pl.DataFrame({"key": [to_key(url) for url in urls], "inlink_score": scores})


def fetched(*pages):
    return pl.DataFrame(
        {
            "key": [to_key(url) for url, _, _ in pages],
            "signature": [signature for _, signature, _ in pages],
            "fetch_time": [time for _, _, time in pages],
        },
        schema={
            "key": pl.String, "signature": pl.Binary, "fetch_time": pl.Int64,
        },
    )  # fmt: skip


def taken(new, events=None, **options):
    kept, counts = within_budget(
        new, fetched() if events is None else events, BudgetOptions(**options)
    )
    return set(kept["key"]), counts


def test_only_the_best_new_urls_of_a_host_are_admitted():
    urls = [f"http://a.com/{n}" for n in range(5)] + ["http://b.com/x"]
    kept, counts = taken(news(urls, [1.0, 5.0, 3.0, 3.0, 2.0, 0.0]), max_new_per_host=3)
    assert kept == {to_key(urls[at]) for at in (1, 2, 3, 5)}
    assert counts == {"dropped/host_budget": 2}


def test_max_per_host_limits_known_and_new_urls_of_a_host():
    urls = [f"http://a.com/{n}" for n in range(5)] + ["http://b.com/x", "http://c.com/x"]
    new, options = news(urls, [1.0, 5.0, 3.0, 3.0, 2.0, 0.0, 0.0]), BudgetOptions(max_per_host=10)
    kept, counts = within_budget(new, fetched(), options, {"com.a": 8, "com.b": 10, "com.d": 99})
    assert set(kept["key"]) == {to_key(urls[at]) for at in (1, 2, 6)}
    assert counts == {"dropped/host_total": 4}
    kept, counts = within_budget(new, fetched(), BudgetOptions(max_per_host=2))
    assert set(kept["key"]) == {to_key(urls[at]) for at in (1, 2, 5, 6)}
    kept, counts = within_budget(new, fetched(), BudgetOptions(max_per_host=-1), {"com.a": 10**9})
    assert (len(kept), counts) == (7, {})


def test_only_the_best_urls_that_differ_in_the_query_alone_are_admitted():
    urls = [f"http://a.com/list?p={n}" for n in range(5)] + [
        "http://a.com/list",
        "http://a.com/x?y",
    ]
    kept, counts = taken(news(urls), max_new_queries=2)
    assert kept == {to_key(urls[at]) for at in (0, 1, 5, 6)}
    assert counts == {"dropped/path_budget": 3}


def test_only_the_best_new_hosts_of_a_domain_are_admitted_with_all_their_urls():
    urls = [f"http://h{n}.a.com/{m}" for n in range(4) for m in range(2)] + ["http://b.org/"]
    scores = [1.0, 0.0, 2.0, 0.0, 3.0, 0.0, 0.0, 0.0, 0.0]
    kept, counts = taken(news(urls, scores), max_new_hosts_per_domain=2)
    assert kept == {to_key(urls[at]) for at in (2, 3, 4, 5, 8)}
    assert counts == {"dropped/domain_budget": 4}


def test_a_host_whose_last_pages_are_the_same_gets_no_new_urls():
    same = [(f"http://a.com/{n}", b"s", n) for n in range(1, 4)]
    new = news(["http://a.com/new", "http://b.com/new"])
    for pages, dropped in (
        (same, True),
        ([("http://a.com/0", b"other", 0), *same], True),  # only the last ones count
        ([*same, ("http://a.com/9", b"other", 9)], False),
        (same[:2], False),
        ([*same[:2], ("http://b.com/1", b"s", 3)], False),  # a page of another host
        ([*same[:2], ("http://a.com/9", None, 3)], False),  # a page that has no signature
    ):
        kept, counts = taken(new, fetched(*pages), max_same_pages=3)
        assert counts == ({"dropped/same_pages": 1} if dropped else {})
        assert len(kept) == 2 - dropped


def test_without_limits_all_are_taken():
    urls = [f"http://h{n}.a.com/?{m}" for n in range(3) for m in range(3)]
    off = ("max_new_per_host", "max_new_queries", "max_new_hosts_per_domain", "max_same_pages")
    same = fetched(*((f"http://h0.a.com/{n}", b"s", n) for n in range(30)))
    assert taken(news(urls), same, **dict.fromkeys(off, -1))[1] == {}
    assert taken(news([]), same)[1] == {}
    limits = dict.fromkeys(off[:3], 0)
    assert taken(news(urls), **limits) == (set(), {"dropped/path_budget": 9})


def test_neighbours_below_one_suffix_are_domains_of_their_own():
    urls = [f"http://h.a{n}.co.uk/" for n in range(5)] + [f"http://h{n}.b.co.uk/" for n in range(3)]
    urls += ["http://localhost/", "http://10.0.0.1/", "http://[2001:db8::1]/"]
    kept, counts = taken(news(urls), max_new_hosts_per_domain=2)
    assert counts == {"dropped/domain_budget": 1}
    assert len(kept) == len(urls) - 1
