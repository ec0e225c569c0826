"""Fuzzing of expressions: what users type, and what rule files have."""

import re

import polars as pl
import pyarrow as pa

from nutbeam.policy.components.document_schema import DOCUMENTS_COLUMNS
from nutbeam.policy.components.schema import STATE_COLUMNS, conform
from nutbeam.policy.conditions import fields_of
from nutbeam.policy.expressions.compiler import condition, value_of
from nutbeam.policy.expressions.syntax import ExpressionError

from .target import Clock, Target

SECONDS = 3
_DOCUMENT = DOCUMENTS_COLUMNS.pick("title", "text", "directives", "outlinks", "language")
_COLUMNS = [*STATE_COLUMNS, *_DOCUMENT]
_FIELDS = fields_of(_COLUMNS)
_ROW = {
    "key": "com.example:http/a", "status": 2, "fetch_time": 1_700_000_000_000, "retries": 1,
    "fetch_interval": 86_400, "score": 0.5, "signature": b"\xff", "title": "Ab", "text": "a b",
    "directives": ["noindex"], "metadata": [("a", "1")], "simhash": 2**64 - 1,
    "last_inlink_day": 20_000, "http_code": 200,
}  # fmt: skip
_ODD = {"score": float("nan"), "metadata": [], "directives": [], "key": "[::1]:http/", "title": ""}
WORDS = [
    *(b" and ", b" or ", b"not ", b"!", b"&&", b"||", b"=~", b"!~", b" eq ", b" ne ", b"null", b"None"),
    *(b"(", b")", b"[", b"]", b"'", b'"', b"\\", b" in ", b" if ", b" else ", b"**", b"//", b"%", b"-"),
    *(b"score", b"status", b"url", b"host", b"title", b"metadata['a']", b"directives", b"fetch_time"),
    *(b"now()", b"days(", b".lower()", b"len(", b"matches(", b"float(", b"1e308", b"9999999999999999"),
    *(b"doc.", b"'gone'", b"{1000}", b"'(a|b)*'", b"0x", b"1_0", b"'\\ud800'", b"lambda:", b"\xc3\xa4"),
    *(b"time(", b"'2026-01-31'", b",", b"is ", b"\n", b"\0", b"signature", b"max(", b"~", b"=", b"__"),
]  # fmt: skip


def _frame() -> pl.DataFrame:
    rows = [_ROW, {}, _ROW | _ODD]
    state = {c.name: [row.get(c.name) for row in rows] for c in _COLUMNS}
    schema = pa.schema([(column.name, column.type) for column in _COLUMNS])
    frame = pl.from_arrow(conform(pa.table(state, schema=schema), schema))
    assert isinstance(frame, pl.DataFrame)
    return frame


_ROWS = _frame()


def check(data: bytes) -> None:
    """The input is an expression: it has a value for each row, or one line says what is wrong."""
    text = data.decode("utf-8", "surrogateescape")
    with Clock(SECONDS):
        for compiled in (condition, value_of):
            try:
                expression = compiled(text, _FIELDS, 1_700_000_000_000)
            except ExpressionError as error:
                _look_at(str(error))
                continue
            values = expression.of(_ROWS)
            assert len(values) == len(_ROWS)
            if compiled is condition:
                assert values.dtype == pl.Boolean
                assert values.null_count() == 0
                assert len(_ROWS.filter(expression.expr)) == values.sum()


def _look_at(message: str) -> None:
    assert len(message.splitlines()) == 1, message
    assert re.search(r"at character \d+ of the expression", message), message
    message.encode()


def seeds() -> list[bytes]:
    """Returns expressions of all forms."""
    return [
        b"score > 0.5 and status == 'fetched'",
        b"status eq 'db_gone' || retries >= 3 && !(title eq null)",
        b"url =~ 'https?://[^/]*example.com/.*'",
        b"fetch_time < now() - days(30) or modified_time > '2026-01-31'",
        b"metadata['a'] == '1' and float(metadata['a']) < 3 and 'b' not in metadata",
        b"'noindex' in directives or len(outlinks) > 100",
        b"title.lower().startswith('a') or contains(text, 'x')",
        b"(1 if score > 1 else 2) * fetch_interval / days(1)",
        b"status in ('gone', 'redir_temp', 4) or language in ['de', None]",
        b"doc.getFieldValue('host') == 'example.com'",
        b"0 < score <= 1 and min(score, 3, retries) ** 2 > -1",
        b"1 - -1 < 3 // 2 % 5 + abs(-1)",
        b"(" * 60 + b"1" + b")" * 60,
        b"1" + b"+1" * 120,
        b"-" * 500 + b"1",
        b"(1 if (1 < " * 20 + b"score" + b" < 2) else 2)" * 20,
    ]


TARGETS = (Target("expressions", check, seeds, WORDS, 5000),)
