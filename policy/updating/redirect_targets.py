"""Which redirects count, what their targets get from their sources, and which URL represents them."""

from collections.abc import Collection
from typing import NamedTuple

import polars as pl

from ...web.exchange.status import FETCH_REDIR_PERM
from ...web.urls.representative import choose_representative
from ...web.urls.row_keys import from_key
from ..components.host_rows import Seeds
from ..components.page_facts import INHERITED, PageFacts
from ..components.rule_counts import by_rule
from ..components.schema import DOCUMENTS, DocumentRows, FetchListRows, PageRows, empty
from ..scope import TargetOptions, judge
from .update_rules import UpdateRules

# A change with it in place of a URL says that no other URL represents the page any more.
NO_URL = ""
# A meta refresh counts as a permanent redirect from this time on, s.
_PERMANENT_REFRESH_S = 5
_TYPES = empty(DOCUMENTS).schema


class Targets(NamedTuple):
    """What pages lead to besides their links.

    Attributes:
        redirects: Links to targets of redirects, with ``source`` and ``temporary``.
        parts: DOCUMENTS rows of parts of pages that are documents and not too deep.
        part_links: A link to each of these parts.
    """

    redirects: pl.DataFrame
    parts: DocumentRows
    part_links: pl.DataFrame


def judge_redirects(
    page_rows: PageRows, refresh_rows: DocumentRows, seeds: Seeds, options: TargetOptions
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Returns the targets of redirects and refreshes, as links without score.

    Args:
        page_rows: PAGES rows.
        refresh_rows: DOCUMENTS rows with ``key``, ``distance``, ``refresh``, ``refresh_seconds``.
        seeds: Hosts and domains of the seeds.
        options: Rules for the targets.

    Returns:
        (links with ``source`` and ``temporary``; counts of refused targets by reason).
    """
    permanent = pl.col("fetch_status") == FETCH_REDIR_PERM
    at_once = pl.col("refresh_seconds").fill_null(0) < _PERMANENT_REFRESH_S
    targets = pl.concat(
        rows.filter(pl.col(name).is_not_null()).select(
            pl.col("key").alias("source"),
            "distance",
            pl.col(name).alias("url"),
            temporary=temporary,
        )
        for rows, name, temporary in (
            (page_rows, "redirect", ~permanent),
            (refresh_rows, "refresh", at_once),
        )
    )
    judged = judge(targets, "fetcher", options, seeds)
    dropped = judged.get_column("reason").drop_nulls().value_counts()
    counts = {f"dropped/redirect_{reason}": number for reason, number in dropped.iter_rows()}
    counts |= by_rule(judged)
    accepted = judged.filter(pl.col("reason").is_null())
    return _links_without_score(accepted).hstack(accepted.select("source", "temporary")), counts


def link_targets(redirects: pl.DataFrame, facts: PageFacts, rules: UpdateRules) -> Targets:
    """Finds the parts that are documents, and what scorings pass to them and to redirect targets.

    Args:
        redirects: Links without score with ``source``, see ``judge_redirects``.
        facts: The pages, one row per page and document.
        rules: The scorings, and the limit of depth.
    """
    parts = facts.document_rows.filter(pl.col("part_of").is_not_null())
    parts = parts.join(facts.page_rows, on="key", how="anti", maintain_order="left")
    sources = pl.concat([redirects.get_column("source"), parts.get_column("part_of")])
    passed_on = _pass_to_targets(sources, facts, rules)
    if rules.options.depth >= 0:
        parts = parts.filter(pl.col("distance").fill_null(0) <= rules.options.depth)
    links = _links_without_score(parts).hstack(parts.select(source="part_of"))
    if passed_on is not None:
        redirects = _with_passed(redirects, passed_on, rules).drop("links")
        links = _with_passed(links, passed_on, rules)
        links = links.filter((pl.col("links") != 0).fill_null(True)).drop("links")
        parts = parts.join(links, on="key", how="semi", maintain_order="left")
    return Targets(redirects, parts, links.drop("source"))


def _pass_to_targets(
    sources: pl.Series, facts: PageFacts, rules: UpdateRules
) -> pl.DataFrame | None:
    """Returns what each page (``source``) passes to the target of a redirect, or to its parts.

    It is the same as for a link without score. The column ``links`` is 0 where the scorings drop the
    links of the page. None: no page gives anything.
    """
    scorings = rules.scorings
    if not scorings.passed:
        return None
    giving = facts.page_rows.filter(pl.col("key").is_in(sources.implode()))
    if giving.is_empty():
        return None
    pages = giving.select(
        "key",
        "distance",
        *(
            pl.lit(None, _TYPES[name]).alias(f"document.{name}")
            for name in scorings.document_columns
        ),
        part_of=pl.lit(None, pl.String),
        score=pl.lit(0.0),
        unchanged=pl.lit(False),
        links=pl.lit(1, pl.UInt32),
    )
    passed_on = scorings.share(pages, facts.state_rows)
    return passed_on.select(*(column.name for column in scorings.passed), "links", source="key")


def _with_passed(
    targets: pl.DataFrame, passed_on: pl.DataFrame, rules: UpdateRules
) -> pl.DataFrame:
    """Adds to targets what their ``source`` passes on, see ``_pass_to_targets``."""
    joined = targets.join(passed_on, on="source", how="left", maintain_order="left")
    return rules.scorings.links(joined)


def _links_without_score(targets: pl.DataFrame) -> pl.DataFrame:
    """Returns links that have a distance but no score."""
    distance = pl.col("distance").fill_null(0).cast(pl.Int32)
    return targets.select("key", inlink_score=pl.lit(0.0), inlink_distance=distance)


def inherited_by_targets(
    redirects: pl.DataFrame, fetch_list_rows: FetchListRows, unrepresented: Collection[str] = ()
) -> pl.DataFrame:
    """Returns what targets of redirects inherit from their sources: CHANGES rows without a link.

    If several redirects lead to a target, it inherits from one of them. The order in which they were
    fetched makes no difference; see ``first_inheritances``. If the fetch has followed a redirect to a
    target that redirects, too, this target hands on what it inherits.

    Args:
        redirects: Redirects, with ``source``, ``key`` and ``temporary``.
        fetch_list_rows: Rows of their sources from before.
        unrepresented: Keys of pages that no other URL represents any more.
    """
    giving = fetch_list_rows.select("repr_url", *INHERITED, source="key")
    is_source = pl.col("key").is_in(redirects.get_column("source").implode())
    while True:
        inherited = _inheritances(redirects, giving)
        sources = giving.get_column("source").implode()
        ready = is_source & pl.col("source").is_in(sources) & ~pl.col("key").is_in(sources)
        handing_on = inherited.filter(ready)
        if handing_on.is_empty():
            break
        handing_on = handing_on.drop("source").rename({"key": "source"})
        giving = pl.concat([giving, handing_on.select(giving.columns)])
    inherited = inherited.drop("source")
    rest = pl.DataFrame({"key": sorted(unrepresented)}, schema={"key": pl.String})
    rest = rest.join(inherited, on="key", how="anti").with_columns(repr_url=pl.lit(NO_URL))
    return pl.concat([inherited, rest], how="diagonal")


def _inheritances(redirects: pl.DataFrame, giving: pl.DataFrame) -> pl.DataFrame:
    """Returns what each target inherits: ``source``, ``key``, and the inherited columns.

    Args:
        redirects: See ``inherited_by_targets``.
        giving: ``source`` and the columns that it hands on; sources that are not there hand on none.
    """
    rows = redirects.join(giving, on="source", how="left", maintain_order="left")
    ends = rows.select("source", "repr_url", "key", "temporary")
    chosen = pl.Series("repr_url", [_representative(*end) for end in ends.iter_rows()], pl.String)
    rows = rows.select("source", "key", *INHERITED).with_columns(chosen)
    gives = pl.any_horizontal(pl.col("repr_url", *INHERITED).is_not_null())
    return first_inheritances(rows.filter(gives).sort("source"), "key")


def first_inheritances(rows: pl.DataFrame, target: str) -> pl.DataFrame:
    """Returns the row of each target that counts, in no order.

    Priority: a representative URL, then none, then ``NO_URL``. Of several such URLs the first in the
    order of the alphabet counts; of equal ones, and of rows without one, the first row.

    Args:
        rows: Rows with ``repr_url``.
        target: The column that stands for the target.
    """
    url = pl.col("repr_url")
    rank = pl.when(url == NO_URL).then(2).when(url.is_null()).then(1).otherwise(0)
    order = rows.select(target, url, rank.alias("rank")).with_row_index("row")
    order = order.sort(target, "rank", "repr_url", "row")
    return rows[order.unique(target, keep="first", maintain_order=True).get_column("row")]


def _representative(source: str, repr_url: str | None, target: str, temporary: bool) -> str | None:
    """Returns the URL that represents a redirect's target; None if it is its own."""
    url = from_key(target)
    better = choose_representative(repr_url or from_key(source), url, temporary=temporary)
    return better if better != url else None
