"""Reads the attributes of a tag in mark-up that lexbor wrote: each is ``name="value"``, and escaped."""

import itertools
import re
from collections.abc import Sequence

# The name that code gets with which preformatted text begins, because its language is that of the text.
CODE_IN_PRE = "code-in-pre"
MAX_VALUE_CHARS = 4_096
_PAIRS = re.compile(r'\s(=?[^\s=>]*+)="([^"]*+)"')
_NUMBERS = {name: re.compile(rf'\s{name}="\s*0*([1-9][0-9]{{0,3}})') for name in ("colspan", "rowspan")}  # fmt: skip
_INTEGER = re.compile(r"[ \t\n\f\r]*([+-]?[0-9]{1,10})(?![0-9])")
_MOST_INTEGER = 2**31 - 1
# What may hold semicolons and is no declaration.
_NO_DECLARATION = re.compile(r"/\*.*?(?:\*/|\Z)|\"[^\"]*\"|'[^']*'|\([^()]*\)", re.DOTALL)
_OF_ALL = "inherit initial unset revert revert-layer"
# Values that browsers know: they pass over declarations with others.
_VALUES = {
    "display": frozenset(
        "none block inline inline-block flow-root list-item contents flex inline-flex grid inline-grid table "
        "inline-table table-row table-row-group table-header-group table-footer-group table-column "
        "table-column-group table-cell table-caption ruby ruby-base ruby-text math flow -webkit-box "
        f"-webkit-inline-box -webkit-flex -webkit-inline-flex {_OF_ALL}".split()
    ),
    "visibility": frozenset(f"visible hidden collapse {_OF_ALL}".split()),
}

_LANGUAGE = re.compile(
    r"(?:^|\s)(?:"
    # As in HTML's own example; GitHub, Sphinx, MediaWiki, Org
    r"(?:language|lang|highlight-source|highlight-text|highlight|mw-highlight-lang|src)-"
    # SyntaxHighlighter, highlight.js, pandoc, docutils
    r"|brush:\s*|hljs\s+(?!lang)|sourceCode\s+(?:numberSource\s+)?|code\s+(?=\S+\s+literal-block)"
    r")([\w+#.-]+)",
    re.ASCII,
)
_NO_LANGUAGES = frozenset(
    ["default", "none", "text", "plaintext", "nohighlight", "undefined", "highlight"]
)
_LINE_NUMBERS = re.compile(r"(?:^|[\s_-])(?:linenos?|line-?numbers?|gutter)(?:$|[\s_-])")
_AROUND_CODE = frozenset(["div", "figure", "table", "tbody", "tr"])
_MAX_AROUND = 5  # those of Pygments' tables with numbers of lines


def unescape(text: str) -> str:
    """Returns a text without the references that are in what lexbor writes.

    >>> unescape("a&nbsp;&lt;b&gt; &amp;lt;")
    'a\\xa0<b> &lt;'
    """
    if "&" not in text:
        return text
    text = text.replace("&nbsp;", "\xa0").replace("&lt;", "<").replace("&gt;", ">")
    return text.replace("&quot;", '"').replace("&amp;", "&")


def attribute_value(attributes: str, name: str) -> str:
    """Returns the value of an attribute, stripped and at most 4,096 characters; empty without it.

    >>> attribute_value(' class="a" href=" b&amp;c "', "href")
    'b&c'
    """
    return unescape(attribute_source(attributes, name)).strip()


def attribute_source(attributes: str, name: str) -> str:
    """Returns the value of an attribute, escaped, and at most 4,096 characters; empty without it."""
    _, sign, rest = attributes.partition(f' {name}="')
    return rest[: rest.index('"')][:MAX_VALUE_CHARS] if sign else ""


