"""Makes Markdown of a text and its spans: CommonMark, with the tables and the deletions of GitHub."""

import re
from collections.abc import Sequence

from . import spans
from .inline_markdown import InlineRenderer, escape_line_start, escape_text
from .spans import Span

_TICKS = re.compile(r"`+")
_CLOSING_SIGNS = re.compile(r"(?:^|(?<=\s))(?=#+$)")
_HOLDERS = frozenset({spans.LIST, spans.ITEM, spans.QUOTE})
_OF_TABLES = frozenset({spans.ROW, spans.CELL})
_PARAGRAPHS = frozenset({spans.PARAGRAPH, spans.TERM, spans.CAPTION})
_TOO_LONG = 10**8  # CommonMark has numbers of nine digits, and a list counts on
_MAX_OPEN = 24  # lists, items and quotes; the lines of a page that nests deeper would be too long
_MAX_PADDED = 100  # columns; rows of wider tables may be shorter than the first
# The second sign is for a list that directly follows another one: with the first they would be one list.
_BULLETS, _ENDS_OF_NUMBERS = "-*", ".)"


def markdown_of(
    text: str, text_spans: Sequence[Span], url: str = "", *, with_links: bool = True
) -> str:
    """Returns the Markdown of a text.

    Args:
        text: The text.
        text_spans: Its spans; without any, it is a plain text, whose lines are kept.
        url: URL of the page, to which links and images are relative.
        with_links: Whether the targets of links, and images, are in it; else only the texts of links are.

    >>> markdown_of("A\\n\\nb * c", [("heading", 0, 1, 2, ""), ("paragraph", 3, 8, 1, ""), ("code", 7, 8, 0, "")])
    '## A\\n\\nb \\\\* `c`'
    """
    if not any(kind in spans.LEAVES for kind, *_ in text_spans):
        return "\n".join(map(escape_line_start, escape_text(text).split("\n")))
    base = next((of for kind, *_, of in text_spans[:1] if kind == spans.BASE), url)
    all_spans = _with_all_in_items(text_spans)
    return _BlockRenderer(text, all_spans, InlineRenderer(text, base, with_links)).render()


class _Holder:
    """A list, an item or a quote that is open.

    Attributes:
        kind: What it is.
        end: The character after it.
        prefix: What stands before each of its lines, after those of the blocks around it.
        first_prefix: The same of its first line, until that is written.
        is_tight: Whether there are no empty lines between the items of a list.
        has_items: Whether a list has an item yet.
        number: Of the next item of a list; None: they have none.
        label: The number of an item, if it is a part of the text, until that is written.
        sign: What marks the items of a list, or ends their numbers.
        last_list: (whether it has numbers, sign) of the list that is the last block in it.
    """

    __slots__ = (
        "end",
        "first_prefix",
        "has_items",
        "is_tight",
        "kind",
        "label",
        "last_list",
        "number",
        "prefix",
        "sign",
    )

    def __init__(self, kind: str, end: int) -> None:
        self.kind, self.end = kind, end
        self.prefix = self.first_prefix = self.sign = self.label = ""
        self.is_tight = self.has_items = False
        self.number: int | None = None
        self.last_list: tuple[bool, str] | None = None


