"""Figures of pages in batches: the tail of a fetch, languages, links between hosts, samples."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

import polars as pl

from ...web.urls.row_keys import from_host_key, shown_url
from ..base.key_columns import host_keys
from ..components.document_schema import DocumentRows
from ..components.page_facts import unique_documents, unique_pages, was_requested
from ..components.schema import PageRows
from .crawl_figures import FetchFigures, HostLinks, NamedCounts, PageSample
from .state_counts import NO_NAME, LivingRows

HostLinkRows: TypeAlias = pl.DataFrame  # ``source``, ``target``: hosts, reversed; ``number``
_TAIL = 0.95
_TAIL_HOSTS = 3
TEXT_CHARS = 400
FETCH_NEEDED = ("key", "fetch_time", "response_ms", "protocol_message")


def fetch_figures(batch: str, page_rows: PageRows) -> FetchFigures | None:
    """Returns the figures of a fetch; None if it has sent nothing.

    Args:
        batch: The batch.
        page_rows: Its PAGES rows, with ``FETCH_NEEDED``.

    >>> rows = pl.DataFrame({"key": [f"com.a:http/{n}" for n in range(40)] + ["com.b:http/"],
    ...                      "fetch_time": [*range(0, 40_000, 1_000), 90_000],
    ...                      "response_ms": [10] * 40 + [800],
    ...                      "protocol_message": [None] * 41})
    >>> fetch_figures("b", rows)
    FetchFigures(batch='b', requests=41, seconds=90.01, tail_seconds=52.0, tail_hosts=(('a.com', 1), ('b.com', 1)))
    """
    rows = unique_pages(page_rows.drop_nulls("fetch_time").filter(was_requested()))
    if rows.is_empty():
        return None
    ends = rows.select("key", start=pl.col("fetch_time") - pl.col("response_ms"), end="fetch_time")
    ends = ends.sort("end", "key")
    at = math.ceil(_TAIL * len(ends)) - 1
    end = ends.get_column("end")
    first: int = ends.select(pl.col("start").min()).item()
    seconds, tail_seconds = (end[-1] - first) / 1000, (end[-1] - end[at]) / 1000
    tail = ends[at + 1 :]
    hosts = host_keys(tail.get_column("key")).alias("host").value_counts().sort(
        "count", "host", descending=[True, False]
    )  # fmt: skip
    slow = tuple(
        (from_host_key(host), number) for host, number in hosts.head(_TAIL_HOSTS).iter_rows()
    )
    return FetchFigures(batch, len(rows), seconds, tail_seconds, slow)


def newest_documents(documents: DocumentRows, living: LivingRows) -> DocumentRows:
    """Returns the documents of a file that are the newest ones of living pages, one a page.

    Args:
        documents: DOCUMENTS rows of the file, with ``key`` and ``part_of``.
        living: The living pages whose text is in the file.
    """
    rows = unique_documents(documents).lazy().with_columns(hash=pl.col("key").hash())
    return rows.join(living.lazy().select("hash"), on="hash", how="semi").drop("hash").collect()


def count_languages(documents: DocumentRows) -> Counter[str]:
    """Returns the number of documents by language.

    >>> dict(count_languages(pl.DataFrame({"language": ["en", None, "en"]})))
    {'(none)': 1, 'en': 2}
    """
    names = documents.get_column("language").fill_null(NO_NAME)
    return Counter(dict(sorted(names.value_counts().iter_rows())))


def count_host_links(documents: DocumentRows, hosts: Sequence[str]) -> HostLinkRows:
    """Returns the number of links between hosts in documents, without those within a host.

    Args:
        documents: DOCUMENTS rows with ``key`` and ``outlinks``.
        hosts: The hosts, reversed.
    """
    wanted = list(hosts)
    with_source = documents.select(
        "outlinks", host_keys(documents.get_column("key")).alias("source")
    )
    rows = (
        with_source.filter(pl.col("source").is_in(wanted))
        .explode("outlinks")
        .drop_nulls("outlinks")
    )
    keys = rows.get_column("outlinks").struct.field("key")
    links = rows.select("source", host_keys(keys).alias("target"))
    between = pl.col("target").is_in(wanted) & (pl.col("source") != pl.col("target"))
    return links.filter(between).group_by("source", "target").agg(number=pl.len().cast(pl.Int64))


def host_links(
    parts: Sequence[HostLinkRows], hosts: Sequence[str], pages: int, all_pages: int
) -> HostLinks:
    """Returns the links between hosts of several parts.

    Args:
        parts: Their numbers.
        hosts: The hosts, reversed.
        pages: Pages that were read.
        all_pages: Pages with a text.
    """
    places = {host: place for place, host in enumerate(hosts)}
    sums: Counter[tuple[int, int]] = Counter()
    for part in parts:
        for source, target, number in part.select("source", "target", "number").iter_rows():
            sums[places[source], places[target]] += number
    links = sorted(((*pair, n) for pair, n in sums.items()), key=lambda link: (-link[2], link))
    return HostLinks(tuple(map(from_host_key, hosts)), tuple(links), pages, all_pages)


def page_samples(documents: DocumentRows) -> list[PageSample]:
    """Returns documents as samples: the beginning of their texts.

    Args:
        documents: DOCUMENTS rows with ``key``, ``title`` and ``text``.
    """
    rows = documents.select("key", "title", "text").sort("key")
    return [
        PageSample(shown_url(key), title or "", (text or "")[:TEXT_CHARS])
        for key, title, text in rows.iter_rows()
    ]


def in_count_order(counts: NamedCounts) -> NamedCounts:
    """Returns numbers, the largest first.

    >>> list(in_count_order({"a": 1, "b": 2}))
    ['b', 'a']
    """
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
