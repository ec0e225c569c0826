"""Batches become one, and one becomes several: Nutch's mergesegs."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import polars as pl

from ...web.exchange.status import FETCH_SUCCESS
from ...web.rules.url_rules import UrlRules
from ..base.key_columns import from_keys
from ..components.batch_rows import BatchRows
from ..components.blocklist import REASON as PURGED
from ..components.blocklist import Blocklist
from ..components.rule_counts import count_reasons

# Of a fetch list: what leads to a body that is in another table.
_OF_BODY = ("page", "document", "etag", "last_modified")


_NO_HASHES = pl.Series("key", [], dtype=pl.UInt64)


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


def find_superseded(pieces: Iterable[BatchRows], how: KeyRules) -> pl.Series:
    """Returns hashes of the keys of a batch that the rules make one with a key that is better.

    If several URLs become one, all rows of one of them are taken: of the first that was fetched, else
    of the first with a page, else of the first. Memory holds 17 bytes for each URL.

    Args:
        pieces: The rows of the batch; ``fetch_status`` of the pages and keys are enough.
        how: The rules.
    """
    ranked = [pl.DataFrame(schema={"key": pl.UInt64, "target": pl.UInt64, "rank": pl.UInt8})]
    for listed, pages, _ in pieces:
        was_fetched = pl.col("fetch_status") == FETCH_SUCCESS
        rank = pl.when(was_fetched).then(0).otherwise(1).fill_null(1)
        rows = pl.concat(
            [pages.select("key", rank=rank), listed.select("key", rank=2)], how="vertical_relaxed"
        ).unique("key", keep="first", maintain_order=True)
        target = _judge_keys(rows.get_column("key"), how).get_column("target")
        hashes = rows.with_columns(target=target).drop_nulls("target")
        ranked.append(hashes.select(pl.col("key", "target").hash(), pl.col("rank").cast(pl.UInt8)))
    best_first = pl.concat(ranked).sort("rank", maintain_order=True)
    best = best_first.unique("target", keep="first").get_column("key")
    return best_first.get_column("key").filter(~best_first.get_column("key").is_in(best.implode()))


def admit_rows(
    rows: BatchRows, how: KeyRules, superseded: pl.Series = _NO_HASHES
) -> tuple[BatchRows, Counter[str]]:
    """Returns the rows of accepted URLs, under their normalized keys; and counts of URLs.

    Parts of a page that is left out are left out, too.

    Args:
        rows: Rows of a batch.
        how: The rules.
        superseded: From ``find_superseded`` of the batch, if the rules give URLs other keys.
    """
    named = [frame.get_column("key") for frame in rows]
    keys = pl.concat(named).unique(maintain_order=True)
    parts = [rows.documents.get_column("part_of")] if "part_of" in rows.documents.columns else []
    keys = pl.concat([keys, *parts]).drop_nulls().unique(maintain_order=True)
    judged = _judge_keys(keys, how)
    counts = count_reasons(judged)
    accepted = judged.filter(pl.col("reason").is_null())
    moved = int((accepted.get_column("key") != accepted.get_column("target")).sum())
    counts.update({"moved": moved} if moved else {})
    chosen = accepted.filter(~pl.col("key").hash().is_in(superseded.implode()))
    if not moved and len(chosen) == len(judged):
        return rows, counts
    listed, pages, documents = (_rekey(frame, "key", chosen) for frame in rows)
    if parts:
        of_page = documents.get_column("part_of").is_null()
        documents = pl.concat(
            [documents.filter(of_page), _rekey(documents.filter(~of_page), "part_of", chosen)]
        )
    return BatchRows(listed, pages, documents), counts


def _judge_keys(keys: pl.Series, how: KeyRules) -> pl.DataFrame:
    """Returns ``key``, its ``target`` and the ``reason`` to leave it out; without one it is accepted."""
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
    return judged


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
