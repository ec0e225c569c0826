"""Admits new URLs by merit: a registered domain has a share of the table that links to it earn.

Merit comes from the domains of seeds. A domain divides its merit among the domains to which it
links. So links between the domains of a farm make no merit: all domains of a farm together have
the merit that links of honest domains bring.
"""

import functools
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from ...web.base.columns import find_sorted, number_in
from ...web.urls.row_keys import from_host_key
from ..base.key_columns import domain_keys, host_keys
from ..components.document_schema import DocumentRows
from ..components.page_facts import DomainFacts, TableFacts
from ..components.schema import ChangeRows, HostRows, StateRows
from ..traps import BudgetOptions, NewUrlRows, best_of_groups
from .sketches import domain_hashes, number_of_domains, sketch_domains, sketch_hashes

DomainLinkRows: TypeAlias = pl.DataFrame  # ``source``, ``target``: registered domains, reversed
# Share of its merit that a domain passes on. With a small share, a farm that links only to itself
# keeps little.
_PASSED = 0.5
_STEPS = 20
# Most unknown domains to which links of a page count, if its domain is not a seed's.
_LED_TO = 3
UNVOUCHED = "dropped/domain_unvouched"


class Merits(NamedTuple):
    """Merits of registered domains (reversed).

    Attributes:
        seeds: Domains of seeds, each once, in order.
        budgets: For each other domain to which a counted link leads (``key``, in order), how many of
            its URLs the table may hold (``budget``).
        least: Budget of an unknown domain; the links of a domain with less do not count.
    """

    seeds: pl.Series
    budgets: pl.DataFrame
    least: int

    def are_seeds(self, domains: pl.Series) -> pl.Series:
        """Returns a mask of the domains of seeds."""
        return find_sorted(self.seeds, domains).is_not_null()

    def budgets_of(self, domains: pl.Series) -> pl.Series:
        """Returns the budgets of domains; null for domains of seeds and unknown ones."""
        at = find_sorted(self.budgets.get_column("key"), domains)
        return self.budgets.get_column("budget").gather(at)

    def are_vouching(self, domains: pl.Series) -> pl.Series:
        """Returns a mask of the domains whose links count."""
        earned = (self.budgets_of(domains) >= self.least).fill_null(False)
        return self.are_seeds(domains) | earned


class DomainRoom(NamedTuple):
    """Room of registered domains for new URLs.

    Attributes:
        merits: Their merits.
        url_rows: HOSTS rows of domains: ``key`` and present ``domain_urls``.
    """

    merits: Merits
    url_rows: HostRows


def merits_of_table(table: TableFacts, options: BudgetOptions) -> Merits | None:
    """Returns the merits of all domains, kept for the facts; None if admission is not by merit."""
    if table.domains is None:
        return None
    budget, unlinked = options.domain_budget, options.unlinked_domain_budget
    budgets = BudgetOptions(domain_budget=budget, unlinked_domain_budget=unlinked)
    return _merits_of_facts(table, table.domains, budgets)


@functools.lru_cache(maxsize=2)
def _merits_of_facts(table: TableFacts, domains: DomainFacts, options: BudgetOptions) -> Merits:
    return merits_of(domains.linked_rows, table.seeds.domain_keys(), domains.urls, options)


def merits_of(hosts: HostRows, seeds: pl.Series, urls: int, options: BudgetOptions) -> Merits:
    """Returns the budgets of domains.

    Args:
        hosts: ``key`` and ``linking_domains`` of domains.
        seeds: Domains of seeds, reversed, each once, in order.
        urls: Number of URLs of the table.
        options: The budgets.
    """
    linked = hosts.select("key", "linking_domains").drop_nulls()
    shares = _shares(linked, seeds)
    # In a small crawl, a domain with the usual merit may have as many as an unknown one.
    several = 1 / np.square(shares).sum() if len(shares) and shares.any() else 0.0
    total = max(urls, options.unlinked_domain_budget * several)
    budgets = np.floor(options.domain_budget * total * shares + 1e-6).astype(np.int64)
    of_others = linked.select("key", budget=pl.Series(budgets, dtype=pl.Int64)).filter(
        find_sorted(seeds, linked.get_column("key")).is_null()
    )
    return Merits(seeds, of_others.sort("key"), options.unlinked_domain_budget)


