"""Crawler traps: how far a crawl goes down sites that have no end.

What a single URL shows is looked at where links are judged, what takes many to see where
update lets new URLs into the table. Each URL that is left out has its reason:

- ``too_deep``, ``repeated_segments``, ``too_many_parameters``, ``parameter_too_long``
- ``host_total``, ``host_budget``, ``path_budget``, ``domain_budget``, ``same_pages``
"""

import dataclasses
from collections.abc import Callable, Mapping

import polars as pl

from ..web.base.columns import falses, nulls
from ..web.base.options import option
from ..web.rules.url_rules import host_keys
from ..web.urls.domains import registered_domain
from ..web.urls.row_keys import from_host_key


@dataclasses.dataclass(frozen=True)
class TrapOptions:
    """Which links are taken for those of a trap."""

    GROUP = "traps"

    max_segment_repeats: int = option(
        3,
        "Follow no link in whose path a segment stands more often; -1 for any number.",
        minimum=-1,
    )
    max_parameters: int = option(
        20,
        "Follow no link with more parameters in its query; -1 for any number.",
        minimum=-1,
    )
    max_parameter_length: int = option(
        500,
        "Follow no link with a longer parameter in its query; -1 for any length.",
        unit="characters",
        minimum=-1,
    )


@dataclasses.dataclass(frozen=True)
class DepthOptions:
    """How deep links are followed."""

    max_depth: int = option(
        50,
        "Add no URL that is more links away from the nearest seed; -1 is no limit.",
        minimum=-1,
        group="traps",
    )


@dataclasses.dataclass(frozen=True)
class BudgetOptions:
    """How many URLs one update adds to the table."""

    GROUP = "traps"

    max_per_host: int = option(
        10_000_000,
        "How many URLs the table takes of one host, the best of those that come by score; -1 is no "
        "limit. Those in files with other hosts' do not count, so it may be some 2,000,000 more; in "
        "Bigtable it holds for what one update adds.",
        minimum=-1,
    )
    max_new_per_host: int = option(
        100_000,
        "How many URLs of one host an update adds at most, the best by score; -1 is no limit.",
        minimum=-1,
    )
    max_new_queries: int = option(
        10_000,
        "The same for URLs that differ in their query alone.",
        minimum=-1,
    )
    max_new_hosts_per_domain: int = option(
        10_000,
        "Of how many hosts of one registered domain an update adds URLs at most.",
        minimum=-1,
    )
    max_same_pages: int = option(
        20,
        "Add no URL of a host whose last so many pages of the batch have one and the same "
        "signature; -1 is no limit.",
        minimum=-1,
    )


