"""Decides which links a crawl follows: by default those to the domains of its seeds, and no traps."""

from typing import TypeAlias

import polars as pl

from ..web.base.columns import nulls, put, reason_if
from ..web.base.dataclass import dataclass
from ..web.base.joined_options import joined_options
from ..web.base.options import option
from ..web.rules.url_rules import CheckedUrlOptions, Scope, UrlRules
from ..web.urls.domains import registered_domain
from ..web.urls.row_keys import from_host_key
from .base.key_columns import from_keys, host_keys
from .components.host_rows import Seeds
from .components.rule_counts import JudgedRows, RuleCountOptions
from .components.schema import StateRows

TargetRows: TypeAlias = pl.DataFrame  # a row per link: see ``judge``
_FILE = ":file"  # start of row keys of file: URLs


@dataclass(frozen=True)
class ScopeOptions:
    """Options of the scope of a crawl."""

    GROUP = "scope"

    scope: str = option(
        "domain",
        "Follow links within the registered domains of the seeds, within their hosts, or any links.",
        choices=("domain", "host", "any"),
        nutch="db.ignore.external.links.mode, db.ignore.external.links",
    )
    skip_internal_links: bool = option(
        False,
        "Follow no link within one host, or with --scope domain within one registered domain.",
        nutch="db.ignore.internal.links",
    )
    ignore_also_redirects: bool = option(
        True,
        "Apply the scope and --skip_internal_links to redirects, too.",
        nutch="db.ignore.also.redirects",
    )


@dataclass(frozen=True)
class TrapOptions:
    """Limits of links that look like links of a crawler trap."""

    GROUP = "traps"

    max_segment_repeats: int = option(
        3,
        "Follow no link whose path has one segment more often than this; -1: no limit.",
        minimum=-1,
    )
    max_parameters: int = option(
        20, "Follow no link with more parameters in its query; -1: no limit.", minimum=-1
    )
    max_parameter_length: int = option(
        500,
        "Follow no link with a longer parameter in its query; -1: no limit.",
        unit="characters",
        minimum=-1,
    )


@joined_options
class TargetOptions(CheckedUrlOptions, ScopeOptions, TrapOptions, RuleCountOptions):
    """Options of the rules for targets of links and redirects."""


def judge(links: TargetRows, use: Scope, options: TargetOptions, seeds: Seeds) -> JudgedRows:
    """Decides which targets are accepted, with a reason for each refused target.

    Args:
        links: One row per link, with ``source``, the row key of its page, and ``url``, the absolute
            URL of its target (null if it leads to no http URL). With ``distance``, the page's
            distance from the seeds, redirects of seeds need no match with ``--include``.
        use: Nutch's scope of the rules: ``outlink`` or ``fetcher``.
        options: The rules.
        seeds: The hosts of seeds.

    Returns:
        The rows with ``key`` and ``reason``; one of the two is null. With
        ``count_by_rule`` also ``by``: the rule of a filter that refused the target.
    """
    rules, urls = UrlRules(options), links.get_column("url")
    admitted = rules.admit(urls, use, by=options.count_by_rule)
    if options.include:
        admitted = _only_included(admitted, links, rules)
    keys, source = admitted.get_column("key"), links.get_column("source")
    reasons = [reason_if(urls.is_null(), "no_http_url"), pl.col("reason")]
    if "file" in options.schemes:
        # Only local documents may link to local files; pages of the web may not.
        local = pl.col("key").str.starts_with(_FILE)
        reasons.append(reason_if(local & ~source.str.starts_with(_FILE), "file_from_elsewhere"))
    reasons.append(pl.lit(trap_reasons(keys, options)))
    reasons.append(reason_if(keys == source, "own_url"))
    if use != "fetcher" or options.ignore_also_redirects:
        if options.scope != "any":
            inside = in_scope(source, keys, options.scope, seeds)
            inside = _with_exempted(inside, admitted, rules)
            reasons.append(reason_if(~inside, "out_of_scope"))
        if options.skip_internal_links:
            internal = in_scope(source, keys, options.scope)
            reasons.append(reason_if(internal, "internal_link"))
    judged = links.with_columns(admitted.drop("url")).with_columns(reason=pl.coalesce(reasons))
    return judged.with_columns(key=pl.when(pl.col("reason").is_null()).then("key"))


