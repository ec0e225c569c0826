"""Tables in Markdown."""

from collections.abc import Sequence


def markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a table.

    >>> print(markdown_table(("a", "b"), [("1|2", "3")]))
    | a | b |
    | --- | --- |
    | 1\\|2 | 3 |
    """
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(
        "| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |" for cells in lines
    )
