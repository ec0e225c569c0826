import random

import polars as pl
import pytest

from nutbeam.policy.components import host_rows
from nutbeam.policy.components.host_rows import Seeds, seeds_of
from nutbeam.policy.scope import TargetOptions, in_scope, judge
from nutbeam.web.urls.domains import registered_domain
from nutbeam.web.urls.row_keys import host_key

SOURCE = "com.example.www:http/page"
SEEDS = seeds_of(pl.Series(["com.seed.www", "uk.co.foo"]))


def verdicts(*urls, seeds=SEEDS, source=SOURCE, use="outlink", **options):
    schema = {"source": pl.String, "url": pl.String}
    links = pl.DataFrame({"source": [source] * len(urls), "url": list(urls)}, schema=schema)
    chosen = TargetOptions(**options)
    judged = judge(links, use, chosen, seeds)
    assert judged["source"].to_list() == [source] * len(urls)
    assert (judged["key"].is_null() != judged["reason"].is_null()).all()
    return [key or reason for key, reason in judged.select("key", "reason").iter_rows()]


def test_seeds_are_hosts_and_their_registered_domains():
    names = pl.Series(["www.seed.com", "seed.com", "foo.co.uk", "co.uk", "com", None])
    hosts, domains = (SEEDS.cover(names, scope).to_list() for scope in ("host", "domain"))
    assert hosts == [True, False, True, False, False, False]
    assert domains == [False, True, True, False, False, False]
    assert SEEDS.domain_keys().to_list() == ["com.seed", "uk.co.foo"]
    assert not Seeds().cover(names, "domain").any()


# Names where a search among sorted hosts may go wrong: siblings that sort between a domain and the
# hosts below it, suffixes with and without labels below them, exceptions, addresses, dots.
ODD = (
    "foo.com", "foo-bar.com", "a.foo.com", "a-b.com", "com", "co.uk", "x.co.uk", "www.x.co.uk", "uk",
    "localhost", "h1.localhost", "a.h1.localhost", "kawasaki.jp", "b.kawasaki.jp", "a.b.kawasaki.jp",
    "city.kawasaki.jp", "z.city.kawasaki.jp", "ck", "www.ck", "x.ck", "y.x.ck", "10.0.0.1",
    "x.10.0.0.1", "[::1]", "foo.github.io", "xn--bcher-kva.de", "xn--p1ai", "a.xn--p1ai",
    "www.dot.com.", "dot.com..", "no.", "a..dots.com",
)  # fmt: skip


