"""Prints tables and live views with rich, without markup in text from strangers."""

from typing import Any, TextIO

from rich.console import Console
from rich.text import Text

from ...web.base.terminal import unwrapped
from ...web.base.visible import visible


class VisibleConsole(Console):
    """A console that shows each string as it is: no markup or emoji codes; control characters escaped.

    A ``Text`` comes from us, and is not changed.

    Args:
        stream: Where to print. Control sequences of rich bypass a visible stream.
        width: Columns; None is the width of the terminal.
    """

    def __init__(self, stream: TextIO, width: int | None = None) -> None:
        super().__init__(
            file=unwrapped(stream), width=width, markup=False, emoji=False, highlight=False
        )

    def render_str(self, text: str, **options: Any) -> Text:
        """Returns a string as text without markup."""
        return super().render_str(visible(text), **options)
