"""Checks of arguments that several transforms have. All raise ValueError with one line."""

import math
import numbers
from collections.abc import Iterable, Sequence
from typing import Any

import apache_beam as beam

# For small clusters; with fewer workers each has several partitions.
DEFAULT_PARTITIONS = 16


def check_integer(name: str, value: Any, least: int = 1) -> None:
    """Checks that an argument is a whole number, and large enough.

    Raises:
        ValueError: It is not.

    >>> check_integer("n", "2")
    Traceback (most recent call last):
    ValueError: n must be a whole number, got '2'
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise ValueError(f"{name} must be a whole number, got {value!r}")  # noqa: TRY004
    if int(value) < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")


def check_range(name: str, value: Any, least: float = 0, most: float = math.inf) -> None:
    """Checks that an argument is a number in a range.

    Raises:
        ValueError: It is not.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ValueError(f"{name} must be a number, got {value!r}")  # noqa: TRY004
    if not least <= float(value) <= most:
        limits = f"at least {least}" if math.isinf(most) else f"from {least} to {most}"
        raise ValueError(f"{name} must be {limits}, got {value}")


def check_partitions(partitions: int | beam.pvalue.AsSideInput) -> None:
    """Checks a number of partitions, unless it is a side input.

    Raises:
        ValueError: It is no whole number, or less than 1.
    """
    if not isinstance(partitions, beam.pvalue.AsSideInput):
        check_integer("partitions", partitions)


def column_names(columns: str | Iterable[str], argument: str) -> tuple[str, ...]:
    """Returns the names of an argument that is one name or several.

    Raises:
        ValueError: The argument has no name, or something else.
    """
    listed = isinstance(columns, Iterable) and not isinstance(columns, str)
    names: tuple[Any, ...] = tuple(columns) if listed else (columns,)
    if not names or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{argument} must name a column, got {columns!r}")
    return names


def directions(order_by: Sequence[str], descending: bool | Sequence[bool]) -> tuple[bool, ...]:
    """Returns for each of some columns whether the largest value is best.

    Raises:
        ValueError: There are more or fewer values than columns, or others than true and false.

    >>> directions(["score", "url"], True), directions(["score", "url"], [True, False])
    ((True, True), (True, False))
    """
    if isinstance(descending, bool):
        return (descending,) * len(order_by)
    largest_best = tuple(descending) if isinstance(descending, Iterable) else ()
    if len(largest_best) != len(order_by) or not all(isinstance(d, bool) for d in largest_best):
        raise ValueError(
            f"descending must be true or false, or one of these for each of order_by "
            f"{tuple(order_by)!r}, got {descending!r}"
        )
    return largest_best
