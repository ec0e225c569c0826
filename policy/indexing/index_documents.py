"""The chosen index filters in their order, and what pages become by them: documents, or nothing."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import polars as pl

from ...web.base.dataclass import dataclass
from ...web.base.errors import UserError
from ...web.base.wording import quote_value
from ...web.plugins.plugin_files import fault_text, place_of_code
from ..base.key_columns import from_keys
from ..base.made_by_plugin import made_by_plugin
from ..chosen_text import with_chosen_text
from ..components.index_schema import DROPPED, CandidateRows, IndexPageFacts
from ..components.link_rows import LinkRows
from ..expressions.syntax import or_nearest
from ..inlinks.edges import anchors_by_target
from ..scoring.scorings import OPIC, Scorings
from .index_decisions import decide_by_documents
from .index_filter import IndexFilter, IndexFilterOptions
from .index_geoip import GeoIp
from .index_options import IndexMakingOptions
from .index_page_filters import (
    Anchor,
    FeedFields,
    Headings,
    IndexBasic,
    Language,
    LinkFields,
    MetadataFields,
    More,
    TopLevelDomain,
)
from .index_rule_filters import ExprFilter, MimeTypeFilter, Replace, Static, SubcollectionFields

MakeFilter = Callable[[IndexFilterOptions], IndexFilter]
BUILT_IN: Mapping[str, type[IndexFilter]] = {
    filter_class.name: filter_class
    for filter_class in (
        *(IndexBasic, Anchor, More, MetadataFields, LinkFields, Static, Replace, ExprFilter),
        *(MimeTypeFilter, Language, SubcollectionFields, Headings, FeedFields, TopLevelDomain),
        GeoIp,
    )
}


def chosen_filters(
    options: IndexFilterOptions, plugins: Mapping[str, MakeFilter] | None = None
) -> tuple[IndexFilter, ...]:
    """Returns the index filters that options choose.

    Args:
        options: Their names and options.
        plugins: Filters of users, by name.

    Raises:
        ValueError: There is no such filter, one lacks an option, or one of users cannot be made;
            the message quotes it.

    >>> [filter.name for filter in chosen_filters(IndexFilterOptions(index_filters=("basic",)))]
    ['basic']
    """
    own = plugins or {}
    for name in options.index_filters:
        if name not in BUILT_IN and name not in own:
            raise ValueError(f"index_filters: unknown filter {or_nearest(name, [*BUILT_IN, *own])}")
    return tuple(
        made_by_plugin(f"index filter {name!r}", own[name], options, IndexFilter)  # type: ignore[type-abstract]
        if name in own
        else BUILT_IN[name](options)
        for name in options.index_filters
    )


@dataclass(frozen=True)
class DocumentRules:
    """What turns pages into documents.

    Attributes:
        filters: The index filters, in order.
        options: Their options, and which pages are added or deleted.
        scorings: Scorings that make the boost of a page without a rank.
        columns: Columns of pages that the filters read.
    """

    filters: tuple[IndexFilter, ...]
    options: IndexMakingOptions
    scorings: Scorings = OPIC
    columns: frozenset[str] = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        columns = frozenset(name for step in self.filters for name in step.reads)
        object.__setattr__(self, "columns", columns)


def documents_of_pages(pages: pl.DataFrame, rules: DocumentRules) -> pl.DataFrame:
    """Returns what pages become in an index.

    Args:
        pages: INDEX_PAGES rows.
        rules: The rules.

    Returns:
        One row per page, in their order: ``id``, the other fields, and ``dropped_by`` with the
        name of the filter that left it out, or null. A document has no fields that are null.

    Raises:
        ValueError: A filter fails, or has not returned one row per page; the message has its name.
    """
    pages = with_chosen_text(pages, rules.options.text_of)
    boosted = rules.scorings.index_boost(pages.select("key", "score"), rules.options)
    rank = pages.get_column("rank").cast(pl.Float64)
    ranked = rank.is_finite().fill_null(False) & (rank >= 0).fill_null(False)
    documents = pl.DataFrame(
        {
            "id": from_keys(pages.get_column("key")),
            "segment": pages.get_column("batch_id").cast(pl.String),
            "digest": pages.get_column("signature").bin.encode("hex"),
            "boost": rank.zip_with(ranked, boosted.get_column("boost").cast(pl.Float64)),
        }
    ).with_columns(pl.lit(None, pl.String).alias(DROPPED))
    ids = documents.get_column("id")
    for step in rules.filters:
        documents = _apply_filter(step, documents, pages)
        if not documents.get_column("id").equals(ids):
            raise ValueError(f"index filter {_name_of(step)!r} must keep the rows and their order")
    return documents


def _apply_filter(step: IndexFilter, documents: pl.DataFrame, pages: pl.DataFrame) -> pl.DataFrame:
    """Returns the documents that a filter makes of documents.

    Raises:
        ValueError: One of users fails, or returns no frame of documents; the message has its name.
    """
    if type(step) in BUILT_IN.values():
        return step.apply(documents, pages)
    what = f"index filter {_name_of(step)!r} of {place_of_code(type(step))}"
    try:
        filtered: Any = step.apply(documents, pages)
    except (UserError, MemoryError):
        raise
    except Exception as error:
        raise ValueError(f"{what}: {fault_text(error, type(step))}") from error
    if mistake := _mistake(filtered):
        raise ValueError(f"{what}: {mistake}")
    return filtered


def _mistake(filtered: Any) -> str:
    """Returns the mistake in the result of a filter; empty if there is none."""
    if not isinstance(filtered, pl.DataFrame):
        return f"it must return a frame, got {quote_value(filtered)}"
    lost = [name for name in ("id", DROPPED) if name not in filtered.columns]
    return f"it must keep all columns, and has dropped {', '.join(lost)}" if lost else ""


def _name_of(step: IndexFilter) -> str:
    return step.name or type(step).__name__


def decide_documents(
    facts: IndexPageFacts, rules: DocumentRules
) -> tuple[pl.DataFrame, CandidateRows]:
    """Returns the documents of pages, and the decisions about them.

    Args:
        facts: What is known of the pages, all of which are to be added.
        rules: The rules.
    """
    pages = facts.pages
    if facts.link_rows is not None:
        pages = with_inlinks(pages, facts.link_rows)
    documents = documents_of_pages(pages, rules)
    from_texts = pl.DataFrame(
        [
            pages.get_column("directives"),
            pages.get_column("parse_status"),
            documents.get_column(DROPPED).alias("dropped_by"),
        ]
    )
    return documents, decide_by_documents(facts.candidate_rows, from_texts, rules.options)


def with_inlinks(pages: pl.DataFrame, link_rows: LinkRows) -> pl.DataFrame:
    """Returns INDEX_PAGES rows with ``anchors`` and ``inlinks`` (URLs), by links to the pages.

    Args:
        pages: The rows.
        link_rows: Links, best first of each page, as in ``IndexPageFacts``.
    """
    anchors, keys = anchors_by_target(link_rows), pages.select(target="key")
    urls = link_rows.select("target", inlinks=from_keys(link_rows.get_column("source")))
    for lists in (anchors, urls.group_by("target").agg("inlinks")):
        joined = keys.join(lists, on="target", how="left", maintain_order="left")
        pages = pages.with_columns(joined.drop("target"))
    return pages
