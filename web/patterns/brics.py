"""The patterns of urlfilter-automaton: dk.brics regular expressions, which match a whole text.

They extend regular expressions by ``a&b`` (both), ``~a`` (not), ``@`` (any text), ``#``
(nothing), ``"..."`` (literal text) and ``<n-m>`` (a number). ``^`` and ``$`` mean themselves.
Matching takes derivatives (Brzozowski), so its time depends on the length of the text alone.
"""

from collections.abc import Callable

from .brics_syntax import BricsParser
from .languages import LanguageNode, Nodes, TooLarge
from .patterns import Pattern

_MOST_STEPS = 50_000
_LONGEST = 50_000


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
                step = steps[node, char] = self._nodes.after(node, ord(char))
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