def trap_reasons(keys: pl.Series, options: TrapOptions) -> pl.Series:
    """Returns why a URL looks like one of a trap, null where it does not.

    Args:
        keys: Row keys; null where there is none.

    >>> keys = pl.Series(["a:http/x/x/x/x", "a:http/?" + "&".join("abc"), "a:http/x"])
    >>> trap_reasons(keys, TrapOptions(max_parameters=2)).to_list()
    ['repeated_segments', 'too_many_parameters', None]
    """
    key = pl.col("key")
    frame = keys.alias("key").to_frame().with_row_index("at").drop_nulls()
    most, longest, repeats = (
        options.max_parameters,
        options.max_parameter_length,
        options.max_segment_repeats,
    )
    found = []
    # What cannot be one by its whole length or number is not taken apart.
    many = (key.str.count_matches("&", literal=True) >= most) & (most >= 0)
    long = (key.str.len_bytes() > longest) & (longest >= 0)
    frame = frame.with_columns(
        query=(many | long) & key.str.contains("?", literal=True),
        deep=(key.str.count_matches("/", literal=True) > repeats) & (repeats >= 0),
    )
    if frame.get_column("query").any():
        queries = frame.filter("query")
        query = key.str.splitn("?", 2).struct.field("field_1")
        queries = queries.with_columns(
            many=(query.str.count_matches("&", literal=True) >= most) & (most >= 0),
            long=(query.str.len_bytes() > longest) & (longest >= 0),
        ).filter(pl.col("many") | pl.col("long"))
        longer = query.str.split("&").list.eval(pl.element().str.len_bytes()).list.max() > longest
        queries = queries.with_columns(long=pl.col("long") & longer)
        reason = (
            pl.when("many")
            .then(pl.lit("too_many_parameters"))
            .when("long")
            .then(pl.lit("parameter_too_long"))
        )
        found.append(queries.select("at", reason=reason))
    if frame.get_column("deep").any():
        deep = pl.col("path").str.count_matches("/", literal=True) > repeats
        path = key.str.splitn("?", 2).struct.field("field_0")
        paths = frame.filter("deep").select("at", path=path).filter(deep)
        segment = pl.element().filter(pl.element() != "")
        segments = pl.col("path").str.split("/").list.slice(1).list.eval(segment)
        paths = paths.select("at", segments=segments)
        paths = paths.filter(
            pl.col("segments").list.len() - pl.col("segments").list.n_unique() >= repeats
        )
        each = paths.explode("segments").group_by("at", "segments").len()
        looped = each.filter(pl.col("len") > repeats).select("at").unique()
        found.append(looped.select("at", reason=pl.lit("repeated_segments")))
    reasons = nulls(len(keys)).alias("reason")
    for some in found:
        some = some.drop_nulls()
        if len(some):
            reasons = reasons.scatter(some.get_column("at"), some.get_column("reason"))
    return reasons