class _BlockRenderer:
    """Writes block after block."""

    def __init__(self, text: str, text_spans: Sequence[Span], inline: InlineRenderer) -> None:
        self._text, self._spans, self._inline = text, text_spans, inline
        self._tight = _tight_lists(text_spans)
        self._labelled = _labelled_lists(text_spans)
        self._lines: list[str] = []
        self._open = [_Holder("", len(text) + 1)]
        # How many of them were open when the last block was written, and still are.
        self._common = 1

    def render(self) -> str:
        """Returns the Markdown."""
        at, last = 0, len(self._spans)
        while at < last:
            span = self._spans[at]
            kind, start, end, *_ = span
            while start >= self._open[-1].end:
                self._end_holder()
            after = at + 1
            if kind in _HOLDERS:
                if len(self._open) <= _MAX_OPEN:
                    self._begin_holder(at, span)
            elif kind == spans.DATA_TABLE or kind in spans.LEAVES:
                while after < last and self._belongs(self._spans[after], kind, end):
                    after += 1
                within = self._spans[at + 1 : after]
                if kind == spans.DATA_TABLE:
                    self._write_table(within)
                else:
                    self._write_block(self._leaf(span, within), kind in _PARAGRAPHS)
            at = after
        return "\n".join(self._lines)

    def _belongs(self, span: Span, kind: str, end: int) -> bool:
        """Returns whether a span is within the leaf or the table before it."""
        return span[0] in spans.MARKS or (
            kind == spans.DATA_TABLE
            and (span[1] < end or (span[0] in _OF_TABLES and span[1] == end))
        )

    def _end_holder(self) -> None:
        holder = self._open.pop()
        self._common = min(self._common, len(self._open))
        if holder.kind == spans.LIST:
            self._open[-1].last_list = (holder.sign in _ENDS_OF_NUMBERS, holder.sign)

    def _begin_holder(self, at: int, span: Span) -> None:
        kind, _, end, _, of = span
        around, holder = self._open[-1], _Holder(kind, end)
        if kind == spans.LIST:
            holder.is_tight = at in self._tight
            holder.number = int(of) if of else None
            signs = _ENDS_OF_NUMBERS if of and at not in self._labelled else _BULLETS
            holder.sign = signs[around.last_list == (signs == _ENDS_OF_NUMBERS, signs[0])]
        elif kind == spans.ITEM:
            mark = around.sign if around.kind == spans.LIST else _BULLETS[0]
            if around.number is not None:
                number = int(of) if of else around.number
                around.number = number + 1
                if mark in _ENDS_OF_NUMBERS:
                    mark = f"{number}{mark}"
                else:
                    holder.label = f"{number}\\."
            holder.first_prefix, holder.prefix = f"{mark} ", " " * (len(mark) + 1)
        else:
            holder.prefix = "> "
        self._open.append(holder)

    def _write_block(self, lines: list[str], is_paragraph: bool = False) -> None:
        if label := " ".join(holder.label for holder in self._open if holder.label):
            for holder in self._open:
                holder.label = ""
            if is_paragraph:
                lines[0] = f"{label} {lines[0]}"
            else:
                self._write_block([label])
        if self._lines and self._needs_gap():
            self._lines.append(
                "".join(holder.prefix for holder in self._open[: self._common]).rstrip()
            )
        for line in lines:
            prefix = "".join(holder.first_prefix or holder.prefix for holder in self._open)
            self._lines.append((prefix + line).rstrip() if line == "" else prefix + line)
            for holder in self._open:
                holder.first_prefix = ""
        for holder in self._open:
            holder.has_items = holder.kind == spans.LIST
        self._open[-1].last_list = None
        self._common = len(self._open)

    def _needs_gap(self) -> bool:
        """Returns whether an empty line is before the next block: not within a tight list."""
        for number, holder in enumerate(self._open):
            if not holder.first_prefix:
                continue
            around = self._open[number - 1]
            if around.has_items:
                return not around.is_tight
            # A list that begins with another number than 1 does not end the paragraph before it.
            first_number = holder.first_prefix[:-2]
            cannot_interrupt = first_number.isdigit() and first_number != "1"
            if around.kind != spans.LIST or number < 3 or cannot_interrupt:
                return True
            item = self._open[number - 2].kind == spans.ITEM
            return not self._open[number - 2 - item].is_tight
        return True

    def _leaf(self, span: Span, within: Sequence[Span]) -> list[str]:
        """Returns the lines of a block of text."""
        kind, start, end, level, of = span
        if kind == spans.RULE:
            return ["---"]
        if kind == spans.PREFORMATTED:
            code = self._text[start:end]
            fence = "`" * max(3, 1 + max(map(len, _TICKS.findall(code)), default=0))
            return [fence + of.replace("`", ""), *code.split("\n"), fence]
        if kind == spans.HEADING:
            line = _CLOSING_SIGNS.sub(r"\\", self._inline.render(start, end, within, " "))
            return [f"{'#' * level} {line}"]
        lines = self._inline.render(start, end, within, "\\\n").split("\n")
        return [escape_line_start(line) for line in lines]

    def _write_table(self, within: Sequence[Span]) -> None:
        """Writes a table; GitHub's have a line of headings, which may be empty. Its caption comes first."""
        rows: list[list[str]] = []
        has_headings = False
        at, last = 0, len(within)
        while at < last:
            span = within[at]
            at += 1
            marks_at = at
            while at < last and within[at][0] in spans.MARKS:
                at += 1
            if span[0] == spans.ROW:
                rows.append([])
            elif span[0] == spans.CELL:
                _, start, end, level, of = span
                cell = self._inline.render(start, end, within[marks_at:at], "<br>").replace(
                    "\n", "<br>"
                )
                rows[-1] += [cell.replace("|", "\\|"), *[""] * (int(of or 1) - 1)]
                has_headings |= bool(level) and len(rows) == 1
            elif span[0] in spans.LEAVES:  # in a caption; what holds them there is left out
                self._write_block(self._leaf(span, within[marks_at:at]))
        columns = max(map(len, rows), default=0)
        if not columns:
            return
        if not has_headings:
            rows.insert(0, [])
        rows[0] += [""] * (columns - len(rows[0]))
        rows.insert(1, ["---"] * columns)
        least = columns if columns <= _MAX_PADDED else 1
        self._write_block([f"| {' | '.join([*row, *[''] * (least - len(row))])} |" for row in rows])


