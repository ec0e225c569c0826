"""The interface of scorings: steps on frames, each of which changes nothing by default.

Scores are numbers of the type float64 in all steps. A row of the state keeps them as float32, and
never as NaN or infinity: ``Scorings`` sees to that after each step.
"""

import dataclasses

import polars as pl
import pyarrow as pa

from .scoring_options import BoostOptions, ScoringOptions


@dataclasses.dataclass(frozen=True)
class CarriedColumn:
    """A column of CHANGES that a scoring needs; it exists only if that scoring is chosen.

    Attributes:
        field: Name and type. ``passed_…`` goes from a page to its links, ``own_…`` to the page
            itself.
        merge: The value for one key from those of several rows, in the order of the rows. It must
            not matter how the rows are divided when parts are merged first. For rows that only
            have nulls it must be null: it may not be called for them.
        if_stale: Of an ``own_…`` column: whether it counts even if the row is newer than the
            result.
    """

    field: pa.Field
    merge: pl.Expr
    if_stale: bool = False

    @property
    def name(self) -> str:
        """Name of the column."""
        return str(self.field.name)


class Scoring:
    """A scoring. Subclasses override the steps that they need.

    Args:
        options: Options of all scorings.

    Attributes:
        name: Its name in ``--scoring``.
        row_columns: Columns of a page's row in the state that ``share`` needs.
        document_columns: Columns of a page's document that ``share`` needs.
        sort_columns: Columns of the state that ``sort_value`` needs.
        passed: Columns from a page to its links.
        own: Columns from a page's document to its own row.
        sorts: How it changes the sort value: not at all (``no``), by multiplication with the
            score (``score``), or in another way (``other``).
    """

    name = ""
    row_columns: tuple[str, ...] = ()
    document_columns: tuple[str, ...] = ()
    sort_columns: tuple[str, ...] = ()
    passed: tuple[CarriedColumn, ...] = ()
    own: tuple[CarriedColumn, ...] = ()
    sorts = "other"

    def __init__(self, options: ScoringOptions) -> None:
        self.options = options

    def injected(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Changes new rows of seeds: STATE rows."""
        return rows

    def renewed(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Changes rows of known URLs whose metadata was updated by inject: STATE rows."""
        return rows

    def sort_value(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Changes ``sort_value`` (1 at first), by which generate chooses the best rows.

        Args:
            rows: Rows of the state with ``key``, ``score``, ``distance`` and ``sort_columns``.
        """
        return rows

    def share(self, pages: pl.DataFrame) -> pl.DataFrame:
        """Decides what the pages of one file give to each of their links.

        Args:
            pages: One row per page: ``key``, ``score`` (0 if the page is unchanged), ``distance``
                (null: unknown), ``unchanged`` (it gives nothing, but its links count as seen),
                ``links`` (their number; 0 drops them), ``share`` (0 at first), ``row_columns``
                (null if the page is not in the table yet, or is a part of another page), and
                ``document_columns``, named ``document.NAME``. The step adds the columns of
                ``passed`` and ``own``.
        """
        return pages

    def settled(self, pages: pl.DataFrame) -> pl.DataFrame:
        """Adjusts the final shares of links, after ``share`` of all scorings.

        Args:
            pages: As for ``share``; ``links`` is final.
        """
        return pages

    def links(self, links: pl.DataFrame) -> pl.DataFrame:
        """Changes or drops links.

        Args:
            links: One row per link: ``source`` and ``key`` (row keys), ``inlink_score`` (the
                share), ``inlink_distance``, and the columns of ``passed``.
        """
        return links

    def arrived(self, rows: pl.DataFrame, now: int) -> pl.DataFrame:
        """Changes rows of the state in update, after the links to them were added up.

        Args:
            rows: STATE rows, with ``inlink_score`` and ``inlink_distance`` (null: no link), and the
                columns of ``passed`` and ``own``. New rows have no ``status`` yet.
            now: The time that counts as now, ms.
        """
        return rows

    def judged(self, rows: pl.DataFrame, now: int) -> pl.DataFrame:
        """Changes rows whose page was tried, when all other columns are final.

        Args:
            rows: STATE rows.
            now: The time that counts as now, ms.
        """
        return rows

    def index_boost(self, rows: pl.DataFrame, options: BoostOptions) -> pl.DataFrame:
        """Changes ``boost`` (1 at first), the factor of a page in an index.

        Args:
            rows: Rows with ``score``.
            options: Options of the factor.
        """
        return rows
