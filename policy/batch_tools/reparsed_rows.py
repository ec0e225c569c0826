"""Rows of the state after the bodies of a batch were parsed again."""

import polars as pl
import pyarrow as pa

from ..components.document_schema import DocumentRows
from ..components.page_facts import unique_documents
from ..components.schema import STATE, TEXT, StateRows, columns

# The changes: what a page has become, and the files that rows name which have its body or text.
REPARSED = pa.schema(
    [
        *columns(STATE, "key", "signature", "parse_status"),
        ("new_document", TEXT),
        ("page_names", pa.large_list(TEXT)),
        ("document_names", pa.large_list(TEXT)),
    ]
)
SIGNED_COLUMNS = ("key", "part_of", "signature", "parse_status")


def reparsed_changes(
    document_rows: DocumentRows, document: str, pages: list[str], documents: list[str]
) -> pl.DataFrame:
    """Returns REPARSED rows of documents.

    Args:
        document_rows: ``SIGNED_COLUMNS`` of a new file of documents.
        document: Name of the file.
        pages: Names of the file of their pages, that it had before among them.
        documents: Names of the file that the new one replaces; empty if there was none.
    """
    return unique_documents(document_rows).select(
        "key",
        "signature",
        "parse_status",
        new_document=pl.lit(document),
        page_names=pl.lit(pages, pl.List(pl.String)),
        document_names=pl.lit(documents, pl.List(pl.String)),
    )


def apply_reparsed(
    state_rows: StateRows, changes: pl.DataFrame
) -> tuple[StateRows, dict[str, int]]:
    """Gives rows the signatures and parse statuses of their bodies as they are parsed now.

    Only rows whose newest body or text is in the files change: what was fetched later stays. A row
    without a text gets one. A page that has no signature now keeps the one that it had.

    Args:
        state_rows: STATE rows in key order.
        changes: REPARSED rows for keys in the same range, one per key.

    Returns:
        (STATE rows in key order, counts).
    """
    joined = state_rows.join(changes, on="key", how="left", maintain_order="left", suffix="_now")
    here = pl.col("page").is_in("page_names") | pl.col("document").is_in("document_names")
    here = here.fill_null(False)
    differs = here & pl.col("signature_now").ne_missing(pl.col("signature"))
    differs &= pl.col("signature_now").is_not_null()
    changed = int(joined.select(differs.sum()).item())
    rows = joined.with_columns(
        signature=pl.when(here)
        .then(pl.coalesce("signature_now", "signature"))
        .otherwise("signature"),
        parse_status=pl.when(here).then("parse_status_now").otherwise("parse_status"),
        document=pl.when(here).then(pl.coalesce("document", "new_document")).otherwise("document"),
    )
    return rows.select(state_rows.columns), {"signatures_changed": changed} if changed else {}
