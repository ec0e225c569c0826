r"""Parses Java's regular expressions into trees.

Reads patterns as ``java.util.regex.Pattern`` of Java 17 does, with its special cases, and refuses
the patterns that it refuses.
"""

import re

from . import java_tree as java
from .chars import EVERY, LAST, NONE, Chars, in_any_case, one_in_any_case, span, span_in_any_case

_MOST_REPEATS = 2**31 - 1
_FLAGS = frozenset("imsduxU")
_TIMES = re.compile(r"\{([0-9]+)(?:(,)([0-9]*))?\}")
_QUOTED = re.compile(r"\\Q(.*?)(?:\\E|$)|\\.|\\$", re.DOTALL)
_NAME = re.compile("<([A-Za-z][A-Za-z0-9]*)>")
_GROUP = re.compile(f"{_NAME.pattern}|(<?[=!]|>)")
_PLAIN_ESCAPES = {"a": 7, "e": 27, "f": 12, "n": 10, "r": 13, "t": 9}
_SPACE = frozenset(" \t\n\x0b\f\r")
# By the letter of an escape: the digits after it, their base, and what messages call them.
_NUMBERS = {
    "0": (re.compile("[0-3][0-7]{2}|[0-7]{1,2}"), 8, "octal digits"),
    "u": (re.compile("[0-9a-fA-F]{4}"), 16, "four hexadecimal digits"),
    "x": (
        re.compile(r"([0-9a-fA-F]{2})|\{([0-9a-fA-F]+)\}"),
        16,
        "two hexadecimal digits, or some in braces",
    ),
}
_LOW_SURROGATE = re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_FAMILY = re.compile(r"\{([^}]*)\}|([^{])", re.DOTALL)


def parse_pattern(text: str) -> java.Tree:
    r"""Parses a pattern.

    Raises:
        ValueError: Java refuses the pattern, or a part of it is not supported; the message says
            which.
    """
    return _Parser(text).parse()


