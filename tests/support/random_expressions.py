"""Random expressions, each also as Python's own text, and rows to try them on.

The second text has ``M(...)`` around each value: ``Maybe`` gives Python the rules of missing values.
"""

import random
from collections.abc import Callable

NAMES = {
    "number": ["n", "m", "f"],
    "text": ["s", "t"],
    "texts": ["words"],
    "time": ["seen", "due"],
    "map": ["metadata"],
}
TEXTS = ["", "a", "b", "ab", "Abc", "aäß", "x.y", "a\\d"]
_WORDS = [*TEXTS, "bc", "."]
_PATTERNS = ["a.*", "[ab]+", "x\\.y", "(?:a|b)c?", "", "\\w+", "A|a"]


class Maybe:
    """A value that may be missing, with the documented rules."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __bool__(self) -> bool:
        return bool(self.value)

    def __eq__(self, other: object) -> bool:
        return self.value == bare(other)

    __hash__ = None

    def _ordered(self, other: object, compare: Callable) -> bool:
        return None not in (self.value, bare(other)) and compare(self.value, bare(other))

    def __lt__(self, other: object) -> bool:
        return self._ordered(other, lambda a, b: a < b)

    def __le__(self, other: object) -> bool:
        return self._ordered(other, lambda a, b: a <= b)

    def __gt__(self, other: object) -> bool:
        return self._ordered(other, lambda a, b: a > b)

    def __ge__(self, other: object) -> bool:
        return self._ordered(other, lambda a, b: a >= b)

    def _with(self, other: object, calculate: Callable) -> "Maybe":
        if None in (self.value, bare(other)):
            return Maybe(None)
        try:
            found = calculate(self.value, bare(other))
        except (ZeroDivisionError, OverflowError):
            return Maybe(None)
        return Maybe(None if isinstance(found, complex) else found)

    def __add__(self, other: object) -> "Maybe":
        return self._with(other, lambda a, b: a + b)

    def __sub__(self, other: object) -> "Maybe":
        return self._with(other, lambda a, b: a - b)

    def __mul__(self, other: object) -> "Maybe":
        return self._with(other, lambda a, b: a * b)

    def __truediv__(self, other: object) -> "Maybe":
        return self._with(other, lambda a, b: a / b)

    def __floordiv__(self, other: object) -> "Maybe":
        return self._with(other, lambda a, b: a // b)

    def __mod__(self, other: object) -> "Maybe":
        return self._with(other, lambda a, b: a % b)

    def __pow__(self, other: object) -> "Maybe":
        return self._with(other, lambda a, b: a**b)

    def __neg__(self) -> "Maybe":
        return Maybe(None if self.value is None else -self.value)

    def __contains__(self, other: object) -> bool:
        found = None not in (self.value, bare(other))
        return found and bare(other) in self.value

    def __getitem__(self, place: object) -> "Maybe":
        try:
            return Maybe(self.value[bare(place)])
        except (TypeError, KeyError, IndexError):
            return Maybe(None)


def bare(value: object) -> object:
    """Returns what is in a Maybe."""
    return value.value if isinstance(value, Maybe) else value


class Maker:
    """Makes pairs of texts: of our language, and for Python with ``Maybe``."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def condition(self, depth: int) -> tuple[str, str]:
        chance = self.chance
        kinds = ["compared", "found", "missing", "chain", "one_of"]
        if depth > 0:
            kinds += ["and", "or", "not", "and", "or", "truth"]
        match chance.choice(kinds):
            case "and" | "or" as word:
                return self._joined(word, depth)
            case "not":
                ours, python = self.condition(depth - 1)
                return chance.choice([f"(not {ours})", f"!({ours})"]), f"(not {python})"
            case "truth":
                return self.value(chance.choice(["number", "text", "texts", "map"]), depth - 1)
            case "found":
                return self._found(depth)
            case "missing":
                ours, python = self.value(chance.choice(list(NAMES)[:4]), depth)
                form, name = chance.choice(
                    [("is None", "=="), ("ne null", "!="), ("== None", "==")]
                )
                return f"({ours} {form})", f"({python} {name} None)"
            case "chain":
                (a, pa), (b, pb), (c, pc) = (self.value("number", depth - 1) for _ in range(3))
                return f"({a} < {b} <= {c})", f"({pa} < {pb} <= {pc})"
            case "one_of":
                a, pa = self.value("text", depth - 1)
                some = [*chance.sample(TEXTS, 2), *([None] if chance.random() < 0.3 else [])]
                return f"({a} in {some})", f"(bare({pa}) in {some})"
        kind = chance.choice(["number", "text", "time", "duration"])
        sign = chance.choice(["==", "!=", "<", "<=", ">", ">="])
        (a, pa), (b, pb) = self.value(kind, depth - 1), self.value(kind, depth - 1)
        return f"({a} {sign} {b})", f"({pa} {sign} {pb})"

    def _joined(self, word: str, depth: int) -> tuple[str, str]:
        (a, pa), (b, pb) = self.condition(depth - 1), self.condition(depth - 1)
        sign = self.chance.choice([word, {"and": "&&", "or": "||"}[word]])
        return f"({a} {sign} {b})", f"({pa} {word} {pb})"

    def _found(self, depth: int) -> tuple[str, str]:
        chance = self.chance
        a, pa = self.value("text", depth - 1)
        b, pb = self.value("text", 0)
        name = chance.choice(["startswith", "endswith", "in", "texts", "map", "=~", "!~", "search"])
        match name:
            case "in":
                return f"({b} in {a})", f"({pb} in {pa})"
            case "texts":
                return f"({a} in words)", f"({pa} in words)"
            case "map":
                key = chance.choice(TEXTS)
                return f"({key!r} not in metadata)", f"({key!r} not in metadata)"
            case "=~" | "!~":
                pattern = chance.choice(_PATTERNS)
                no = "not " if name == "!~" else ""
                return f"({a} {name} r'{pattern}')", f"({no}whole({pa}, r'{pattern}'))"
            case "search":
                pattern = chance.choice(_PATTERNS)
                return f"search({a}, r'{pattern}')", f"search({pa}, r'{pattern}')"
        return f"{a}.{name}({b})", f"{name}({pa}, {pb})"

    def value(self, kind: str, depth: int) -> tuple[str, str]:
        chance = self.chance
        if depth <= 0 or chance.random() < 0.3 or kind in ("texts", "map"):
            return self._leaf(kind)
        if chance.random() < 0.15:
            (c, pc), (a, pa), (b, pb) = (
                self.condition(depth - 1), self.value(kind, depth - 1), self.value(kind, depth - 1)
            )  # fmt: skip
            return f"({a} if {c} else {b})", f"({pa} if {pc} else {pb})"
        match kind:
            case "text":
                if chance.random() < 0.5:
                    (a, pa), (b, pb) = self.value("text", depth - 1), self.value("text", depth - 1)
                    return f"({a} + {b})", f"({pa} + {pb})"
                name = chance.choice(["lower", "strip"])
                a, pa = self.value("text", depth - 1)
                return f"{a}.{name}()", f"{name}({pa})"
            case "time":
                a, pa = self.value("time", depth - 1)
                b, pb = self.value("duration", depth - 1)
                return f"({a} + {b})", f"({pa} + {pb} * 1000)"
            case "duration":
                if chance.random() < 0.5:
                    (a, pa), (b, pb) = self.value("time", depth - 1), self.value("time", depth - 1)
                    return f"({a} - {b})", f"(({pa} - {pb}) / 1000)"
                a, pa = self.value("number", depth - 1)
                return f"hours({a})", f"({pa} * 3600)"
        return self._calculated(depth)

    def _calculated(self, depth: int) -> tuple[str, str]:
        chance = self.chance
        if chance.random() < 0.2:
            a, pa = self.value(chance.choice(["text", "texts", "map"]), depth - 1)
            return f"len({a})", f"length({pa})"
        if chance.random() < 0.2:
            a, pa = self.value("number", depth - 1)
            return f"(-{a})", f"(-{pa})"
        a, pa = self.value("number", depth - 1)
        sign = chance.choice(["+", "-", "*", "/", "//", "%", "**"])
        if sign == "**":
            return f"({a} ** 2)", f"({pa} ** 2)"
        b, pb = self.value("number", 0 if sign in ("//", "%", "/") else depth - 1)
        return f"({a} {sign} {b})", f"({pa} {sign} {pb})"

    def _leaf(self, kind: str) -> tuple[str, str]:
        chance = self.chance
        if kind == "duration":
            number = chance.choice([0, 1, 24])
            return f"hours({number})", f"M({number * 3600})"
        if kind in ("texts", "map", "time") or chance.random() < 0.6:
            if kind == "text" and chance.random() < 0.2:
                name = chance.choice(["a", "b"])
                return f"metadata[{name!r}]", f"metadata[{name!r}]"
            name = chance.choice(NAMES[kind])
            return name, name
        constant = chance.choice(_WORDS) if kind == "text" else chance.choice([0, 1, 2, 3, -2, 0.5])
        ours = _quoted(constant) if isinstance(constant, str) else f"{constant}"
        return f"({ours})" if kind == "number" else ours, f"M({constant!r})"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\") + '"'


def random_row(chance: random.Random, missing: float) -> dict[str, object]:
    """Returns values of all names; some are missing."""
    row = {
        "n": chance.randint(-3, 5),
        "m": chance.randint(0, 3),
        "f": chance.choice([-1.5, 0.0, 0.25, 2.0]),
        "s": chance.choice(TEXTS),
        "t": chance.choice(TEXTS),
        "words": chance.sample(TEXTS, chance.randint(0, 3)),
        "seen": chance.randint(0, 3) * 3_600_000,
        "due": chance.randint(0, 3) * 3_600_000,
        "metadata": {key: chance.choice(TEXTS) for key in chance.sample(TEXTS, 2)},
    }
    return {name: None if chance.random() < missing else value for name, value in row.items()}
