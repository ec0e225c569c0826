"""The chosen scorings in their order, as one."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import polars as pl
import pyarrow as pa

from ...web.base.dataclass import dataclass
from ...web.base.wording import quote_value
from ...web.plugins.plugin_files import fault_text, place_of_code
from ..base.made_by_plugin import made_by_plugin
from ..base.row_status import Status
from ..components.schema import StateRows
from .depth import Depth
from .metadata import Metadata, ParseMetadata
from .opic import Opic, OpicCash
from .orphan import Orphan
from .scoring import (
    BoostOptions,
    CarriedColumn,
    PassedLinkRows,
    Scoring,
    ScoringOptions,
    SharingRows,
)
from .similarity import Similarity
from .urlboost import UrlBoost


class LinkScoring(Scoring):
    """Sorts by the score, and leaves it as it is: another job computes it, or inject sets it."""

    name = "link"
    sorts = "score"

    def sort_value(self, rows: StateRows) -> StateRows:
        """Returns the score; values of earlier scorings do not count (Nutch's rule)."""
        return rows.with_columns(sort_value=pl.col("score").cast(pl.Float64))

    def index_boost(self, rows: StateRows, options: BoostOptions) -> StateRows:
        """Returns score times ``--normalize_score``; ignores earlier scorings (Nutch's rule)."""
        score = pl.col("score").cast(pl.Float64)
        return rows.with_columns(boost=score * options.normalize_score)


MakeScoring = Callable[[ScoringOptions], Scoring]
_MADE: Mapping[str, MakeScoring] = {
    scoring.name: scoring
    for scoring in (Opic, OpicCash, Depth, LinkScoring, Orphan, Similarity, Metadata, UrlBoost)
}
_OURS = (*_MADE.values(), ParseMetadata)
_LARGEST = 3.4e38  # the largest score that a row can hold
_NOT_NULL = ("score", "sort_value", "status")  # a scoring must not remove their values


@dataclass(frozen=True)
class Scorings:
    """Scorings that are applied one after another; see ``Scoring`` for each step.

    Attributes:
        steps: The scorings.
    """

    steps: tuple[Scoring, ...]

    @functools.cached_property
    def passed(self) -> tuple[CarriedColumn, ...]:
        """Columns of CHANGES from pages to their links, besides those of every link."""
        return tuple(column for step in self.steps for column in step.passed)

    @functools.cached_property
    def own(self) -> tuple[CarriedColumn, ...]:
        """Columns of CHANGES from documents to the rows of their pages."""
        return tuple(column for step in self.steps for column in step.own)

    @functools.cached_property
    def row_columns(self) -> tuple[str, ...]:
        """Columns of the rows of pages that update must read."""
        return self._columns_of_steps("row_columns")

    @functools.cached_property
    def document_columns(self) -> tuple[str, ...]:
        """Columns of documents that update must read, besides the usual ones."""
        return self._columns_of_steps("document_columns")

    @functools.cached_property
    def sort_columns(self) -> tuple[str, ...]:
        """Columns of the state that generate must read, besides score and distance."""
        return self._columns_of_steps("sort_columns")

    @functools.cached_property
    def _numbers(self) -> tuple[str, ...]:
        """Columns of rows that must stay finite."""
        return ("score",) if all(type(step) is Opic for step in self.steps) else ("score", "cash")

    @functools.cached_property
    def needs_source(self) -> bool:
        """Whether a scoring works on single links."""
        return bool(self._steps_with("links"))

    @functools.cached_property
    def sorts_by_score(self) -> bool:
        """Whether the sort value is the score, so that generate needs nothing else."""
        kinds = [step.sorts for step in self.steps]
        return kinds.count("score") == 1 and "other" not in kinds

    def _as_before(self, old: StateRows, new: StateRows) -> StateRows:
        """Returns changed rows with the types that they had."""
        return self._finite(new).select(old.columns).cast(old.schema)

    def _finite(self, rows: StateRows) -> StateRows:
        """Replaces numbers that a row must not have: NaN by 0, others by the nearest."""
        numbers = pl.col(*self._numbers)
        return rows.with_columns(numbers.fill_nan(0.0).clip(-_LARGEST, _LARGEST))

    def _apply(self, rows: pl.DataFrame, method: str, *further: Any) -> pl.DataFrame:
        """Returns the rows after a method of each scoring that has one of its own.

        Raises:
            ValueError: A scoring has failed, or its result is of no use; the message names it.
        """
        for step in self._steps_with(method):
            try:
                after = getattr(step, method)(rows, *further)
                wrong = _mistake(rows, after, may_drop=method == "links")
                if not wrong and type(step) not in _OURS:
                    after = after.cast(dict(rows.schema))
                    wrong = _slip(rows, after, may_drop=method == "links")
            except Exception as error:
                raise _failure(step, method, fault_text(error, type(step))) from error
            if wrong:
                raise _failure(step, method, wrong)
            rows = after
        return rows

    def _steps_with(self, method: str) -> list[Scoring]:
        """Returns the scorings that have defined a method; that of ``Scoring`` changes nothing."""
        inherited = getattr(Scoring, method)
        return [step for step in self.steps if getattr(type(step), method) is not inherited]

    def _columns_of_steps(self, name: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(each for step in self.steps for each in getattr(step, name)))

    def changes(self, schema: pa.Schema) -> pa.Schema:
        """Returns the schema of CHANGES with the columns that these scorings need."""
        return pa.schema([*schema, *(column.field for column in (*self.passed, *self.own))])

    def add_missing_columns(self, rows: StateRows) -> StateRows:
        """Adds the columns that these scorings need and that chunks without values lack."""
        carried = (*self.passed, *self.own)
        lacking = [_null(column) for column in carried if column.name not in rows.columns]
        return rows.with_columns(*lacking) if lacking else rows

    def injected(self, rows: StateRows) -> StateRows:
        """Changes new rows of seeds."""
        return self._as_before(rows, self._apply(rows, "injected"))

    def renewed(self, rows: StateRows) -> StateRows:
        """Changes rows of known URLs whose metadata was updated by inject."""
        return self._as_before(rows, self._apply(rows, "renewed"))

    def sort_value(self, rows: StateRows) -> StateRows:
        """Adds ``sort_value``, by which generate chooses the best rows."""
        rows = rows.with_columns(sort_value=pl.lit(1.0))
        return self._apply(rows, "sort_value").with_columns(
            pl.col("sort_value").clip(-_LARGEST, _LARGEST)
        )

    def share(self, pages: SharingRows, state_rows: StateRows | None = None) -> SharingRows:
        """Adds ``share``, what a page gives to each of its links, and passed and own columns.

        Args:
            pages: A row per page or part of a page; see ``Scoring.share``.
            state_rows: STATE rows of the pages with ``row_columns``, if there are such columns; a part
                of a page has none.
        """
        if self.row_columns and state_rows is not None:
            rows = state_rows.select("key", *self.row_columns)
            pages = pages.join(rows, on="key", how="left", maintain_order="left")
            is_page = pl.col("part_of").is_null()
            pages = pages.with_columns(pl.when(is_page).then(pl.col(*self.row_columns)))
        pages = self._apply(pages.with_columns(share=pl.lit(0.0)), "share")
        pages = self._apply(pages, "settled")
        share = pl.col("share")
        return pages.with_columns(share=pl.when(share.is_finite()).then(share).otherwise(0.0))

    def links(self, links: PassedLinkRows) -> PassedLinkRows:
        """Changes or drops links."""
        if not self.needs_source:
            return links
        return self._apply(links, "links")

    def arrived(self, rows: StateRows, now: int) -> StateRows:
        """Changes rows to which links, or results of their own page, have arrived."""
        score = pl.col("score").fill_null(0.0).cast(pl.Float64)
        rows = self.add_missing_columns(rows).with_columns(score)
        return self._finite(self._apply(rows, "arrived", now))

    def judged(self, rows: StateRows, now: int) -> StateRows:
        """Changes rows whose page was tried, when all other columns are final."""
        return self._finite(self._apply(rows, "judged", now))

    def index_boost(self, rows: StateRows, options: BoostOptions) -> StateRows:
        """Adds ``boost``, the factor of each page in an index."""
        rows = self._apply(rows.with_columns(boost=pl.lit(1.0)), "index_boost", options)
        boost = pl.col("boost").fill_nan(0.0).clip(0.0, _LARGEST)
        return rows.with_columns(boost.fill_null(0.0))


def chosen_scorings(
    options: ScoringOptions, plugins: Mapping[str, MakeScoring] | None = None
) -> Scorings:
    """Returns the scorings that options choose.

    Args:
        options: Their names and options.
        plugins: Scorings of users, by name.

    Raises:
        KeyError: A scoring is unknown.
        ValueError: A scoring lacks an option, or cannot read its file.

    >>> [step.name for step in chosen_scorings(ScoringOptions(scoring=("depth", "opic"))).steps]
    ['depth', 'opic']
    """
    own = {name: make for name, make in (plugins or {}).items() if name not in _MADE}
    steps = [
        made_by_plugin(f"scoring {name!r}", own[name], options, Scoring)
        if name in own
        else _MADE[name](options)
        for name in options.scoring
    ]
    first = [ParseMetadata(options)] if options.parsemeta_to_crawldb else []
    return Scorings((*first, *steps))


def _failure(step: Scoring, method: str, what: str) -> ValueError:
    name = step.name or type(step).__name__
    return ValueError(f"scoring {name!r} of {place_of_code(type(step))}: {method}: {what}")


def _mistake(rows: pl.DataFrame, after: Any, *, may_drop: bool) -> str:
    """Returns the mistake in the result of a scoring; empty if there is none."""
    if not isinstance(after, pl.DataFrame):
        return f"it must return a frame, got {after!r}"
    if len(after) != len(rows) and not may_drop:
        return f"it must return all {len(rows)} rows, in their order, got {len(after)}"
    if lost := [name for name in rows.columns if name not in after.columns]:
        return f"it must keep all columns, and has dropped {', '.join(lost)}"
    return ""


def _slip(rows: pl.DataFrame, after: pl.DataFrame, *, may_drop: bool) -> str:
    """Returns a mistake that is easily made in a scoring of a user; empty if there is none."""
    if not may_drop and "key" in rows.columns and not after["key"].equals(rows["key"]):
        return "it must return the rows in their order"
    for name in _NOT_NULL:
        if name in rows.columns and after[name].null_count() > rows[name].null_count():
            key = after.filter(pl.col(name).is_null() & rows[name].is_not_null())["key"][0]
            return f"it must not make {name} null, as for {quote_value(key)}"
    if "status" in rows.columns:
        strange = after.filter(~pl.col("status").is_in([int(status) for status in Status]))
        if len(strange):
            key, status = strange.select("key", "status").row(0)
            return f"it must not make a status that does not exist, got {status} for {quote_value(key)}"
    return ""


def _null(column: CarriedColumn) -> pl.Expr:
    types = pl.Schema(pa.schema([column.field]))
    return pl.lit(None, types[column.name]).alias(column.name)


OPIC = Scorings((Opic(ScoringOptions()),))
