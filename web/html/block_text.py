"""Takes the text of an HTML page as a person would copy it, and its blocks: headings, lists, tables and so on.

It reads the mark-up that lexbor writes of its tree: each element there has an end tag, and each value is in
double quotes, so one expression finds all tags. That takes a fifth of the time of a walk over the nodes.
"""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..pages import spans
from ..pages.spans import Span
from .containers import CONTAINER_TAGS, Containers
from .text_writer import BREAK, CLOSE, OPEN, PLAIN, TextWriter, unescape

_MAX_NESTING = 32  # of lists; deeper ones count as that deep
_MAX_COLUMNS = 100
_MAX_OF_CHARS = 4_096
_CONTROLS = dict.fromkeys((*range(1, 9), 11, *range(14, 32), 127))

# Elements whose content is no text, which is not escaped; tags; and comments.
_RAW = "|".join(
    rf"{tag}\b.*?</{tag}" for tag in ("script", "style", "iframe", "noembed", "noframes")
)
_TAGS = re.compile(
    # A name of an attribute may have quotes in it, too.
    rf"<(?:!--.*?--|{_RAW}|(/?[a-z][^\s>/]*+)((?:\s=?[^\s=>]*+=\"[^\"]*+\")*+))>",
    re.DOTALL,
)
_RAW_TEXT = re.compile(r"<(xmp|plaintext)\b([^>]*+)>(.*?)</\1>", re.DOTALL)
_IS_HIDDEN = re.compile(
    r"\shidden(?:=\"(?!until-found\")[^\"]*\")?(?=[\s/]|$)|\saria-hidden=\"true\""
    r"|\sstyle=\"(?:[^\"]*;)?\s*display\s*:\s*none\b",
    re.IGNORECASE,
)
_VALUES = {
    name: re.compile(rf'\s{name}="([^"]*)"')
    for name in ("href", "src", "alt", "class", "start", "colspan", "role", "data-lang", "alttext")
}
_LANGUAGE = re.compile(
    r"(?:^|\s)(?:language|lang|highlight-source|highlight|brush:|sourceCode|src)[-:\s]\s*([\w+#.-]+)",
    re.ASCII,
)
_NO_LANGUAGES = frozenset(
    ["default", "none", "text", "notranslate", "highlight", "linenos", "plaintext", "src"]
)
_LINE_NUMBERS = re.compile(r"(?:^|[\s_-])(?:linenos?|line-?numbers?|gutter)(?:$|[\s_-])")

_VOID = frozenset(
    [
        "area",
        "base",
        "br",
        "col",
        "embed",
        "hr",
        "img",
        "input",
        "link",
        "meta",
        "param",
        "source",
        "track",
        "wbr",
    ]
)
# Nothing in these is text of the page: choices, what stands in for something, what only programs read.
_SKIPPED = frozenset(
    [
        "template",
        "select",
        "datalist",
        "textarea",
        "rp",
        "annotation",
        "annotation-xml",
        "video",
        "audio",
        "canvas",
        "title",
        "desc",
    ]
)
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
_APART = "address body center details dialog div fieldset form hgroup legend optgroup search section summary"
_WIDE_APART = "figure dl listing"
# Elements that make a cell one that arranges a page, if no cell of its table is a heading.
_ARRANGED = frozenset((*_HEADINGS, "ul", "ol", "dl", "pre", "form", "blockquote", "table"))
_AROUND = ("div", "figure")  # preformatted text
_NO_DATA = frozenset({"presentation", "none"})

# What each tag does; the names of end tags begin with "/".
_Action = Callable[["_Reader", str, str], None]
_ACTIONS: dict[str, _Action] = {}


class BlockText(NamedTuple):
    """A text, its spans, and the elements around its blocks."""

    text: str
    spans: list[Span]
    containers: Containers


