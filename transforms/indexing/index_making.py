"""Sets up what makes documents of pages: the chosen index filters, scorings, rules, writers."""

from ...io.parsing.plugins import INDEX_FILTERS, load_plugins, scorings_of
from ...io.table.opening import open_table
from ...io.writers.index_writer import IndexTarget
from ...io.writers.writer_kinds import chosen_writers, open_writer
from ...policy.components.index_schema import INDEX_PAGES
from ...policy.components.schema import empty
from ...policy.indexing.index_filters import DocumentRules, chosen_filters, documents_of_pages
from ...policy.indexing.index_options import BUILT_IN_FILTERS
from ...policy.routing.document_shares import share_documents
from ...policy.routing.index_table_options import IndexMakingOptions, IndexTableOptions


def making_of(options: IndexMakingOptions) -> DocumentRules:
    """Returns how pages become documents.

    Raises:
        UsageError: A plug-in is unknown, or cannot be imported.
        ValueError: An index filter or a scoring is unknown, lacks an option, or cannot read its
            file.
    """
    own = tuple(name for name in options.index_filters if name not in BUILT_IN_FILTERS)
    filters = chosen_filters(options, dict(load_plugins(INDEX_FILTERS, own)))
    return DocumentRules(filters, options, scorings_of(options), options, options.max_inlinks)


def check_index(options: IndexTableOptions, address: str) -> None:
    """Checks the filters and writers that options choose; sends nothing.

    Raises:
        UsageError: A writer is unknown, or a parameter is wrong.
        ValueError: A file is wrong.
    """
    table, routes = open_table(address), chosen_writers(options)
    making = making_of(options)
    nothing = empty(INDEX_PAGES)
    documents = documents_of_pages(nothing, making.filters, options, making.scorings)
    share_documents(routes, documents)  # checks the expressions
    for rule in routes.writers:
        open_writer(rule, IndexTarget(options.index, rule.name, rule.parameters, table, 0, ""))
