"""Spans of a page's text: its blocks, and what is marked in them.

A span is a part of the text with a kind. Spans nest, and come in the order of the text, an outer one
before those in it.
"""

from typing import TypeAlias

# Blocks of running text. Their level: 1 if an element of its own holds it, 0 if it stands beside others.
PARAGRAPH = "paragraph"
HEADING = "heading"  # level: 1 to 6
TERM = "term"  # of a list of descriptions
CAPTION = "caption"
PREFORMATTED = "preformatted"  # of: its language, as the page names it
RULE = "rule"  # an empty span
# Blocks that hold others.
LIST = "list"  # of: its first number, or nothing; level: how deep it nests
ITEM = "item"  # level: how deep its list nests; of: its number, if that does not follow on the one before
DESCRIPTION = "description"  # of a term
QUOTE = "quote"
DATA_TABLE = "table"
ROW = "row"
CELL = "cell"  # level: 1 for a heading; of: number of columns if it has several
SECTION = "section"  # of: name of the element, such as nav
# What is marked within a block.
LINK = "link"  # of: its target as it stands there
IMAGE_TEXT = "image"  # the text that stands in for it; of: its source as it stands there
CODE = "code"
STRONG = "strong"
EMPHASIS = "emphasis"
DELETION = "deleted"
BREAK = "break"  # of a line, which is its one character
# URL that targets are relative to, if it is not that of the page; an empty span at the start.
BASE = "base"

LEAVES = frozenset({PARAGRAPH, HEADING, TERM, CAPTION, PREFORMATTED, RULE, CELL})
MARKS = frozenset({LINK, IMAGE_TEXT, CODE, STRONG, EMPHASIS, DELETION, BREAK})


# (kind, start, end, level, of): what it is; its first character, and the one after it; a number and a text,
# whose meaning depends on the kind. A plain tuple, for a page has hundreds.
Span: TypeAlias = tuple[str, int, int, int, str]
