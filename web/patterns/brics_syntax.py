"""The syntax of dk.brics regular expressions, and the languages that they stand for.

A language is a tree of nodes; what may follow a character in it is another one, its derivative
(Brzozowski), so intersection and complement are as easy as the rest.
"""

from typing import Any

from ..base.quoting import quoted

_MOST_REPEATS = 250
_MOST_NODES = 20_000
LAST = 0x10FFFF

Ranges = tuple[tuple[int, int], ...]


class TooLarge(ValueError):
    """There are more languages on the way than may be."""


class Node:
    """A language. Equal ones are the same object, within a ``Nodes``."""

    __slots__ = ("kind", "nullable", "parts", "ranges", "size")

    def __init__(self, kind: str, parts: tuple["Node", ...], ranges: Ranges) -> None:
        self.kind, self.parts, self.ranges = kind, parts, ranges
        # Characters that it takes as a pattern: nodes that stand there twice count twice.
        self.size: int = 12 + 24 * len(ranges) + sum(part.size for part in parts)
        every, some = all(part.nullable for part in parts), any(part.nullable for part in parts)
        self.nullable: bool = {
            "chars": False, "empty": False, "text": True, "cat": every, "and": every,
            "or": some, "star": True, "not": not some,
        }[kind]  # fmt: skip


class Nodes:
    """Makes nodes, each once, in their simplest form."""

    def __init__(self) -> None:
        self._known: dict[Any, Node] = {}
        self.empty = self._node("empty")
        self.text = self._node("text")  # the text without characters
        self.any_char = self.chars(((0, LAST),))
        self.all = self.star(self.any_char)

    def _node(self, kind: str, parts: tuple[Node, ...] = (), ranges: Ranges = ()) -> Node:
        key = (kind, tuple(map(id, parts)), ranges)
        if key not in self._known:
            if len(self._known) > _MOST_NODES:
                raise TooLarge("it is too large")
            self._known[key] = Node(kind, parts, ranges)
        return self._known[key]

    def chars(self, ranges: Ranges) -> Node:
        return self._node("chars", ranges=ranges) if ranges else self.empty

    def cat(self, first: Node, second: Node) -> Node:
        if first is self.empty or second is self.empty:
            return self.empty
        if first is self.text:
            return second
        if second is self.text:
            return first
        if first.nullable and second.kind == "star" and first in (second, *second.parts):
            return second
        return self._node("cat", (first, second))

    def either(self, *parts: Node) -> Node:
        flat = {id(p): p for part in parts for p in (part.parts if part.kind == "or" else (part,))}
        flat.pop(id(self.empty), None)
        if id(self.all) in flat:
            return self.all
        return self._some("or", flat, self.empty)

    def both(self, *parts: Node) -> Node:
        flat = {id(p): p for part in parts for p in (part.parts if part.kind == "and" else (part,))}
        flat.pop(id(self.all), None)
        return self.empty if id(self.empty) in flat else self._some("and", flat, self.all)

    def _some(self, kind: str, parts: dict[int, Node], none: Node) -> Node:
        ordered = tuple(parts[number] for number in sorted(parts))
        if len(ordered) < 2:
            return ordered[0] if ordered else none
        return self._node(kind, ordered)

    def star(self, part: Node) -> Node:
        if part in (self.empty, self.text):
            return self.text
        return part if part.kind == "star" else self._node("star", (part,))

    def other(self, part: Node) -> Node:
        if part is self.empty:
            return self.all
        if part is self.all:
            return self.empty
        return part.parts[0] if part.kind == "not" else self._node("not", (part,))

    def repeat(self, part: Node, least: int, most: int | None) -> Node:
        if max(least, most or 0) > _MOST_REPEATS:
            raise ValueError(f"it may repeat something {_MOST_REPEATS} times at most")
        tail = self.star(part) if most is None else self.text
        for _ in range((most or least) - least):
            tail = self.either(self.text, self.cat(part, tail))
        for _ in range(least):
            tail = self.cat(part, tail)
        return tail if most is None or most >= least else self.empty

    def after(self, node: Node, char: int) -> Node:
        """Returns what may follow a character in a language: its derivative.

        Raises:
            TooLarge: There are too many nodes by now.
        """
        return self._after(node, char, {})

    def _after(self, node: Node, char: int, done: dict[Node, Node]) -> Node:
        if node in done:  # a node stands in many places
            return done[node]
        found = self.empty
        match node.kind:
            case "chars":
                if any(low <= char <= high for low, high in node.ranges):
                    found = self.text
            case "cat":
                first, second = node.parts
                found = self.cat(self._after(first, char, done), second)
                if first.nullable:
                    found = self.either(found, self._after(second, char, done))
            case "or":
                found = self.either(*(self._after(part, char, done) for part in node.parts))
            case "and":
                found = self.both(*(self._after(part, char, done) for part in node.parts))
            case "star":
                found = self.cat(self._after(node.parts[0], char, done), node)
            case "not":
                found = self.other(self._after(node.parts[0], char, done))
        done[node] = found
        return found