@pytest.mark.parametrize("few", [0, 1_000])
@pytest.mark.parametrize("number", range(20))
def test_a_search_agrees_with_sets_of_hosts_and_domains(number, few, monkeypatch):
    monkeypatch.setattr(host_rows, "FEW_SEEDS", few)
    chosen = random.Random(number).sample(ODD, len(ODD) // 3)
    seeds = seeds_of(pl.Series([host_key(host) for host in chosen]))
    names = pl.Series([*ODD, *map(registered_domain, ODD), None])
    domains = {registered_domain(host) for host in chosen}
    assert seeds.cover(names, "host").to_list() == [name in chosen for name in names]
    asked = pl.Series([None if name is None else registered_domain(name) for name in names])
    assert seeds.cover(asked, "domain").to_list() == [name in domains for name in asked]
    assert seeds.domain_keys().to_list() == sorted(map(host_key, domains))


@pytest.mark.parametrize(
    ("url", "domain", "host", "anywhere"),
    [
        ("http://www.example.com/a", True, True, True),
        ("https://www.example.com:8443/a", True, True, True),
        ("http://other.example.com/a", True, False, True),
        ("http://www.seed.com/a", True, True, True),
        ("http://seed.com/a", True, False, True),
        ("http://foo.co.uk/", True, True, True),
        ("http://bar.co.uk/", False, False, True),
        ("http://example.org/", False, False, True),
        ("http://notexample.com/", False, False, True),
        ("http://10.0.0.1/", False, False, True),
    ],
)
def test_scope(url, domain, host, anywhere):
    for scope, expected in (("domain", domain), ("host", host), ("any", anywhere)):
        (verdict,) = verdicts(url, scope=scope)
        assert (verdict == "out_of_scope") is not expected, scope


@pytest.mark.parametrize("scope", ["domain", "host", "any"])
def test_every_target_has_its_own_reason(scope):
    found = verdicts(
        None,
        "http://",
        "ftp://www.example.com/",
        "http://elsewhere.org/logo.png",  # filtered before anyone asks where it leads
        "http://www.example.com/page#top",
        "http://www.example.com/" + "x" * 5000,
        scope=scope,
    )
    assert found == [
        "no_http_url", "malformed", "scheme_not_allowed", "filtered", "own_url", "url_too_long"
    ]  # fmt: skip


def test_links_that_are_exempt_from_the_scope(tmp_path):
    (tmp_path / "db-ignore-external-exemptions.txt").write_text("-/not/\n+^https?://far[.]org/\n")
    exempt = {"url_filters": ("regex", "ignoreexempt"), "url_rules_dir": str(tmp_path)}
    urls = ["http://far.org/", "http://far.org/not/", "http://near.org/", "http://far.org/a.png",
            "http://www.example.com/x", None]  # fmt: skip
    for scope in ("domain", "host"):
        assert verdicts(*urls, scope=scope, **exempt) == [
            "org.far:http/", "out_of_scope", "out_of_scope", "filtered",
            "com.example.www:http/x", "no_http_url",
        ]  # fmt: skip


def test_internal_links_are_left_out_where_that_is_wanted():
    urls = ["http://www.example.com/x", "http://a.example.com/", "http://www.seed.com/"]
    inner = {"skip_internal_links": True}
    assert verdicts(*urls, **inner) == ["internal_link", "internal_link", "com.seed.www:http/"]
    assert verdicts(*urls, scope="any", **inner) == [
        "internal_link", "com.example.a:http/", "com.seed.www:http/"
    ]  # fmt: skip


def test_redirects_are_free_where_that_is_wanted():
    free = {"use": "fetcher", "ignore_also_redirects": False, "skip_internal_links": True}
    assert verdicts("http://far.org/", "http://www.example.com/x", **free) == [
        "org.far:http/", "com.example.www:http/x"
    ]  # fmt: skip
    assert verdicts("http://far.org/", use="fetcher") == ["out_of_scope"]


def test_without_seeds_the_source_decides():
    found = verdicts("http://a.example.com/", "http://www.seed.com/", seeds=Seeds())
    assert found == ["com.example.a:http/", "out_of_scope"]


def test_no_links():
    assert verdicts() == []


@pytest.mark.parametrize(
    ("distance", "found"), [(0, None), (1, "not_included"), (None, "not_included")]
)
def test_only_redirects_of_seeds_need_no_match_with_include(distance, found):
    schema = {"source": pl.String, "distance": pl.Int32}
    links = pl.DataFrame({"source": [SOURCE] * 3, "distance": [distance] * 3}, schema=schema)
    urls = pl.Series([f"http://www.example.com/{name}" for name in ("docs/", "blog/", "docs/x")])
    options = TargetOptions(include=("/docs/",), exclude=("x$",), count_by_rule=True)
    judged = judge(links.with_columns(urls.alias("url")), "fetcher", options, SEEDS)
    assert judged["reason"].to_list() == [None, found, "excluded"]
    assert judged["by"].to_list() == [None, found and "--include", "--exclude:1"]
    assert judged["key"].is_not_null().to_list() == [True, found is None, False]


@pytest.mark.parametrize(
    ("source", "target", "same_domain", "same_host"),
    [
        ("com.foo.a:http/", "com.foo.b:https/x", True, False),
        ("a.foo.com", "com.foo.a:http/", True, True),
        ("com.foo.a:http/", "com.bar:http/", False, False),
        ("com.foo.a:http/", "com.seed.x:http/", True, True),
        ("com.foo.a:http/", "com.seed.y:http/", True, False),
        ("uk.co.foo:http/", "uk.co.bar:http/", False, False),
        ("[fe80:abc:1::1]:http/", "[fe80:abc:1::1]:https/", True, True),
        ("[fe80:abc:1::1]", "[fe80:abc:1::1]:https/", True, True),
        ("1.0.0.10:http/", "10.0.0.1:http/", False, False),
        ("10.0.0.1", "1.0.0.10:http:8080/", True, True),
        (None, "com.foo:http/", False, False),
        ("com.foo:http/", None, False, False),
    ],
)
def test_the_scope_is_that_of_domains_or_of_hosts(source, target, same_domain, same_host):
    sources = pl.Series([source], dtype=pl.String)
    targets = pl.Series([target], dtype=pl.String)
    seeds = seeds_of(pl.Series(["com.seed.x"]))
    assert in_scope(sources, targets, "domain", seeds).to_list() == [same_domain]
    assert in_scope(sources, targets, "host", seeds).to_list() == [same_host]
