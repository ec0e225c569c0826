"""Goes through the tags of a page and the texts after them; what each tag does is declared elsewhere."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from .containers import Containers, containers_of
from .inline_marks import NO_START, OpenSpan
from .seen_markup import VOID_TAGS
from .tag_attributes import attribute_value, code_language, unescape
from .text_writer import TextWriter
from .word_readings import WordReadings

_MAX_MATH_TAGS = 2_000
# Elements that make a cell one that arranges a page, if no cell of its table is a heading.
_ARRANGED = frozenset(
    ["h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "dl", "pre", "form", "blockquote", "table"]
)
_TABLE = ("table", "/table")
_NO_DATA = frozenset({"presentation", "none"})


class OpenList:
    """A list; it begins with its first item.

    Attributes:
        is_ordered: Whether its items have numbers.
        start: The first of these; None: the last one is 1.
        step: From one number to the next.
        span: Its span; None before its first item.
        items: The spans of its items, and the numbers that they say.
    """

    __slots__ = ("is_ordered", "items", "span", "start", "step")

    def __init__(self, is_ordered: bool = False, start: int | None = 1, step: int = 1) -> None:
        self.is_ordered, self.start, self.step = is_ordered, start, step
        self.span: OpenSpan | None = None
        self.items: list[tuple[OpenSpan, int | None]] = []

    def number_items(self) -> None:
        """Sets the number of the list, and of each item that does not follow on the one before.

        HTML 4.4.5 and 4.4.8. Items without text have numbers, too.
        """
        number = len(self.items) if self.start is None else self.start
        following: int | None = None
        for item, own in self.items:
            number = number if own is None else own
            if item[1] != NO_START:
                if following is None and self.span is not None:
                    self.span[4] = str(number)
                elif number != following:
                    item[4] = str(number)
                following = number + 1
            number += self.step


class TagReader:
    """Goes through tags and the texts after them; the names of end tags begin with "/".

    Args:
        tokens: A text, and then for each tag its name, its attributes and the text after it.
        actions: What each tag does.
        writer: Gets the text.

    Attributes:
        writer: What is written.
        at: Number of the tag that is read.
        tables: Of tables that are open, whether they hold data.
        lists: Those that are open.
        readings: Those of ruby that is open.
        row: Number of the row in the table.
        column: Number of the next cell's first column.
        spanned: The last row into which a cell above reaches, by column.
        language: Language of the preformatted text that is open, or follows in the table.
    """

    def __init__(
        self, tokens: Sequence[Any], actions: Mapping[str, "TagAction"], writer: TextWriter
    ) -> None:
        self.writer = writer
        self.at = 0
        self.tables: list[bool] = []
        self.lists: list[OpenList] = []
        self.readings = WordReadings()
        self.row = self.column = 0
        self.spanned: dict[int, int] = {}
        self.language = ""
        self._names: list[str] = list(tokens[1::3])
        self._attributes: Sequence[str] = tokens[2::3]
        self._texts: Sequence[str] = tokens[3::3]
        tag_actions = map(actions.get, tokens[1::3])
        self._tags = enumerate(
            zip(self._names, tag_actions, self._attributes, self._texts, strict=True)
        )
        self._data_tables = _data_tables(self._names, self._attributes)

    def read(self) -> None:
        """Writes all of it."""
        writer, run, texts = self.writer, self.writer.run, self._texts
        for number, (name, action, attributes, text) in self._tags:
            if action:
                self.at = writer.tag = number
                action(self, name, attributes)
                if self.at != number:
                    text = texts[self.at]
            if text:
                if writer.is_preformatted:
                    writer.add_preformatted(text)
                elif run or not text.isspace():
                    run.append(text)

    def containers(self) -> Containers:
        """Returns the elements around the blocks of what was read."""
        return containers_of(self._names, self._attributes, self.writer.leaf_places)

    def skip(self) -> None:
        """Passes over the element that begins."""
        self._pass_to(self._end())

    def skip_numbers(self) -> bool:
        """Passes over the element that begins, unless there are letters in it; returns whether there are none."""
        end = self._end()
        if any(map(str.isalpha, unescape("".join(self._texts[self.at : end])))):
            return False
        self._pass_to(end)
        return True

    def _end(self) -> int:
        """Returns the number of the end tag of the element that begins, or of its only tag."""
        names = self._names
        name = names[self.at]
        if name in VOID_TAGS:
            return self.at
        end, depth = f"/{name}", 1
        for number in range(self.at + 1, len(names)):
            if names[number] == name:
                depth += 1
            elif names[number] == end:
                depth -= 1
                if not depth:
                    return number
        return self.at

    def _pass_to(self, number: int) -> None:
        """Passes over tags and the texts between them."""
        count = number - self.at
        if not count:
            return
        for text in self._texts[self.at : number]:
            self.writer.pass_marks(text)
        next(itertools.islice(self._tags, count - 1, None))
        self._names[self.at : number + 1] = [""] * (count + 1)
        self.at = number

    @property
    def is_in_data(self) -> bool:
        """Whether the innermost open table holds data."""
        return bool(self.tables) and self.tables[-1]

    def goes_on_with(self, name: str) -> bool:
        """Returns whether the next tag follows at once, and has a name."""
        return not self._texts[self.at] and self._names[self.at + 1 : self.at + 2] == [name]

    def holds_data(self) -> bool:
        """Returns whether the table that begins here holds data."""
        return self.at in self._data_tables

    def code_language(self) -> str:
        """Returns the language of the code that begins here."""
        return code_language(self._names, self._attributes, self.at)

    def tex(self) -> str:
        """Returns the formula that begins here in TeX, escaped, if it is there."""
        end = self._names.index("/math", self.at)
        if end - self.at > _MAX_MATH_TAGS:
            return ""
        for number in range(self.at, end):
            if self._names[number] == "annotation" and "x-tex" in self._attributes[number]:
                return self._texts[number]
        return ""


# Gets the reader, and name and attributes of the tag.
TagAction: TypeAlias = Callable[[TagReader, str, str], None]


def _data_tables(names: Sequence[str], attributes: Sequence[str]) -> frozenset[int]:
    """Returns the numbers of the tags at which tables with data begin; others arrange a page.

    Data have no table within them, and headings of columns or rows, or only short cells in columns.
    """
    found: list[int] = []
    stack: list[tuple[int, bool]] = []
    for number in [number for number, name in enumerate(names) if name in _TABLE]:
        if names[number] == "table":
            stack = [(place, True) for place, _ in stack[-1:]]
            stack.append((number, False))
        elif stack:
            start, has_table = stack.pop()
            if not has_table and _has_data(names[start + 1 : number], attributes[start]):
                found.append(start)
    return frozenset(found)


def _has_data(names: Sequence[str], attributes: str) -> bool:
    if attribute_value(attributes, "role") in _NO_DATA:
        return False
    if "th" in names or "caption" in names:
        return True
    rows = names.count("tr")
    return rows > 1 and names.count("td") > rows and _ARRANGED.isdisjoint(names)