def _replace_quotes(text: str) -> str:
    r"""Replaces ``\Q...\E`` by escapes, which Java does first."""

    def escape_quote(match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0]
        # A digit would belong to an escape before it.
        digit = f"\\x3{match[1][0]}" if match[1][:1].isdecimal() and match[1].isascii() else ""
        rest = match[1][1:] if digit else match[1]
        return digit + re.sub(
            r"[\x00-\x7f]", lambda m: m[0] if m[0].isalnum() else "\\" + m[0], rest
        )

    return _QUOTED.sub(escape_quote, text)


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = _replace_quotes(text)
        self._at = 0
        self._flags: frozenset[str] = frozenset()
        self._groups = 0
        self._names: dict[str, int] = {}

    def parse(self) -> java.Tree:
        root = self._choice()
        if self._peek():
            raise ValueError("a ) has no (")
        return java.Tree(root, self._groups, self._names)

    # Reading characters: with the flag x, spaces and comments are skipped.

    def _peek(self) -> str:
        if "x" in self._flags:
            self._skip()
        return self._text[self._at : self._at + 1]

    def _skip(self) -> None:
        while (char := self._text[self._at : self._at + 1]) in _SPACE or char == "#":
            self._at += 1
            if char == "#":
                ends = "\n" if "d" in self._flags else "\n\r\x85\u2028\u2029"
                while self._at < len(self._text) and self._text[self._at] not in ends:
                    self._at += 1

    def _take(self) -> str:
        char = self._peek()
        self._at += 1
        return char

    def _next_char(self) -> str:
        self._at += 1
        return self._peek()

    def _peek_raw(self, ahead: int = 0) -> str:
        return self._text[self._at + ahead : self._at + ahead + 1]

    # Sequences, groups and quantifiers.

    def _choice(self) -> java.JavaNode:
        parts = [self._sequence()]
        while self._peek() == "|":
            self._at += 1
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else java.Choice(tuple(parts))

    def _sequence(self) -> java.JavaNode:
        parts: list[java.JavaNode] = []
        while (char := self._peek()) not in ("", "|", ")"):
            if char == "(":
                group = self._group()
                parts += [] if group is None else [group]
            elif char == "{":  # after a repeated part; Java repeats the empty text then
                parts.append(self._repetition(java.Concat(())))
            else:
                parts.append(self._repetition(self._atom(char)))
        return parts[0] if len(parts) == 1 else java.Concat(tuple(parts))

    def _atom(self, char: str) -> java.JavaNode:
        if char == "\\":
            return self._escape()
        self._at += 1
        if char in "?*+":
            raise ValueError(f"{char} has nothing to repeat")
        if char == "[":
            return self._class()
        if char == "^":
            return self._mark("line_start") if "m" in self._flags else java.Mark("start")
        if char == "$":
            return self._mark("line_end" if "m" in self._flags else "end")
        if char == ".":
            return self._any()
        return self._one(ord(char))

    def _mark(self, kind: str) -> java.Mark:
        return java.Mark(f"unix_{kind}" if "d" in self._flags else kind)

    def _any(self) -> Chars:
        if "s" in self._flags:
            return EVERY
        return ~(span(10, 10) if "d" in self._flags else java.LINE_ENDS)

    def _repetition(self, node: java.JavaNode) -> java.JavaNode:
        char = self._peek()
        least: int
        most: int | None
        if char and char in "?*+":
            self._at += 1
            least, most = {"?": (0, 1), "*": (0, None), "+": (1, None)}[char]
        elif char == "{":
            match = _TIMES.match(self._text, self._at)
            if not match:
                raise ValueError("{ must begin a number of times, as in {2}, {2,} or {2,3}")
            self._at = match.end()
            least = int(match[1])
            most = least if match[2] is None else int(match[3]) if match[3] else None
            if max(least, most or 0) > _MOST_REPEATS or (most is not None and most < least):
                raise ValueError(f"{match[0]} is no number of times")
        else:
            return node
        how = self._peek() if self._peek() in ("?", "+") else ""
        self._at += len(how)
        return node if node == java.Concat(()) else java.Repeat(node, least, most, how)

    def _group(self) -> java.JavaNode | None:
        """Reads a group; returns None for flags that hold from here on."""
        flags = self._flags
        if self._next_char() != "?":
            return self._capturing_group(flags)
        self._at += 1
        start = _GROUP.match(self._text, self._at)
        if not start:
            return self._flag_group(flags)
        self._at = start.end()
        name, kind = start.groups()
        if name:
            if name in self._names:
                raise ValueError(f"there are two groups <{name}>")
            self._names[name] = self._groups + 1
            return self._capturing_group(flags)
        part = self._choice()
        if kind == ">":
            return self._close_group(java.Atomic(part), flags)
        return self._close_group(java.Lookaround(part, kind[0] == "<", kind[-1] == "!"), flags)

    def _capturing_group(self, flags: frozenset[str]) -> java.JavaNode:
        self._groups += 1
        number = self._groups
        part = self._choice()
        return self._close_group(java.Group(part, number), flags)

    def _close_group(self, node: java.JavaNode, flags: frozenset[str]) -> java.JavaNode:
        if self._peek() != ")":
            raise ValueError("missing )")
        self._at += 1
        self._flags = flags
        return self._repetition(node)

    def _flag_group(self, flags: frozenset[str]) -> java.JavaNode | None:
        begin, take = self._at, True
        while (char := self._take()) not in (":", ")"):
            if char == "-" and take:
                take = False
            elif char and char in _FLAGS:
                changed = {char, "u"} if char == "U" else {char}
                self._flags = self._flags | changed if take else self._flags - changed
            else:
                raise ValueError(f"(?{self._text[begin : self._at]} is not supported")
        return None if char == ")" else self._close_group(self._choice(), flags)

    # Escapes.

    def _escape(self) -> java.JavaNode:
        char = self._peek_raw(1)
        self._at += 2
        if char in ("p", "P"):
            return self._family(char == "P")
        if char and char in "123456789":
            return self._numbered_reference(int(char))
        if char == "k":
            return self._named_reference()
        if char == "b" and self._text.startswith("{g}", self._at):
            raise ValueError(r"\b{g} is not supported")
        if char == "Z":
            return self._mark("end")
        kind = {"A": "start", "z": "last", "G": "match", "b": "edge", "B": "no_edge",
                "R": "newline", "X": "grapheme"}.get(char)  # fmt: skip
        if kind:
            return java.Mark(kind)
        return self._short(char) or self._one(self._code(char))

    def _short(self, char: str) -> Chars | None:
        small = char.lower()
        if small not in java.SHORT:
            return None
        unicode = "U" in self._flags and small in java.UNICODE_SHORT
        chars = (
            java.family(java.UNICODE_SHORT[small], False, False) if unicode else java.SHORT[small]
        )
        return chars if char == small else ~chars

    def _code(self, char: str) -> int:
        """Returns the code point of an escape, after its first letter."""
        if char in _PLAIN_ESCAPES:
            return _PLAIN_ESCAPES[char]
        if char in _NUMBERS:
            return self._number(char)
        if char == "c" and self._at < len(self._text):
            return ord(self._take()) ^ 64
        if not char or (char.isascii() and char.isalnum()):
            raise ValueError(f"\\{char} is not an escape" if char else r"nothing follows the \ ")
        return ord(char)

    def _number(self, char: str) -> int:
        """Returns the code point that the digits after an escape's letter name."""
        form, base, wanted = _NUMBERS[char]
        match = form.match(self._text, self._at)
        code = int(match[match.lastindex or 0], base) if match else LAST + 1
        if not match or code > LAST:
            raise ValueError(f"\\{char} must be followed by {wanted}")
        self._at = match.end()
        low = _LOW_SURROGATE.match(self._text, self._at)
        if char == "u" and 0xD800 <= code < 0xDC00 and low:
            self._at = low.end()
            return 0x10000 + (code - 0xD800) * 0x400 + int(low[1], 16) - 0xDC00
        return code

    def _family(self, negative: bool) -> Chars:
        match = _FAMILY.match(self._text, self._at)
        if not match:
            raise ValueError(r"\p{ has no }")
        self._at = match.end()
        chars = java.family(match[1] or match[2] or "", "i" in self._flags, "U" in self._flags)
        return ~chars if negative else chars

    def _numbered_reference(self, number: int) -> java.JavaNode:
        while (char := self._peek()) and char in "0123456789":
            if number * 10 + int(char) > self._groups:
                break
            number = number * 10 + int(char)
            self._at += 1
        return java.Reference(number, "i" in self._flags)

    def _named_reference(self) -> java.JavaNode:
        name = _NAME.match(self._text, self._at)
        if not name or name[1] not in self._names:
            raise ValueError(
                r"\k must be followed by the name of a group before it, as in \k<name>"
            )
        self._at = name.end()
        return java.Reference(self._names[name[1]], "i" in self._flags)

    # Characters and classes.

    def _one(self, code: int) -> Chars:
        if "i" not in self._flags:
            return span(code, code)
        return one_in_any_case(code) if "u" in self._flags else in_any_case(span(code, code))

    def _class(self) -> Chars:
        """Reads a class, after its first bracket."""
        negative = self._peek_raw() == "^"
        self._at += negative
        chars = self._members()
        self._at += 1
        return ~chars if negative else chars

    def _members(self) -> Chars:
        """Reads up to the last bracket of a class, as ``Pattern.clazz`` of Java does."""
        # The set so far, and the last item. Single characters join it at the next && or the end.
        chars: Chars | None = None
        last: Chars | None = None
        singles, pending = NONE, False
        while (char := self._peek()) != "]" or (chars is None and not pending):
            if char == "&" and self._skip_double_ampersand():
                right = self._right_side()
                if pending:
                    last = singles if chars is None else last
                    chars, pending = _join_chars(chars, singles), False
                last = right or last
                if last is None:
                    raise ValueError("&& must have something on both sides")
                chars = last if chars is None else chars & last
                continue
            item = self._item()
            if isinstance(item, int):
                singles, pending, last = singles | self._one(item), True, None
            else:
                chars, last = _join_chars(chars, item), item
        if pending or chars is None:
            chars = _join_chars(chars, singles)
        return chars

    def _skip_double_ampersand(self) -> bool:
        """Skips ``&&`` if it comes next; returns whether it did."""
        at = self._at
        if self._next_char() == "&":
            self._at += 1
            return True
        self._at = at
        return False

    def _right_side(self) -> Chars | None:
        """Reads the right side of ``&&``."""
        right: Chars | None = None
        while (char := self._peek()) not in ("]", "&"):
            if char == "[":
                self._at += 1
            right = _join_chars(right, self._class() if char == "[" else self._members())
        return right

    def _item(self) -> Chars | int:
        """Reads a character, as a code point, or an item that stands for several."""
        char = self._peek()
        if not char:
            raise ValueError("missing ]")
        if char == "[":
            self._at += 1
            return self._class()
        low = self._member()
        if not isinstance(low, int) or self._peek() != "-" or self._peek_raw(1) in ("[", "]", ""):
            return low
        high = self._member() if self._next_char() else -1
        if not isinstance(high, int) or high < low:
            raise ValueError("a range in brackets must go up, from a character to another")
        if "i" not in self._flags:
            return span(low, high)
        return span_in_any_case(low, high) if "u" in self._flags else in_any_case(span(low, high))

    def _member(self) -> Chars | int:
        """Reads a character, as a code point, or an escape."""
        if self._peek() != "\\":
            return ord(self._take())
        char = self._peek_raw(1)
        self._at += 2
        if char in ("p", "P"):
            return self._family(char == "P")
        if char == "v" and self._peek_raw() == "-":
            return 0x0B
        return self._short(char) or self._code(char)


def _join_chars(chars: Chars | None, more: Chars) -> Chars:
    return more if chars is None else chars | more
