"""Makes columns, and copies of columns with some values changed."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl


def put(column: pl.Series, at: pl.Series, values: Any) -> pl.Series:
    """Returns a copy of a column with other values at some places.

    ``scatter`` itself changes the column that it is called on.

    >>> column = pl.Series([1, 2, 3])
    >>> put(column, pl.Series([1]), 7).to_list(), column.to_list()
    ([1, 7, 3], [1, 2, 3])
    """
    return column.clone().scatter(at, values)


def gather(frames: Sequence[pl.DataFrame], index: Any) -> pl.DataFrame:
    """Returns the rows with these indexes in frames of the same columns, taken one after another.

    It copies only columns that have values: most columns of the state have none.

    >>> frames = [pl.DataFrame({"a": [1, 2], "b": [None, None]})] * 2
    >>> gather(frames, pl.Series([3, None, 0])).rows()
    [(2, None), (None, None), (1, None)]
    """
    first = frames[0]
    # The first column is always copied: rows without columns have no number.
    copied = [
        name
        for at, name in enumerate(first.columns)
        if at == 0 or any(frame.get_column(name).null_count() < len(frame) for frame in frames)
    ]
    gathered = pl.concat([frame.select(copied) for frame in frames], rechunk=True)[index]
    return pl.concat([first.clear(), gathered], how="diagonal")


def find_sorted(column: pl.Series, values: pl.Series) -> pl.Series:
    """Returns the index of each value in a column; null if it is not there.

    The column may be long: ``is_in`` and joins would read all of it at each call.

    Args:
        column: Values in order, each once.
        values: Values of the same type; may be null.

    >>> find_sorted(pl.Series(["a", "c"]), pl.Series(["c", "b", None, "d"])).to_list()
    [1, None, None, None]
    """
    if column.is_empty():
        return repeat_value(None, len(values), pl.UInt32)
    at = column.search_sorted(values).clip(upper_bound=len(column) - 1)
    there = (column.gather(at) == values).fill_null(False)
    return at.zip_with(there, repeat_value(None, len(values), pl.UInt32))


def stable_order(numbers: pl.Series) -> npt.NDArray[np.intp]:
    """Returns the indexes that sort whole numbers from 0 on; equal ones keep their order.

    >>> stable_order(pl.Series([1, 0, 1, 0])).tolist()
    [1, 3, 0, 2]
    """
    # numpy sorts numbers of up to 16 bits in linear time.
    smallest = np.min_scalar_type(numbers.max() or 0)  # type: ignore[arg-type]
    return np.argsort(numbers.to_numpy().astype(smallest), kind="stable")


def text_frame(rows: Iterable[Sequence[str | None]], *names: str) -> pl.DataFrame:
    """Returns rows of texts as a frame.

    >>> text_frame([("a", None)], "url", "key").rows()
    [('a', None)]
    """
    return pl.DataFrame(list(rows), schema=dict.fromkeys(names, pl.String), orient="row")


def each_once(
    column: pl.Series,
    work: Callable[[Any], Any],
    dtype: pl.DataType | pl.datatypes.DataTypeClass = pl.String,
) -> pl.Series:
    """Returns the results of a function for a column; each distinct value costs one call.

    Nulls stay.

    >>> each_once(pl.Series(["a", "b", None, "a"]), str.upper).to_list()
    ['A', 'B', None, 'A']
    >>> each_once(pl.Series(["a b", None, "c"]), str.split, pl.List(pl.String)).to_list()
    [['a', 'b'], None, ['c']]
    """
    distinct = column.drop_nulls().unique()
    results = pl.Series(column.name, [work(value) for value in distinct], dtype=dtype)
    if dtype.is_nested():  # replace_strict takes no lists
        places = pl.Series(range(len(distinct)), dtype=pl.Int64)
        return results.gather(column.replace_strict(distinct, places, default=None))
    return column.replace_strict(distinct, results, default=None, return_dtype=dtype)


def nulls(number: int) -> pl.Series:
    """Returns a text column of nulls."""
    return repeat_value(None, number, pl.String)


def falses(number: int) -> pl.Series:
    """Returns a column of False."""
    return repeat_value(False, number, pl.Boolean)


def reason_if(condition: pl.Expr | pl.Series, reason: str) -> pl.Expr:
    """Returns a reason where a condition is true, else null; ``pl.coalesce`` takes the first.

    >>> pl.select(pl.coalesce(reason_if(pl.lit(False), "a"), reason_if(pl.lit(True), "b"))).item()
    'b'
    """
    return pl.when(condition).then(pl.lit(reason))


def number_in(group: str) -> pl.Expr:
    """Returns the number of each row among those of its group, from 0, in the order of the rows.

    >>> pl.DataFrame({"host": ["a", "b", "a"]}).select(number_in("host")).to_series().to_list()
    [0, 0, 1]
    """
    return pl.int_range(pl.len()).over(group)


def zeros(number: int) -> pl.Series:
    """Returns a column of zeros, for line numbers."""
    return repeat_value(0, number, pl.UInt32)


def repeat_value(value: Any, number: int, dtype: pl.datatypes.DataTypeClass) -> pl.Series:
    """Returns a column that repeats a value; ``pl.repeat``, a query, costs 50 times as much.

    >>> repeat_value("a", 2, pl.String).to_list(), repeat_value(None, 0, pl.String).to_list()
    (['a', 'a'], [])
    """
    return pl.Series([value], dtype=dtype).new_from_index(0, number)


def limited_ranges(sizes: npt.NDArray[Any], most: int) -> Iterator[tuple[int, int]]:
    """Cuts positions into ranges whose sizes add up to at most ``most``, or that are one position.

    >>> list(limited_ranges(np.array([3, 1, 1, 9, 2]), 5))
    [(0, 3), (3, 4), (4, 5)]
    """
    upto, start = np.cumsum(sizes), 0
    while start < len(sizes):
        previous_sum = upto[start - 1] if start else 0
        end = max(start + 1, int(np.searchsorted(upto, previous_sum + most, side="right")))
        yield start, end
        start = end
