"""Batches become one, and one becomes several: Nutch's mergesegs (nutch.md 1.3)."""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import polars as pl

from ...web.exchange.status import FETCH_SUCCESS
from ...web.rules.url_rules import UrlRules
from ...web.urls.key_columns import from_keys
from ..components.batch_rows import BatchRows
from ..components.blocklist import REASON as PURGED
from ..components.blocklist import Blocklist

# Of a fetch list: what leads to a body that is in another table.
_OF_BODY = ("page", "document", "etag", "last_modified")


class KeyRules(NamedTuple):
    """Which URLs of batches are left out, and which get another key.

    Attributes:
        rules: Normalizes and filters URLs; None leaves them as they are.
        filters: Whether to filter them.
        blocklist: Names that the table must not have.
    """

    rules: UrlRules | None
    filters: bool
    blocklist: Blocklist


def admit_rows(rows: BatchRows, how: KeyRules) -> tuple[BatchRows, Counter[str]]:
    """Returns the rows of accepted URLs, under their normalized keys; and counts of URLs.

    Parts of a page that is left out are left out, too. If several URLs become
    one, all rows of one of them are taken: of the first that was fetched, else of the first with a page,
    else of the first.
    """
    named = [frame.get_column("key") for frame in rows]
    keys = pl.concat(named).unique(maintain_order=True)
    parts = [rows.documents.get_column("part_of")] if "part_of" in rows.documents.columns else []
    keys = pl.concat([keys, *parts]).drop_nulls().unique(maintain_order=True)
    judged = pl.DataFrame({"key": keys, "target": keys, "reason": [None] * len(keys)},
                          schema_overrides={"reason": pl.String})  # fmt: skip
    if how.rules is not None:
        admitted = how.rules.admit(from_keys(keys), "default", filters=how.filters)
        judged = judged.with_columns(
            target=admitted.get_column("key"), reason=admitted.get_column("reason")
        )
    if how.blocklist:
        blocked = how.blocklist.blocks(judged.get_column("target").fill_null(""))
        judged = judged.with_columns(
            reason=pl.when(pl.lit(blocked)).then(pl.lit(PURGED)).otherwise("reason")
        )
    counts = Counter(
        {f"dropped/{reason}": n
         for reason, n in judged.get_column("reason").drop_nulls().value_counts().iter_rows()}
    )  # fmt: skip
    accepted = judged.filter(pl.col("reason").is_null())
    moved = int((accepted.get_column("key") != accepted.get_column("target")).sum())
    counts.update({"moved": moved} if moved else {})
    if not moved and len(accepted) == len(judged):
        return rows, counts
    chosen = _one_of_each_target(accepted, rows.pages)
    listed, pages, documents = (_rekey(frame, "key", chosen) for frame in rows)
    if parts:
        of_page = documents.get_column("part_of").is_null()
        documents = pl.concat(
            [documents.filter(of_page), _rekey(documents.filter(~of_page), "part_of", chosen)]
        )
    return BatchRows(listed, pages, documents), counts


def _one_of_each_target(accepted: pl.DataFrame, pages: pl.DataFrame) -> pl.DataFrame:
    """Returns one row of each target: of a fetched page, else of a page, else the first."""
    fetched = pages.filter(pl.col("fetch_status") == FETCH_SUCCESS)
    worse = [~pl.col("key").is_in(frame.get_column("key").implode()) for frame in (fetched, pages)]
    best_first = accepted.sort(worse, maintain_order=True)
    return best_first.unique("target", keep="first", maintain_order=True)


def _rekey(frame: pl.DataFrame, column: str, chosen: pl.DataFrame) -> pl.DataFrame:
    targets = chosen.select(pl.col("key").alias(column), "target")
    joined = frame.join(targets, on=column, how="inner", maintain_order="left")
    return joined.with_columns(pl.col("target").alias(column)).drop("target")


class NewestRows:
    """Chooses the rows of the newest batch of each URL; batches come newest first.

    Memory holds 8 bytes for each URL.
    """

    def __init__(self) -> None:
        self._seen = {name: pl.Series("key", [], dtype=pl.UInt64) for name in ("listed", "pages")}

    def choose(self, rows: BatchRows) -> BatchRows:
        """Returns the rows whose URL no earlier call has had.

        A page brings the documents of its batch: an older text does not stay beside a newer failure.
        """
        listed, pages = (
            self._unseen_rows("listed", rows.listed),
            self._unseen_rows("pages", rows.pages),
        )
        return BatchRows(listed, pages, _documents_of(pages, rows.documents))

    def _unseen_rows(self, name: str, frame: pl.DataFrame) -> pl.DataFrame:
        hashes = frame.get_column("key").hash()
        new = ~hashes.is_in(self._seen[name].implode())
        self._seen[name] = pl.concat([self._seen[name], hashes.filter(new)])
        return frame.filter(new)


def _documents_of(pages: pl.DataFrame, documents: pl.DataFrame) -> pl.DataFrame:
    """Returns the documents of pages, and those of their parts."""
    if "part_of" not in documents.columns:
        return documents
    page = pl.coalesce("part_of", "key")
    return documents.filter(page.is_in(pages.get_column("key").implode()))


def slices_of(rows: BatchRows, room: int, size: int) -> Iterator[tuple[BatchRows, int]]:
    """Yields (rows, number of their URLs) in slices.

    Args:
        rows: Rows of a batch.
        room: Number of URLs of the first slice.
        size: Number of URLs of the others.
    """
    keys = pl.concat([rows.pages.get_column("key"), rows.listed.get_column("key")])
    keys = keys.unique(maintain_order=True)
    start = 0
    while start < len(keys):
        chosen = keys[start : start + room]
        listed, pages = (
            frame.filter(pl.col("key").is_in(chosen.implode()))
            for frame in (rows.listed, rows.pages)
        )
        yield BatchRows(listed, pages, _documents_of(pages, rows.documents)), len(chosen)
        start, room = start + room, size


def without_bodies(listed: pl.DataFrame) -> pl.DataFrame:
    """Returns FETCHLIST rows that do not lead to bodies of another table: they are fetched as new."""
    return listed.with_columns(
        pl.lit(None).cast(listed.schema[name]).alias(name) for name in _OF_BODY
    )
