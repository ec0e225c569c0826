"""Redirects of a batch: which count, what their targets inherit, and which URL represents a page.

A representative URL may redirect several times, and where it leads is read step by step: the job asks
for ``keys_to_read``, reads these rows, and gives them to ``follow_chains``, until no chain is left.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple, TypeAlias

import ada_url
import polars as pl

from ...web.exchange.status import (
    EXCEPTION,
    FAILED,
    FETCH_REDIR_PERM,
    MOVED,
    NOTMODIFIED,
    SUCCESS,
    TEMP_MOVED,
)
from ...web.urls.domains import registered_domain
from ...web.urls.row_keys import from_key, to_key
from ..components.document_schema import DOCUMENTS, DocumentRows
from ..components.host_rows import Seeds
from ..components.page_facts import INHERITED, PageFacts
from ..components.rule_counts import by_rule
from ..components.schema import FetchListRows, PageRows, StateRows, empty
from ..scope import TargetOptions, judge
from .update_rules import UpdateRules

RedirectRows: TypeAlias = pl.DataFrame  # a link without score, with ``source`` and ``temporary``
InheritedRows: TypeAlias = pl.DataFrame  # ``key``, ``repr_url`` and ``INHERITED``
AnswerRows: TypeAlias = pl.DataFrame  # ``key``, ``protocol_status``, ``url`` that it leads to
StateLinkRows: TypeAlias = pl.DataFrame  # columns of CHANGES for a link
# A change with it in place of a URL says that no other URL represents the page any more.
NO_URL = ""
# A meta refresh counts as a permanent redirect from this time on, s.
_PERMANENT_REFRESH_S = 5
_TYPES = empty(DOCUMENTS).schema
# In place of the key that a URL leads to: the table does not have that URL.
ABSENT = ""
# More redirects in a row are a circle.
_LONGEST_CHAIN = 20
# A failure that may pass says nothing about where a URL leads.
_UNCLEAR = (EXCEPTION, FAILED)


class Targets(NamedTuple):
    """What pages lead to besides their links.

    Attributes:
        redirects: Links to targets of redirects, with ``source`` and ``temporary``.
        parts: DOCUMENTS rows of parts of pages that are documents and not too deep.
        part_links: A link to each of these parts.
    """

    redirects: RedirectRows
    parts: DocumentRows
    part_links: StateLinkRows


def judge_redirects(
    page_rows: PageRows, refresh_rows: DocumentRows, seeds: Seeds, options: TargetOptions
) -> tuple[RedirectRows, dict[str, int]]:
    """Returns the targets of redirects and refreshes, as links without score.

    Args:
        page_rows: PAGES rows.
        refresh_rows: DOCUMENTS rows with ``key``, ``distance``, ``refresh``, ``refresh_seconds``.
        seeds: The hosts of seeds.
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
    if options.count_by_rule:
        counts |= by_rule(judged)
    accepted = judged.filter(pl.col("reason").is_null())
    return _links_without_score(accepted).hstack(accepted.select("source", "temporary")), counts


def link_targets(redirects: RedirectRows, facts: PageFacts, rules: UpdateRules) -> Targets:
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
    targets: StateLinkRows, passed_on: pl.DataFrame, rules: UpdateRules
) -> StateLinkRows:
    """Adds to targets what their ``source`` passes on, see ``_pass_to_targets``."""
    joined = targets.join(passed_on, on="source", how="left", maintain_order="left")
    return rules.scorings.links(joined)


def _links_without_score(targets: pl.DataFrame) -> StateLinkRows:
    """Returns links that have a distance but no score."""
    distance = pl.col("distance").fill_null(0).cast(pl.Int32)
    return targets.select("key", inlink_score=pl.lit(0.0), inlink_distance=distance)


def inherited_by_targets(
    redirects: RedirectRows, fetch_list_rows: FetchListRows, unrepresented: Collection[str] = ()
) -> InheritedRows:
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


def _inheritances(redirects: RedirectRows, giving: pl.DataFrame) -> InheritedRows:
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


def choose_representative(source: str, target: str, *, temporary: bool) -> str:
    """Returns the better URL of a redirect's two ends, as users know the page.

    Args:
        source: URL that redirects, normalized.
        target: URL that it leads to, normalized.
        temporary: Whether the redirect is temporary.

    >>> choose_representative("http://a.com/", "http://a.com/home?id=1", temporary=True)
    'http://a.com/'
    >>> choose_representative("http://a.com/x", "http://b.com/", temporary=True)
    'http://b.com/'
    >>> choose_representative("http://a.com/x", "http://a.com/y", temporary=False)
    'http://a.com/y'
    """
    one, two = ada_url.URL(source), ada_url.URL(target)
    if registered_domain(one.hostname) != registered_domain(two.hostname):
        return target
    roots = _is_root(one), _is_root(two)
    if not temporary:
        return source if roots[0] else target
    if roots[0] != roots[1]:
        return source if roots[0] else target
    return source if _size(one, two) <= _size(two, one) else target


def _is_root(url: ada_url.URL) -> bool:
    return url.pathname + url.search in ("", "/")


def _size(url: ada_url.URL, other: ada_url.URL) -> tuple[int, int]:
    """Returns a sort key: the shorter path of one host, else the host with fewer labels."""
    if url.hostname == other.hostname:
        path = url.pathname + url.search
        # As Java splits: empty parts at the end do not count.
        return len(path.rstrip("/").split("/")), len(path)
    return url.hostname.count("."), 0


