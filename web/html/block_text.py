"""Takes the text of an HTML page as a person would copy it, and its blocks: headings, lists, tables and so on.

It reads the mark-up that lexbor writes of its tree: each element there has an end tag, and each value is in
double quotes, so one expression finds all tags. That takes a fifth of the time of a walk over the nodes.
"""

import itertools
import re
from collections.abc import Callable, Sequence

from ..pages import spans
from ..pages.spans import Span
from .tag_attributes import (
    attribute_number,
    attribute_value,
    code_language,
    has_attribute,
    has_line_numbers,
    hidden_tags,
)
from .text_writer import BREAK, CLOSE, OPEN, PLAIN, TextWriter

_MAX_NESTING = 32  # of lists; deeper ones count as that deep
_MAX_COLUMNS = 100  # of a cell
_MAX_SPANNED = 32  # columns in which a cell may reach into rows below
_MAX_MATH_TAGS = 2_000
_CONTROLS = dict.fromkeys((*range(1, 9), 11, *range(14, 32), 127))

# Comments and the like; elements whose content is no text, which is not escaped; tags.
_TAGS = re.compile(
    r"<(?:!--.*?--|\?[^>]*+"
    + "".join(
        rf"|{tag}(?=[\s>]).*?</{tag}"
        for tag in ("script", "style", "iframe", "noembed", "noframes")
    )
    + r"|(/?[a-z][^\s>/]*+)([^>]*+))>",
    re.DOTALL,
)
_RAW_TEXT = re.compile(r"<(?:!--.*?--|(xmp|plaintext)(?=[\s>])([^>]*+)>(.*?)</\1)>", re.DOTALL)
# Words in the mark-up without which nothing is hidden, or no line has a number.
_HIDING = ("hidden", "display", "Display", "DISPLAY")
_NUMBERING = ("lineno", "line-num", "gutter")
# What a link to the place where it stands may show.
_SELF_LINKS = frozenset(["¶", "#", "§", "🔗", "\u200b"])

# The name in place of which a tag gets, whose element is hidden.
_HIDDEN = "hidden!"
_VOID = "area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr"
# Nothing in these is text of the page: choices, what stands in for something, what only programs read.
_SKIPPED = "template select datalist textarea progress meter rp annotation annotation-xml video audio canvas title desc"
_SECTIONS = frozenset(["nav", "header", "footer", "aside", "main", "article"])
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_MARKS = {
    **dict.fromkeys(("code", "kbd", "samp", "tt", "var"), spans.CODE),
    **dict.fromkeys(("b", "strong"), spans.STRONG),
    **dict.fromkeys(("i", "em", "cite", "dfn"), spans.EMPHASIS),
    **dict.fromkeys(("del", "s", "strike"), spans.DELETED),
}
_LISTS = ("ul", "ol", "menu", "dir")
# Lines break around these (HTML 15.3); around the second ones there is an empty line, too.
_APART = "address body center details div fieldset form hgroup legend search section summary"
_WIDE_APART = "figure dl listing"
# Elements that make a cell one that arranges a page, if no cell of its table is a heading.
_ARRANGED = frozenset((*_HEADINGS, "ul", "ol", "dl", "pre", "form", "blockquote", "table"))
_TABLE = ("table", "/table")
_NO_DATA = frozenset({"presentation", "none"})

# What each tag does; the names of end tags begin with "/".
_Action = Callable[["_Reader", str, str], None]
_ACTIONS: dict[str, _Action] = {}


def block_text(markup: str, *, with_noscript: bool = False) -> tuple[str, list[Span]]:
    """Returns the text of an element and its spans.

    Blocks are lines; paragraphs, headings, preformatted text, and lists, quotes and tables as a whole have
    an empty line before and after; the cells of a row are separated by tabs. A run of white space is one
    space, except in preformatted text. What is hidden is left out. An image is the text that stands in for it.

    Args:
        markup: The element as lexbor writes it.
        with_noscript: Whether what stands in for scripts is text.

    >>> text, found = block_text("<body><h1>A</h1><p>b <b>c</b></p><ul><li>d</li><li>e</li></ul></body>")
    >>> text
    'A\\n\\nb c\\n\\nd\\ne'
    >>> [(kind, text[start:end]) for kind, start, end, *_ in found][:4]
    [('heading', 'A'), ('paragraph', 'b c'), ('strong', 'c'), ('list', 'd\\ne')]
    """
    if OPEN in markup or CLOSE in markup or BREAK in markup or "\0" in markup:
        markup = markup.replace("\0", "").translate(_CONTROLS)
    if "<xmp" in markup or "<plaintext" in markup:
        markup = _RAW_TEXT.sub(_as_preformatted, markup)
    reader = _Reader(markup, with_noscript)
    reader.read()
    return reader.writer.finish()


