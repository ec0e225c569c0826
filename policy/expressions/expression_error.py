"""The error for a wrong expression: it quotes the place, and suggests similar names."""

import difflib
from collections.abc import Iterable

from ...web.base.wording import quote_value

_SHOWN = 40  # characters of the text that are quoted


class ExpressionError(ValueError):
    """An expression is wrong.

    The message is one line: the mistake, its place (the first character is 1), and the text there.

    Args:
        problem: The mistake.
        text: The expression as the user wrote it.
        at: Index of the first wrong character.

    >>> print(ExpressionError("unknown name 'x'", "1 < x", 4))
    unknown name 'x' at character 5 of the expression: 'x'
    """

    def __init__(self, problem: str, text: str, at: int) -> None:
        at = max(0, min(at, len(text)))
        rest = text[at : at + _SHOWN]
        place = f"at character {at + 1} of the expression"
        super().__init__(f"{problem} {place}: {quote_value(rest) if rest else 'it ends there'}")
        self.problem, self.at = problem, at

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_error, (self.problem, self.at, str(self))


def _rebuild_error(problem: str, at: int, message: str) -> ExpressionError:
    error = ExpressionError(problem, "", 0)
    error.at, error.args = at, (message,)
    return error


class Refused(Exception):
    """An operation does not fit its values; the compiler adds the place."""


def or_nearest(name: str, candidates: Iterable[str]) -> str:
    """Returns the quoted name with what it may have meant: a similar name, or the known ones.

    >>> or_nearest("scroe", ["score", "status"])
    "'scroe'; did you mean 'score'?"
    >>> or_nearest("x", ["score", "status"])
    "'x'; there are score, status"
    """
    names = list(candidates)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if near:
        return f"{quote_value(name)}; did you mean {near[0]!r}?"
    return f"{quote_value(name)}; there are {', '.join(names)}" if names else quote_value(name)
