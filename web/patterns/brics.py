"""The patterns of urlfilter-automaton: dk.brics regular expressions, which match a whole text.

They extend regular expressions by ``a&b`` (both), ``~a`` (not), ``@`` (any text), ``#``
(nothing), ``"..."`` (literal text) and ``<n-m>`` (a number). ``^`` and ``$`` mean themselves.
Matching takes derivatives (Brzozowski), so its time depends on the length of the text alone.
"""

import re
from collections.abc import Callable

from ..base.wording import value_error
from .chars import span, union
from .languages import LanguageNode, Nodes, TooLarge
from .patterns import Pattern

_MOST_STEPS = 50_000
_LONGEST = 50_000
_TIMES = re.compile(r"([0-9]{1,9})(?:(,)([0-9]{1,9})?)?\}")


class Automaton:
    """A compiled expression.

    Raises:
        ValueError: The expression is invalid; the message says why.

    >>> Automaton("http://[a-z]+[.]be/.*&~(.*secret.*)").search("http://foo.be/secret") is None
    True
    """

    def __init__(self, text: str) -> None:
        self._text = text
        try:
            self._run = _Run(text)
            self.column = _column_form(self._run.start)
        except RecursionError as error:
            raise ValueError("it is nested too deeply") from error

    def search(self, string: str, *, timeout: float | None = None) -> "Automaton | None":
        """Returns itself if the expression matches the whole text, else None.

        Ignores ``timeout``, as its time is bounded.

        Raises:
            TimeoutError: An answer would need too much memory.
        """
        for _ in range(2):
            try:
                return self if self._run.matches(string) else None
            except TooLarge:  # because of this text or of those before
                self._run = _Run(self._text)
            except RecursionError:
                break
        raise TimeoutError


class _Run:
    """An expression with the derivatives that texts have needed so far."""

    def __init__(self, text: str) -> None:
        self._nodes = Nodes()
        self.start = BricsParser(text, self._nodes).parse()
        self._steps: dict[tuple[LanguageNode, str], LanguageNode] = {}

    def matches(self, string: str) -> bool:
        node, steps = self.start, self._steps
        for char in string:
            if node is self._nodes.empty:
                return False
            if node is self._nodes.all:
                return True
            step = steps.get((node, char))
            if step is None:
                if len(steps) > _MOST_STEPS:
                    steps.clear()
                step = steps[node, char] = self._nodes.derivative(node, ord(char))
            node = step
        return node.nullable


def compile_automaton(text: str) -> Pattern:
    """Compiles an expression.

    Raises:
        ValueError: The expression is invalid; the message says why.

    >>> compile_automaton(".*[.](gif|png)").python.search("http://foo.com/a.gif") is None
    False
    """
    automaton = Automaton(text)
    return Pattern(text, automaton, automaton.column, exact=automaton.column is not None)


def _column_form(node: LanguageNode) -> str | None:
    """Returns a pattern for polars that matches the same texts; None if it has no such pattern."""
    if node.size > _LONGEST:
        return None
    try:
        return rf"\A(?:{_FORMS[node.kind](node)})\z"
    except KeyError:
        return None


def _sequence_form(node: LanguageNode) -> str:
    words = []
    while node.kind == "cat":  # without recursion, as a sequence may be long
        words.append(_form(node.parts[0]))
        node = node.parts[1]
    return "".join([*words, _form(node)])


def _form(node: LanguageNode) -> str:
    return f"(?:{_FORMS[node.kind](node)})"


_FORMS: dict[str, Callable[[LanguageNode], str]] = {
    "chars": lambda node: node.chars.pattern,
    "text": lambda node: "",
    "cat": _sequence_form,
    "or": lambda node: "|".join(map(_form, node.parts)),
    "star": lambda node: f"{_form(node.parts[0])}*",
}