def _as_preformatted(element: re.Match[str]) -> str:
    if not element[1]:
        return element[0]
    text = element[3].replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return f"<pre{element[2]}>{text}</pre>"


class _OpenList:
    """A list; it begins with its first item."""

    __slots__ = ("first", "has_items")

    def __init__(self, first: str) -> None:
        self.first, self.has_items = first, False


class _Reader:
    """Goes through tags and the texts after them; the names of end tags begin with "/".

    Attributes:
        writer: What is written.
        at: Number of the tag that is read.
        tables: Of tables that are open, whether they hold data.
        lists: Those that are open.
        row: Number of the row in the table.
        column: Number of the next cell's first column.
        spanned: The last row into which a cell above reaches, by column.
        language: Language of the preformatted text that is open, or follows in the table.
    """

    def __init__(self, markup: str, with_noscript: bool) -> None:
        tokens = _TAGS.split(markup)
        self.writer = TextWriter()
        self.at = 0
        self.tables: list[bool] = []
        self.lists: list[_OpenList] = []
        self.row = self.column = 0
        self.spanned: dict[int, int] = {}
        self.language = ""
        self._names, self._attributes, self._texts = tokens[1::3], tokens[2::3], tokens[3::3]
        self._tags = enumerate(zip(self._names, self._attributes, self._texts, strict=True))
        self._data_tables = (
            _data_tables(self._names, self._attributes) if "<table" in markup else ()
        )
        self._actions = _ACTIONS
        if with_noscript:
            self._actions = self._actions | {"noscript": _pass_over}
        if any(word in markup for word in _NUMBERING):
            self._actions = self._actions | {"span": _pass_line_number}
        if any(word in markup for word in _HIDING):
            self._hide()

    def _hide(self) -> None:
        names = self._names.copy()
        for number in hidden_tags(self._attributes):
            if names[number] != "body":  # which scripts show once they have run
                names[number] = _HIDDEN
        self._tags = enumerate(zip(names, self._attributes, self._texts, strict=True))

    def read(self) -> None:
        """Writes all of it."""
        writer, run, actions = self.writer, self.writer.run, self._actions
        for number, (name, attributes, text) in self._tags:
            if action := actions.get(name):
                self.at = number
                action(self, name, attributes)
                if self.at != number:
                    text = self._texts[self.at]
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


def _on(*names: str) -> Callable[[_Action], _Action]:
    def register(action: _Action) -> _Action:
        _ACTIONS.update(dict.fromkeys(names, action))
        return action

    return register


def _pass_over(reader: _Reader, name: str, attributes: str) -> None:
    """The tag does nothing."""


@_on(_HIDDEN, "noscript", *_SKIPPED.split())
def _skip(reader: _Reader, name: str, attributes: str) -> None:
    reader.skip()


def _pass_line_number(reader: _Reader, name: str, attributes: str) -> None:
    if reader.writer.is_preformatted and has_line_numbers(attributes):
        reader.skip()


@_on("dialog")
def _begin_dialog(reader: _Reader, name: str, attributes: str) -> None:
    if has_attribute(attributes, "open"):
        reader.writer.break_line(1)
    else:
        reader.skip()


@_on("/dialog", *(slash + name for name in _APART.split() for slash in ("", "/")))
def _break(reader: _Reader, name: str, attributes: str) -> None:
    writer = reader.writer
    if writer.run or not writer.newlines:  # many of these follow one another
        writer.break_line(1)


@_on(*(slash + name for name in _WIDE_APART.split() for slash in ("", "/")))
def _break_wide(reader: _Reader, name: str, attributes: str) -> None:
    reader.writer.break_line(2)