class Chains(NamedTuple):
    """Chains of redirects from representative URLs that are being followed.

    Attributes:
        next_keys: By the key of a page, the key of the URL that its chain has reached.
        unrepresented: Keys of pages that no other URL represents any more.
        hops: Number of redirects that were followed.
    """

    next_keys: Mapping[str, str]
    unrepresented: frozenset[str] = frozenset()
    hops: int = 0


def begin_chains(facts: PageFacts) -> Chains:
    """Returns the chains of the pages in a fetch list that another URL represents."""
    shown = facts.fetch_list_rows.select("key", "repr_url").drop_nulls().iter_rows()
    return Chains({key: to_key(url) for key, url in shown})


def keys_to_read(chains: Chains, facts: PageFacts) -> pl.Series:
    """Returns the keys of URLs in chains whose answers the file of pages does not have, in order."""
    keys = _ordered_keys(chains)
    return keys.filter(~keys.is_in(_file_answers(facts).get_column("key").implode()))


def follow_chains(
    chains: Chains, answer_rows: StateRows, facts: PageFacts, rules: UpdateRules
) -> Chains:
    """Follows each chain by one redirect.

    Args:
        chains: The chains.
        answer_rows: STATE rows with the keys ``keys_to_read``: ``key``, ``protocol_status``,
            ``protocol_message``, ``document``, and of that document ``has_text`` and ``refresh``.
        facts: The pages of the file.
        rules: The rules for targets of redirects.
    """
    keys = _ordered_keys(chains)
    in_file = _file_answers(facts).filter(pl.col("key").is_in(keys.implode()))
    answers = pl.concat([in_file, _table_answers(answer_rows, facts)])
    absent = keys.filter(~keys.is_in(answers.get_column("key").implode()))
    status = pl.col("protocol_status")
    answers = answers.filter(~(status.is_null() | status.is_in(_UNCLEAR)))
    leading = answers.filter(pl.col("url").is_not_null())
    links = leading.select("url", source="key")
    judged = judge(links, "fetcher", rules.options, facts.table.seeds)
    targets = dict(judged.select("source", "key").iter_rows())
    leads_to = {key: targets.get(key) for key in answers.get_column("key")}
    return take_hop(chains, leads_to | dict.fromkeys(absent, ABSENT))


def take_hop(chains: Chains, leads_to: Mapping[str, str | None]) -> Chains:
    """Moves each chain on to where its URL leads.

    A page is not represented any more if the URL has a page of its own now, is gone, redirects
    elsewhere, or was removed from the table. The URL stays while this is not known.

    Args:
        chains: The chains.
        leads_to: By the key of a URL the key that it leads to: None if it leads nowhere, ``ABSENT`` if
            the table does not have the URL. Where nothing is known of the answer, the key is missing.

    >>> chains = Chains({"page": "a", "p2": "gone", "p3": "a", "p4": "unknown"})
    >>> web = {"a": "page", "gone": None, "page": None}
    >>> chains = take_hop(chains, web)
    >>> chains.next_keys, sorted(chains.unrepresented)
    ({'p3': 'page'}, ['p2'])
    >>> chains = take_hop(chains, web)
    >>> chains.next_keys, sorted(chains.unrepresented)
    ({}, ['p2', 'p3'])
    """
    ways = {page: leads_to[url] for page, url in chains.next_keys.items() if url in leads_to}
    if chains.hops:  # The target of a redirect may be new: the table gets it with this update.
        ways = {page: target for page, target in ways.items() if target != ABSENT}
    ended = {page for page, target in ways.items() if not target}
    next_hops = {page: target for page, target in ways.items() if target and target != page}
    hops = chains.hops + 1
    return Chains(next_hops if hops < _LONGEST_CHAIN else {}, chains.unrepresented | ended, hops)


def _ordered_keys(chains: Chains) -> pl.Series:
    return pl.Series("key", sorted(set(chains.next_keys.values())), pl.String)


def _file_answers(facts: PageFacts) -> AnswerRows:
    """Returns ``key``, ``protocol_status`` and ``url`` of pages that were fetched with a new answer.

    Of pages that answered 304 the newest document is in the table.
    """
    refresh = facts.document_rows.select("key", "refresh").unique("key", keep="first")
    answers = facts.page_rows.select("key", "protocol_status", url="redirect")
    answers = answers.unique("key", keep="first", maintain_order=True)
    is_new = (pl.col("protocol_status") != NOTMODIFIED).fill_null(True)
    answers = answers.filter(is_new).join(refresh, on="key", how="left")
    return answers.select("key", "protocol_status", pl.coalesce("url", "refresh"))


def _table_answers(answer_rows: StateRows, facts: PageFacts) -> AnswerRows:
    """Returns ``key``, ``protocol_status`` and ``url`` of rows of the table.

    Nothing is known about a page whose document was deleted: its status is null.
    """
    unchanged = facts.page_rows.filter(pl.col("protocol_status") == NOTMODIFIED)
    is_unchanged = pl.col("key").is_in(unchanged.get_column("key").implode())
    status = pl.when(is_unchanged).then(NOTMODIFIED).otherwise("protocol_status")
    rows = answer_rows.with_columns(status.alias("protocol_status"))
    status = pl.col("protocol_status")
    has_page = status.is_in([SUCCESS, NOTMODIFIED])
    is_lost = has_page & pl.col("document").is_not_null() & ~pl.col("has_text")
    moved = pl.when(status.is_in([MOVED, TEMP_MOVED])).then("protocol_message")
    return rows.select(
        "key",
        pl.when(~is_lost).then(status),
        url=pl.coalesce(moved, pl.when(has_page).then("refresh")),
    )
