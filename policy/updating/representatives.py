"""Follows the URLs that represent other pages, and finds those that do not represent them any more.

A representative URL may redirect several times, and where it leads is read step by step: the job asks
for ``keys_to_read``, reads these rows, and gives them to ``follow_chains``, until no chain is left.
"""

from collections.abc import Mapping
from typing import NamedTuple

import polars as pl

from ...web.exchange.status import EXCEPTION, FAILED, MOVED, NOTMODIFIED, SUCCESS, TEMP_MOVED
from ...web.urls.row_keys import to_key
from ..components.page_facts import PageFacts
from ..components.schema import StateRows
from ..scope import judge
from .update_rules import UpdateRules

# In place of the key that a URL leads to: the table does not have that URL.
ABSENT = ""
# More redirects in a row are a circle.
_LONGEST_CHAIN = 20
# A failure that may pass says nothing about where a URL leads.
_UNCLEAR = (EXCEPTION, FAILED)


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


def _file_answers(facts: PageFacts) -> pl.DataFrame:
    """Returns ``key``, ``protocol_status`` and ``url`` of pages that were fetched with a new answer.

    Of pages that answered 304 the newest document is in the table.
    """
    refresh = facts.document_rows.select("key", "refresh").unique("key", keep="first")
    answers = facts.page_rows.select("key", "protocol_status", url="redirect")
    answers = answers.unique("key", keep="first", maintain_order=True)
    is_new = (pl.col("protocol_status") != NOTMODIFIED).fill_null(True)
    answers = answers.filter(is_new).join(refresh, on="key", how="left")
    return answers.select("key", "protocol_status", pl.coalesce("url", "refresh"))


def _table_answers(answer_rows: StateRows, facts: PageFacts) -> pl.DataFrame:
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