def _with_all_in_items(text_spans: Sequence[Span]) -> list[Span]:
    """Returns spans in which what stands in a list beside its items is in the item before it."""
    if not any(kind == spans.LIST for kind, *_ in text_spans):
        return list(text_spans)
    out: list[Span] = []
    open_spans: list[Span] = []  # lists and items
    last_items: list[int | None] = []  # of each of these the number of its last item
    for span in text_spans:
        kind, start, end, level, _ = span
        while open_spans and start >= open_spans[-1][2]:
            open_spans.pop()
            last_items.pop()
        if open_spans and open_spans[-1][0] == spans.LIST:
            if kind == spans.ITEM:
                last_items[-1] = len(out)
            elif (last := last_items[-1]) is not None:
                _, first, after, of_list, of = out[last]
                out[last] = (spans.ITEM, first, max(after, end, start + 1), of_list, of)
            else:
                last_items[-1] = len(out)
                out.append((spans.ITEM, start, max(end, start + 1), level, ""))
        out.append(span)
        if kind in (spans.LIST, spans.ITEM):
            open_spans.append(span)
            last_items.append(None)
    return out


def _labelled_lists(text_spans: Sequence[Span]) -> set[int]:
    """Returns the numbers of the lists with numbers that CommonMark cannot have: below 0, or too long.

    Their items have bullets, and begin with their number.
    """
    labelled: set[int] = set()
    open_lists: list[int] = []
    for at, (kind, start, _, _, of) in enumerate(text_spans):
        if kind not in (spans.LIST, spans.ITEM):
            continue
        while open_lists and text_spans[open_lists[-1]][2] <= start:
            open_lists.pop()
        if kind == spans.LIST:
            open_lists.append(at)
        if of and open_lists and not 0 <= int(of) < _TOO_LONG:
            labelled.add(open_lists[-1])
    return labelled


def _tight_lists(text_spans: Sequence[Span]) -> set[int]:
    """Returns the numbers of the lists of which each item is at most one block, beside lists."""
    tight: set[int] = set()
    open_blocks: list[tuple[str, int, int]] = []
    blocks_of_item: dict[int, int] = {}
    for number, (kind, start, end, *_) in enumerate(text_spans):
        if kind in spans.MARKS or kind in _OF_TABLES:
            continue
        while open_blocks and start >= open_blocks[-1][2]:
            open_blocks.pop()
        if kind not in (spans.LIST, spans.ITEM, spans.SECTION, spans.DESCRIPTION):
            items = [block for block in open_blocks[-2:] if block[0] == spans.ITEM][-1:]
            for _, item, _ in items:
                blocks_of_item[item] = blocks_of_item.get(item, 0) + 1
                if blocks_of_item[item] > 1 or kind == spans.QUOTE:
                    lists = (
                        open_blocks[-2:-1]
                        if open_blocks[-1][0] == spans.ITEM
                        else open_blocks[-3:-2]
                    )
                    tight.difference_update(place for _, place, _ in lists)
        if kind == spans.LIST:
            tight.add(number)
        if kind in _HOLDERS:
            open_blocks.append((kind, number, end))
    return tight
