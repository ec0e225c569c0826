"""The interface of scorings: their options, and steps on frames that change nothing by default.

Scores are numbers of the type float64 in all steps. A row of the state keeps them as float32, and
never as NaN or infinity: ``Scorings`` sees to that after each step.
"""

from typing import TypeAlias

import polars as pl
import pyarrow as pa

from ...web.base.dataclass import dataclass
from ...web.base.options import option
from ...web.plugins.plugin_files import PLUGIN_FORM, PLUGIN_NAME
from ...web.plugins.plugin_options import PluginOptions
from ..components.schema import StateRows

SharingRows: TypeAlias = pl.DataFrame  # a row per page: see ``Scoring.share``
PassedLinkRows: TypeAlias = pl.DataFrame  # a row per link: see ``Scoring.links``
BUILT_IN_SCORINGS = (
    *("opic", "opic_cash", "depth", "link", "orphan", "similarity", "metadata", "urlboost"),
)
_WITHOUT_SCORES = ("depth", "link", "orphan", "metadata")  # they change no score of a row
# Two forms of one algorithm: both would add the scores of links.
_EITHER = ("opic", "opic_cash")


@dataclass(frozen=True)
class OrphanOptions:
    """Options of orphans: pages to which no page links any more."""

    GROUP = "scoring"

    mark_gone_after: int = option(
        2_592_000,
        "Scoring orphan: time without a link to a page after which it becomes db_gone.",
        unit="s",
        nutch="scoring.orphan.mark.gone.after",
        minimum=0,
    )
    mark_orphan_after: int = option(
        3_456_000,
        "Scoring orphan and --drop_orphans: time without a link to a page after which it is an "
        "orphan; the scoring gives it the status db_orphan.",
        unit="s",
        nutch="scoring.orphan.mark.orphan.after",
        minimum=0,
    )

    def __post_init__(self) -> None:
        if self.mark_orphan_after < self.mark_gone_after:
            raise ValueError(
                f"--mark_orphan_after must be at least --mark_gone_after ({self.mark_gone_after} "
                f"s), got {self.mark_orphan_after} s"
            )


@dataclass(frozen=True)
class ScoringOptions(OrphanOptions, PluginOptions):
    """Options of the scorings, and their order."""

    GROUP = "scoring"

    scoring: tuple[str, ...] = option(
        ("opic",),
        "How pages and links are scored: scorings, applied in this order. "
        f"{', '.join(BUILT_IN_SCORINGS)}; plug-ins add more. inject, generate and updatedb need "
        "the same value.",
        nutch="scoring.filter.order",
        pattern=PLUGIN_NAME,
        form=PLUGIN_FORM,
        plugins=True,
    )
    depth_max: int = option(
        1000,
        "Scoring depth: pages at this depth pass no links on; a seed has depth 1. _maxdepth_=N in "
        "a seed list is the limit for the pages found from that seed.",
        nutch="scoring.depth.max",
        minimum=1,
    )
    depth_override_pattern: str = option(
        "",
        "Scoring depth: the links of pages whose URL matches this regular expression get the limit "
        "--depth_max_override, whatever the limit of their page.",
        nutch="scoring.depth.override.pattern",
    )
    depth_max_override: int = option(
        10,
        "Scoring depth: the limit for pages found from URLs that match --depth_override_pattern.",
        nutch="scoring.depth.max.override",
        minimum=1,
    )
    goldstandard_file: str = option(
        "",
        "Scoring similarity: file with the text that pages are compared with.",
        nutch="cosine.goldstandard.file",
        takes="path",
    )
    stopword_file: str = option(
        "",
        "Scoring similarity: file of words that do not count, one per line.",
        nutch="scoring.similarity.stopword.file",
        takes="path",
    )
    metadata_to_links: tuple[str, ...] = option(
        (),
        "Scoring metadata: names in the metadata of a page that its links get, too.",
        nutch="scoring.parse.md, urlmeta.tags",
    )
    parsemeta_to_crawldb: tuple[str, ...] = option(
        (),
        "Names in the metadata of documents that updatedb copies to the metadata of their rows.",
        nutch="db.parsemeta.to.crawldb",
    )
    url_boost_file: str = option(
        "",
        "Scoring urlboost: file of lines FACTOR PATTERN; the first pattern that "
        "matches a URL gives its factor.",
        takes="path",
    )
    url_boost_of: str = option(
        "choice",
        "Scoring urlboost: what is multiplied. choice: the value by which generate chooses URLs. "
        "new: the score of a new URL, once; then urlboost must come after scorings that change "
        "scores.",
        choices=("choice", "new"),
    )

    def __post_init__(self) -> None:
        OrphanOptions.__post_init__(self)
        if not self.scoring:
            raise ValueError("--scoring must name at least one scoring, got ''")
        for name in self.scoring:
            if self.scoring.count(name) > 1:
                raise ValueError(f"--scoring may name a scoring once, got {name!r} twice")
        if all(name in self.scoring for name in _EITHER):
            raise ValueError("--scoring must have one of opic and opic_cash, got both")
        if "metadata" in self.scoring and not self.metadata_to_links:
            raise ValueError("--scoring metadata needs names: give --metadata_to_links")
        if self.url_boost_of == "new" and "urlboost" in self.scoring:
            # Before a scoring that may give scores, a new URL has none that could be multiplied.
            later = self.scoring[self.scoring.index("urlboost") + 1 :]
            if giving := [name for name in later if name not in _WITHOUT_SCORES]:
                raise ValueError(
                    f"--scoring must have urlboost after {giving[0]} with --url_boost_of new, "
                    f"got {','.join(self.scoring)!r}"
                )