def attribute_number(attributes: str, name: str) -> int:
    """Returns the number in an attribute, 1 to 9,999; 1 without one.

    >>> attribute_number(' colspan="02%"', "colspan"), attribute_number(' colspan="0"', "colspan")
    (2, 1)
    """
    number = _NUMBERS[name].search(attributes) if attributes else None
    return int(number[1]) if number else 1


def has_attribute(attributes: str, name: str) -> bool:
    """Returns whether a tag has an attribute.

    >>> has_attribute(' title="open" open=""', "open"), has_attribute(' title=" open "', "open")
    (True, False)
    """
    return name in attributes and name in dict(_PAIRS.findall(attributes))


def attribute_integer(attributes: str, name: str) -> int | None:
    """Returns the number in an attribute, as browsers read it; None without one, or beyond 32 bits.

    >>> attribute_integer(' start=" -3rd"', "start"), attribute_integer(' start="x"', "start")
    (-3, None)
    """
    number = _INTEGER.match(attribute_source(attributes, name))
    return int(number[1]) if number and abs(int(number[1])) <= _MOST_INTEGER else None


def is_hidden(attributes: str) -> bool:
    """Returns whether attributes hide their element; what can be searched in the page is not hidden.

    >>> [is_hidden(f' {text}') for text in ('hidden=""', 'title=" hidden "', 'style="DISPLAY: none"')]
    [True, False, True]
    """
    values = dict(_PAIRS.findall(attributes))
    if values.get("aria-hidden", "").lower() == "true":
        return True
    style = unescape(values["style"]).lower() if "style" in values else ""
    # Styles of the page are stronger than those by which browsers hide these.
    if (display := _declared_value(style, "display")) and display != "revert":
        is_displayed = display != "none"
    else:
        is_until_found = values.get("hidden", "until-found").lower() == "until-found"
        is_displayed = is_until_found and "popover" not in values
    return not is_displayed or _declared_value(style, "visibility") in ("hidden", "collapse")


def _declared_value(style: str, name: str) -> str:
    """Returns the value of a property that counts: of the last important declaration, else of the last one.

    >>> _declared_value("display:none;display:block", "display")
    'block'
    >>> _declared_value("display: none !important; display: block; display: x", "display")
    'none'
    """
    if name not in style:
        return ""
    counted, is_important = "", False
    for declaration in _NO_DECLARATION.sub("", style).split(";"):
        property_name, _, value = declaration.partition(":")
        if property_name.strip() != name:
            continue
        value, _, importance = value.partition("!")
        important = importance.strip() == "important"
        if value.strip() in _VALUES[name] and important >= is_important:
            counted, is_important = value.strip(), important
    return counted


def has_line_numbers(attributes: str) -> bool:
    """Returns whether an element is named as one with the numbers of lines of code."""
    return bool(attributes) and _LINE_NUMBERS.search(attribute_value(attributes, "class")) is not None  # fmt: skip


def code_language(names: Sequence[str], attributes: Sequence[str], number: int) -> str:
    """Returns the language of code as the page names it, in lower case; empty if it does not.

    Args:
        names: Those of all tags.
        attributes: Those of all tags.
        number: Of the tag at which the code, or what is around it, begins.
    """
    around = itertools.takewhile(
        lambda before: names[before] in _AROUND_CODE,
        range(number - 1, max(number - 1 - _MAX_AROUND, -1), -1),
    )
    in_code = [number + 1] if names[number + 1 : number + 2] == [CODE_IN_PRE] else []
    for place in (number, *in_code, *around):
        if language := _named_language(attributes[place]):
            return language
    language = attribute_value(attributes[number], "lang").lower()
    return language if len(language) > 2 and "-" not in language else ""  # not "en", "en-GB"


def _named_language(attributes: str) -> str:
    if language := attribute_value(attributes, "data-lang"):
        return language.lower()
    for language in _LANGUAGE.findall(attribute_value(attributes, "class")):
        if language.lower() not in _NO_LANGUAGES:
            return language.lower().removesuffix("-basic")
    return ""