def judge_known(rows: StateRows, options: TargetOptions, seeds: Seeds) -> JudgedRows:
    """Decides which URLs of the table would be accepted today, with a reason for each other one.

    Seeds are exempt from the rules for links: ``--include``, the scope, limits against traps. A
    page is in the scope if a seed is of its host or domain: nothing is known of who links to it.

    Args:
        rows: Rows of the state, with ``key`` and ``distance``.
        options: The rules.
        seeds: The hosts of seeds.

    Returns:
        As many rows with ``key``, of the normalized URL, and ``reason``; one of the two is null.
        With ``count_by_rule`` also ``by``, as ``judge`` has it.
    """
    rules = UrlRules(options)
    urls = from_keys(rows.get_column("key"))
    admitted = rules.admit(urls, "crawldb", by=options.count_by_rule)
    if options.include:
        admitted = _only_included(admitted, rows, rules)
    keys = admitted.get_column("key")
    linked = (
        pl.lit((rows.get_column("distance") != 0).fill_null(True)) & pl.col("key").is_not_null()
    )
    trapped = pl.when(linked).then(pl.lit(trap_reasons(keys, options)))
    reasons = [pl.col("reason"), trapped]
    if options.scope != "any":
        # Local files have no host, and only local files link to them.
        here = in_scope(nulls(len(keys)), keys, options.scope, seeds)
        here = _with_exempted(here, admitted, rules)
        here |= keys.str.starts_with(_FILE).fill_null(False)
        reasons.append(reason_if(linked & ~pl.lit(here), "out_of_scope"))
    judged = admitted.drop("url").with_columns(reason=pl.coalesce(reasons))
    return judged.with_columns(key=pl.when(pl.col("reason").is_null()).then("key"))


def _only_included(admitted: JudgedRows, links: pl.DataFrame, rules: UrlRules) -> JudgedRows:
    """Returns the targets; those that ``--include`` refuses have a reason and no key."""
    urls = admitted.get_column("url")
    if "distance" in links.columns:
        of_seeds = (links.get_column("distance") == 0).fill_null(False)
        urls = urls.set(of_seeds, None)
    names = rules.inclusion.judge_column(urls, "refused" if "by" in admitted.columns else "none")
    refused = names.get_column("reason")
    admitted = admitted.with_columns(
        key=pl.when(refused.is_null()).then("key"), reason=pl.coalesce("reason", refused)
    )
    if "by" in admitted.columns:
        admitted = admitted.with_columns(by=pl.coalesce("by", names.get_column("by")))
    return admitted


def _with_exempted(inside: pl.Series, admitted: JudgedRows, rules: UrlRules) -> pl.Series:
    """Returns a mask of the links that are in the scope or exempt from it."""
    exempt = (~inside & admitted.get_column("key").is_not_null()).arg_true()
    if rules.exemptions is None or not len(exempt):
        return inside
    decided = rules.exemptions.decide_column(admitted.get_column("url").gather(exempt))
    return put(inside, exempt, decided.accept)


def trap_reasons(keys: pl.Series, options: TrapOptions) -> pl.Series:
    """Returns the reason why each URL looks like one of a trap; null if it does not.

    Args:
        keys: Row keys; may be null.

    >>> keys = pl.Series(["a:http/x/x/x/x", "a:http/?" + "&".join("abc"), "a:http/x"])
    >>> trap_reasons(keys, TrapOptions(max_parameters=2)).to_list()
    ['repeated_segments', 'too_many_parameters', None]
    """
    rows = keys.alias("key").to_frame().with_row_index("at").drop_nulls()
    reasons = nulls(len(keys)).alias("reason")
    for suspects in (_crowded_queries(rows, options), _looping_paths(rows, options)):
        if suspects is not None and len(suspects):
            reasons = reasons.scatter(suspects.get_column("at"), suspects.get_column("reason"))
    return reasons