def block_text(markup: str, *, with_noscript: bool = False) -> BlockText:
    """Returns the text of an element, its spans, and its containers.

    Blocks are lines; paragraphs, headings, preformatted text, and lists, quotes and tables as a whole have
    an empty line before and after; the cells of a row are separated by tabs. A run of white space is one
    space, except in preformatted text. What is hidden is left out. An image is the text that stands in for it.

    Args:
        markup: The element as lexbor writes it.
        with_noscript: Whether what stands in for scripts is text.

    >>> text, found, _ = block_text("<body><h1>A</h1><p>b <b>c</b></p><ul><li>d</li><li>e</li></ul></body>")
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
    return BlockText(*reader.writer.finish(), reader.containers)


def _as_preformatted(element: re.Match[str]) -> str:
    text = element[3].replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return f"<pre{element[2]}>{text}</pre>"


def _value(attributes: str, name: str) -> str:
    found = _VALUES[name].search(attributes) if attributes else None
    return unescape(found[1][:_MAX_OF_CHARS]).strip() if found else ""


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
        rows_cells: Number of cells of the row.
        columns: Number of columns of the cell.
        language: Language of the preformatted text that is open; None: none is.
    """

    def __init__(self, markup: str, with_noscript: bool) -> None:
        tokens = _TAGS.split(markup)
        self.writer = TextWriter()
        self.at = 0
        self.tables: list[bool] = []
        self.lists: list[_OpenList] = []
        self.rows_cells, self.columns = 0, 1
        self.language: str | None = None
        self._tokens = tokens
        self._actions = _ACTIONS if not with_noscript else _ACTIONS | {"noscript": _pass_over}
        self._names = tokens[1::3]
        self._may_hide = any(word in markup for word in ("hidden", "display"))
        self._data_tables = _data_tables(self._names, tokens[2::3]) if "<table" in markup else ()
        self._skip_end = -1
        self.containers = Containers()

    def read(self) -> None:
        """Writes all of it."""
        writer, actions, may_hide = self.writer, self._actions, self._may_hide
        tokens = self._tokens
        tags = zip(tokens[1::3], tokens[2::3], tokens[3::3], strict=True)
        for number, (name, attributes, text) in enumerate(tags):
            if number <= self._skip_end:
                if number < self._skip_end:
                    continue
            elif name is not None:
                self.at = number
                if may_hide and attributes and _IS_HIDDEN.search(attributes):
                    self.skip(name)
                elif action := actions.get(name):
                    action(self, name, attributes)
                if number < self._skip_end:
                    continue
                if (opens := CONTAINER_TAGS.get(name)) is not None:
                    if opens:
                        self.containers.open(name, attributes, writer.length)
                    else:
                        self.containers.close(writer.length)
            if text:
                run = writer.run
                if not text.isspace() or self.language is not None or (run and run[-1] != BREAK):
                    run.append(text)

    def skip(self, name: str) -> None:
        """Passes over an element."""
        if name in _VOID:
            return
        depth, at, names = 1, self.at + 1, self._names
        while at < len(names):
            if names[at] == name:
                depth += 1
            elif names[at] == f"/{name}":
                depth -= 1
                if not depth:
                    break
            at += 1
        self._skip_end = at

    def holds_data(self) -> bool:
        """Returns whether the table that begins here holds data."""
        return self.at in self._data_tables

    def code_language(self) -> str:
        """Returns the language of the preformatted text that begins here, as the page names it."""
        for place, tags in ((0, ("pre",)), (1, ("code",)), (-1, _AROUND), (-2, _AROUND)):
            at = self.at + place
            if not 0 <= at < len(self._names) or self._names[at] not in tags:
                continue
            attributes = self._tokens[3 * at + 2] or ""
            if language := _value(attributes, "data-lang"):
                return language.lower()
            for found in _LANGUAGE.finditer(_value(attributes, "class")):
                if found[1].lower() not in _NO_LANGUAGES:
                    return found[1].lower()
        return ""


def _data_tables(names: Sequence[str | None], attributes: Sequence[str | None]) -> frozenset[int]:
    """Returns the numbers of the tags at which tables with data begin; others arrange a page.

    Data have no table within them, and headings of columns or rows, or only short cells in columns.
    """
    found, stack = [], list[tuple[int, bool]]()
    for number, name in enumerate(names):
        if name == "table":
            stack = [(place, True) for place, _ in stack[-1:]] if stack else []
            stack.append((number, False))
        elif name == "/table" and stack:
            start, has_table = stack.pop()
            if not has_table and _has_data(names[start + 1 : number], attributes[start] or ""):
                found.append(start)
    return frozenset(found)


def _has_data(names: Sequence[str | None], attributes: str) -> bool:
    if _value(attributes, "role") in _NO_DATA:
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


