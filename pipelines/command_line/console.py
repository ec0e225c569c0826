"""Tables and live views of rich, in which the text of strangers stays text."""

from typing import Any, TextIO

from rich.console import Console
from rich.text import Text

from ...web.base.terminal import unwrapped
from ...web.base.visible import visible


class VisibleConsole(Console):
    """A console that shows each string as it is: no markup, no emoji codes, escapes for escapes.

    A ``Text`` is taken as ours, and is not looked at.

    Args:
        stream: Where to; rich's own sequences pass, whatever stands before a visible stream.
        width: Columns; None is those of the terminal.
    """

    def __init__(self, stream: TextIO, width: int | None = None) -> None:
        super().__init__(
            file=unwrapped(stream), width=width, markup=False, emoji=False, highlight=False
        )

    def render_str(self, text: str, **options: Any) -> Text:
        """Returns a string as rich will lay it out."""
        return super().render_str(visible(text), **options)
