"""What each tag of a page does to its text."""

from collections.abc import Callable

from ..pages import spans
from .tag_attributes import (
    attribute_integer,
    attribute_number,
    attribute_value,
    has_attribute,
    has_line_numbers,
)
from .tag_reader import OpenList, TagAction, TagReader
from .text_writer import PLAIN_LEAF

_MAX_NESTING = 32  # of lists; deeper ones count as that deep
_MAX_COLUMNS = 100  # of a cell
_MAX_SPANNED = 32  # columns in which a cell may reach into rows below

# Nothing in these is text of the page: choices, what stands in for something, what only programs read.
_SKIPPED = "template select datalist textarea progress meter rp annotation annotation-xml video audio canvas title desc"
_SECTIONS = frozenset(["nav", "header", "footer", "aside", "main", "article"])
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_LISTS = ("ul", "ol", "menu", "dir")
# Lines break around these (HTML 15.3); around the second ones there is an empty line, too.
_APART = "address body center details div fieldset form hgroup legend search section summary"
_WIDE_APART = "figure dl listing"

# By tag; the names of end tags begin with "/".
TAG_ACTIONS: dict[str, TagAction] = {}


def _on(*names: str) -> Callable[[TagAction], TagAction]:
    def register(action: TagAction) -> TagAction:
        TAG_ACTIONS.update(dict.fromkeys(names, action))
        return action

    return register


def _pass_over(reader: TagReader, name: str, attributes: str) -> None:
    """The tag does nothing."""


@_on("noscript", *_SKIPPED.split())
def _skip(reader: TagReader, name: str, attributes: str) -> None:
    if name != "template" or not has_attribute(attributes, "shadowrootmode"):  # that is shown
        reader.skip()


def _pass_line_number(reader: TagReader, name: str, attributes: str) -> None:
    if reader.writer.is_preformatted and has_line_numbers(attributes):
        reader.skip_numbers()


@_on("dialog")
def _begin_dialog(reader: TagReader, name: str, attributes: str) -> None:
    if has_attribute(attributes, "open"):
        reader.writer.break_line(1)
    else:
        reader.skip()


@_on("/dialog", *(slash + name for name in _APART.split() for slash in ("", "/")))
def _break(reader: TagReader, name: str, attributes: str) -> None:
    writer = reader.writer
    if writer.run or not writer.newlines:  # many of these follow one another
        writer.break_line(1)


@_on(*(slash + name for name in _WIDE_APART.split() for slash in ("", "/")))
def _break_wide(reader: TagReader, name: str, attributes: str) -> None:
    reader.writer.break_line(2)


@_on("p")
def _begin_paragraph(reader: TagReader, name: str, attributes: str) -> None:
    reader.writer.break_line(2)
    reader.writer.leaf = (spans.PARAGRAPH, 1, "")


@_on(*_HEADINGS)
def _begin_heading(reader: TagReader, name: str, attributes: str) -> None:
    reader.writer.break_line(2)
    reader.writer.leaf = (spans.HEADING, _HEADINGS[name], "")


@_on("/p", *("/" + name for name in _HEADINGS))
def _end_leaf(reader: TagReader, name: str, attributes: str) -> None:
    reader.writer.break_line(2)
    reader.writer.leaf = PLAIN_LEAF


@_on("dt", "caption", "figcaption")
def _begin_line(reader: TagReader, name: str, attributes: str) -> None:
    reader.writer.break_line(1)
    reader.writer.leaf = (spans.TERM if name == "dt" else spans.CAPTION, 0, "")


@_on("/dt", "/caption", "/figcaption")
def _end_line(reader: TagReader, name: str, attributes: str) -> None:
    reader.writer.break_line(1)
    reader.writer.leaf = PLAIN_LEAF


@_on("dd", *_SECTIONS)
def _begin_block(reader: TagReader, name: str, attributes: str) -> None:
    reader.writer.break_line(1)
    if name == "dd":
        reader.writer.open_block(spans.DESCRIPTION)
    else:
        reader.writer.open_block(spans.SECTION, 0, name)


@_on("/dd", *("/" + name for name in _SECTIONS))
def _end_block(reader: TagReader, name: str, attributes: str) -> None:
    reader.writer.break_line(1)
    reader.writer.close_block()


@_on(*_LISTS)
def _begin_list(reader: TagReader, name: str, attributes: str) -> None:
    reader.writer.break_line(1 if reader.lists else 2)
    if name != "ol":
        reader.lists.append(OpenList())
        return
    start, is_reversed = (
        attribute_integer(attributes, "start"),
        has_attribute(attributes, "reversed"),
    )
    if start is None and not is_reversed:
        start = 1
    reader.lists.append(OpenList(True, start, -1 if is_reversed else 1))


@_on(*("/" + name for name in _LISTS))
def _end_list(reader: TagReader, name: str, attributes: str) -> None:
    ended = reader.lists.pop()
    reader.writer.break_line(1 if reader.lists else 2)
    ended.number_items()
    if ended.span:
        reader.writer.close_block()


