"""Rewrites the forms of Nutch's expressions (JEXL) as Python.

``&&`` becomes ``and``, ``||`` ``or``, ``eq`` ``==``, ``null`` ``None``. Two forms need an operator
that Python has and this language does not, the invert operator: ``!x`` becomes ``~x``, which binds
as tightly as in JEXL, and ``x =~ 'a.*'`` becomes ``x == ~'a.*'``.
"""

import re
from typing import NamedTuple

from .expression_error import ExpressionError

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
