"""Formats the results of queries: values for JSON, CSV and people, tables that fit the terminal."""

import base64
import datetime
import json
import math
import os
import sys
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from ...web.base.visible import visible

_WIDEST = 100  # characters of a value in a table
_LONGEST = 1000  # characters of a value in a row that is shown by itself
_NARROW = 24  # a column of a table has at least this width, if its values are so wide
_NOT_A_TERMINAL = 120
_FEW = 10  # rows; up to this number, rows too wide for a table are shown one by one

Row = Sequence[Any]


def show(names: Sequence[str], rows: Iterator[Row], most: int) -> None:
    """Prints rows as a table, or, if a table would be too wide, one by one or in part.

    Args:
        names: Names of the columns.
        rows: Values for JSON.
        most: Largest number of rows; 0 shows all.
    """
    taken: list[Row] = []
    cut = False
    for row in rows:
        if cut := len(taken) == most > 0:
            break
        taken.append(row)
    for part in layout(names, taken, width_of_output()):
        _print(part)
    if cut:
        print(f"the first {most:,} rows; --max_rows 0 shows all")


def width_of_output() -> int:
    """Returns the number of columns of the terminal; 120 if the output is no terminal."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit():
        from ..base.console import VisibleConsole

        return VisibleConsole(sys.stdout).width
    return _NOT_A_TERMINAL


def layout(names: Sequence[str], rows: Sequence[Row], width: int) -> Iterator[Any]:
    """Yields tables of rich and lines that show rows within a width.

    If a table does not fit, a few rows are shown one by one, with a line per column. Of many rows,
    the first columns are shown, and a line that says so.
    """
    cells = [[_cell(value, _WIDEST) for value in row] for row in rows]
    widest = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
    needed = [min(one, _NARROW) for one in widest]
    if _border(len(names)) + sum(needed) <= width:
        yield _table(names, cells, _share_width(widest, needed, width), _numeric(rows))
    elif len(rows) <= _FEW:
        for number, row in enumerate(rows, 1):
            if len(rows) > 1:
                yield f"row {number}"
            yield from _one_by_one(names, row, width)
    else:
        fitting = 1
        while _border(fitting + 1) + sum(needed[: fitting + 1]) <= width:
            fitting += 1
        widths = _share_width(widest[:fitting], needed[:fitting], width)
        yield _table(names[:fitting], [row[:fitting] for row in cells], widths, _numeric(rows))
        yield (
            f"{fitting} of {len(names)} columns: select those that you need, or use --format json"
        )


def _border(columns: int) -> int:
    """Returns the width of a table's borders and spaces."""
    return 3 * columns + 1


def _share_width(widest: Sequence[int], needed: Sequence[int], width: int) -> list[int]:
    """Returns the widths of columns; the narrowest cut column gets free space first.

    >>> _share_width([5, 30, 90], [5, 20, 20], 75)
    [5, 30, 30]
    """
    widths = list(needed)
    free = width - _border(len(widths)) - sum(widths)
    cut = sorted((n for n in range(len(widths)) if widths[n] < widest[n]), key=widest.__getitem__)
    for done, n in enumerate(cut):
        more = min(widest[n] - widths[n], max(0, free) // (len(cut) - done))
        widths[n] += more
        free -= more
    return widths


def _numeric(rows: Sequence[Row]) -> list[bool]:
    return [
        all(isinstance(v, int | float | Decimal | None) and not isinstance(v, bool) for v in column)
        for column in zip(*rows, strict=True)
    ]


def _table(
    names: Sequence[str], cells: Sequence[Sequence[str]], widths: Sequence[int], right: list[bool]
) -> Any:
    from rich.box import SQUARE
    from rich.table import Table

    table = Table(box=SQUARE)
    for n, name in enumerate(names):
        justify: Any = "right" if right and right[n] else "left"
        table.add_column(visible(name), overflow="fold", justify=justify, width=widths[n])
    for row in cells:
        table.add_row(*row)
    return table


def _one_by_one(names: Sequence[str], row: Row, width: int) -> Iterator[str]:
    """Yields the lines of a row that is shown by itself."""
    indent = max(map(len, names)) + 2
    length = max(_NARROW, width - indent)
    for name, value in zip(names, row, strict=True):
        text = _cell(value, _LONGEST)
        pieces = [text[n : n + length] for n in range(0, len(text), length)] or [""]
        for first, piece in zip([visible(name), *[""] * len(pieces)], pieces, strict=False):
            yield f"{first:<{indent}}{piece}".rstrip()


def _print(part: Any) -> None:
    from ..base.console import VisibleConsole

    VisibleConsole(sys.stdout, width_of_output()).print(part)


def _cell(value: Any, longest: int) -> str:
    is_nested = isinstance(value, dict | list)
    text = json_text(value, ascii_only=False) if is_nested else str(value)
    text = "" if value is None else visible(text[: longest + 1])
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def plain_value(value: Any) -> Any:
    """Returns a value for JSON: bytes in base64, times in ISO form; those of the table are UTC."""
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime.datetime):
        return _iso(value)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, dict):
        return {str(name): plain_value(v) for name, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None  # JSON has neither infinity nor NaN
    is_plain = value is None or isinstance(value, str | int | float | Decimal)
    return value if is_plain else str(value)


def readable_value(value: Any) -> Any:
    """Returns a value for people: bytes as text, as far as they are text."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode("utf-8", "backslashreplace")
    return plain_value(value)


def _iso(time: datetime.datetime) -> str:
    utc = time.astimezone(datetime.UTC).replace(tzinfo=None) if time.tzinfo else time
    return (
        utc.isoformat(timespec="microseconds" if utc.microsecond % 1000 else "milliseconds") + "Z"
    )


def json_text(value: Any, *, ascii_only: bool = True) -> str:
    """Returns a value as JSON; a decimal is a number with all of its digits.

    Args:
        value: As ``plain_value`` returns it.
        ascii_only: Whether characters beyond ASCII are escaped.

    >>> json_text({"a": [Decimal("0.10"), Decimal("12345678901234567890.5")], "b": "c"})
    '{"a": [0.10, 12345678901234567890.5], "b": "c"}'
    """
    try:
        return json.dumps(value, ensure_ascii=ascii_only)
    except TypeError:  # json writes no decimals
        pass
    if isinstance(value, dict):
        pairs = ((json_text(n), json_text(v, ascii_only=ascii_only)) for n, v in value.items())
        return f"{{{', '.join(f'{name}: {text}' for name, text in pairs)}}}"
    if isinstance(value, list):
        return f"[{', '.join(json_text(each, ascii_only=ascii_only) for each in value)}]"
    return f"{value:f}"


def unique_names(names: Sequence[str]) -> list[str]:
    """Returns the names of columns; of equal names the later ones get a number.

    >>> unique_names(["url", "url", "n", "url", "url_1"])
    ['url', 'url_2', 'n', 'url_3', 'url_1']
    """
    taken = set(names)
    unique: dict[str, None] = {}
    for name in names:
        candidate, number = name, 1
        while candidate in unique or (number > 1 and candidate in taken):
            candidate, number = f"{name}_{number}", number + 1
        unique[candidate] = None
    return list(unique)