def _crowded_queries(rows: pl.DataFrame, options: TrapOptions) -> pl.DataFrame | None:
    """Returns the URLs with too many parameters, or with a parameter that is too long."""
    most, longest, key = options.max_parameters, options.max_parameter_length, pl.col("key")
    # Short URLs with few "&" are not split.
    many = (key.str.count_matches("&", literal=True) >= most) & (most >= 0)
    long = (key.str.len_bytes() > longest) & (longest >= 0)
    rows = rows.filter((many | long) & key.str.contains("?", literal=True))
    if rows.is_empty():
        return None
    parameters = key.str.splitn("?", 2).struct.field("field_1").str.split("&")
    sizes = parameters.list.eval(pl.element().str.len_bytes())
    reason = pl.coalesce(
        reason_if((sizes.list.len() > most) & (most >= 0), "too_many_parameters"),
        reason_if((sizes.list.max() > longest) & (longest >= 0), "parameter_too_long"),
    )
    return rows.select("at", reason=reason).drop_nulls()


def _looping_paths(rows: pl.DataFrame, options: TrapOptions) -> pl.DataFrame | None:
    """Returns the URLs whose path repeats a segment too often."""
    most, key = options.max_segment_repeats, pl.col("key")
    rows = rows.filter((key.str.count_matches("/", literal=True) > most) & (most >= 0))
    if rows.is_empty():
        return None
    path = key.str.splitn("?", 2).struct.field("field_0")
    segment = pl.element().filter(pl.element() != "")
    segments = pl.col("segments")
    split = rows.select("at", segments=path.str.split("/").list.slice(1).list.eval(segment))
    repeating = split.filter(segments.list.len() - segments.list.n_unique() >= most)
    each = repeating.explode("segments").group_by("at", "segments").len()
    looping = each.filter(pl.col("len") > most).select("at").unique()
    return looping.with_columns(reason=pl.lit("repeated_segments"))


def in_scope(
    sources: pl.Series, targets: pl.Series, mode: str, seeds: Seeds | None = None
) -> pl.Series:
    """Returns which links stay within the crawl.

    Args:
        sources: Row keys or hosts of the linking pages.
        targets: Row keys of what they link to, as many.
        mode: With ``domain`` the registered domain of the target must be that of its source, or
            that of a seed; with any other word its host must.
        seeds: The hosts of seeds.

    Returns:
        As many booleans; false where either is null.

    >>> in_scope(pl.Series(["a.foo.com"]), pl.Series(["com.foo.b:http/"]), "domain").to_list()
    [True]
    """
    wanted = _sites(targets, mode)
    inside = (wanted == _sites(sources, mode)).fill_null(False)
    return inside if seeds is None else inside | seeds.cover(wanted, mode)


def _sites(keys: pl.Series, mode: str) -> pl.Series:
    """Returns the host or registered domain of each row key or host."""
    keys = keys.cast(pl.String)
    names = pl.DataFrame({"name": host_keys(keys), "is_key": keys.str.contains(r"\]?:[a-z]+[:/]")})
    unique = names.unique()
    sites = [
        name if name is None else _site(from_host_key(name) if is_key else name, mode)
        for name, is_key in unique.iter_rows()
    ]
    unique = unique.with_columns(pl.Series("site", sites, dtype=pl.String))
    return names.join(unique, on=["name", "is_key"], how="left", maintain_order="left").get_column(
        "site"
    )


def _site(host: str, mode: str) -> str:
    return registered_domain(host) if mode == "domain" else host