@_on("p")
def _begin_paragraph(reader: _Reader, name: str, attributes: str) -> None:
    reader.writer.break_line(2)
    reader.writer.leaf = (spans.PARAGRAPH, 1, "")


@_on(*_HEADINGS)
def _begin_heading(reader: _Reader, name: str, attributes: str) -> None:
    reader.writer.break_line(2)
    reader.writer.leaf = (spans.HEADING, _HEADINGS[name], "")


@_on("/p", *("/" + name for name in _HEADINGS))
def _end_leaf(reader: _Reader, name: str, attributes: str) -> None:
    reader.writer.break_line(2)
    reader.writer.leaf = PLAIN


@_on("dt", "caption", "figcaption")
def _begin_line(reader: _Reader, name: str, attributes: str) -> None:
    reader.writer.break_line(1)
    reader.writer.leaf = (spans.TERM if name == "dt" else spans.CAPTION, 0, "")


@_on("/dt", "/caption", "/figcaption")
def _end_line(reader: _Reader, name: str, attributes: str) -> None:
    reader.writer.break_line(1)
    reader.writer.leaf = PLAIN


@_on("dd", *_SECTIONS)
def _begin_block(reader: _Reader, name: str, attributes: str) -> None:
    reader.writer.break_line(1)
    if name == "dd":
        reader.writer.open_block(spans.DESCRIPTION)
    else:
        reader.writer.open_block(spans.SECTION, 0, name)


@_on("/dd", *("/" + name for name in _SECTIONS))
def _end_block(reader: _Reader, name: str, attributes: str) -> None:
    reader.writer.break_line(1)
    reader.writer.close_block()


@_on(*_LISTS)
def _begin_list(reader: _Reader, name: str, attributes: str) -> None:
    reader.writer.break_line(1 if reader.lists else 2)
    first = (attribute_value(attributes, "start") or "1") if name == "ol" else ""
    reader.lists.append(_OpenList(first if first.isdecimal() else first and "1"))


@_on(*("/" + name for name in _LISTS))
def _end_list(reader: _Reader, name: str, attributes: str) -> None:
    ended = reader.lists.pop()
    reader.writer.break_line(1 if reader.lists else 2)
    if ended.has_items:
        reader.writer.close_block()


@_on("li")
def _begin_item(reader: _Reader, name: str, attributes: str) -> None:
    reader.writer.break_line(1)
    if not reader.lists:
        return
    level, around = min(len(reader.lists), _MAX_NESTING), reader.lists[-1]
    if not around.has_items:
        around.has_items = True
        reader.writer.open_block(spans.LIST, level, around.first)
    reader.writer.open_block(spans.ITEM, level)


@_on("/li")
def _end_item(reader: _Reader, name: str, attributes: str) -> None:
    reader.writer.break_line(1)
    if reader.lists:
        reader.writer.close_block()


@_on("blockquote")
def _begin_quote(reader: _Reader, name: str, attributes: str) -> None:
    reader.writer.break_line(2)
    reader.writer.open_block(spans.QUOTE)


@_on("/blockquote")
def _end_quote(reader: _Reader, name: str, attributes: str) -> None:
    reader.writer.break_line(2)
    reader.writer.close_block()


@_on("pre", "listing")
def _begin_preformatted(reader: _Reader, name: str, attributes: str) -> None:
    reader.writer.break_line(2)
    reader.writer.begin_preformatted()
    reader.language = reader.code_language() or reader.language


@_on("/pre", "/listing")
def _end_preformatted(reader: _Reader, name: str, attributes: str) -> None:
    reader.writer.end_preformatted(reader.language)
    reader.writer.break_line(2)
    reader.language = ""


@_on("table")
def _begin_table(reader: _Reader, name: str, attributes: str) -> None:
    has_data = reader.holds_data()
    reader.tables.append(has_data)
    reader.row, reader.spanned = 0, {}
    reader.writer.break_line(2 if has_data else 1)
    if has_data:
        reader.writer.open_block(spans.TABLE)


