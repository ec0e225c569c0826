"""Finds for each page the page that stays instead of it, among pages with near hashes."""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import apache_beam as beam
import polars as pl

from ...policy.components.schema import to_frame
from ...policy.dedup.duplicates import SETTLED
from ...policy.dedup.near_components import nodes_of
from ...policy.dedup.near_pairs import near_leaders
from ..elements.arguments import (
    DEFAULT_PARTITIONS,
    check_integer,
    check_partitions,
    column_names,
    directions,
)
from ..elements.chunk_flow import tagged_chunks
from ..elements.chunks import Chunk, to_chunks
from ..elements.rows import check_chunk, through_chunks
from ..join_by_hash import JoinByHash
from ..partition import grouped_by_hash
from ..wiring.display import Displayed
from .near_components import NearComponents
from .near_pairs import NearPairs, with_hashes

_ALONE = "alone"


class NearPage(NamedTuple):
    """A page, and the page that stays instead of it, as a row."""

    key: str
    winner: str
    leads: bool


@dataclasses.dataclass
class LeadNearPages(Displayed):
    """Decides which pages with near hashes stay, and which page stays instead of each other.

    Input:  chunks or rows with the columns ``key``, ``hash`` and ``order_by``, and perhaps
        ``scope``; ``hash`` and ``scope`` as in NearPairs. Rows without a hash are near no other.
        If many pages have the same hash, use DedupByHash before: all pairs of them are compared.
    Output: chunks of SETTLED rows, or rows ``key``, ``winner`` and ``leads``: ``winner`` is the
        page's own key if it stays, ``leads`` whether it stays instead of another page.

    Cost: ``NearPairs``; a shuffle of all rows with a hash, and one of those that are near another
    row. Rows that are connected by pairs meet on one worker, under one key; it holds them, and at
    most ``LED_PAIRS`` of their pairs at a time. Another worker holds 16 bytes for each row that is
    near another one; each of the ``rounds`` halves that, and shuffles the pairs.

    Attributes:
        distance: In how many bits near hashes may differ.
        order_by: A column or several: the row with the largest value is the best and stays, null
            is the worst, NaN is above all numbers. Together they must differ between any two rows.
        descending: Whether the largest value is the best, for all of ``order_by`` or for each; with
            False it is the smallest.
        partitions: How many workers can share the work: at least as many as there are, and one for
            32 MB of rows. It may be a side input.
        rounds: How often the connected rows are made fewer before they meet on one worker. Each
            costs some steps: 0 suits up to 2 million rows that are near others.

    Raises:
        ValueError: An argument or the input's type is not right.
    """

    distance: int
    order_by: str | Sequence[str]
    descending: bool | Sequence[bool] = True
    partitions: int | beam.pvalue.AsSideInput = DEFAULT_PARTITIONS
    rounds: int = 0

    def __post_init__(self) -> None:
        self.order_by = column_names(self.order_by, "order_by")
        self.descending = directions(self.order_by, self.descending)
        NearPairs(self.distance)  # it checks the distance
        check_partitions(self.partitions)
        check_integer("rounds", self.rounds, 0)

    def expand(self, elements: beam.PCollection[Any]) -> Any:
        needed = {"the input": ["key", "hash"], "order_by": self.order_by}
        return through_chunks(elements, self._settle, "LeadNearPages", needed, NearPage)

    def _settle(self, pages: beam.PCollection[Chunk]) -> beam.PCollection[Chunk]:
        order_by, descending = tuple(self.order_by), directions(self.order_by, self.descending)
        split = beam.FlatMap(_split, order_by)
        rows = pages | "Split" >> split.with_output_types(Chunk).with_outputs(_ALONE, main="near")
        pairs = (
            rows["near"]
            | "Hashes" >> beam.Map(_hashes).with_output_types(Chunk)
            | NearPairs(self.distance)
        )
        components = (
            pairs
            | "Edges" >> beam.Map(_edges).with_output_types(Chunk)
            | "Components" >> NearComponents(self.rounds, self.partitions)
        )
        named = {"cluster": "cluster"}
        in_cluster = (
            (rows["near"], components) | "OfRows" >> JoinByHash("node", named, self.partitions)
        ) | "Lone" >> beam.FlatMap(_split_lone).with_output_types(Chunk).with_outputs(
            _ALONE, main="rows"
        )
        lead = beam.FlatMap(_lead, self.distance, order_by, descending)
        clusters = grouped_by_hash(in_cluster["rows"], "cluster", self.partitions, "ByCluster")
        led = clusters | "Lead" >> lead.with_output_types(Chunk)
        alone = tuple(
            side | f"Alone{at}" >> beam.Map(_stays).with_output_types(Chunk)
            for at, side in enumerate((rows[_ALONE], in_cluster[_ALONE]))
        )
        return (led, *alone) | beam.Flatten()


