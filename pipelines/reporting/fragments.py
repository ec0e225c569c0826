"""Fragments of HTML: tables of numbers for one or two crawls, texts of strangers, times."""

import datetime
import re
from collections.abc import Iterable, Mapping, Sequence

from ...policy.components.vocabulary import iso
from ..base.loopback_server import shown

# What an HTML cell holds: HTML that is made here, or a number.
Cell = str | int | float | None
_LONGEST = 300
_NUMERAL = re.compile(r"[+-]?[\d,]+(?:\.\d+)?(?:e[+-]\d+)?")
_NUMBER = ' class="n"'


def foreign(text: str) -> str:
    """Returns a text of strangers as HTML, on one line, of limited length, in a direction of its own.

    >>> foreign("<b>")
    '<bdi>&lt;b&gt;</bdi>'
    """
    short = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    return f"<bdi>{shown(short)}</bdi>"


def link_to(url: str) -> str:
    """Returns a URL as a link if it leads to a page of the web, else as text."""
    if not re.match(r"https?://", url) or len(url) > _LONGEST:
        return foreign(url)
    return f'<a href="{shown(url)}" rel="noreferrer noopener nofollow">{foreign(url)}</a>'


def time_text(ms: int) -> str:
    """Returns a time to the second, UTC.

    >>> time_text(0)
    '<time datetime="1970-01-01T00:00:00Z">1970-01-01 00:00:00</time>'
    """
    text = str(iso(ms) or "")
    if not text:
        return ""
    machine = f"{text[:19]}Z"
    return f'<time datetime="{machine}">{machine[:-1].replace("T", " ")}</time>'


def day_after(ms: int, days: int) -> str:
    """Returns the day that begins a number of days after a time, as ``11-30``."""
    moment = datetime.datetime.fromtimestamp(ms / 1000, datetime.UTC)
    return (moment + datetime.timedelta(days=days)).strftime("%m-%d")


def number_text(number: float | None, digits: int = 0) -> str:
    """Returns a number with separators; a dash if there is none.

    >>> number_text(1234), number_text(2.26, 1), number_text(None)
    ('1,234', '2.3', '-')
    """
    return "-" if number is None else f"{number:,.{digits}f}"


def change_text(before: float, after: float) -> str:
    """Returns a difference with its sign.

    >>> change_text(3, 5), change_text(5, 3), change_text(1, 1)
    ('+2', '-2', '0')
    """
    return f"{after - before:+,.0f}" if after != before else "0"


def table(
    caption: str, heads: Sequence[str], rows: Iterable[Sequence[Cell]], *, below_chart: bool = False
) -> str:
    """Returns a table; a line that says so if it has no rows.

    Args:
        caption: Its caption, as text.
        heads: Names of its columns.
        rows: Cells as HTML; numbers are set to the right. The first cell of a row is its head.
        below_chart: Whether a chart above it shows its caption already.
    """
    all_rows = list(rows)
    if not all_rows:
        return f'<p class="soft">{shown(caption)}: none.</p>'
    numeric = [
        at > 0 and _has_numbers(cells) for at, cells in enumerate(zip(*all_rows, strict=True))
    ]
    names = "".join(
        f'<th scope="col"{_NUMBER if is_number else ""}>{shown(head)}</th>'
        for head, is_number in zip(heads, numeric, strict=True)
    )
    quiet = ' class="quiet"' if below_chart else ""
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="Table: {shown(caption)}"><table>'
        f"<caption{quiet}>{shown(caption)}</caption><thead><tr>{names}</tr></thead>"
        f"<tbody>{''.join(_row(cells, numeric) for cells in all_rows)}</tbody></table></div>"
    )


def _row(cells: Sequence[Cell], numeric: Sequence[bool]) -> str:
    others = (
        _cell(cell, is_number) for cell, is_number in zip(cells[1:], numeric[1:], strict=True)
    )
    return f'<tr><th scope="row">{cells[0]}</th>{"".join(others)}</tr>'


def _has_numbers(cells: Iterable[Cell]) -> bool:
    """Returns whether the cells of a column are numbers; a dash stands for one that is unknown."""
    told = [cell for cell in cells if cell not in (None, "-")]
    return bool(told) and all(map(_is_number, told))


def _is_number(cell: Cell) -> bool:
    """Returns whether a cell is a number, or the text of one, such as ``+2`` or ``3.5``."""
    return _NUMERAL.fullmatch(cell) is not None if isinstance(cell, str) else cell is not None


def _cell(cell: Cell, is_number: bool) -> str:
    digits = 1 if isinstance(cell, float) else 0
    text = cell if isinstance(cell, str) else number_text(cell, digits)
    return f"<td{_NUMBER if is_number else ''}>{text}</td>"


def counts_table(
    caption: str,
    head: str,
    unit: str,
    counts: Sequence[Mapping[str, int]],
    labels: Sequence[str],
    most: int = 40,
    *,
    below_chart: bool = False,
) -> str:
    """Returns numbers by name as a table: one column, or one for each of two crawls and their difference.

    Args:
        caption: Its caption.
        head: What a name is.
        unit: What is counted.
        counts: Numbers by name of each crawl.
        labels: The crawls.
        most: Largest number of rows; the rest is summed.
        below_chart: As for ``table``.
    """
    names = list(dict.fromkeys(name for one in counts for name in one))
    numbers = [[one.get(name, 0) for one in counts] for name in names]
    named = [(foreign(name), row) for name, row in zip(names[:most], numbers, strict=False)]
    if len(names) > most:
        rest = [sum(row[at] for row in numbers[most:]) for at in range(len(counts))]
        named.append((f"{len(names) - most:,} others", rest))
    if len(counts) == 1:
        one_column: list[list[Cell]] = [[name, row[0]] for name, row in named]
        return table(caption, (head, unit), one_column, below_chart=below_chart)
    compared: list[list[Cell]] = [[name, *row, change_text(row[1], row[0])] for name, row in named]
    return table(caption, (head, *labels, "change"), compared, below_chart=below_chart)


def side_by_side(*parts: str) -> str:
    """Returns parts of HTML side by side, without empty ones."""
    return f'<div class="columns">{"".join(f"<div>{part}</div>" for part in parts if part)}</div>'