def _shares(linked: HostRows, seeds: pl.Series) -> npt.NDArray[np.float64]:
    """Returns for each linked domain its share of the merit; 0 for those of seeds.

    Merit is a PageRank that starts at the domains of seeds.
    """
    keys = linked.get_column("key")
    is_own = find_sorted(seeds, keys).is_not_null()
    others = seeds.filter(~seeds.is_in(keys.filter(is_own).implode()))
    nodes = pl.concat([keys, others])
    source, target, weight = _edges(nodes, linked)
    links_given = np.bincount(source, weights=weight, minlength=len(nodes))
    part = weight / links_given[source]
    start = np.append(is_own.to_numpy(), np.ones(len(others), bool)) / max(1, len(seeds))
    merit = start
    for _ in range(_STEPS):
        passed = np.bincount(target, weights=merit[source] * part, minlength=len(nodes))
        merit = (1 - _PASSED) * start + _PASSED * passed
    earned = np.where(start > 0, 0, merit)[: len(keys)]
    return earned / (earned.sum() or 1.0)


def _edges(
    nodes: pl.Series, linked: HostRows
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Returns source, target and weight of the links between domains, as indexes of nodes."""
    hashes = domain_hashes(map(from_host_key, nodes))
    sketches = linked.get_column("linking_domains").to_list()
    hashes_by_domain = [sketch_hashes(sketch) for sketch in sketches]
    sizes = np.array([len(each) for each in hashes_by_domain], dtype=np.int64)
    # A sketch has some of many domains; each stands for several.
    stands = np.array([number_of_domains(sketch) for sketch in sketches]) / np.maximum(sizes, 1)
    order = np.argsort(hashes)
    named = np.concatenate([*hashes_by_domain, hashes[:0]])
    at = np.minimum(np.searchsorted(hashes, named, sorter=order), len(nodes) - 1)
    source = order[at] if len(nodes) else at
    target = np.repeat(np.arange(len(hashes_by_domain)), sizes)
    there = hashes[source] == named
    return source[there], target[there], np.repeat(stands, sizes)[there]


def domains_of_new_urls(rows: StateRows, changes: ChangeRows) -> pl.Series:
    """Returns the registered domains (reversed) of changes of URLs that have no row."""
    keys, known_keys = changes.get_column("key"), rows.get_column("key")
    # Hashes are compared in a fifth of the time.
    new = keys.filter(~keys.hash().is_in(known_keys.hash().implode()))
    domains = domain_keys(host_keys(new).unique()).unique().drop_nulls()
    return domains.filter(domains != "")


def room_of_domains(urls: HostRows, domains: pl.Series, merits: Merits) -> dict[str, int]:
    """Returns how many URLs of each domain (reversed) may be added; a seed's domain has no limit.

    Args:
        urls: ``key`` and present ``domain_urls`` of domains.
        domains: The domains.
        merits: Their merits.
    """
    limited = domains.filter(~merits.are_seeds(domains) & (domains != "")).alias("key")
    budgets = merits.budgets_of(limited).fill_null(merits.least)
    rows = limited.to_frame().with_columns(budget=budgets).join(urls, on="key", how="left")
    room = pl.col("budget") - pl.col("domain_urls").fill_null(0)
    return dict(rows.select("key", room.clip(0)).iter_rows())


def domain_links(document_rows: DocumentRows) -> DomainLinkRows:
    """Returns the pairs of registered domains between which pages link: ``source``, ``target``.

    Both are reversed. Links within a domain are left out.

    Args:
        document_rows: DOCUMENTS rows with ``key`` and ``outlinks``.
    """
    links = document_rows.select(
        source=host_keys(document_rows.get_column("key")),
        target=pl.col("outlinks").list.eval(pl.element().struct.field("key")),
    )
    links = links.explode("target").drop_nulls()
    targets = host_keys(links.get_column("target"))
    pairs = links.with_columns(target=targets).unique()
    pairs = pairs.with_columns(
        source=domain_keys(pairs.get_column("source")),
        target=domain_keys(pairs.get_column("target")),
    )
    foreign = (pl.col("source") != pl.col("target")) & (pl.col("target") != "")
    return pairs.filter(foreign).unique().sort("target", "source")


def drop_unvouched_links(
    documents: DocumentRows, merits: Merits
) -> tuple[DocumentRows, dict[str, int]]:
    """Returns documents without the links to unknown domains that do not count, and counts.

    The links of a domain whose links do not count lead to no unknown domain. A page of another one
    leads to a few, with one link each, except that those of the domains of seeds have no limit.

    Args:
        documents: DOCUMENTS rows with ``key`` and ``outlinks``.
        merits: Merits of the domains.
    """
    pairs = domain_links(documents)
    target = pairs.get_column("target")
    is_known = merits.are_seeds(target) | merits.budgets_of(target).is_not_null()
    strange = pairs.filter(~merits.are_seeds(pairs.get_column("source")) & ~is_known)
    if strange.is_empty():
        return documents, {}
    sources = domain_keys(host_keys(documents.get_column("key")))
    concerned = sources.is_in(strange.get_column("source").implode())
    numbered = documents.select("outlinks", source=sources).with_row_index("page").filter(concerned)
    links = numbered.filter(pl.col("outlinks").list.len() > 0).explode("outlinks")
    targets = domain_keys(host_keys(links.get_column("outlinks").struct.field("key")))
    links = links.with_columns(target=targets).with_row_index("link")
    unknown = links.join(strange, on=["source", "target"], how="semi")
    first = unknown.filter(merits.are_vouching(unknown.get_column("source"))).unique(
        "target", keep="first", maintain_order=True
    )
    counting_links = first.filter(number_in("page") < _LED_TO)
    counted_links = links.join(unknown, on="link", how="anti")
    counted_links = pl.concat(
        [counted_links, links.join(counting_links, on="link", how="semi")]
    ).sort("link")
    lists = counted_links.group_by("page", maintain_order=True).agg("outlinks")
    pages = numbered.select("page").join(lists, on="page", how="left", maintain_order="left")
    none = pl.lit([], dtype=documents.schema["outlinks"])
    changed = pages.select(pl.col("outlinks").fill_null(none)).to_series()
    place = np.arange(len(documents))
    place[pages.get_column("page")] = len(documents) + np.arange(len(pages))
    outlinks = pl.concat([documents.get_column("outlinks"), changed]).gather(place)
    return documents.with_columns(outlinks), {UNVOUCHED: len(unknown) - len(counting_links)}


def add_linking_domains(
    host_rows: HostRows, document_rows: DocumentRows, merits: Merits
) -> HostRows:
    """Adds to HOSTS rows who links to registered domains, as documents say."""
    pairs = domain_links(document_rows)
    linked = linking_domains(pairs.filter(merits.are_vouching(pairs.get_column("source"))))
    return host_rows.join(linked, on="key", how="full", coalesce=True)


def linking_domains(pairs: DomainLinkRows) -> HostRows:
    """Returns ``key`` and ``linking_domains`` of the domains to which links that count lead.

    Args:
        pairs: Rows of ``domain_links`` whose links count.
    """
    grouped = pairs.group_by("target").agg("source").sort("target")
    sketches = [
        sketch_domains(map(from_host_key, sources)) for sources in grouped.get_column("source")
    ]
    return grouped.select(key="target", linking_domains=pl.Series(sketches, dtype=pl.Binary))


def within_room(new: NewUrlRows, room: DomainRoom | None) -> tuple[NewUrlRows, dict[str, int]]:
    """Returns the best new URLs for which their registered domain has room, and counts.

    Args:
        new: ``key``, ``inlink_score``.
        room: Room of domains; None: they have no limit.
    """
    if room is None or new.is_empty():
        return new, {}
    domains = domain_keys(host_keys(new.get_column("key")))
    limits = room_of_domains(room.url_rows, domains.unique(), room.merits)
    most = pl.col("group").replace_strict(limits, default=None, return_dtype=pl.Int64)
    admitted = new.filter(best_of_groups(new, domains, most))
    left_out = len(new) - len(admitted)
    return admitted, {"dropped/domain_full": left_out} if left_out else {}
