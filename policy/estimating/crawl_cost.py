"""Estimates what pages weigh on disk, and what a crawl of many pages costs, by docs/scale.md."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from .round_time import FETCH_CPU_S, PARSE_CPU_S

# Figures of docs/scale.md for a page of a real site: compressed body; text, links and rows.
BODY_BYTES, ROW_BYTES = 20_000, 2_749
# Processor time of a page in all phases, s; on Flink it is half as much again.
_PAGE_CPU_S = FETCH_CPU_S + PARSE_CPU_S + 0.0007
_FLINK = 1.5


class PageWeight(NamedTuple):
    """What a page weighs on disk, bytes; ``measured`` in this table, or by docs/scale.md."""

    bytes: int
    measured: bool


def page_weight(batch_bytes: int, row_bytes: int, pages: int) -> PageWeight:
    """Returns what one more page weighs.

    Args:
        batch_bytes: Size of the files of batches.
        row_bytes: Size of the rows of URLs and hosts, which pages have brought.
        pages: Number of pages of the table.

    >>> page_weight(1000, 600, 10), page_weight(0, 0, 0)
    (PageWeight(bytes=160, measured=True), PageWeight(bytes=22749, measured=False))
    """
    if pages <= 0:
        return PageWeight(BODY_BYTES + ROW_BYTES, measured=False)
    return PageWeight(round((batch_bytes + row_bytes) / pages), measured=True)


class CrawlCost(NamedTuple):
    """What a crawl of many pages costs.

    Attributes:
        pages: Number of pages.
        cpu_s: Processor time in one process, s.
        flink_cpu_s: Python's processor time on Flink, s.
        disk_bytes: Size on disk.
        network_bytes: Bytes from the web.
        hosts: Number of hosts over which the pages are spread as in the table; 0: it has none.
        largest_share: Share of the largest host.
        host_s: Time that the largest host takes, s.
        seconds: The longer of that time and that of the processors of this machine, s.
    """

    pages: int
    cpu_s: float
    flink_cpu_s: float
    disk_bytes: int
    network_bytes: int
    hosts: int
    largest_share: float
    host_s: float
    seconds: float


class HostSpread(NamedTuple):
    """How pages are spread over hosts.

    Attributes:
        urls: Number of URLs of each host.
        pause_s: Time of a turn of a host, s.
    """

    urls: Sequence[int]
    pause_s: float


def crawl_cost(pages: int, page_bytes: int, spread: HostSpread, cores: int) -> CrawlCost:
    """Returns what a crawl of many pages costs.

    Args:
        pages: Number of pages.
        page_bytes: What a page weighs on disk.
        spread: The hosts of the table: the pages are spread in the same way.
        cores: Number of processors of this machine.

    >>> cost = crawl_cost(1_000_000, 20_000, HostSpread([60, 40], 5.0), 2)
    >>> round(cost.cpu_s), cost.disk_bytes, cost.largest_share, cost.host_s
    (2100, 20000000000, 0.6, 3000000.0)
    """
    total = sum(spread.urls)
    share = max(spread.urls) / total if total else 0.0
    cpu_s, host_s = pages * _PAGE_CPU_S, math.ceil(pages * share) * spread.pause_s
    return CrawlCost(
        pages=pages, cpu_s=cpu_s, flink_cpu_s=cpu_s * _FLINK, disk_bytes=pages * page_bytes,
        network_bytes=pages * BODY_BYTES, hosts=len(spread.urls), largest_share=share, host_s=host_s,
        seconds=max(host_s, cpu_s / max(1, cores)),
    )  # fmt: skip
