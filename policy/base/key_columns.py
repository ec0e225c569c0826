"""Makes whole columns of URLs, hosts and domains from row keys."""

import polars as pl

from ...web.base.columns import each_once
from ...web.urls.domains import plain_suffixes, registered_domain
from ...web.urls.row_keys import KEY_SITE, BadUrl, from_host_key, from_key, host_key
from ...web.urls.row_keys import host as host_of_url


def from_keys(keys: pl.Series) -> pl.Series:
    """Returns the URLs of row keys, as ``from_key`` does one by one; nulls stay.

    Raises:
        BadUrl: ``malformed`` if one is not a row key.

    >>> from_keys(pl.Series(["com.baz.bar:http:8983/a?b", "[::1]:http/", ":file/x"])).to_list()
    ['http://bar.baz.com:8983/a?b', 'http://[::1]/', 'file:///x']
    """
    # Keys are ASCII, so bytes are characters. The path begins at the first "/".
    site_end = pl.col("key").str.find("/", literal=True)
    site, rest = pl.col("key").str.head(site_end), pl.col("key").str.slice(site_end)
    split = keys.alias("key").to_frame().select(site=site, rest=rest)
    sites = split.select("site").unique().drop_nulls()
    reversed_host, scheme, port = (
        sites.get_column("site").str.extract(f"^{KEY_SITE}$", group) for group in (1, 2, 3)
    )
    start = scheme + "://" + host_names(reversed_host) + (":" + port).fill_null("")
    sites = sites.with_columns(start=start)
    for malformed in sites.filter(pl.col("start").is_null()).get_column("site"):
        from_key(f"{malformed}/")  # raises what is wrong
    joined_keys = split.join(sites, on="site", how="left", maintain_order="left")
    return joined_keys.select(url=pl.col("start") + pl.col("rest")).get_column("url")


def host_keys(keys: pl.Series) -> pl.Series:
    """Returns the reversed hosts that row keys begin with.

    >>> host_keys(pl.Series(["com.foo:http:8080/x", "[::1]:http/"])).to_list()
    ['com.foo', '[::1]']
    """
    key = pl.col("key")
    end = key.str.find(":", literal=True)
    names = keys.alias("key").to_frame().select(key.str.slice(0, end))["key"]
    bracketed = keys.str.starts_with("[")
    if bracketed.any():
        literal = keys.str.extract(r"^(\[[^\]]*\])", 1)
        names = names.zip_with(~bracketed.fill_null(False), literal)
    return names.alias(keys.name)


def host_names(reversed_hosts: pl.Series) -> pl.Series:
    """Returns the hosts of reversed hosts, as ``from_host_key`` does one by one; nulls stay.

    >>> host_names(pl.Series(["com.foo.www", "[::1]", "", None])).to_list()
    ['www.foo.com', '[::1]', '', None]
    """
    names = reversed_hosts.str.split(".").list.reverse().list.join(".")
    return reversed_hosts.zip_with(reversed_hosts.str.starts_with("["), names)


def domain_keys(hosts: pl.Series) -> pl.Series:
    """Returns the reversed registered domain of each reversed host.

    >>> domain_keys(pl.Series(["com.foo.www", "uk.co.foo.www", "localhost", None])).to_list()
    ['com.foo', 'uk.co.foo', 'localhost', None]
    """
    parts = hosts.str.extract_groups(r"^(([^.]+)\.[^.]+)(?:\.|$)")
    short, suffixes = parts.struct.field("1"), parts.struct.field("2")
    is_short = suffixes.is_in(pl.Series(sorted(plain_suffixes())).implode()).fill_null(False)
    others = hosts.set(is_short, None)
    return short.zip_with(is_short, each_once(others, _domain_key)).alias(hosts.name)


def _domain_key(reversed_host: str) -> str:
    return host_key(registered_domain(from_host_key(reversed_host)))


def hosts_of(urls: pl.Series) -> pl.Series:
    """Returns the host of each URL, as in the normalized URL; null for values that are not URLs.

    >>> hosts_of(pl.Series(["http://Foo.com:81/x", "nothing"])).to_list()
    ['foo.com', None]
    """
    return each_once(urls, _host_of)


def _host_of(url: str) -> str | None:
    try:
        return host_of_url(url.strip()).removesuffix(".") or None
    except BadUrl:
        return None