@_on("noscript", *_SKIPPED)
def _skip(reader: _Reader, name: str, attributes: str) -> None:
    reader.skip(name)


@_on(*(slash + name for name in (*_APART.split(), "option") for slash in ("", "/")))
def _break(reader: _Reader, name: str, attributes: str) -> None:
    reader.writer.break_line(1)


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
    first = (_value(attributes, "start") or "1") if name == "ol" else ""
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


@_on("pre")
def _begin_preformatted(reader: _Reader, name: str, attributes: str) -> None:
    reader.writer.break_line(2)
    reader.writer.begin_preformatted()
    reader.language = reader.code_language()


@_on("/pre")
def _end_preformatted(reader: _Reader, name: str, attributes: str) -> None:
    reader.writer.write_preformatted(reader.language or "")
    reader.writer.break_line(2)
    reader.language = None


@_on("table")
def _begin_table(reader: _Reader, name: str, attributes: str) -> None:
    has_data = reader.holds_data()
    reader.tables.append(has_data)
    reader.writer.break_line(2 if has_data else 1)
    if has_data:
        reader.writer.open_block(spans.TABLE)


@_on("/table")
def _end_table(reader: _Reader, name: str, attributes: str) -> None:
    has_data = reader.tables.pop()
    reader.writer.break_line(2 if has_data else 1)
    if has_data:
        reader.writer.close_block()


@_on("tr")
def _begin_row(reader: _Reader, name: str, attributes: str) -> None:
    reader.rows_cells = 0
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


@_on("td", "th")
def _begin_cell(reader: _Reader, name: str, attributes: str) -> None:
    if not (reader.tables and reader.tables[-1]):
        reader.writer.break_line(1)
        if attributes and _LINE_NUMBERS.search(_value(attributes, "class")):
            reader.skip(name)
        return
    columns = _value(attributes, "colspan")
    reader.columns = (
        min(int(columns), _MAX_COLUMNS) if columns[:3].isdecimal() and columns != "0" else 1
    )
    reader.writer.open_cell(int(name == "th"), reader.columns, reader.rows_cells == 0)
    reader.rows_cells += 1


@_on("/td", "/th")
def _end_cell(reader: _Reader, name: str, attributes: str) -> None:
    if reader.tables and reader.tables[-1]:
        reader.writer.close_cell(reader.columns)
    else:
        reader.writer.break_line(1)


@_on(*_MARKS)
def _begin_mark(reader: _Reader, name: str, attributes: str) -> None:
    if reader.language is None:
        reader.writer.open_mark(_MARKS[name])


@_on("a")
def _begin_link(reader: _Reader, name: str, attributes: str) -> None:
    if reader.language is None:
        target = _value(attributes, "href")
        is_link = target and not target[:11].lower().startswith("javascript:")
        reader.writer.open_mark(spans.LINK if is_link else "", target)


@_on("/a", *("/" + name for name in _MARKS))
def _end_mark(reader: _Reader, name: str, attributes: str) -> None:
    if reader.language is None:
        reader.writer.close_mark()


@_on("img")
def _add_image(reader: _Reader, name: str, attributes: str) -> None:
    instead = _value(attributes, "alt")
    if instead and reader.language is None:
        source = _value(attributes, "src")
        is_data = source[:5].lower() == "data:"
        reader.writer.add_image(instead.replace("&", "&amp;"), "" if is_data else source)


@_on("br")
def _add_break(reader: _Reader, name: str, attributes: str) -> None:
    if reader.language is None:
        reader.writer.add_break()
    else:
        reader.writer.run.append("\n")


@_on("hr")
def _add_rule(reader: _Reader, name: str, attributes: str) -> None:
    reader.writer.add_rule()


@_on("button", "/button", "input")
def _add_space(reader: _Reader, name: str, attributes: str) -> None:
    reader.writer.run.append(" ")


@_on("rt")
def _begin_reading(reader: _Reader, name: str, attributes: str) -> None:
    reader.writer.run.append("(")


@_on("/rt")
def _end_reading(reader: _Reader, name: str, attributes: str) -> None:
    reader.writer.run.append(")")


@_on("math")
def _add_formula(reader: _Reader, name: str, attributes: str) -> None:
    if formula := _value(attributes, "alttext"):
        reader.writer.run.append(formula.replace("&", "&amp;"))
        reader.skip(name)
