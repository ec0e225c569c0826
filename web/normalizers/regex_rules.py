"""The normalizer urlnormalizer-regex: rules from a file in the format of regex-normalize.xml."""

import dataclasses
import functools
import re
from collections.abc import Callable, Sequence
from xml.parsers import expat

import polars as pl
import regex

from ..base.columns import falses, nulls, put
from ..base.dataclass import dataclass
from ..base.wording import quote_value, value_error
from ..patterns.patterns import Pattern, TimeLimit, compile_pattern, is_column_pattern, pattern_of
from ..urls.row_keys import BadUrl
from .normalizer_step import NormalizedColumn, Step, apply_each

_GROUP = re.compile(r"\\(.)|\$(?:([0-9]+)|\{([A-Za-z][A-Za-z0-9]*)\})|[\\$]", re.DOTALL)
_UNSEEN = "[^!-~]"
# Elements of a file, from the root down. As in Nutch, the root of a file with rules has any name.
_ROOT = "regex-normalize"
_FORM = ((), ("regex",), ("pattern", "substitution"))


@dataclass(frozen=True)
class Substitution:
    """One rule: every match of ``pattern`` is new by ``template``.

    Attributes:
        pattern: The pattern.
        template: The replacement, in Python's form.
        line: Line of the file at which the pattern begins, from 1.
        column: Pattern and template for polars with the same effect; None if there are none.
    """

    pattern: Pattern
    template: str
    line: int
    column: tuple[str, str] | None = None

    def apply(self, url: str, limit: TimeLimit | None = None) -> str:
        """Returns the URL with every match new.

        Raises:
            BadUrl: ``normalizer_timeout``: it took too long.
        """
        compiled = self.pattern.python
        assert isinstance(compiled, regex.Pattern)
        try:
            return (limit or TimeLimit()).run(compiled.sub, self.template, url)
        except TimeoutError as error:
            raise BadUrl("normalizer_timeout", url) from error

    def apply_column(self, urls: pl.Series, limit: TimeLimit) -> NormalizedColumn:
        """Returns the result of ``apply`` for each URL."""
        if self.column is None:
            return apply_each(functools.partial(self.apply, limit=limit), urls)
        new = urls.str.replace_all(*self.column)
        reasons = nulls(len(urls))
        # Both engines do the same on visible ASCII only.
        other = urls.str.contains(_UNSEEN).arg_true()
        if len(other):
            applied = apply_each(functools.partial(self.apply, limit=limit), urls.gather(other))
            new, reasons = put(new, other, applied.urls), put(reasons, other, applied.reasons)
        return NormalizedColumn(new, reasons)


class RegexNormalizer(Step):
    """Rules of a file in the format of Nutch's regex-normalize.xml.

    Args:
        text: The file; bytes may be in any encoding that the XML declares.
        file: Its name in messages.

    Raises:
        ValueError: It is not XML of that form, or a rule does not compile; the
            message has the name of the file, the line and the rule.

    Attributes:
        rules: In the order in which they are applied.
        file: Its name in messages.
    """

    name = "regex"

    def __init__(self, text: str | bytes, file: str) -> None:
        self.file = file
        self.rules = tuple(_read_rules(text, file))
        self._column = _join_patterns([rule.pattern for rule in self.rules])

    def apply(self, url: str) -> str:
        """Returns the URL after all rules, each applied once."""
        limit = TimeLimit()
        for rule in self.rules:
            url = rule.apply(url, limit)
        return url

    def apply_column(self, urls: pl.Series) -> NormalizedColumn:
        """Returns the result of ``apply`` for each URL, rule by rule."""
        reasons = nulls(len(urls))
        limit = TimeLimit()
        for rule in self.rules:
            candidates = _may_hold(urls, rule.pattern.column)
            at = candidates.arg_true()
            if not len(at):
                continue
            applied = rule.apply_column(urls.gather(at), limit)
            urls = put(urls, at, applied.urls)
            if applied.reasons.null_count() < len(at):
                bad = applied.reasons.is_not_null()
                reasons = put(reasons, at.filter(bad), applied.reasons.filter(bad))
        return NormalizedColumn(urls, reasons)

    def touches(self, urls: pl.Series) -> pl.Series:
        """Returns a mask of the URLs in which a rule's pattern may be found."""
        if not self.rules:
            return falses(len(urls))
        return _may_hold(urls, self._column)

    def functions(self) -> Sequence[tuple[str, Callable[[str], str]]]:
        """Returns the functions of the rules; see ``Step.functions``."""
        return [(f"{self.file}:{rule.line} {rule.pattern.text}", rule.apply) for rule in self.rules]


def _may_hold(urls: pl.Series, column: str | None) -> pl.Series:
    """Returns in which URLs a pattern may be found; False for nulls."""
    if column is None or not is_column_pattern(column):
        return urls.is_not_null()
    # Beyond visible ASCII the engines differ.
    return urls.str.contains(f"{_UNSEEN}|{column}").fill_null(False)