@_on("li")
def _begin_item(reader: TagReader, name: str, attributes: str) -> None:
    reader.writer.break_line(1)
    if not reader.lists:
        return
    level, around = min(len(reader.lists), _MAX_NESTING), reader.lists[-1]
    if around.span is None:
        around.span = reader.writer.open_block(spans.LIST, level)
    item = reader.writer.open_block(spans.ITEM, level)
    if around.is_ordered:
        around.items.append((item, attribute_integer(attributes, "value")))


@_on("/li")
def _end_item(reader: TagReader, name: str, attributes: str) -> None:
    reader.writer.break_line(1)
    if reader.lists:
        reader.writer.close_block()


@_on("blockquote")
def _begin_quote(reader: TagReader, name: str, attributes: str) -> None:
    reader.writer.break_line(2)
    reader.writer.open_block(spans.QUOTE)


@_on("/blockquote")
def _end_quote(reader: TagReader, name: str, attributes: str) -> None:
    reader.writer.break_line(2)
    reader.writer.close_block()


@_on("pre", "listing")
def _begin_preformatted(reader: TagReader, name: str, attributes: str) -> None:
    reader.writer.break_line(2)
    reader.writer.begin_preformatted()
    reader.language = reader.code_language() or reader.language


@_on("/pre", "/listing")
def _end_preformatted(reader: TagReader, name: str, attributes: str) -> None:
    reader.writer.end_preformatted(reader.language)
    reader.writer.break_line(2)
    reader.language = ""


@_on("table")
def _begin_table(reader: TagReader, name: str, attributes: str) -> None:
    has_data = reader.holds_data()
    reader.tables.append(has_data)
    reader.row, reader.spanned = 0, {}
    reader.writer.break_line(2 if has_data else 1)
    if has_data:
        reader.writer.open_block(spans.DATA_TABLE)


@_on("/table")
def _end_table(reader: TagReader, name: str, attributes: str) -> None:
    has_data = reader.tables.pop()
    reader.language = ""
    reader.writer.break_line(2 if has_data else 1)
    if has_data:
        reader.writer.close_block()


@_on("tr")
def _begin_row(reader: TagReader, name: str, attributes: str) -> None:
    reader.row, reader.column = reader.row + 1, 0
    if reader.is_in_data:
        reader.writer.open_row()
    else:
        reader.writer.break_line(1)


@_on("/tr")
def _end_row(reader: TagReader, name: str, attributes: str) -> None:
    if reader.is_in_data:
        reader.writer.close_row()
    else:
        reader.writer.break_line(1)


@_on("/thead", "/tbody")
def _end_rows(reader: TagReader, name: str, attributes: str) -> None:
    reader.spanned = {}


@_on("td", "th")
def _begin_cell(reader: TagReader, name: str, attributes: str) -> None:
    if not reader.is_in_data:
        reader.writer.break_line(1)
        if has_line_numbers(attributes):
            language = reader.code_language()
            if reader.skip_numbers():
                reader.language = language
        return
    first = reader.column
    while reader.spanned.get(reader.column, 0) >= reader.row:
        reader.column += 1
    if reader.column > first:
        reader.writer.open_cell(0, reader.column - first, first == 0)
        reader.writer.close_cell()
    columns = 1
    if "span=" in attributes:
        columns = min(attribute_number(attributes, "colspan"), _MAX_COLUMNS)
        rows = attribute_number(attributes, "rowspan")
        below = range(reader.column, min(reader.column + columns, _MAX_SPANNED))
        reader.spanned.update(dict.fromkeys(below, reader.row + rows - 1))
    reader.writer.open_cell(int(name == "th"), columns, reader.column == 0)
    reader.column += columns


@_on("/td", "/th")
def _end_cell(reader: TagReader, name: str, attributes: str) -> None:
    if reader.is_in_data:
        reader.writer.close_cell()
    else:
        reader.writer.break_line(1)


@_on("br")
def _add_break(reader: TagReader, name: str, attributes: str) -> None:
    reader.writer.add_break()


@_on("hr")
def _add_rule(reader: TagReader, name: str, attributes: str) -> None:
    reader.writer.add_rule()


@_on("button", "/button", "input")
def _add_space(reader: TagReader, name: str, attributes: str) -> None:
    reader.writer.run.append(" ")


@_on("q", "/q")
def _add_quotation_mark(reader: TagReader, name: str, attributes: str) -> None:
    reader.writer.run.append('"')


@_on("ruby", "/ruby", "rt", "/rt")
def _pass_reading(reader: TagReader, name: str, attributes: str) -> None:
    reader.readings.pass_tag(name, reader.writer.run, continues=reader.goes_on_with("ruby"))


@_on("math")
def _add_formula(reader: TagReader, name: str, attributes: str) -> None:
    formula = attribute_value(attributes, "alttext").replace("&", "&amp;") or reader.tex()
    if formula:
        reader.writer.run.append(formula)
        reader.skip()


# For pages without scripts, and for those with numbers of lines.
ACTIONS_WITH_NOSCRIPT: dict[str, TagAction] = {"noscript": _pass_over}
ACTIONS_WITH_LINE_NUMBERS: dict[str, TagAction] = {"span": _pass_line_number}
