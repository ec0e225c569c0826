"""Parses expressions with Python's own parser, and checks each node against a list."""

import ast

from .expression_error import ExpressionError
from .nutch_forms import python_form

MAX_NODES = 1000
_MAX_DEPTH = 100
MAX_SOURCE = 1 << 20  # more than any text has

_ALLOWED = (
    *(ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.UAdd),
    *(ast.Invert, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow),
    *(ast.Compare, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Is, ast.IsNot, ast.In),
    *(ast.NotIn, ast.IfExp, ast.Call, ast.Name, ast.Load, ast.Attribute, ast.Subscript),
    *(ast.Constant, ast.List, ast.Tuple),
)  # fmt: skip
_CONSTANTS = (str, int, float, bool, type(None))
# Python's parser ends with these on text that is wrong, or too deep for it.
_PARSER_ERRORS = (SyntaxError, ValueError, MemoryError, RecursionError)


class Syntax:
    """A parsed expression.

    Args:
        text: The expression.

    Attributes:
        text: The expression as the user wrote it.
        body: Its outermost node.

    Raises:
        ExpressionError: It is no expression of the language, or too large.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._source, self._origin = python_form(text)
        if not self._source.strip():
            raise ExpressionError("the expression is empty", text, 0)
        stripped = self._source.lstrip()
        self._cut = len(self._source) - len(stripped)
        try:
            tree = ast.parse(stripped, mode="eval")
        except SyntaxError as error:
            raise ExpressionError("wrong syntax", text, self._index(_offset(error))) from None
        except _PARSER_ERRORS:
            raise ExpressionError("the expression is too deep or malformed", text, 0) from None
        self._check(tree)
        self.body = tree.body

    def error(self, problem: str, node: ast.AST) -> ExpressionError:
        """Returns the error of a node."""
        return ExpressionError(problem, self.text, self.at(node))

    def at(self, node: ast.AST) -> int:
        """Returns where a node begins in the user's text."""
        return self._index(getattr(node, "col_offset", 0) + 1)

    def _index(self, offset: int) -> int:
        place = self._cut + offset - 1
        return self._origin[max(0, min(place, len(self._origin) - 1))]

    def _check(self, tree: ast.Expression) -> None:
        nodes = 0
        level: list[ast.AST] = [tree]
        for _ in range(_MAX_DEPTH):
            for node in level:
                self._check_node(node)
            nodes += len(level)
            if nodes > MAX_NODES:
                problem = f"an expression has at most {MAX_NODES} names, values and operators;"
                raise self.error(f"{problem} it has more", level[0])
            level = [child for node in level for child in ast.iter_child_nodes(node)]
            if not level:
                return
        raise self.error(f"more than {_MAX_DEPTH} levels", level[0])

    def _check_node(self, node: ast.AST) -> None:
        if not isinstance(node, _ALLOWED):
            raise self.error(f"{type(node).__name__} is not part of the language", node)
        if isinstance(node, ast.Constant) and not isinstance(node.value, _CONSTANTS):
            raise self.error("a value must be a number, a text, True, False or None", node)
        if isinstance(node, ast.Call) and node.keywords:
            raise self.error("a function takes no named values", node)


def _offset(error: SyntaxError) -> int:
    """Returns where the parser stopped; it says 0 for the end."""
    return error.offset or MAX_SOURCE