@_on("/table")
def _end_table(reader: _Reader, name: str, attributes: str) -> None:
    has_data = reader.tables.pop()
    reader.language = ""
    reader.writer.break_line(2 if has_data else 1)
    if has_data:
        reader.writer.close_block()


@_on("tr")
def _begin_row(reader: _Reader, name: str, attributes: str) -> None:
    reader.row, reader.column = reader.row + 1, 0
    if reader.tables and reader.tables[-1]:
        reader.writer.open_row()
    else:
        reader.writer.break_line(1)


@_on("/tr")
def _end_row(reader: _Reader, name: str, attributes: str) -> None:
    if reader.tables and reader.tables[-1]:
        reader.writer.close_row()
    else:
        reader.writer.break_line(1)


@_on("/thead", "/tbody")
def _end_rows(reader: _Reader, name: str, attributes: str) -> None:
    reader.spanned = {}


@_on("td", "th")
def _begin_cell(reader: _Reader, name: str, attributes: str) -> None:
    if not (reader.tables and reader.tables[-1]):
        reader.writer.break_line(1)
        if has_line_numbers(attributes):
            reader.language = reader.code_language()
            reader.skip()
        return
    while reader.spanned.get(reader.column, 0) >= reader.row:
        _add_cell(reader, 0, 1)
        reader.writer.close_cell()
    columns = 1
    if "span=" in attributes:
        columns = min(attribute_number(attributes, "colspan"), _MAX_COLUMNS)
        rows = attribute_number(attributes, "rowspan")
        below = range(reader.column, min(reader.column + columns, _MAX_SPANNED))
        reader.spanned.update(dict.fromkeys(below, reader.row + rows - 1))
    _add_cell(reader, int(name == "th"), columns)


def _add_cell(reader: _Reader, level: int, columns: int) -> None:
    reader.writer.open_cell(level, columns, reader.column == 0)
    reader.column += columns


@_on("/td", "/th")
def _end_cell(reader: _Reader, name: str, attributes: str) -> None:
    if reader.tables and reader.tables[-1]:
        reader.writer.close_cell()
    else:
        reader.writer.break_line(1)


@_on(*_MARKS)
def _begin_mark(reader: _Reader, name: str, attributes: str) -> None:
    reader.begin_mark(name, _MARKS[name])


@_on("a")
def _begin_link(reader: _Reader, name: str, attributes: str) -> None:
    target = attribute_value(attributes, "href")
    if "#" in target and reader.is_self_link():
        reader.skip()
        return
    is_link = target and not target[:11].lower().startswith("javascript:")
    reader.begin_mark("a", spans.LINK if is_link else "", target)


@_on("/a", *("/" + name for name in _MARKS))
def _end_mark(reader: _Reader, name: str, attributes: str) -> None:
    reader.writer.close_mark()


@_on("img")
def _add_image(reader: _Reader, name: str, attributes: str) -> None:
    if instead := attribute_value(attributes, "alt"):
        source = attribute_value(attributes, "src")
        is_data = source[:5].lower() == "data:"
        instead = instead.replace("&", "&amp;")
        reader.writer.add_mark(spans.IMAGE, instead, "" if is_data else source)


@_on("br")
def _add_break(reader: _Reader, name: str, attributes: str) -> None:
    reader.writer.add_break()


@_on("hr")
def _add_rule(reader: _Reader, name: str, attributes: str) -> None:
    reader.writer.add_rule()


@_on("button", "/button", "input")
def _add_space(reader: _Reader, name: str, attributes: str) -> None:
    reader.writer.run.append(" ")


@_on("q", "/q")
def _add_quotation_mark(reader: _Reader, name: str, attributes: str) -> None:
    reader.writer.run.append('"')


@_on("rt")
def _begin_reading(reader: _Reader, name: str, attributes: str) -> None:
    reader.writer.run.append("(")


@_on("/rt")
def _end_reading(reader: _Reader, name: str, attributes: str) -> None:
    reader.writer.run.append(")")


@_on("math")
def _add_formula(reader: _Reader, name: str, attributes: str) -> None:
    formula = attribute_value(attributes, "alttext").replace("&", "&amp;") or reader.tex()
    if formula:
        reader.writer.run.append(formula)
        reader.skip()