def _join_patterns(patterns: Sequence[Pattern]) -> str | None:
    """Returns a polars pattern that finds all matches of the patterns; None if there is none."""
    if any(pattern.column is None for pattern in patterns):
        return None
    joined_pattern = "|".join(f"(?:{pattern.column})" for pattern in patterns)
    return joined_pattern if is_column_pattern(joined_pattern) else None


@dataclasses.dataclass
class _Element:
    pattern: str | None = None
    substitution: str | None = None
    line: int = 0


def _read_rules(text: str | bytes, name: str) -> list[Substitution]:
    """Returns the rules of a file.

    Raises:
        ValueError: The file, or a rule, cannot be read; the message has all faults of rules.
    """
    rules, faults = [], []
    for number, element in enumerate(_read_elements(text, name), start=1):
        try:
            rules.append(_read_rule(element, f"{name}:{element.line}: rule {number}"))
        except ValueError as error:
            faults.append(str(error))
    if faults:
        raise ValueError("; ".join(faults))
    return rules


def _read_elements(text: str | bytes, name: str) -> list[_Element]:
    """Returns the contents of the elements ``regex`` of the file."""
    elements: list[_Element] = []
    inside: list[str] = []
    words: list[str] = []
    # Decoded text is not in the encoding that the XML declares.
    parser = expat.ParserCreate("utf-8" if isinstance(text, str) else None)
    parser.buffer_text = True

    def start(tag: str, _: object) -> None:
        if len(inside) >= len(_FORM) or tag not in (_FORM[len(inside)] or (tag,)):
            raise ValueError(_describe_odd_tag(inside, tag))
        inside.append(tag)
        words.clear()
        if len(inside) == 2:
            elements.append(_Element(line=parser.CurrentLineNumber))
        elif len(inside) == 3 and tag == "pattern":
            elements[-1].line = parser.CurrentLineNumber

    def end(tag: str) -> None:
        inside.pop()
        if len(inside) == 2:
            setattr(elements[-1], tag, "".join(words))
        elif not inside and tag != _ROOT and not elements:
            raise ValueError(_describe_odd_tag(inside, tag))

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = words.append
    try:
        parser.Parse(text.removeprefix("\ufeff").encode() if isinstance(text, str) else text, True)
    except (expat.ExpatError, ValueError, LookupError) as error:
        line = getattr(error, "lineno", parser.CurrentLineNumber)
        raise ValueError(
            f"{name}:{line}: it must be xml like regex-normalize.xml: {error}"
        ) from error
    return elements


def _describe_odd_tag(inside: Sequence[str], tag: str) -> str:
    if not inside:
        return f"its root is <{_ROOT}>, got {quote_value(tag)}"
    wanted = (*_FORM, ())[len(inside)]
    return (
        f"{' and '.join(f'<{name}>' for name in wanted) or 'no element'} may stand in "
        f"<{inside[-1]}>, got {quote_value(tag)}"
    )


def _read_rule(element: _Element, where: str) -> Substitution:
    pattern, template = element.pattern, element.substitution
    if not pattern:
        raise ValueError(f"{where} must have a pattern, got {pattern!r}")
    if template is None:
        raise ValueError(f"{where} must have a substitution, which may be empty, got none")
    compile = functools.partial(compile_pattern, to_replace=True)
    compiled = pattern_of(f"{where} must be a regular expression", pattern, compile)
    try:
        python, column = _templates(template, compiled)
        return Substitution(compiled, python, element.line, column)
    except ValueError as error:
        raise value_error(f"{where} must substitute {error}", template) from error


def _templates(template: str, pattern: Pattern) -> tuple[str, tuple[str, str] | None]:
    """Translates Java's replacement syntax (``$1``, ``${name}``, ``\\``) for Python and polars."""
    compiled = pattern.python
    assert isinstance(compiled, regex.Pattern)
    names = dict(pattern.names)
    column: list[str] = []
    end = 0
    python: list[str] = []

    def add(text: str) -> None:
        python.append(text.replace("\\", "\\\\"))
        column.append(text.replace("$", "$$"))

    def add_group(name: str) -> None:
        python.append(rf"\g<{name}>")
        column.append(f"${{{name}}}")

    for match in _GROUP.finditer(template):
        add(template[end : match.start()])
        end = match.end()
        quoted, number, name = match.groups()
        if quoted:
            add(quoted)
        elif name in names:
            add_group(str(names[name]))
        else:
            # Java uses the longest number that is the number of a group, at least one digit.
            sizes = range(len(number or ""), 0, -1)
            size = next((n for n in sizes if int(number[:n]) <= compiled.groups), 0)
            if not size:
                raise ValueError("groups that the pattern has ($1, ${name}; \\$ for a dollar sign)")
            add_group(str(int(number[:size])))
            add(number[size:])
    add(template[end:])
    return "".join(python), _for_column(pattern, "".join(column))


def _for_column(pattern: Pattern, template: str) -> tuple[str, str] | None:
    """Returns pattern and template for polars with the same effect; None if there are none."""
    if pattern.swap is None or not is_column_pattern(pattern.swap[0]):
        return None
    column, leading_group = pattern.swap
    # A group before the others changes their numbers.
    return None if leading_group and "${" in template else (column, leading_group + template)
