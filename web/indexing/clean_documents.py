"""Removes characters and values that search servers refuse."""

from collections import Counter

import polars as pl

# Control characters except tab and line ends, and code points that are no characters.
_UNWANTED = (
    "[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f\\x{fdd0}-\\x{fdef}"
    + "".join(f"\\x{{{plane:x}fffe}}\\x{{{plane:x}ffff}}" for plane in range(17))
    + "]"
)
# 1 January of the year 1 to the end of 9999: what dates in texts of four digits can say.
_EARLIEST_MS, _LATEST_MS = -62_135_596_800_000, 253_402_300_799_999


def clean_documents(
    documents: pl.DataFrame, dates: frozenset[str]
) -> tuple[pl.DataFrame, Counter[str]]:
    """Returns documents without what a server would refuse, and what was taken out, by reason.

    Control characters become spaces; lone surrogates cannot be in a frame. Numbers that are not
    finite and times outside the years 1 to 9999 become null. Times become texts (ISO 8601), since
    servers refuse ms before 1970.

    Args:
        documents: A document per row: ``id`` and fields.
        dates: Names of the fields that are times, ms.

    >>> frame = pl.DataFrame({"id": ["a"], "title": ["x\\x00y"], "date": [10**18]})
    >>> clean, counts = clean_documents(frame, frozenset(["date"]))
    >>> clean.rows(), sorted(counts)
    ([('a', 'x y', None)], ['cleaned_dates', 'cleaned_texts'])
    """
    counts: Counter[str] = Counter()
    columns = []
    for column in documents.get_columns():
        if column.name == "id":
            columns.append(column)
            continue
        if isinstance(column.dtype, pl.Datetime | pl.Date):
            columns.append(_as_texts(column.dt.epoch("ms"), counts))
        elif column.name in dates and column.dtype.is_integer():
            columns.append(_as_texts(column, counts))
        elif column.dtype.is_float():
            columns.append(_drop_bad_values(column, ~column.is_finite(), "cleaned_numbers", counts))
        else:
            columns.append(_clean_texts(column, counts))
    return documents.with_columns(columns), +counts


def _as_texts(column: pl.Series, counts: Counter[str]) -> pl.Series:
    """Returns times, ms, as texts such as ``2026-11-24T00:00:00.000Z``."""
    times = column.cast(pl.Int64, strict=False)
    strange = ~times.is_between(_EARLIEST_MS, _LATEST_MS) | (times.is_null() & column.is_not_null())
    return (
        _drop_bad_values(times, strange, "cleaned_dates", counts)
        .cast(pl.Datetime("ms"))
        .dt.strftime("%Y-%m-%dT%H:%M:%S%.3fZ")
    )


def _drop_bad_values(
    column: pl.Series, bad: pl.Series, reason: str, counts: Counter[str]
) -> pl.Series:
    bad = bad.fill_null(False)
    counts[reason] += int(bad.sum())
    return column.set(bad, None) if bad.any() else column


def _clean_texts(column: pl.Series, counts: Counter[str]) -> pl.Series:
    if column.dtype == pl.String:
        bad = column.str.contains(_UNWANTED).fill_null(False)
        counts["cleaned_texts"] += int(bad.sum())
        return column.str.replace_all(_UNWANTED, " ") if bad.any() else column
    if column.dtype == pl.List(pl.String):
        bad = column.list.eval(pl.element().str.contains(_UNWANTED)).list.any().fill_null(False)
        counts["cleaned_texts"] += int(bad.sum())
        if bad.any():
            return column.list.eval(pl.element().str.replace_all(_UNWANTED, " "))
    return column
