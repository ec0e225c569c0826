"""Sets up what makes documents of pages: the chosen index filters, scorings, rules, writers."""

import functools
import logging

from ...io.indexing.index_writer import IndexTarget
from ...io.indexing.writer_kinds import INDEX_WRITERS, open_writer
from ...io.table.opening import open_table
from ...policy.chunking.embeddings import Embedder
from ...policy.components.index_routes import IndexRoutes
from ...policy.components.index_schema import INDEX_PAGES
from ...policy.components.schema import empty
from ...policy.indexing.index_documents import DocumentRules, chosen_filters, documents_of_pages
from ...policy.indexing.index_filter import BUILT_IN_FILTERS
from ...policy.indexing.index_options import (
    FOREIGN_KINDS,
    IndexMakingOptions,
    IndexTableOptions,
    IndexWriterOptions,
    routes_of,
)
from ...policy.indexing.writer_documents import share_documents
from ...web.plugins.plugins import installed_plugins, load_plugins
from ..wiring.plugin_groups import INDEX_FILTERS, scorings_of
from .embedded_pages import check_embedding_writers

_LOG = logging.getLogger(__name__)


def document_rules_of(options: IndexMakingOptions) -> DocumentRules:
    """Returns how pages become documents.

    Raises:
        UsageError: A plug-in is unknown, or cannot be imported.
        ValueError: An index filter or a scoring is unknown, lacks an option, or cannot read its
            file.
    """
    own = tuple(name for name in options.index_filters if name not in BUILT_IN_FILTERS)
    filters = chosen_filters(options, dict(load_plugins(INDEX_FILTERS, own)))
    return DocumentRules(filters, options, scorings_of(options))


def chosen_writers(options: IndexWriterOptions) -> IndexRoutes:
    """Returns the writers that options choose, and which documents each gets.

    Of Nutch's file, writers of a kind that is not here are left out with a warning: it lists all
    writers of Nutch, also those that nobody has chosen there.

    Raises:
        ValueError: A file or a parameter is wrong, or a route names a writer that is not here.
    """
    routes, file = routes_of(options), options.index_writers
    here = installed_plugins(INDEX_WRITERS)
    missing = {
        rule.name: rule.kind
        for rule in routes.writers
        if rule.kind in FOREIGN_KINDS and rule.kind not in here and file.endswith(".xml")
    }
    if not missing:
        return routes
    kinds = ", ".join(f"{name} ({kind})" for name, kind in missing.items())
    try:
        usable_routes = routes.drop_writers(missing)
    except ValueError as error:
        raise ValueError(f"{file}: {error}: nutbeam has no {kinds}") from None
    _warn_once(f"{file}: left out, since nutbeam has no such index writers: {kinds}")
    return usable_routes


@functools.cache
def _warn_once(message: str) -> None:
    _LOG.warning("%s", message)


def check_index(options: IndexTableOptions, address: str) -> None:
    """Checks the filters and writers that options choose; sends nothing.

    Raises:
        UsageError: A writer is unknown, or a parameter is wrong.
        ValueError: A file is wrong.
    """
    table, routes = open_table(address), chosen_writers(options)
    check_embedding_writers(options.embedding, routes)
    if options.embedding:
        Embedder(options.embedding)
    documents = documents_of_pages(empty(INDEX_PAGES), document_rules_of(options))
    share_documents(routes, documents)  # checks the expressions
    for rule in routes.writers:
        open_writer(rule, IndexTarget(options.index, rule.name, rule.parameters, table, 0, ""))
