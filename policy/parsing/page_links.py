"""Resolves, filters and limits the links of pages; filters a link of many pages only once."""

import functools
import re
import threading
from collections import Counter
from typing import NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from ...web.pages.page import Page
from ...web.rules.chains import normalizers_in
from ...web.rules.url_rules import absolute_urls
from ...web.urls.schemes import plugin_schemes
from ..components.document_schema import LINKS
from ..components.host_rows import Seeds
from ..components.rule_counts import cap_rule_counts, rules_by_row
from ..scope import TargetOptions, judge

# Largest size of the cache of links.
_MAX_CHARS = 16 << 20
_MAX_LINKS = 100_000
# A URL with such a scheme and no slashes may be relative to the base.
_BARE_SCHEME = re.compile(r"(?:https?|ftp|file|wss?):(?!//)", re.IGNORECASE)


class _Added(NamedTuple):
    document: int
    key: str
    page: Page


class PageLinks:
    """The links of many pages, which are filtered together.

    Args:
        options: Rules for links.
        seeds: The hosts of seeds, for the scope.
        most: Largest number of links per page, unless the page is a list of links; negative is
            no limit.
    """

    def __init__(self, options: TargetOptions, seeds: Seeds, most: int) -> None:
        self._options = options
        self._seeds = seeds
        self._most = most
        self._added: list[_Added] = []

    def add(self, document: int, key: str, page: Page) -> None:
        """Adds the links of a page.

        Args:
            document: Number of the document; must be larger than in the call before.
            key: Row key of the page.
            page: The parsed page.
        """
        self._added.append(_Added(document, key, page))

    def outlinks(self, documents: int, counts: Counter[str]) -> pa.LargeListArray:
        """Returns the links (key, anchor, rel) of each document; null if it has none.

        Args:
            documents: Number of documents.
            counts: Counts ``outlinks``, ``dropped/REASON`` and, by option, rules of filters.
        """
        memory = _memory(self._options, self._seeds)
        dropped: Counter[str] = Counter()
        refused: Counter[str] = Counter()
        keys: list[str] = []
        anchors: list[str] = []
        rels: list[str] = []
        numbers = np.zeros(documents, np.int64)
        with memory.lock:
            placed = memory.places(self._added)
            for each, places in zip(self._added, placed, strict=True):
                own, first_link = each.key, len(keys)
                page = each.page
                last = first_link + self._most if self._most >= 0 and not page.is_list else -1
                for place, anchor, rel in zip(places, page.anchors, page.rels, strict=True):
                    target, reason = memory.judged[place]
                    if reason is not None:
                        dropped[reason] += 1
                        if place in memory.refused_by:
                            refused[memory.refused_by[place]] += 1
                    elif target == own:
                        dropped["own_url"] += 1
                    elif len(keys) == last:
                        dropped["max_outlinks"] += 1
                    else:
                        keys.append(target)
                        anchors.append(anchor)
                        rels.append(rel)
                numbers[each.document] = len(keys) - first_link
        counts["outlinks"] += len(keys)
        for reason, number in dropped.items():
            counts[f"dropped/{reason}"] += number
        counts.update(cap_rule_counts(refused))
        return _lists(numbers, keys, anchors, rels)


def _lists(
    numbers: np.ndarray, keys: list[str], anchors: list[str], rels: list[str]
) -> pa.LargeListArray:
    fields = list(LINKS.value_type)
    columns = [
        pa.array(values, field.type)
        for values, field in zip((keys, anchors, rels), fields, strict=True)
    ]
    links = pa.StructArray.from_arrays(columns, fields=fields)
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(numbers)])
    empty = np.append(numbers == 0, False)  # the last offset is not the start of a list
    return pa.LargeListArray.from_arrays(pa.array(ends, mask=empty), links, type=LINKS)


class _Memory:
    """Caches the verdicts on links, for the pages of each folder of a site.

    A link that does not begin with ``?`` or ``#`` leads to the same URL from all
    pages of a folder, and the scope depends only on the site.

    Attributes:
        judged: (row key, None) or (None, reason) of each link, by its position.
        refused_by: Rule of a filter that refused a link, by its position, if rules are counted.
        lock: Hold it while using this object.
    """

    def __init__(self, options: TargetOptions, seeds: Seeds) -> None:
        self._options = options
        self._seeds = seeds
        self._whole = "ajax" in normalizers_in(options, "outlink")
        self.judged: list[tuple[str, str | None]] = []
        self.refused_by: dict[int, str] = {}
        self.lock = threading.Lock()
        self._forget()

    def _forget(self) -> None:
        self._known: dict[tuple[str, str], dict[str, int]] = {}
        self._new: list[tuple[str, str, str]] = []
        self._chars = 0
        self.judged.clear()
        self.refused_by.clear()

    def places(self, pages: list[_Added]) -> list[list[int]]:
        """Filters the links of pages; returns the positions of their verdicts."""
        if self._chars > _MAX_CHARS or len(self.judged) > _MAX_LINKS:
            self._forget()
        try:
            placed = [self._places(each.key.partition("/")[0], each.page) for each in pages]
            self._judge()
        except BaseException:
            self._forget()  # some links have a position but no verdict
            raise
        return placed

    def _places(self, site: str, page: Page) -> list[int]:
        base = page.base
        folder = base
        if not base.startswith("file:"):  # in file: URLs, a drive letter is not a folder
            folder = base.partition("#")[0].partition("?")[0].rpartition("/")[0]
        places = self._known.setdefault((site, folder), {})
        page_places = list(map(places.get, page.hrefs))
        return [
            self._place(places, site, base, href) if place is None else place
            for place, href in zip(page_places, page.hrefs, strict=True)
        ]

    def _place(self, places: dict[str, int], site: str, base: str, href: str) -> int:
        if href in places:  # an earlier link of this page
            return places[href]
        cut = href if self._whole else href.partition("#")[0]
        if cut and cut[-1] <= " ":
            cut = href  # a space would be at the end then, and be trimmed
        if not cut or cut[0] in "?#" or not cut.isprintable() or _BARE_SCHEME.match(cut):
            places = self._known.setdefault((site, base), {})
            href = cut
        if cut not in places:
            places[cut] = len(self.judged) + len(self._new)
            self._new.append((site, base, cut))
            self._chars += len(cut)
        if href != cut:
            self._chars += len(href)
            places[href] = places[cut]
        return places[cut]

    def _judge(self) -> None:
        if not self._new:
            return
        sites, bases, hrefs = (
            pl.Series(column, dtype=pl.String) for column in zip(*self._new, strict=True)
        )
        self._new = []
        urls = absolute_urls(bases, hrefs, plugin_schemes(self._options.schemes))
        if self._whole:
            urls += hrefs.str.extract(r"(#!.*)$").fill_null("")
        # No page has this key: links of a page to itself are found later.
        links = (sites + "/\0").alias("source").to_frame().with_columns(urls.alias("url"))
        judged = judge(links, "outlink", self._options, self._seeds)
        first_place = len(self.judged)
        self.refused_by |= {first_place + row: name for row, name in rules_by_row(judged).items()}
        self.judged += judged.select("key", "reason").iter_rows()


@functools.lru_cache(maxsize=1)
def _memory(options: TargetOptions, seeds: Seeds) -> _Memory:
    return _Memory(options, seeds)
