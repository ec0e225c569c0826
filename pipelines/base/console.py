"""Prints tables and live views with rich; text from the web cannot contain markup."""

from typing import Any, TextIO

from rich.console import Console
from rich.text import Text

from ...web.base.terminal import unwrap_stream
from ...web.base.visible import visible


class VisibleConsole(Console):
    """A console that shows strings literally: without markup or emoji codes.

    Control characters are escaped. A ``Text`` comes from nutbeam itself and is not changed.

    Args:
        stream: The output stream. Control sequences of rich bypass a visible stream.
        width: Number of columns; None means the width of the terminal.
    """

    def __init__(self, stream: TextIO, width: int | None = None) -> None:
        super().__init__(
            file=unwrap_stream(stream), width=width, markup=False, emoji=False, highlight=False
        )

    def render_str(self, text: str, **options: Any) -> Text:
        """Returns a string as text without markup."""
        return super().render_str(visible(text), **options)
