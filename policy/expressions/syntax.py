"""The syntax of expressions: Nutch's forms as Python, the parsed tree, and errors that quote the place.

Forms of Nutch's expressions (JEXL) are rewritten: ``&&`` becomes ``and``, ``||`` ``or``, ``eq`` ``==``,
``null`` ``None``. Two need an operator that Python has and this language does not, the invert operator:
``!x`` becomes ``~x``, which binds as tightly as in JEXL, and ``x =~ 'a.*'`` becomes ``x == ~'a.*'``.
Then Python's own parser parses the text; each node is checked against a list.
"""

import ast
import difflib
import re
from collections.abc import Iterable
from typing import NamedTuple

from ...web.base.wording import quote_value

_SHOWN = 40  # characters of the text that are quoted
_MAX_CHARS = 4096
MAX_NESTING = 50  # of brackets
_MAX_NUMBER = 40  # characters of a number

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n\f]+)
      | (?P<text>[rR]?(?:'(?:[^'\\\n]|\\[^\n])*'|"(?:[^"\\\n]|\\[^\n])*"))
      | (?P<number>(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
      | (?P<name>[A-Za-z_][A-Za-z_0-9]*)
      | (?P<sign>=~|!~|&&|\|\||==|!=|<=|>=|\*\*|//|[<>+\-*/%()\[\],.!])""",
    re.VERBOSE,
)
MATCH_SIGNS = ("=~", "!~")
_SIGNS = {"=~": " == ~", "!~": " != ~", "&&": " and ", "||": " or ", "!": "~"}
_WORDS = {
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "null": "None", "true": "True", "false": "False",
}  # fmt: skip
_ADVICE = {
    "=": "= is not an operator, == compares",
    "?": "? is not an operator, write A if CONDITION else B",
    "&": "& is not an operator, write and",
    "|": "| is not an operator, write or",
    "~": "~ is not an operator, write not",
    "'": "a text is not closed",
    '"': "a text is not closed",
}
_CLOSED_BY = {"(": ")", "[": "]"}
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2})|(.))", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}
_MAX_NODES = 1000
_MAX_DEPTH = 100
_MAX_SOURCE = 1 << 20  # more than any text has

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


class PythonForm(NamedTuple):
    """An expression as Python.

    Attributes:
        source: ASCII text for Python's parser.
        origin: For each character of it, and its end, the index in the user's text.
    """

    source: str
    origin: list[int]


def python_form(text: str) -> PythonForm:
    """Returns an expression in Python's syntax alone.

    Raises:
        ExpressionError: It is too long, nested too deeply, or has a character that no expression
            has, or a bracket without its counterpart.

    >>> python_form("a =~ 'x' && !(b eq null)").source
    "a  == ~ 'x'  and  ~(b == None)"
    """
    if len(text) > _MAX_CHARS:
        problem = f"an expression has at most {_MAX_CHARS} characters, got {len(text)},"
        raise ExpressionError(problem, text, _MAX_CHARS)
    pieces: list[str] = []
    origin: list[int] = []
    opened: list[int] = []
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise ExpressionError(_ADVICE.get(text[at], "a strange character"), text, at)
        piece = _python(token, text)
        _nest(opened, piece, at, text)
        pieces.append(piece)
        origin += [at] * len(piece)
        at = token.end()
    if opened:
        raise ExpressionError(f"the bracket {text[opened[-1]]} is not closed", text, opened[-1])
    return PythonForm("".join(pieces), [*origin, len(text)])


def _nest(opened: list[int], piece: str, at: int, text: str) -> None:
    """Adds a bracket to the places of those that are open, or removes the one that it closes."""
    if piece in _CLOSED_BY:
        opened.append(at)
        if len(opened) > MAX_NESTING:
            raise ExpressionError(f"more than {MAX_NESTING} brackets are open", text, at)
    elif piece in _CLOSED_BY.values() and (not opened or _CLOSED_BY[text[opened.pop()]] != piece):
        raise ExpressionError(f"the bracket {piece} closes no other", text, at)


def _python(token: re.Match[str], text: str) -> str:
    piece = token.group()
    match token.lastgroup:
        case "space":
            return " "
        case "text":
            value = piece[2:-1] if piece[0] in "rR" else _ESCAPE.sub(_unescape, piece[1:-1])
            if any("\ud800" <= char <= "\udfff" for char in value):
                raise ExpressionError("a half of a surrogate pair", text, token.start())
            return ascii(value)
        case "number" if len(piece) > _MAX_NUMBER:
            raise ExpressionError(
                f"a number of more than {_MAX_NUMBER} characters", text, token.start()
            )
        case "name":
            return _WORDS.get(piece, piece)
    return _SIGNS.get(piece, piece)


def _unescape(escape: re.Match[str]) -> str:
    """Returns the character of an escape; an unknown one stays, as regular expressions need it."""
    digits = escape[1] or escape[2]
    return chr(int(digits, 16)) if digits else _ESCAPES.get(escape[3], escape[0])


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
            # It says where the parser stopped, 0 for the end.
            place = self._index(error.offset or _MAX_SOURCE)
            raise ExpressionError("wrong syntax", text, place) from None
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
            if nodes > _MAX_NODES:
                problem = f"an expression has at most {_MAX_NODES} names, values and operators;"
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
