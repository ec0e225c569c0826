"""Languages (sets of texts) as trees, and their derivatives (Brzozowski).

The derivative of a language by a character is the set of texts that may follow this character. It
is again a language, so intersection and complement are as easy as the rest.
"""

from typing import Any

from .chars import EVERY, NONE, Chars

_MOST_REPEATS = 250
_MOST_NODES = 20_000


class TooLarge(ValueError):
    """An expression needs more nodes than are allowed."""


class LanguageNode:
    """A language: a set of texts. Equal ones are the same object, within a ``Nodes``."""

    __slots__ = ("chars", "kind", "nullable", "parts", "size")

    def __init__(self, kind: str, parts: tuple["LanguageNode", ...], chars: Chars) -> None:
        self.kind, self.parts, self.chars = kind, parts, chars
        # Length of its pattern in characters. A node that occurs twice counts twice.
        self.size: int = 12 + 24 * len(chars.ranges) + sum(part.size for part in parts)
        nullable = [part.nullable for part in parts]
        self.nullable: bool = {
            "chars": False, "empty": False, "text": True, "cat": all(nullable), "and": all(nullable),
            "or": any(nullable), "star": True, "not": not any(nullable),
        }[kind]  # fmt: skip


class Nodes:
    """Makes nodes in their simplest form; equal ones are made once."""

    def __init__(self) -> None:
        self._nodes_by_key: dict[Any, LanguageNode] = {}
        self.empty = self._node("empty")
        self.text = self._node("text")  # the text without characters
        self.any_char = self.chars(EVERY)
        self.all = self.star(self.any_char)

    def _node(
        self, kind: str, parts: tuple[LanguageNode, ...] = (), chars: Chars = NONE
    ) -> LanguageNode:
        key = (kind, tuple(map(id, parts)), chars)
        if key not in self._nodes_by_key:
            if len(self._nodes_by_key) > _MOST_NODES:
                raise TooLarge("it is too large")
            self._nodes_by_key[key] = LanguageNode(kind, parts, chars)
        return self._nodes_by_key[key]

    def chars(self, chars: Chars) -> LanguageNode:
        return self.empty if chars == NONE else self._node("chars", chars=chars)

    def cat(self, first: LanguageNode, second: LanguageNode) -> LanguageNode:
        if first is self.empty or second is self.empty:
            return self.empty
        if first is self.text:
            return second
        if second is self.text:
            return first
        if first.nullable and second.kind == "star" and first in (second, *second.parts):
            return second
        return self._node("cat", (first, second))

    def either(self, *parts: LanguageNode) -> LanguageNode:
        return self._combine("or", parts, self.empty, self.all)

    def intersection(self, *parts: LanguageNode) -> LanguageNode:
        return self._combine("and", parts, self.all, self.empty)

    def _combine(
        self, kind: str, parts: tuple[LanguageNode, ...], neutral: LanguageNode, zero: LanguageNode
    ) -> LanguageNode:
        """Returns a union or intersection, without the parts that have no effect."""
        flat = {id(p): p for part in parts for p in (part.parts if part.kind == kind else (part,))}
        flat.pop(id(neutral), None)
        if id(zero) in flat:
            return zero
        ordered = tuple(flat[number] for number in sorted(flat))
        if len(ordered) < 2:
            return ordered[0] if ordered else neutral
        return self._node(kind, ordered)

    def star(self, part: LanguageNode) -> LanguageNode:
        if part in (self.empty, self.text):
            return self.text
        return part if part.kind == "star" else self._node("star", (part,))

    def complement(self, part: LanguageNode) -> LanguageNode:
        if part is self.empty:
            return self.all
        if part is self.all:
            return self.empty
        return part.parts[0] if part.kind == "not" else self._node("not", (part,))

    def repeat(self, part: LanguageNode, least: int, most: int | None) -> LanguageNode:
        if max(least, most or 0) > _MOST_REPEATS:
            raise ValueError(f"it may repeat something {_MOST_REPEATS} times at most")
        tail = self.star(part) if most is None else self.text
        for _ in range((most or least) - least):
            tail = self.either(self.text, self.cat(part, tail))
        for _ in range(least):
            tail = self.cat(part, tail)
        return tail if most is None or most >= least else self.empty

    def derivative(
        self, node: LanguageNode, char: int, done: dict[LanguageNode, LanguageNode] | None = None
    ) -> LanguageNode:
        """Returns the derivative of a language: the texts that may follow a character.

        Args:
            node: The language.
            char: The character.
            done: Results so far, by node, because a node may occur in many places.

        Raises:
            TooLarge: There are too many nodes.
        """
        done = {} if done is None else done
        if node in done:
            return done[node]
        following = self.empty
        match node.kind:
            case "chars":
                if char in node.chars:
                    following = self.text
            case "cat":
                first, second = node.parts
                following = self.cat(self.derivative(first, char, done), second)
                if first.nullable:
                    following = self.either(following, self.derivative(second, char, done))
            case "or":
                following = self.either(*(self.derivative(part, char, done) for part in node.parts))
            case "and":
                following = self.intersection(
                    *(self.derivative(part, char, done) for part in node.parts)
                )
            case "star":
                following = self.cat(self.derivative(node.parts[0], char, done), node)
            case "not":
                following = self.complement(self.derivative(node.parts[0], char, done))
        done[node] = following
        return following
