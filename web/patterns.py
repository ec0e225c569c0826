"""Regular expressions as Java writes them, for the rule files that Nutch users have.

Each is compiled for the ``regex`` package, which understands Java's dialect
(look-behind, possessive quantifiers, inline flags from where they stand). Most
also have a form for the engine of polars, which tests a whole column at once.
"""

import dataclasses
import re

import regex

# Java: \w, \d, \b and case folding are ASCII; an inline flag holds from there on.
_FLAGS = regex.VERSION1 | regex.ASCII
_QUOTED = re.compile(r"\\Q(.*?)(?:\\E|$)|\\.", re.DOTALL)

# What means the same in Java and in polars' engine, on visible ASCII.
_CLASS = r"\[\^?(?:[^\\\[\]&~|^-]|-(?!-)|[&~|](?![&~|])|\\[dwsDWS]|\\[^\w\s<>])+\]"
_ATOM = rf"[^\\\[\](){{}}?*+|^$]|\\[dwsDWS]|\\[^\w\s<>]|{_CLASS}"
_TIMES = r"(?:[?*+]|\{\d+(?:,\d*)?\})\??(?![?*+{])"
_CONTEXT = r"\\[bB]|[\^$|)]|\((?:\?i?:|\?i\))?"
_COMMON = re.compile(rf"(?:(?:{_ATOM})(?:{_TIMES})?|\)(?:{_TIMES})|{_CONTEXT})*")
_CONTEXT_FREE = re.compile(rf"(?:(?:{_ATOM})(?:{_TIMES})?)+")
_NOT_AFTER = re.compile(r"\(\?<!(?:([A-Za-z0-9:/&=#@%,;])|\[((?!\^)[^\[\]]+)\])\)([^|]+)")
_BACK_REFERENCE = re.compile(r"(?<!\\)((?:\\\\)*)\\([1-9])(?!\d)")


@dataclasses.dataclass(frozen=True)
class Pattern:
    """A compiled pattern.

    Attributes:
        text: As it stands in the file.
        python: To search with.
        column: The same for polars' ``str.contains`` on visible ASCII; None
            where there is none. It may still prove too large for that engine.
        exact: Whether ``column`` hits just what ``python`` does; else it hits
            that and more, so a miss is a miss.
    """

    text: str
    python: "regex.Pattern[str]"
    column: str | None
    exact: bool


def compile_pattern(text: str) -> Pattern:
    r"""Compiles a pattern in Java's dialect.

    Raises:
        ValueError: It does not compile; the message says what is wrong with it.

    >>> compile_pattern(r"(?<!:)/{2,}").column
    '(?:^|[^:])(?:/{2,})'
    >>> pattern = compile_pattern(r"(/[^/]+)/[^/]+\1/")
    >>> pattern.column, pattern.exact
    ('(/[^/]+)/[^/]+(?:/[^/]+)/', False)
    """
    plain = _QUOTED.sub(lambda match: match[0] if match[1] is None else re.escape(match[1]), text)
    try:
        compiled = regex.compile(plain, _FLAGS)
    except (regex.error, ValueError, OverflowError, RecursionError) as error:
        raise ValueError(str(error) or "it does not compile") from error
    column, exact = _column_form(plain)
    return Pattern(text, compiled, column, exact)


def _column_form(text: str) -> tuple[str | None, bool]:
    not_after = _NOT_AFTER.fullmatch(text)
    if not_after:
        text = f"(?:^|[^{not_after[1] or not_after[2]}])(?:{not_after[3]})"
    loose = _without_back_references(text)
    if not loose.isascii() or not loose.isprintable() or not _COMMON.fullmatch(loose):
        return None, False
    return loose, loose == text


def _without_back_references(text: str) -> str:
    """Puts the group's own pattern for each reference, which matches all that it can."""
    groups = re.findall(r"(?<!\\)\(([^()]*)\)", text)
    numbered = len(re.findall(r"(?<!\\)\((?!\?)", text))
    # Numbers are sure only if each capturing group is flat, and no class holds a bracket.
    if len([group for group in groups if not group.startswith("?")]) != numbered:
        return text
    flat = [group for group in groups if not group.startswith("?")]

    def source(match: re.Match[str]) -> str:
        number = int(match[2])
        if number > len(flat) or not _CONTEXT_FREE.fullmatch(flat[number - 1]):
            return match[0]
        return f"{match[1]}(?:{flat[number - 1]})"

    return _BACK_REFERENCE.sub(source, text)