@dataclass(frozen=True)
class BoostOptions:
    """Options of the factor that the score of a page has in an index."""

    GROUP = "scoring"

    score_power: float = option(
        0.5,
        "Scoring opic: the boost of a page in an index is its score to this power.",
        nutch="indexer.score.power",
    )
    normalize_score: float = option(
        1.0,
        "Scoring link: the boost of a page in an index is its score times this.",
        nutch="link.analyze.normalize.score",
    )


@dataclass(frozen=True)
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

    def injected(self, rows: StateRows) -> StateRows:
        """Changes new rows of seeds: STATE rows."""
        return rows

    def renewed(self, rows: StateRows) -> StateRows:
        """Changes rows of known URLs whose metadata was updated by inject: STATE rows."""
        return rows

    def sort_value(self, rows: StateRows) -> StateRows:
        """Changes ``sort_value`` (1 at first), by which generate chooses the best rows.

        Args:
            rows: Rows of the state with ``key``, ``score``, ``distance`` and ``sort_columns``.
        """
        return rows

    def share(self, pages: SharingRows) -> SharingRows:
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

    def settled(self, pages: SharingRows) -> SharingRows:
        """Adjusts the final shares of links, after ``share`` of all scorings.

        Args:
            pages: As for ``share``; ``links`` is final.
        """
        return pages

    def links(self, links: PassedLinkRows) -> PassedLinkRows:
        """Changes or drops links.

        Args:
            links: One row per link: ``source`` and ``key`` (row keys), ``inlink_score`` (the
                share), ``inlink_distance``, and the columns of ``passed``.
        """
        return links

    def arrived(self, rows: StateRows, now: int) -> StateRows:
        """Changes rows of the state in update, after the links to them were added up.

        Args:
            rows: STATE rows, with ``inlink_score`` and ``inlink_distance`` (null: no link), and the
                columns of ``passed`` and ``own``. New rows have no ``status`` yet.
            now: The time that counts as now, ms.
        """
        return rows

    def judged(self, rows: StateRows, now: int) -> StateRows:
        """Changes rows whose page was tried, when all other columns are final.

        Args:
            rows: STATE rows.
            now: The time that counts as now, ms.
        """
        return rows

    def index_boost(self, rows: StateRows, options: BoostOptions) -> StateRows:
        """Changes ``boost`` (1 at first), the factor of a page in an index.

        Args:
            rows: Rows with ``score``.
            options: Options of the factor.
        """
        return rows