class BricsParser:
    """Reads an expression by recursive descent, as dk.brics.automaton.RegExp does."""

    def __init__(self, text: str, nodes: Nodes) -> None:
        self._text, self._at, self._nodes = text, 0, nodes

    def parse(self) -> LanguageNode:
        if not self._text:
            return self._nodes.text
        node = self._choice()
        if self._at < len(self._text):
            raise ValueError(f"nothing may follow at character {self._at + 1}")
        return node

    def _peek(self, chars: str) -> bool:
        return self._at < len(self._text) and self._text[self._at] in chars

    def _take(self, char: str) -> bool:
        is_next = self._peek(char)
        self._at += is_next
        return is_next

    def _next_char(self) -> str:
        if self._at >= len(self._text):
            raise ValueError("it ends too early")
        self._at += 1
        return self._text[self._at - 1]

    def _expect(self, char: str) -> None:
        if not self._take(char):
            raise ValueError(f"missing {char} at character {self._at + 1}")

    def _choice(self) -> LanguageNode:
        parts = [self._intersection()]
        while self._take("|"):
            parts.append(self._intersection())
        return self._nodes.either(*parts)

    def _intersection(self) -> LanguageNode:
        parts = [self._sequence()]
        while self._take("&"):
            parts.append(self._sequence())
        return self._nodes.intersection(*parts)

    def _sequence(self) -> LanguageNode:
        parts = [self._repetition()]
        while self._at < len(self._text) and not self._peek(")|&"):
            parts.append(self._repetition())
        node = parts.pop()
        while parts:
            node = self._nodes.cat(parts.pop(), node)
        return node

    def _repetition(self) -> LanguageNode:
        node = self._complement()
        while self._peek("?*+{"):
            match self._next_char():
                case "?":
                    node = self._nodes.repeat(node, 0, 1)
                case "*":
                    node = self._nodes.star(node)
                case "+":
                    node = self._nodes.repeat(node, 1, None)
                case _:
                    node = self._nodes.repeat(node, *self._times())
        return node

    def _times(self) -> tuple[int, int | None]:
        match = _TIMES.match(self._text, self._at)
        if not match:
            raise ValueError(f"a number is missing, or }} after it, at character {self._at + 1}")
        self._at = match.end()
        least = int(match[1])
        return least, int(match[3]) if match[3] else None if match[2] else least

    def _complement(self) -> LanguageNode:
        turns = 0
        while self._take("~"):
            turns += 1
        node = self._class() if self._take("[") else self._simple()
        return self._nodes.complement(node) if turns % 2 else node

    def _class(self) -> LanguageNode:
        negated = self._take("^")
        ranges = [self._range()]
        while self._at < len(self._text) and not self._peek("]"):
            ranges.append(self._range())
        self._expect("]")
        chars = union(ranges)
        return self._nodes.chars(~chars if negated else chars)

    def _range(self) -> tuple[int, int]:
        first = last = self._char()
        if self._take("-"):
            if self._peek("]"):  # as in dk.brics, a minus at the end is a character
                self._at -= 1
            else:
                last = self._char()
        if first > last:
            raise ValueError(f"a range must go up, got {chr(first)}-{chr(last)}")
        return first, last

    def _char(self) -> int:
        self._take("\\")
        return ord(self._next_char())

    def _simple(self) -> LanguageNode:
        if self._take("."):
            return self._nodes.any_char
        if self._take("#"):
            return self._nodes.empty
        if self._take("@"):
            return self._nodes.all
        if self._take('"'):
            return self._literal(self._until('"'))
        if self._take("("):
            if self._take(")"):
                return self._nodes.text
            node = self._choice()
            self._expect(")")
            return node
        if self._take("<"):
            return self._interval(self._until(">"))
        return self._one(self._char())

    def _one(self, code: int) -> LanguageNode:
        return self._nodes.chars(span(code, code))

    def _until(self, end: str) -> str:
        to = self._text.find(end, self._at)
        if to < 0:
            raise ValueError(f"missing {end} after character {self._at}")
        enclosed, self._at = self._text[self._at : to], to + 1
        return enclosed

    def _literal(self, text: str) -> LanguageNode:
        node = self._nodes.text
        for char in reversed(text):
            node = self._nodes.cat(self._one(ord(char)), node)
        return node

    def _interval(self, text: str) -> LanguageNode:
        first, dash, last = text.partition("-")
        if not (dash and first.isdecimal() and last.isdecimal() and text.isascii()):
            raise value_error("<...> must be a range of numbers", f"<{text}>")
        if len(first) > 18 or len(last) > 18:
            raise value_error("its numbers may have 18 digits", f"<{text}>")
        low, high = sorted((int(first), int(last)))
        if len(first) == len(last):
            return self._between(str(low).zfill(len(last)), str(high).zfill(len(last)))
        # Of different lengths: any number of zeros may precede the number.
        numbers = (
            self._between(str(low).zfill(size), str(min(high, 10**size - 1)))
            for size in range(len(str(low)), len(str(high)) + 1)
        )
        zeros = self._nodes.star(self._one(ord("0")))
        return self._nodes.cat(zeros, self._nodes.either(*numbers))

    def _between(self, low: str, high: str) -> LanguageNode:
        """Returns the numbers from one to another, which have the same number of digits."""
        if not low:
            return self._nodes.text
        cat, first, last = self._nodes.cat, ord(low[0]), ord(high[0])
        if first == last:
            return cat(self._one(first), self._between(low[1:], high[1:]))
        size = len(low) - 1
        parts = [
            cat(self._one(first), self._between(low[1:], "9" * size)),
            cat(self._one(last), self._between("0" * size, high[1:])),
        ]
        if last - first > 1:
            digit = self._nodes.chars(span(ord("0"), ord("9")))
            inner = self._nodes.chars(span(first + 1, last - 1))
            parts.append(cat(inner, self._nodes.repeat(digit, size, size)))
        return self._nodes.either(*parts)
