"""Options of an index: its name, its pages and their documents, and the writers of these."""

import dataclasses

from ...web.base.options import option
from ...web.base.wording import quote_value
from ...web.rule_files.rule_files import read_rule_file
from ..components.index_routes import IndexRoutes, WriterRule
from ..components.index_schema import DEFAULT_INDEX
from ..indexing.index_decisions import IndexDecisionOptions
from ..indexing.index_options import IndexFilterOptions
from ..inlinks.edges import BestOptions
from ..scoring.scoring_options import ScoringOptions
from .index_route_files import read_nutch_routes, read_routes


@dataclasses.dataclass(frozen=True)
class IndexWriterOptions:
    """Options of an index and its writers."""

    GROUP = "index"

    index: str = option(
        DEFAULT_INDEX,
        "Name of the index; each has its own writers, and knows what they hold.",
        pattern=r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}",
    )
    writer: str = option(
        "tantivy",
        "Kind of the writer: tantivy, jsonl, csv, parquet, opensearch, elasticsearch, solr, dummy, "
        "or that of a plug-in.",
        pattern="[A-Za-z0-9_.-]+",
    )
    writer_parameters: tuple[str, ...] = option(
        (),
        "Parameters of the writer, each as `name=value`: for a writer of files `path=folder`, for "
        "a server `url=http://localhost:8983/solr/nutch`.",
    )
    index_writers: str = option(
        "",
        "File with several writers and what each gets: toml, or Nutch's index-writers.xml. "
        "Its writers rabbit, kafka and cloudsearch are left out, unless plug-ins with these names "
        "are installed.",
        nutch="indexer.indexwriters.file",
    )
    exchanges: str = option(
        "",
        "Nutch's exchanges.xml, which says what each writer of --index_writers gets.",
        nutch="exchanges.exchanges.file",
    )


def routes_of(options: IndexWriterOptions) -> IndexRoutes:
    """Returns the writers that options choose.

    Raises:
        ValueError: A file or a parameter is wrong; the message quotes it.

    >>> options = IndexWriterOptions(writer="jsonl", writer_parameters=("path=out",))
    >>> routes_of(options).writers[0].parameters
    {'path': 'out'}
    """
    if options.index_writers:
        if options.writer_parameters:
            raise ValueError(
                "--writer_parameters is for --writer, "
                f"got --index_writers {quote_value(options.index_writers)}, too"
            )
        xml = options.index_writers.endswith(".xml")
        file = read_rule_file(options.index_writers, flag="--index_writers")
        if not xml and options.exchanges:
            raise ValueError(
                f"--exchanges needs --index_writers to be XML, got {quote_value(options.index_writers)}"
            )
        if not xml:
            return read_routes(file)
        return read_nutch_routes(
            file,
            read_rule_file(options.exchanges, flag="--exchanges") if options.exchanges else None,
        )
    if options.exchanges:
        raise ValueError(f"--exchanges needs --index_writers, got {quote_value(options.exchanges)}")
    pairs = [text.partition("=") for text in options.writer_parameters]
    for name, sign, value in pairs:
        if not name or not sign:
            raise ValueError(
                f"--writer_parameters must have name=value, got {quote_value(name + sign + value)}"
            )
    parameters = {name: value for name, _, value in pairs}
    return IndexRoutes((WriterRule(options.writer, options.writer, parameters),))


@dataclasses.dataclass(frozen=True)
class IndexMakingOptions(IndexFilterOptions, IndexDecisionOptions, ScoringOptions, BestOptions):
    """Options of which pages an index gets, and of the documents that are made of them."""


@dataclasses.dataclass(frozen=True)
class IndexTableOptions(IndexMakingOptions, IndexWriterOptions):
    """Options of index, without those of launching."""
