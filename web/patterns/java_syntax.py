r"""Parses Java's regular expressions into words for other engines.

Reads patterns as ``java.util.regex.Pattern`` of Java 17 does, with its special cases, and refuses
the patterns that it refuses. Groups, alternatives and repeats are written alike for all engines, so
a pattern stays a sequence of words; only sets of characters, marks and references are translated.
"""

import re

from .chars import (
    EVERY,
    LAST,
    LINE_ENDS,
    NONE,
    SHORT,
    UNICODE_SHORT,
    Chars,
    family,
    in_any_case,
    one_in_any_case,
    span,
    span_in_any_case,
)
from .java_words import (
    BOUND,
    MARK_ESCAPES,
    JavaPattern,
    Word,
    chars_word,
    mark_word,
    reference_word,
)

_MOST_REPEATS = 2**31 - 1
_FLAGS = frozenset("imsduxU")
_TIMES = re.compile(r"\{([0-9]+)(?:,([0-9]*))?\}|[?*+]")
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


def parse_pattern(text: str) -> JavaPattern:
    r"""Parses a pattern, whose ``\Q...\E`` are escapes already.

    Raises:
        ValueError: Java refuses the pattern, or a part of it is not supported; the message says
            which.
    """
    return _Parser(text).parse()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._flags: frozenset[str] = frozenset()
        self._groups = 0
        self._names: dict[str, int] = {}
        self._words: list[Word] = []
        # Of each open group: its first word, the flags and the size outside, and its number.
        self._open: list[tuple[int, frozenset[str], int, int]] = []
        self._words_of_group: dict[int, list[Word]] = {}
        # The first word of the part that a number of times would repeat, and the part's size.
        self._part: int | None = None
        self._size = self._part_size = 0
        self._is_choice = False

    def parse(self) -> JavaPattern:
        while char := self._peek():
            if char == "(":
                self._open_group()
            elif char == ")":
                self._close_group()
            elif char == "|":
                self._at += 1
                self._is_choice |= not self._open
                self._add(Word(char, char, char), None)
            elif char in "?*+{":
                self._repeat(char)
            else:
                self._add(self._atom(char), len(self._words))
                self._part_size = 1
                self._size += 1
        if self._open:
            raise ValueError("missing )")
        for word in self._words:
            if word.kind == "reference" and int(word.name) > self._groups:
                word.python = NONE.pattern
        return JavaPattern(self._words, self._names, self._size, self._is_choice)

    def _add(self, word: Word, part: int | None) -> None:
        self._words.append(word)
        self._part = part

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

    # Groups and repeats.

    def _open_group(self) -> None:
        text, flags = "(", self._flags
        if self._next_char() == "?":
            self._at += 1
            start = _GROUP.match(self._text, self._at)
            if start:
                self._at = start.end()
                text = self._name_group(start[1]) if start[1] else f"(?{start[2]}"
            elif self._read_flags():
                self._part = None
                return  # the flags hold from here on
            else:
                text = "(?:"
        self._groups += text == "("
        self._open.append((len(self._words), flags, self._size, self._groups * (text == "(")))
        looks, exact = text[-1] in "=!", text in ("(", "(?:")
        self._add(Word("look" if looks else "(", text, text if exact else "(?:", exact), None)
        self._size = 0

    def _name_group(self, name: str) -> str:
        if name in self._names:
            raise ValueError(f"there are two groups <{name}>")
        self._names[name] = self._groups + 1
        return "("

    def _close_group(self) -> None:
        if not self._open:
            raise ValueError("a ) has no (")
        self._at += 1
        start, self._flags, outer_size, number = self._open.pop()
        self._add(Word(")", ")", ")"), start)
        self._part_size = self._size or 1
        self._size = outer_size + self._part_size
        if self._words[start].kind == "look":
            for word in self._words[start:]:
                word.column = ""
        if number:
            self._words_of_group[number] = self._words[start + 1 : -1]

    def _read_flags(self) -> bool:
        """Reads the flags of a group; returns whether it ends with them."""
        begin, take = self._at, True
        while (char := self._take()) not in (":", ")"):
            if char == "-" and take:
                take = False
            elif char and char in _FLAGS:
                changed = {char, "u"} if char == "U" else {char}
                self._flags = self._flags | changed if take else self._flags - changed
            else:
                raise ValueError(f"(?{self._text[begin : self._at]} is not supported")
        return char == ")"

    def _repeat(self, char: str) -> None:
        match = _TIMES.match(self._text, self._at)
        if not match:
            raise ValueError("{ must begin a number of times, as in {2}, {2,} or {2,3}")
        if char != "{" and self._part is None:
            raise ValueError(f"{char} has nothing to repeat")
        least, most = int(match[1] or 0), int(match[2] or 0)
        if max(least, most) > _MOST_REPEATS or (match[2] and most < least):
            raise ValueError(f"{match[0]} is no number of times")
        self._at = match.end()
        how = self._peek() if self._peek() in ("?", "+") else ""
        self._at += len(how)
        if self._part is None:
            return  # after a repeated part; Java repeats the empty text then
        first, last = self._words[self._part], self._words[-1]
        if first.kind in BOUND:
            first.python, first.column = f"(?:{first.python}", f"(?:{first.column}"
            last.python, last.column = f"{last.python})", f"{last.column})"
        possessive = how == "+"
        column = match[0] if possessive else match[0] + how
        self._add(Word("times", match[0] + how, column, not possessive), None)
        self._size += (max(least, most, 1) - 1) * self._part_size

    def _atom(self, char: str) -> Word:
        if char == "\\":
            return self._escape()
        self._at += 1
        if char == "^":
            return self._mark("line_start") if "m" in self._flags else mark_word("start")
        if char == "$":
            return self._mark("line_end" if "m" in self._flags else "end")
        if char == "[":
            return chars_word(self._class())
        return chars_word(self._any() if char == "." else self._one(ord(char)))

    def _mark(self, kind: str) -> Word:
        return mark_word(f"unix_{kind}" if "d" in self._flags else kind)

    def _any(self) -> Chars:
        if "s" in self._flags:
            return EVERY
        return ~(span(10, 10) if "d" in self._flags else LINE_ENDS)

    def _reference(self, number: int) -> Word:
        return reference_word(number, "i" in self._flags, self._words_of_group.get(number))

    # Escapes.

    def _escape(self) -> Word:
        char = self._peek_raw(1)
        self._at += 2
        if char in ("p", "P"):
            return chars_word(self._family(char == "P"))
        if char and char in "123456789":
            return self._numbered_reference(int(char))
        if char == "k":
            return self._named_reference()
        if char == "b" and self._text.startswith("{g}", self._at):
            raise ValueError(r"\b{g} is not supported")
        if char == "Z":
            return self._mark("end")
        if char in MARK_ESCAPES:
            return mark_word(MARK_ESCAPES[char])
        return chars_word(self._short(char) or self._one(self._code(char)))

    def _short(self, char: str) -> Chars | None:
        small = char.lower()
        if small not in SHORT:
            return None
        unicode = "U" in self._flags and small in UNICODE_SHORT
        chars = family(UNICODE_SHORT[small], False, False) if unicode else SHORT[small]
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
        chars = family(match[1] or match[2] or "", "i" in self._flags, "U" in self._flags)
        return ~chars if negative else chars

    def _numbered_reference(self, number: int) -> Word:
        while (char := self._peek()) and char in "0123456789":
            if number * 10 + int(char) > self._groups:
                break
            number = number * 10 + int(char)
            self._at += 1
        return self._reference(number)

    def _named_reference(self) -> Word:
        name = _NAME.match(self._text, self._at)
        if not name or name[1] not in self._names:
            raise ValueError(
                r"\k must be followed by the name of a group before it, as in \k<name>"
            )
        self._at = name.end()
        return self._reference(self._names[name[1]])

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