def lead_near_pages(
    rows: pl.DataFrame,
    distance: int,
    order_by: Sequence[str],
    descending: bool | Sequence[bool] = True,
) -> pl.DataFrame:
    """Returns the rows from the best to the worst, with the page that stays.

    Args:
        rows: Rows with ``key``, ``scope``, ``hash`` and ``order_by``.
        distance: In how many bits near hashes may differ.
        order_by: Columns, see ``LeadNearPages``.
        descending: Whether the largest value is the best, for all of them or for each.

    Returns:
        The rows with ``winner``, the key of the page that stays, and ``leads``: whether the page
        stays instead of another one.

    >>> rows = pl.DataFrame({"key": ["a", "b", "c"], "scope": [0, 0, 0], "hash": [1, 3, 7]},
    ...     schema_overrides={"scope": pl.UInt64, "hash": pl.UInt64})
    >>> lead_near_pages(rows, 1, ("key",), (False,))["winner"].to_list()
    ['a', 'a', 'c']
    """
    ranked = rows.sort(order_by, descending=descending, nulls_last=True)
    scopes, hashes = (ranked.get_column(name).to_numpy() for name in ("scope", "hash"))
    leader_places = pl.Series(near_leaders(scopes, hashes, distance), dtype=pl.Int64)
    keys = ranked.get_column("key")
    winner = keys.gather(leader_places.clip(lower_bound=0)) if len(keys) else keys
    leads = pl.int_range(len(ranked), eager=True).is_in(leader_places.unique().implode())
    return ranked.with_columns(winner=winner.zip_with(leader_places >= 0, keys), leads=leads)


def _split(chunk: Chunk, order_by: tuple[str, ...]) -> Iterator[Any]:
    check_chunk(chunk, {"the input": ["key", "hash"], "order_by": order_by}, "LeadNearPages")
    frame = to_frame(with_hashes(chunk, "LeadNearPages"))
    near = frame.filter(pl.col("hash").is_not_null())
    if len(near):
        yield from to_chunks(near.with_columns(node=_nodes(near, "hash")))
    yield from tagged_chunks(_ALONE, frame.filter(pl.col("hash").is_null()))


def _split_lone(chunk: Chunk) -> Iterator[Any]:
    frame = to_frame(chunk).drop("node")
    yield from to_chunks(frame.filter(pl.col("cluster").is_not_null()))
    yield from tagged_chunks(_ALONE, frame.filter(pl.col("cluster").is_null()))


def _hashes(chunk: Chunk) -> Chunk:
    return chunk.select(["scope", "hash"])


def _edges(chunk: Chunk) -> Chunk:
    pairs = to_frame(chunk)
    return pl.DataFrame([_nodes(pairs, "hash"), _nodes(pairs, "other")]).to_arrow()


def _nodes(rows: pl.DataFrame, name: str) -> pl.Series:
    """Returns the nodes of the hashes of a column."""
    scopes, hashes = (rows.get_column(column).to_numpy() for column in ("scope", name))
    return pl.Series("node" if name == "hash" else name, nodes_of(scopes, hashes))


def _stays(chunk: Chunk) -> Chunk:
    rows = to_frame(chunk).with_columns(winner="key", leads=pl.lit(value=False))
    return next(to_chunks(rows, SETTLED))


def _lead(
    grouped: tuple[int, Iterable[Chunk]],
    distance: int,
    order_by: tuple[str, ...],
    descending: tuple[bool, ...],
) -> Iterator[Chunk]:
    rows = pl.concat([to_frame(chunk) for chunk in grouped[1]])
    yield from to_chunks(lead_near_pages(rows, distance, order_by, descending), SETTLED)
