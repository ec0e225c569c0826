"""Makes whole columns of URLs, hosts and domains from row keys."""

import polars as pl

from .domains import registered_domain
from .row_keys import from_host_key, from_key, host_key


def from_keys(keys: pl.Series) -> pl.Series:
    """Returns the URLs of row keys, as ``from_key`` does one by one; nulls stay.

    >>> from_keys(pl.Series(["com.baz.bar:http:8983/a?b", "[::1]:http/", ":file/x"])).to_list()
    ['http://bar.baz.com:8983/a?b', 'http://[::1]/', 'file:///x']
    """
    # Keys are ASCII, so bytes are characters. The path begins at the first "/".
    site_end = pl.col("key").str.find("/", literal=True)
    site, rest = pl.col("key").str.head(site_end), pl.col("key").str.slice(site_end)
    split = keys.alias("key").to_frame().select(site=site, rest=rest)
    sites = split.select("site").unique().drop_nulls()
    urls = [from_key(f"{site}/")[:-1] for site in sites.get_column("site")]
    sites = sites.with_columns(start=pl.Series(urls, dtype=pl.String))
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


def domain_keys(hosts: pl.Series) -> pl.Series:
    """Returns the reversed registered domain of each reversed host."""
    names = hosts.unique().drop_nulls()
    domains = [host_key(registered_domain(from_host_key(name))) for name in names]
    return hosts.replace_strict(names, domains, default=None, return_dtype=pl.String)
