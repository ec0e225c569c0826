"""Goes through the tags of a page and the texts after them; what each tag does is declared elsewhere."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from .containers import CONTAINER_TAGS, Containers
from .tag_attributes import attribute_value, code_language, hidden_tags
from .text_writer import TextWriter

_MAX_MATH_TAGS = 2_000
# What a link to the place where it stands may show.
_SELF_LINKS = frozenset(["¶", "#", "§", "🔗", "\u200b"])
# The name in place of which a tag gets, whose element is hidden.
HIDDEN = "hidden!"
_VOID = "area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr"
# Elements that make a cell one that arranges a page, if no cell of its table is a heading.
_ARRANGED = frozenset(
    ["h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "dl", "pre", "form", "blockquote", "table"]
)
_TABLE = ("table", "/table")
_NO_DATA = frozenset({"presentation", "none"})


class OpenList:
    """A list; it begins with its first item."""

    __slots__ = ("first", "has_items")

    def __init__(self, first: str) -> None:
        self.first, self.has_items = first, False


class TagReader:
    """Goes through tags and the texts after them; the names of end tags begin with "/".

    Args:
        tokens: A text, and then for each tag its name, its attributes and the text after it.
        actions: What each tag does.
        may_hide: Whether attributes may hide elements.

    Attributes:
        writer: What is written.
        at: Number of the tag that is read.
        tables: Of tables that are open, whether they hold data.
        lists: Those that are open.
        containers: Elements around the blocks of the text.
        row: Number of the row in the table.
        column: Number of the next cell's first column.
        spanned: The last row into which a cell above reaches, by column.
        language: Language of the preformatted text that is open, or follows in the table.
    """

    def __init__(
        self, tokens: Sequence[Any], actions: Mapping[str, "TagAction"], *, may_hide: bool
    ) -> None:
        self.writer = TextWriter()
        self.at = 0
        self.tables: list[bool] = []
        self.lists: list[OpenList] = []
        self.containers = Containers()
        self.row = self.column = 0
        self.spanned: dict[int, int] = {}
        self.language = ""
        self._actions = actions
        self._names, self._attributes, self._texts = tokens[1::3], tokens[2::3], tokens[3::3]
        self._tags = enumerate(zip(self._names, self._attributes, self._texts, strict=True))
        self._data_tables = _data_tables(self._names, self._attributes)
        if may_hide:
            self._hide()

    def _hide(self) -> None:
        names = list(self._names)
        for number in hidden_tags(self._attributes):
            if names[number] != "body":  # which scripts show once they have run
                names[number] = HIDDEN
        self._tags = enumerate(zip(names, self._attributes, self._texts, strict=True))

    def read(self) -> None:
        """Writes all of it."""
        writer, run, actions = self.writer, self.writer.run, self._actions
        for number, (name, attributes, text) in self._tags:
            if action := actions.get(name):
                self.at = number
                action(self, name, attributes)
                if self.at != number:
                    name, text = None, self._texts[self.at]
            if (opens := CONTAINER_TAGS.get(name)) is not None:
                if opens:
                    self.containers.open(name, attributes, writer.length)
                else:
                    self.containers.close(writer.length)
            if text and (run or not text.isspace() or writer.is_preformatted):
                run.append(text)

    def skip(self) -> None:
        """Passes over the element that begins."""
        names = self._names
        name = names[self.at]
        if name in _VOID.split():
            return
        end, depth = f"/{name}", 1
        for number in range(self.at + 1, len(names)):
            if names[number] == name:
                depth += 1
            elif names[number] == end:
                depth -= 1
                if not depth:
                    next(itertools.islice(self._tags, number - self.at - 1, None))
                    self.at = number
                    return

    def begin_mark(self, name: str, kind: str, of: str = "") -> None:
        """Begins a mark; most have only text in them, and are written at once."""
        at = self.at
        if self._names[at + 1 : at + 2] == [f"/{name}"]:
            self.writer.add_mark(kind, self._texts[at], of)
            next(self._tags)
            self.at = at + 1
        else:
            self.writer.open_mark(kind, of)

    @property
    def is_in_data(self) -> bool:
        """Whether the innermost open table holds data."""
        return bool(self.tables) and self.tables[-1]

    def holds_data(self) -> bool:
        """Returns whether the table that begins here holds data."""
        return self.at in self._data_tables

    def code_language(self) -> str:
        """Returns the language of the code that begins here."""
        return code_language(self._names, self._attributes, self.at)

    def is_self_link(self) -> bool:
        """Returns whether all that a link shows is a sign for it."""
        return self._texts[self.at].strip() in _SELF_LINKS and self._names[
            self.at + 1 : self.at + 2
        ] == ["/a"]

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


def _data_tables(names: Sequence[str | None], attributes: Sequence[str | None]) -> frozenset[int]:
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
            if not has_table and _has_data(names[start + 1 : number], attributes[start] or ""):
                found.append(start)
    return frozenset(found)


def _has_data(names: Sequence[str | None], attributes: str) -> bool:
    if attribute_value(attributes, "role") in _NO_DATA:
        return False
    if "th" in names or "caption" in names:
        return True
    rows = names.count("tr")
    return rows > 1 and names.count("td") > rows and _ARRANGED.isdisjoint(names)
