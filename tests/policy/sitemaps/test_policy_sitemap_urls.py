"""What the URLs of sitemaps become: rules, places, scores, intervals, dates."""

from collections import Counter

import polars as pl
import pytest

from nutbeam.policy.components.blocklist import Blocklist, Names, blocklist_of
from nutbeam.policy.components.host_rows import Seeds
from nutbeam.policy.sitemaps.sitemap_list import Sitemap, SitemapOptions
from nutbeam.policy.sitemaps.sitemap_urls import EntryRules, children_of, interval_of, judge_sitemap
from nutbeam.web.parsers.sitemap_entries import CHILD_SITEMAP, URL, SitemapContent, SitemapEntry

HERE = "http://example.com/news/sitemap.xml"
NOW = 1_790_000_000_000
NO_SEEDS, NO_BLOCKS = Seeds(), Blocklist()


def judged(*entries, url=HERE, places=("example.com/news/",), blocklist=NO_BLOCKS, **options):
    """Returns (rows as dicts, counts) of entries or URLs."""
    some = [SitemapEntry(URL, e) if isinstance(e, str) else e for e in entries]
    content = SitemapContent("urlset", some, Counter())
    sitemap = Sitemap(url, url, places)
    rules = EntryRules(SitemapOptions(**options), NO_SEEDS, blocklist, NOW)
    rows, counts = judge_sitemap(content, sitemap, rules)
    counts.pop("entries", None)
    return rows.to_dicts(), dict(counts)


def keys(*entries, **more):
    rows, counts = judged(*entries, **more)
    return [row["key"] for row in rows], counts


def test_urls_are_resolved_normalized_and_merged():
    found, counts = keys("a", "/news/./a", "HTTP://EXAMPLE.com:80/news/a#x", "/news/b")
    assert (found, counts) == (["com.example:http/news/a", "com.example:http/news/b"], {})


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("/other/a", "outside_sitemap"),
        ("/news", "outside_sitemap"),
        ("http://www.example.com/news/a", "outside_sitemap"),
        ("http://example.com:8080/news/a", "outside_sitemap"),
        ("http://example.com.evil.net/news/a", "out_of_scope"),
        ("http://evil.net/?http://example.com/news/", "out_of_scope"),
        ("javascript:alert(1)", "no_http_url"),
        ("/news/logo.png", "filtered"),
        ("/news/x/x/x/x/x", "repeated_segments"),
        ("/news/a?" + "&".join(f"a{n}" for n in range(30)), "too_many_parameters"),
    ],
)
def test_refused_urls_have_a_reason(url, reason):
    assert keys(url) == ([], {f"dropped/{reason}": 1})


def test_the_scheme_may_differ():
    assert keys("https://example.com/news/a")[0] == ["com.example:https/news/a"]


def test_the_spelling_of_a_folder_may_differ():
    for place in ("/~user/", "/%7Euser/"):
        url, home = f"http://example.com{place}sitemap.xml", "example.com/~user/"
        spellings = ["/~user/a", "/%7Euser/b", "/%7euser/c", "/x/../~user/d", "d", "/~user"]
        found, counts = keys(*spellings, url=url, places=(home,))
        assert found == [f"com.example:http/~user/{name}" for name in "abcd"]
        assert counts == {"dropped/outside_sitemap": 1}


def test_options_of_rules():
    foreign = "http://www.example.com/a"
    assert keys(foreign, sitemap_strict_parsing=False)[0] == ["com.example.www:http/a"]
    assert keys("http://b.com/", sitemap_strict_parsing=False)[1] == {"dropped/out_of_scope": 1}
    assert keys("http://b.com/", sitemap_strict_parsing=False, scope="any")[0] == ["com.b:http/"]
    assert keys("/news/logo.png", sitemap_url_filter=False)[0] == ["com.example:http/news/logo.png"]
    session = "/news/a?PHPSESSID=0123456789abcdef0123456789abcdef"
    assert keys(session)[0] != keys(session, sitemap_url_normalize=False)[0]
    assert keys("/news/a", "/news/b", include=("/b",))[0] == ["com.example:http/news/b"]
    assert keys("/news/a", skip_internal_links=True)[0] == ["com.example:http/news/a"]


def test_blocked_urls_are_dropped():
    names = Names(urls=("com.example:http/news/a",))
    found = keys("/news/a", "/news/b", blocklist=blocklist_of(names.rows(0)))
    assert found == (["com.example:http/news/b"], {"dropped/purged": 1})


def test_priority_is_the_score():
    given = {"a": None, "b": 0.0, "c": 0.25, "d": 1.0}
    rows, _ = judged(*(SitemapEntry(URL, name, priority=value) for name, value in given.items()))
    assert [row["score"] for row in rows] == [None, 0.5, 0.25, 1.0]


def test_dates_in_the_future_do_not_count():
    now, later = (SitemapEntry(URL, name, lastmod=NOW + at) for name, at in (("a", 0), ("b", 1)))
    rows, counts = judged(now, later)
    assert [row["lastmod"] for row in rows] == [NOW, None]
    assert counts == {"ignored/lastmod_in_future": 1}


def test_intervals_are_within_the_bounds_of_the_schedule():
    words = {"always": 60, "hourly": 3_600, "daily": 86_400, "weekly": 604_800,
             "monthly": 2_592_000, "yearly": 7_776_000, "never": 7_776_000}  # fmt: skip
    rows, _ = judged(*(SitemapEntry(URL, word, changefreq=word) for word in sorted(words)))
    assert [row["changefreq"] for row in rows] == [words[word] for word in sorted(words)]
    bounds = SitemapOptions(schedule="adaptive", min_interval=7_000, max_interval=90_000)
    for word, seconds in words.items():
        assert interval_of(word, SitemapOptions()) == seconds
        assert interval_of(word, bounds) == min(max(seconds, 7_000), 90_000)


def test_sitemaps_of_an_index_are_no_pages():
    index = SitemapContent("sitemapindex", [SitemapEntry(CHILD_SITEMAP, "s.xml")] * 2, Counter())
    assert children_of(index, HERE) == ["http://example.com/news/s.xml"] * 2
    assert judged(*index.entries) == ([], {})


def test_nothing_is_nothing():
    assert judged() == ([], {})
    assert children_of(SitemapContent("urlset", [], Counter()), HERE) == []
    assert isinstance(pl.DataFrame(judged()[0]), pl.DataFrame)