def within_budget(
    new: pl.DataFrame,
    events: pl.DataFrame,
    options: BudgetOptions,
    known: Mapping[str, int] | None = None,
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Returns those of the new URLs that the table takes, and how many it does not, by reason.

    Hosts are judged by what is here: an update looks at ranges of keys, and a host that
    lies in two of them has two budgets.

    Args:
        new: URLs that the table does not have: ``key``, ``inlink_score``.
        events: What was fetched: ``key``, ``event.signature``, ``event.fetch_time``.
        options: The budgets.
        known: How many URLs large hosts (reversed) have already; others have none.
    """
    counts: dict[str, int] = {}
    if not len(new):
        return new, counts
    known = known or {}
    limits = (options.max_new_per_host, options.max_new_queries, options.max_new_hosts_per_domain)
    crowded = any(0 <= most < len(new) for most in limits)
    crowded = any(0 <= most < len(new) for most in limits)
    crowded |= 0 <= options.max_per_host < len(new) + max(known.values(), default=0)
    repeating = _repeating_hosts(events, options.max_same_pages)
    if not (crowded or len(repeating)):
        return new, counts
    hosts = host_keys(new.get_column("key"))
    sizes = hosts.value_counts().get_column("count")
    largest = int(sizes.max() or 0)  # type: ignore[arg-type]
    # Only what can find something is looked for: most updates are of honest hosts.
    tests: list[tuple[str, bool, Callable[[pl.DataFrame, pl.Series], pl.Series]]] = [
        ("same_pages", len(repeating) > 0, lambda _, at: ~at.is_in(repeating.implode())),
        (
            "host_total",
            0 <= options.max_per_host < largest + max(known.values(), default=0),
            lambda some, at: _in_all(some, at, options.max_per_host, known),
        ),
        (
            "path_budget",
            0 <= options.max_new_queries < largest,
            lambda some, _: _best_of_paths(some, options.max_new_queries),
        ),
        (
            "host_budget",
            0 <= options.max_new_per_host < largest,
            lambda some, at: _best(some, at, options.max_new_per_host),
        ),
        (
            "domain_budget",
            0 <= options.max_new_hosts_per_domain < len(sizes),
            lambda some, at: _best_hosts(some, at, options.max_new_hosts_per_domain),
        ),
    ]
    for reason, may_fail, test in tests:
        if not may_fail:
            continue
        kept = test(new, hosts)
        if not kept.all():
            counts[f"dropped/{reason}"] = int((~kept).sum())
            new, hosts = new.filter(kept), hosts.filter(kept)
    return new, counts


def _all(rows: pl.DataFrame) -> pl.Series:
    return ~falses(len(rows))


def _best(rows: pl.DataFrame, groups: pl.Series, most: int) -> pl.Series:
    """Returns which rows are among the best ``most`` of their group; null groups have no limit."""
    if most < 0 or len(rows) <= most:
        return _all(rows)
    sizes = groups.alias("group").drop_nulls().value_counts()
    crowds = sizes.filter(pl.col("count") > most).get_column("group")
    if not len(crowds):
        return _all(rows)
    numbered = rows.select("key", "inlink_score", group=groups).with_row_index("at")
    crowded = numbered.filter(pl.col("group").is_in(crowds.implode()))
    order = crowded.sort("inlink_score", "key", descending=[True, False], nulls_last=True)
    beyond = order.filter(pl.int_range(pl.len()).over("group") >= most).get_column("at")
    return _all(rows).scatter(beyond, False)


def _in_all(rows: pl.DataFrame, hosts: pl.Series, most: int, known: Mapping[str, int]) -> pl.Series:
    kept = _best(rows, hosts, most)
    if most < 0:
        return kept
    for host, rows_known in known.items():
        at = (hosts == host).arg_true()
        kept = kept.scatter(at, _best(rows[at], hosts[at], max(0, most - rows_known)))
    return kept


def _best_of_paths(rows: pl.DataFrame, most: int) -> pl.Series:
    if most < 0 or len(rows) <= most:
        return _all(rows)
    place = rows.get_column("key").str.find("?", literal=True)
    at = place.is_not_null().arg_true()
    if len(at) <= most:
        return _all(rows)
    queries = rows[at]
    paths = queries.get_column("key").str.slice(0, place.drop_nulls())
    return _all(rows).scatter(at, _best(queries, paths, most))


def _best_hosts(rows: pl.DataFrame, hosts: pl.Series, most: int) -> pl.Series:
    if most < 0:
        return _all(rows)
    names = hosts.unique()
    # A domain has two labels or more: where no two have so many hosts, no domain has.
    labels = names.str.extract(r"^([^.]*[.][^.]*)").alias("label")
    crowds = labels.drop_nulls().value_counts().filter(pl.col("count") > most).get_column("label")
    if not len(crowds):
        return _all(rows)
    names = names.filter(labels.is_in(crowds.implode()))
    domains = pl.Series([registered_domain(from_host_key(name)) for name in names])
    at = hosts.is_in(names.implode()).arg_true()
    scored = rows[at].select("inlink_score", key=hosts[at]).group_by("key")
    best = scored.agg(pl.col("inlink_score").max())
    domain_of = best.get_column("key").replace_strict(names, domains, return_dtype=pl.String)
    dropped = best.filter(~_best(best, domain_of, most)).get_column("key")
    return ~hosts.is_in(dropped.implode())


def _repeating_hosts(events: pl.DataFrame, most: int) -> pl.Series:
    """Returns the hosts of which the last ``most`` pages are the same."""
    none = pl.Series([], dtype=pl.String)
    signatures = events.get_column("event.signature")
    # So many pages alike on one host are as many alike in all.
    if most < 0 or len(signatures) - signatures.n_unique() < most - 1:
        return none
    pages = events.select("key", signature="event.signature", time="event.fetch_time")
    pages = pages.filter(pl.col("signature").is_not_null())
    pages = pages.with_columns(host_keys(pages.get_column("key")).alias("host"))
    last = pages.sort("time", "key").group_by("host").tail(most)
    same = last.group_by("host").agg(pl.len(), alike=pl.col("signature").n_unique() == 1)
    return same.filter(pl.col("alike") & (pl.col("len") >= most)).get_column("host")
