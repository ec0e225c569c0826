"""Makes documents of parts of pages, such as the items of a feed."""

from collections import Counter
from typing import Any

import polars as pl

from ..web.base.columns import reason_if
from ..web.pages.page import Page
from ..web.rules.url_rules import host_keys
from .components.host_rows import Seeds
from .scope import TargetOptions, judge


class Parts:
    """The parts of many pages; their URLs are filtered together."""

    def __init__(self) -> None:
        self._parts: list[tuple[dict[str, Any], str, Page]] = []

    def add(self, row: dict[str, Any], page: Page) -> None:
        """Adds the parts of a page.

        Args:
            row: Its PAGES row.
            page: The parsed page. A page with noindex or nofollow has no parts.
        """
        directive = next((d for d in ("noindex", "nofollow") if d in page.directives), None)
        if directive is not None:
            page.drop(f"part_{directive}", len(page.parts))
            return
        self._parts += [(row, url, part) for url, part in page.parts]

    def records(
        self, options: TargetOptions, seeds: Seeds, counts: Counter[str]
    ) -> list[tuple[dict[str, Any], str, Page]]:
        """Returns (columns that a DOCUMENTS row has from its page, URL, part) of accepted parts.

        A part is accepted if a link to it would be accepted and it is on the host of its page.
        If several parts have the same URL, only the first is accepted. Other parts are counted
        by reason.
        """
        if not self._parts:
            return []
        urls = pl.Series([url for _, url, _ in self._parts], dtype=pl.String)
        keys = [row["key"] for row, _, _ in self._parts]
        sources = pl.Series("source", keys, dtype=pl.String)
        links = sources.to_frame().with_columns(urls.alias("url"))
        targets = judge(links, "outlink", options, seeds)
        foreign = host_keys(targets.get_column("key")) != host_keys(sources)
        repeated = pl.col("key").is_not_null() & ~pl.col("key").is_first_distinct()
        reason = pl.coalesce(
            reason_if((pl.col("reason") == "out_of_scope").fill_null(foreign), "foreign_part"),
            "part_" + pl.col("reason"),
            reason_if(repeated, "part_repeated"),
        )
        judged = targets.select("key", reason=reason)
        records = []
        for (row, url, part), (key, reason) in zip(self._parts, judged.iter_rows(), strict=True):
            if reason is None:
                records.append((_record(row, key), url, part))
            else:
                counts[f"dropped/{reason}"] += 1
        counts["parts"] += len(records)
        return records


def _record(row: dict[str, Any], key: str) -> dict[str, Any]:
    return {
        "key": key,
        "part_of": row["key"],
        "score": 0.0,
        "distance": (row["distance"] or 0) + 1,  # as if the page linked to it
        "fetch_time": row["fetch_time"],
        "usage": row["usage"],
    }
