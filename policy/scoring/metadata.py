"""The scoring ``metadata``: links get chosen metadata of their pages.

A new URL gets the metadata of the best link to it that brings any; metadata of known URLs stays.
``ParseMetadata`` copies metadata of documents to the rows of their pages
(``--parsemeta_to_crawldb``).
"""

from collections.abc import Sequence

import polars as pl
import pyarrow as pa

from ...web.base.columns import put
from ..components.schema import StateRows
from .scoring import CarriedColumn, PassedLinkRows, Scoring, SharingRows

_OWN, _PASSED, _BEST = "own_metadata", "passed_metadata", "passed_best"
_MAP = pa.map_(pa.large_string(), pa.large_string())
_TYPE = pl.Map(pl.String, pl.String)


class Metadata(Scoring):
    """Copies ``--metadata_to_links`` from pages to new URLs."""

    name = "metadata"
    row_columns = ("metadata",)
    passed = (
        # Before ``passed_best``, by which it is chosen.
        CarriedColumn(pa.field(_PASSED, _MAP), pl.col(_PASSED).get(pl.col(_BEST).arg_max())),
        CarriedColumn(pa.field(_BEST, pa.float64()), pl.col(_BEST).max()),
    )
    sorts = "no"

    def share(self, pages: SharingRows) -> SharingRows:
        """Chooses the metadata: of the row, replaced by values of its document."""
        names = self.options.metadata_to_links
        maps = [name for name in (_OWN, "metadata") if name in pages.columns]
        return pages.with_columns(
            pick_entries([pages.get_column(name) for name in maps], names).alias(_PASSED),
            pl.lit(None, pl.Float64).alias(_BEST),
        )

    def links(self, links: PassedLinkRows) -> PassedLinkRows:
        """Only links with metadata take part in the choice of the best."""
        has_any = pl.col(_PASSED).is_not_null()
        return links.with_columns(pl.when(has_any).then("inlink_score").alias(_BEST))

    def arrived(self, rows: StateRows, now: int) -> StateRows:
        """Sets the metadata of new rows; values from their own document count more."""
        if rows.get_column(_PASSED).null_count() == len(rows):
            return rows
        from_links = pl.col("status").is_null() & pl.col(_PASSED).is_not_null()
        maps = rows.select(
            metadata=pl.when(from_links).then(_PASSED).otherwise("metadata"),
            own=pl.when(from_links).then("metadata"),
        )
        return rows.with_columns(overlay_maps(maps["metadata"], maps["own"]))


class ParseMetadata(Scoring):
    """Copies ``--parsemeta_to_crawldb`` from documents to their rows."""

    document_columns = ("metadata",)
    own = (CarriedColumn(pa.field(_OWN, _MAP), pl.col(_OWN).first()),)
    sorts = "no"

    def share(self, pages: SharingRows) -> SharingRows:
        """Chooses the metadata of documents."""
        own_metadata = pick_entries(
            [pages.get_column("document.metadata")], self.options.parsemeta_to_crawldb
        )
        return pages.with_columns(own_metadata.alias(_OWN))

    def arrived(self, rows: StateRows, now: int) -> StateRows:
        """Puts it over the metadata of rows."""
        return rows.with_columns(overlay_maps(rows.get_column("metadata"), rows.get_column(_OWN)))


def pick_entries(maps: Sequence[pl.Series], names: Sequence[str]) -> pl.Series:
    """Returns the entries with the given names; null if a row has none of them.

    If several maps have a name, the value in the first of them counts.

    >>> some = pl.Series([{"a": "1", "b": "2"}, {"b": "2"}, None], dtype=_TYPE)
    >>> pick_entries([some], ["a"]).to_list()
    [{'a': '1'}, None, None]
    """
    columns = {f"{at}/{name}": each.map.get(name) for at, each in enumerate(maps) for name in names}
    entries = [
        pl.struct(
            pl.lit(name).alias("key"),
            pl.coalesce(f"{at}/{name}" for at in range(len(maps))).alias("value"),
        )
        for name in names
    ]
    has_value = pl.element().filter(pl.element().struct.field("value").is_not_null())
    chosen = pl.DataFrame(columns).select(pl.concat_list(entries).list.eval(has_value).alias("m"))
    present = pl.when(pl.col("m").list.len() > 0).then("m")
    return chosen.select(present.cast(_TYPE)).to_series()


def overlay_maps(maps: pl.Series, above: pl.Series) -> pl.Series:
    """Returns each map with the entries of ``above`` in the same row, which replace its own.

    A row in which ``above`` is null keeps its map. This is the usual case.

    >>> old = pl.Series("m", [{"a": "1", "b": "2"}, None], dtype=_TYPE)
    >>> overlay_maps(old, pl.Series([{"b": "3"}, {"b": "3"}], dtype=_TYPE)).to_list()
    [{'b': '3', 'a': '1'}, {'b': '3'}]
    """
    at = above.is_not_null().arg_true()
    if not len(at):
        return maps
    pairs = [
        above.gather(at).map.entries().alias("new"),
        maps.gather(at).map.entries().alias("old"),
    ]
    # Without an entry the lists are null: then the other one counts alone.
    lists = pl.DataFrame(pairs).with_columns(pl.all().fill_null([])).with_row_index("row")
    each = lists.select("row", entry=pl.concat_list("new", "old")).explode("entry")
    each = each.with_columns(pl.col("entry").struct.field("key"))
    once = each.unique(("row", "key"), keep="first", maintain_order=True)
    merged = once.group_by("row", maintain_order=True).agg("entry").get_column("entry").cast(_TYPE)
    numbers = pl.int_range(len(maps), dtype=pl.Int64, eager=True)
    places = put(numbers, at, pl.int_range(len(maps), len(maps) + len(at), eager=True))
    return pl.concat([maps, merged.alias(maps.name)]).gather(places)