class BricsParser:
    """Reads an expression by recursive descent, as dk.brics.automaton.RegExp does."""

    def __init__(self, text: str, nodes: Nodes) -> None:
        self._text, self._at, self._nodes = text, 0, nodes

    def parse(self) -> Node:
        if not self._text:
            return self._nodes.text
        node = self._either()
        if self._at < len(self._text):
            raise ValueError(f"nothing may follow at character {self._at + 1}")
        return node

    def _peek(self, chars: str) -> bool:
        return self._at < len(self._text) and self._text[self._at] in chars

    def _take(self, char: str) -> bool:
        found = self._peek(char)
        self._at += found
        return found

    def _next(self) -> str:
        if self._at >= len(self._text):
            raise ValueError("it ends too early")
        self._at += 1
        return self._text[self._at - 1]

    def _expect(self, char: str) -> None:
        if not self._take(char):
            raise ValueError(f"missing {char} at character {self._at + 1}")

    def _either(self) -> Node:
        parts = [self._both()]
        while self._take("|"):
            parts.append(self._both())
        return self._nodes.either(*parts)

    def _both(self) -> Node:
        parts = [self._row()]
        while self._take("&"):
            parts.append(self._row())
        return self._nodes.both(*parts)

    def _row(self) -> Node:
        parts = [self._repeated()]
        while self._at < len(self._text) and not self._peek(")|&"):
            parts.append(self._repeated())
        node = parts.pop()
        while parts:
            node = self._nodes.cat(parts.pop(), node)
        return node

    def _repeated(self) -> Node:
        node = self._other()
        while self._peek("?*+{"):
            match self._next():
                case "?":
                    node = self._nodes.repeat(node, 0, 1)
                case "*":
                    node = self._nodes.star(node)
                case "+":
                    node = self._nodes.repeat(node, 1, None)
                case _:
                    least = self._number()
                    most: int | None = least
                    if self._take(","):
                        most = self._number() if self._peek("0123456789") else None
                    self._expect("}")
                    node = self._nodes.repeat(node, least, most)
        return node

    def _number(self) -> int:
        digits = ""
        while self._peek("0123456789"):
            digits += self._next()
        if not digits or len(digits) > 9:
            raise ValueError(f"a number is missing at character {self._at + 1}")
        return int(digits)

    def _other(self) -> Node:
        turns = 0
        while self._take("~"):
            turns += 1
        node = self._class() if self._take("[") else self._simple()
        return self._nodes.other(node) if turns % 2 else node

    def _class(self) -> Node:
        negated = self._take("^")
        ranges = [self._range()]
        while self._at < len(self._text) and not self._peek("]"):
            ranges.append(self._range())
        self._expect("]")
        return self._nodes.chars(_merged(ranges, negated))

    def _range(self) -> tuple[int, int]:
        first = last = self._char()
        if self._take("-"):
            if self._peek("]"):  # as brics: a minus at the end is one
                self._at -= 1
            else:
                last = self._char()
        if first > last:
            raise ValueError(f"a range must go up, got {chr(first)}-{chr(last)}")
        return first, last

    def _char(self) -> int:
        self._take("\\")
        return ord(self._next())

    def _simple(self) -> Node:
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
            node = self._either()
            self._expect(")")
            return node
        if self._take("<"):
            return self._interval(self._until(">"))
        char = self._char()
        return self._nodes.chars(((char, char),))

    def _until(self, end: str) -> str:
        to = self._text.find(end, self._at)
        if to < 0:
            raise ValueError(f"missing {end} behind character {self._at}")
        found, self._at = self._text[self._at : to], to + 1
        return found

    def _literal(self, text: str) -> Node:
        node = self._nodes.text
        for char in reversed(text):
            node = self._nodes.cat(self._nodes.chars(((ord(char), ord(char)),)), node)
        return node

    def _interval(self, text: str) -> Node:
        first, dash, last = text.partition("-")
        if not (dash and first.isdecimal() and last.isdecimal() and text.isascii()):
            raise ValueError(f"<...> must be a range of numbers, got {quoted(f'<{text}>')}")
        if len(first) > 18 or len(last) > 18:
            raise ValueError(f"its numbers may have 18 digits, got {quoted(f'<{text}>')}")
        low, high = sorted((int(first), int(last)))
        width = len(str(high))
        node = self._between(str(low).zfill(width), str(high))
        if len(first) == len(last):
            return self._between(str(low).zfill(len(last)), str(high).zfill(len(last)))
        # Of different lengths: any number of noughts may stand before it.
        zeros = self._nodes.star(self._nodes.chars(((48, 48),)))
        shorter = [self._between(str(max(low, 10 ** (n - 1) if n > 1 else 0)), "9" * n)
                   for n in range(len(str(low)), width)]  # fmt: skip
        top = self._between(str(max(low, 10 ** (width - 1) if width > 1 else 0)), str(high))
        return self._nodes.cat(zeros, self._nodes.either(node, top, *shorter))

    def _between(self, low: str, high: str) -> Node:
        """Numbers of so many digits from one to another."""
        chars = self._nodes.chars
        if not low:
            return self._nodes.text
        a, b = ord(low[0]), ord(high[0])
        if a == b:
            return self._nodes.cat(chars(((a, a),)), self._between(low[1:], high[1:]))
        size = len(low) - 1
        digit = chars(((48, 57),))
        parts = [
            self._nodes.cat(chars(((a, a),)), self._between(low[1:], "9" * size)),
            self._nodes.cat(chars(((b, b),)), self._between("0" * size, high[1:])),
        ]
        if b - a > 1:
            rest = self._nodes.repeat(digit, size, size)
            parts.append(self._nodes.cat(chars(((a + 1, b - 1),)), rest))
        return self._nodes.either(*parts)


def _merged(ranges: list[tuple[int, int]], negated: bool) -> Ranges:
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    if not negated:
        return tuple(merged)
    edges = [-1, *(edge for pair in merged for edge in pair), LAST + 1]
    gaps = zip(edges[::2], edges[1::2], strict=True)
    return tuple((low + 1, high - 1) for low, high in gaps if low + 1 <= high - 1)
