"""Random expressions agree with Python's own evaluation of them."""

import random
import re

import polars as pl
import pytest
from random_expressions import Maker, Maybe, bare, random_row

from nutbeam.policy.expressions.compiler import condition, value_of
from nutbeam.policy.expressions.values import Field, Type, Value

TYPES = {
    "n": Type.NUMBER, "m": Type.NUMBER, "f": Type.NUMBER, "s": Type.TEXT, "t": Type.TEXT,
    "words": Type.TEXTS, "seen": Type.TIME, "due": Type.TIME, "metadata": Type.MAP,
}  # fmt: skip
FIELDS = {
    name: Field(name, Value(pl.col(name), type_, finite=name != "f"))
    for name, type_ in TYPES.items()
}
SCHEMA = {
    "n": pl.Int64, "m": pl.Int64, "f": pl.Float64, "s": pl.String, "t": pl.String,
    "words": pl.List(pl.String), "seen": pl.Int64, "due": pl.Int64,
    "metadata": pl.List(pl.Struct({"key": pl.String, "value": pl.String})),
}  # fmt: skip


def _on(function):
    def apply(*values):
        bared = [bare(value) for value in values]
        return Maybe(None if None in bared else function(*bared))

    return apply


PYTHON = {
    "__builtins__": {}, "M": Maybe, "bare": bare, "length": _on(len), "lower": _on(str.lower),
    "strip": _on(str.strip), "startswith": _on(str.startswith), "endswith": _on(str.endswith),
    "whole": _on(lambda text, pattern: re.fullmatch(pattern, text) is not None),
    "search": _on(lambda text, pattern: re.search(pattern, text) is not None),
}  # fmt: skip


def frame_of_rows(rows):
    stored = []
    for row in rows:
        entries = row["metadata"]
        pairs = entries and [{"key": k, "value": v} for k, v in entries.items()]
        stored.append(row | {"metadata": pairs})
    return pl.DataFrame(stored, schema=SCHEMA)


def python_values(text, rows):
    code = compile(text, "expression", "eval")
    return [
        bare(eval(code, PYTHON | {name: Maybe(value) for name, value in row.items()}))
        for row in rows
    ]


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_conditions_agree_with_python(missing):
    chance = random.Random(7)
    rows = [random_row(chance, missing) for _ in range(40)]
    frame = frame_of_rows(rows)
    maker = Maker(chance)
    for _ in range(400):
        ours, python = maker.condition(chance.randint(0, 4))
        found = condition(ours, FIELDS).of(frame).to_list()
        assert found == [bool(value) for value in python_values(python, rows)], (ours, python)


@pytest.mark.parametrize("kind", ["number", "text"])
def test_values_agree_with_python(kind):
    chance = random.Random(kind)
    rows = [random_row(chance, 0.2) for _ in range(40)]
    frame = frame_of_rows(rows)
    maker = Maker(chance)
    for _ in range(300):
        ours, python = maker.value(kind, chance.randint(0, 3))
        found = value_of(ours, FIELDS).of(frame).to_list()
        wanted = python_values(python, rows)
        if kind == "number":
            assert found == pytest.approx(wanted, nan_ok=False), (ours, python)
        else:
            assert found == wanted, (ours, python)
