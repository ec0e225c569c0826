"""Places the readings of ruby after the words that they belong to, so that no word is cut by them."""

import re
from collections.abc import MutableSequence

from ..content.legibility import SPACELESS_RANGES
from .inline_marks import MARK_END, MARK_START

_SPACELESS = re.compile(f"[{SPACELESS_RANGES}]")


class WordReadings:
    """Readings of ruby: each character of a word may have its own, and a word several elements.

    >>> readings, run = WordReadings(), []
    >>> for tag, text in (("ruby", "漢"), ("rt", "かん"), ("/rt", "字"), ("rt", "じ"), ("/rt", ""), ("/ruby", "")):
    ...     readings.pass_tag(tag, run)
    ...     run.append(text)
    >>> "".join(run)
    '漢字(かんじ)'
    """

    def __init__(self) -> None:
        self._depth = 0
        self._start = 0  # of a reading, in the run
        self._readings: list[str] = []

    def pass_tag(self, name: str, run: MutableSequence[str], continues: bool = False) -> None:
        """Takes the reading that ends out of a run of text, or adds all readings of a word that ends.

        Args:
            name: ``ruby``, ``rt``, or one of these after "/".
            run: The pieces of text up to the tag.
            continues: Whether other ruby follows at once, which belongs to the same word.
        """
        if name == "ruby":
            self._depth += 1
        elif name == "rt":
            self._start = len(run)
        elif name == "/rt":
            self._take_reading(run)
        else:
            self._depth = max(0, self._depth - 1)
        if not self._depth and not continues and self._readings:
            run.append(f"({_joined(self._readings)})")
            self._readings.clear()

    def _take_reading(self, run: MutableSequence[str]) -> None:
        reading = "".join(run[self._start :])
        del run[self._start :]
        if MARK_START in reading or MARK_END in reading:  # marks stay in their order
            run.append(f"({reading})")
        elif reading.strip():
            self._readings.append(reading.strip())


def _joined(readings: list[str]) -> str:
    """Returns readings in one; those that are not in kana are words of their own."""
    return ("" if all(map(_SPACELESS.match, readings)) else " ").join(readings)
