"""Which sitemaps are requested: given ones, those of hosts, those of indexes; each once."""

import pytest

from nutbeam.policy.sitemaps.sitemap_list import SitemapList, SitemapOptions, place_of_sitemap

GIVEN = "http://example.com/news/sitemap.xml"


def begun(url=GIVEN, **options):
    """Returns (a list, its first sitemap)."""
    sitemaps = SitemapList(SitemapOptions(**options))
    sitemaps.add_given([url])
    (first,) = sitemaps.take()
    return sitemaps, first


def urls(sitemaps):
    return [one.url for one in sitemaps.take()]


def test_given_ones_are_normalized_and_come_once():
    sitemaps = SitemapList(SitemapOptions())
    sitemaps.add_given(
        ["HTTP://Example.com:80/a.xml.gz", "http://example.com/a.xml.gz", "x", "ftp://a/"]
    )
    (one,) = sitemaps.take()
    assert (one.url, one.places, one.by_operator) == (
        "http://example.com/a.xml.gz", ("example.com/",), True,
    )  # fmt: skip
    assert sitemaps.dropped == {"repeated": 1, "malformed": 1, "scheme_not_allowed": 1}
    assert sitemaps.take() == []


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("http://a.com/", "a.com/"),
        ("https://a.com/x/y?z=/w", "a.com/x/"),
        ("http://a.com:8080/s.xml", "a.com:8080/"),
        ("http://[::1]/a/s.xml", "[::1]/a/"),
    ],
)
def test_places(url, place):
    assert place_of_sitemap(url) == place


def test_a_host_has_the_sitemaps_of_its_robots_txt():
    sitemaps = SitemapList(SitemapOptions())
    sitemaps.add_host("https://example.com")
    (default,) = sitemaps.take()
    assert (default.url, default.of_host) == ("https://example.com/sitemap.xml", True)
    named = ["https://cdn.net/example/s.xml", "bad", "https://example.com/x/s.xml"]
    assert sitemaps.add_of_robots(default, named) == "others_in_robots_txt"
    first, second = sitemaps.take()
    # robots.txt of the host vouches for its own URLs, wherever the sitemap is.
    assert first.places == ("cdn.net/example/", "example.com/")
    assert second.places == ("example.com/x/", "example.com/")
    assert not first.of_host
    assert first.root == default.url


def test_a_host_has_a_default_if_robots_txt_names_none():
    for default in (True, False):
        sitemaps = SitemapList(SitemapOptions(sitemap_url_default_sitemap_xml=default))
        sitemaps.add_host("https://example.com")
        (one,) = sitemaps.take()
        reason = None if default else "none_in_robots_txt"
        assert sitemaps.add_of_robots(one, []) == reason
        # It is requested, too, if robots.txt names it itself.
        assert sitemaps.add_of_robots(one, [one.url]) is None
        assert urls(sitemaps) == []


def test_indexes_end_at_their_depth():
    sitemaps, parent = begun(sitemap_depth=3)
    for level in range(1, 4):
        sitemaps.add_child(parent, f"http://example.com/{level}.xml")
        (parent,) = sitemaps.take()
        assert parent.depth == level
    sitemaps.add_child(parent, "http://example.com/4.xml")
    assert (urls(sitemaps), sitemaps.dropped) == ([], {"too_deep": 1})


def test_indexes_have_no_loops():
    sitemaps, parent = begun()
    sitemaps.add_child(parent, GIVEN)
    sitemaps.add_child(parent, "http://example.com/b.xml")
    (child,) = sitemaps.take()
    sitemaps.add_child(child, GIVEN)
    sitemaps.add_child(child, child.url)
    assert (urls(sitemaps), sitemaps.dropped) == ([], {"repeated": 3})


def test_children_are_on_the_host_of_their_index():
    sitemaps, parent = begun()
    sitemaps.add_child(parent, "http://evil.net/s.xml")
    sitemaps.add_child(parent, "http://www.example.com/s.xml")
    assert (urls(sitemaps), sitemaps.dropped) == ([], {"foreign": 2})
    sitemaps.add_child(parent, "https://example.com/other/s.xml")
    (child,) = sitemaps.take()
    assert child.places == ("example.com/news/", "example.com/other/")
    sitemaps, parent = begun(sitemap_strict_parsing=False)
    sitemaps.add_child(parent, "http://evil.net/s.xml")
    assert urls(sitemaps) == ["http://evil.net/s.xml"]


def test_sitemaps_of_a_host_are_limited():
    sitemaps, parent = begun(sitemap_files_max=3)
    for number in range(5):
        sitemaps.add_child(parent, f"http://example.com/{number}.xml")
    assert (len(urls(sitemaps)), sitemaps.dropped) == (2, {"too_many": 3})
    sitemaps.add_host("http://b.com")
    assert len(urls(sitemaps)) == 1


@pytest.mark.parametrize(("strict", "followed"), [(True, False), (False, True)])
def test_a_sitemap_of_an_index_redirects_elsewhere_only_without_strict_parsing(strict, followed):
    sitemaps, parent = begun(sitemap_strict_parsing=strict)
    sitemaps.add_child(parent, "http://example.com/child.xml")
    (child,) = sitemaps.take()
    target = sitemaps.follow_redirect(child, "http://evil.net/s.xml", 0)
    assert (target is not None) is followed
    assert sitemaps.dropped == ({} if followed else {"foreign": 1})
    assert sitemaps.follow_redirect(child, "https://example.com/child.xml", 0) is not None


def test_redirects_are_limited_and_end():
    sitemaps, one = begun()
    target = sitemaps.follow_redirect(one, "https://www.example.com/s.xml", 0)
    assert target.places == ("example.com/news/", "www.example.com/")
    assert sitemaps.follow_redirect(target, GIVEN, 1) is None
    assert sitemaps.follow_redirect(target, "https://c.com/", 3) is None
    assert sitemaps.follow_redirect(target, "file:///etc/passwd", 1) is None
    assert sitemaps.dropped == {"repeated": 1, "too_many_redirects": 1, "scheme_not_allowed": 1}


@pytest.mark.parametrize(
    ("named", "is_vouched"),
    [
        ([GIVEN], True),
        (["http://example.com/", "HTTP://EXAMPLE.com/news/./sitemap.xml"], True),
        (["http://example.com/sitemap.xml", "https://example.com/news/sitemap.xml"], False),
        ([], False),
    ],
)
def test_a_given_sitemap_that_robots_txt_names_may_name_all_urls_of_its_host(named, is_vouched):
    sitemaps, first = begun()
    vouched = sitemaps.vouch_for(first, named)
    assert ("example.com/" in vouched.places) == is_vouched
    sitemaps.add_child(vouched, "http://example.com/news/2.xml")
    assert ("example.com/" in sitemaps.take()[0].places) == is_vouched
