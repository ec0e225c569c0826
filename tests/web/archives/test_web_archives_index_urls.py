"""The parts of URLs and hosts in Common Crawl's index."""

import pytest

from nutbeam.web.archives.index_urls import surt_host, url_parts


@pytest.mark.parametrize(
    ("url", "name", "parts"),
    [
        ("http://a.com/", "a.com", ("http", None, "/", None)),
        ("https://User:pw@WWW.a.com:443/b?", "www.a.com", ("https", 443, "/b", "")),
        ("http://[::1]:8080/x?y=?", "[::1]", ("http", 8080, "/x", "y=?")),
        ("http://10.0.0.1/", "10.0.0.1", ("http", None, "/", None)),
        ("ftp://a.com/b", "a.com", ("ftp", None, "/b", None)),
        ("file:///home/a", "", ("file", None, "/home/a", None)),
        ("http://a.com:99999999999/", "a.com", ("http", None, "/", None)),
        ("no url", "", ("", None, "no url", None)),
    ],
)
def test_a_url_has_the_parts_of_the_index(url, name, parts):
    host, *others = url_parts(url)
    assert (host.name, tuple(others)) == (name, parts)


def test_a_host_has_its_registered_and_its_private_domain():
    host = url_parts("http://a.b.c.d.blogspot.com/").host
    assert host.labels == ("com", "blogspot", "d", "c", "b")
    assert (host.suffix, host.domain) == ("com", "blogspot.com")
    assert (host.private_suffix, host.private_domain) == ("blogspot.com", "d.blogspot.com")
    bare = url_parts("http://co.uk/").host
    assert (bare.suffix, bare.domain, bare.labels[:2]) == ("co.uk", None, ("uk", "co"))


def test_programs_for_the_host_index_find_a_host_by_its_key():
    assert [surt_host(name) for name in ("www.a.com", "a.com", "10.0.0.1", "b.a.co.uk")] == [
        "com,a", "com,a", "1,0,0,10", "uk,co,a,b",
    ]  # fmt: skip
