"""Which pages are new, changed or gone since an older snapshot: by their content, not by fetches."""

import polars as pl

from .components.schema import StateRows
from .page_rows import PageChoice

NEW = "new"
_CHANGED, _GONE = "changed", "gone"


def changed_pages(choice: PageChoice, rows: StateRows, earlier_rows: StateRows) -> StateRows:
    """Returns the pages that are new, changed or gone, with ``change``; gone ones have no document.

    A page is one of those that ``choice`` wants. It is new if it was none of them in the older
    snapshot, and gone if it is none of them any more: a page that became a duplicate is gone.

    Args:
        choice: The wanted pages.
        rows: Rows of the state, with ``choice.compared_columns``; removed ones are missing.
        earlier_rows: Rows of the same keys in the older snapshot, with the same columns.
    """
    pages = choice.in_state(rows.lazy())
    earlier_pages = choice.in_state(earlier_rows.lazy())
    earlier_signatures = earlier_pages.select("key", earlier_signature="signature", was_there=True)
    of_both = pages.join(earlier_signatures, on="key", how="left", maintain_order="left")
    is_new = pl.col("was_there").is_null()
    differs = pl.col("signature").ne_missing(pl.col("earlier_signature"))
    change = pl.when(is_new).then(pl.lit(NEW)).when(differs).then(pl.lit(_CHANGED)).alias("change")
    shown = (
        of_both.with_columns(change).drop_nulls("change").select(*choice.state_columns, "change")
    )
    gone_keys = earlier_pages.select("key").join(pages.select("key"), on="key", how="anti")
    gone = (
        gone_keys.join(rows.lazy(), on="key", how="left")
        .with_columns(change=pl.lit(_GONE), document=pl.lit(None, pl.String))
        .select(*choice.state_columns, "change")
    )
    return pl.concat([shown, gone]).collect()
