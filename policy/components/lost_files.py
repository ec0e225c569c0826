"""Rows of the state that name files of batches which the table does not have."""

from collections.abc import Collection, Mapping

import polars as pl

from ..base.row_status import FETCHED_STATUSES
from .schema import ChangeRows, StateRows

# Columns of the state that name a file of a batch: the kind of the file.
STATE_FILES = {"page": "pages", "document": "documents"}
COUNT_OF_LOST_FILES = "lost_files"  # name of the count of changed rows


def names_lost_file(column: str, files: Collection[str], unknown: Collection[str] = ()) -> pl.Expr:
    """Returns a condition: a row names a file in a column that is not among the files.

    Args:
        column: One of ``STATE_FILES``.
        files: All names under which rows may know the files of this kind.
        unknown: Folders whose files are not known; a file there is not lost.

    >>> rows = pl.DataFrame({"page": ["batches/1/pages/a", "batches/2/pages/b", None]})
    >>> rows.filter(names_lost_file("page", ["batches/1/pages/a"])).rows()
    [('batches/2/pages/b',)]
    >>> rows.filter(names_lost_file("page", [], ["batches/1/pages", "batches/2/pages"])).rows()
    []
    """
    lost = ~pl.col(column).is_in(pl.Series(sorted(files), dtype=pl.String).implode())
    if unknown:
        folders = pl.Series(sorted(unknown), dtype=pl.String).implode()
        lost &= ~folder_of(column).is_in(folders)
    return lost.fill_null(False)


def folder_of(column: str) -> pl.Expr:
    """Returns the folder of the file that a row names: the component of a batch."""
    return pl.col(column).str.replace(r"/[^/]*$", "")


def forget_lost_files(
    rows: StateRows, lost: ChangeRows, now: int
) -> tuple[StateRows, Mapping[str, int]]:
    """Returns rows that no longer name lost files, and how many there were.

    Pages that were fetched are due at once, and requested without conditions.

    Args:
        rows: STATE rows.
        lost: ``key``, ``page`` and ``document`` of some of them: the names of lost files, else null.
        now: Time in ms.
    """
    names = [f"lost_{name}" for name in STATE_FILES]
    joined = rows.join(
        lost.select("key", pl.col(*STATE_FILES).name.prefix("lost_")),
        on="key", how="left", maintain_order="left",
    )  # fmt: skip
    gone = {name: (pl.col(name) == pl.col(f"lost_{name}")).fill_null(False) for name in STATE_FILES}
    any_gone = pl.any_horizontal(*gone.values())
    is_due = any_gone & pl.col("status").is_in(list(FETCHED_STATUSES))
    changed = joined.with_columns(
        *(pl.when(~is_gone).then(name).alias(name) for name, is_gone in gone.items()),
        # Without a signature the next request has no conditions, so a page comes.
        signature=pl.when(~any_gone).then("signature"),
        fetch_time=pl.when(is_due)
        .then(pl.min_horizontal("fetch_time", pl.lit(now)))
        .otherwise("fetch_time"),
    )
    number = joined.select(any_gone.sum()).item()
    return changed.drop(names), {COUNT_OF_LOST_FILES: number} if number else {}
