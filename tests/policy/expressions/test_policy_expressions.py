"""What expressions mean, and what is said about wrong ones."""

import pickle

import polars as pl
import pytest
from frames import frame_of

from nutbeam.policy.components.schema import STATE, STATE_COLUMNS
from nutbeam.policy.conditions import fields_of
from nutbeam.policy.expressions.compiler import condition, value_of
from nutbeam.policy.expressions.syntax import ExpressionError
from nutbeam.policy.expressions.values import Type

DAY = 86_400_000
NOW = 1_700_000_000_000
FIELDS = fields_of(STATE_COLUMNS)
ROWS = [
    {
        "key": "com.example.www:https/a?b=1",
        "status": 2,
        "fetch_time": NOW + DAY,
        "fetch_interval": 7 * 86_400,
        "retries": 0,
        "score": 0.7,
        "signature": b"\x00\xff",
        "metadata": [("topic", "News"), ("rank", "3.5")],
        "last_inlink_day": 365,
        "response_ms": 250,
    },
    {"key": "org.other:http/", "status": 3, "fetch_time": NOW - DAY, "score": float("nan")},
    {"key": "org.other:http/x", "status": 6, "retries": 300},
]
FRAME = frame_of(STATE, *ROWS)


def chosen(text):
    return condition(text, FIELDS, NOW).of(FRAME).to_list()


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("status == 'db_gone'", [1]),
        ("status eq 'gone'", [1]),
        ("status == 'fetched'", [0, 2]),
        ("status != 'fetched'", [1]),
        ("status in ('gone', 'db_notmodified')", [1, 2]),
        ("status == 3 or status =~ 'db_f.*'", [0, 1]),
        ("score >= 0.7", [0]),
        ("score >= 7 / 10", [0]),
        ("score == 1.4 / 2", [0]),
        ("score < 1", [0]),
        ("score == null", [1, 2]),
        ("not score > 0", [1, 2]),
        ("retries", [2]),
        ("fetchTime <= now()", [1]),
        ("fetch_time - now() > hours(23)", [0]),
        ("fetch_time > '2023-11-14T22:13:20Z'", [0]),
        ("fetch_time > 1700000000000", [0]),
        ("interval == days(7)", [0]),
        ("fetch_interval > 86400 && interval / days(1) < 7.5", [0]),
        ("last_inlink_day == time('1971-01-01')", [0]),
        ("signature eq '00ff'", [0]),
        ("metadata['topic'].lower() == 'news'", [0]),
        ("'topic' in metadata", [0]),
        ("float(metadata['rank']) > 3 and float(metadata['topic']) is None", [0]),
        ("metadata['none'] == None", [0, 1, 2]),
        ("len(metadata) != 2", [1, 2]),
        ("host == 'www.example.com'", [0]),
        ("host.endswith('.org') and url =~ 'http://.*'", [1, 2]),
        ("url !~ r'.*\\?.*'", [1, 2]),
        ("search(url, '/[ax]')", [0, 2]),
        ("1 if retries > 3 else None", [2]),
        ("min(retries, 1) == 1", [1, 2]),
        ("!retries eq 300", []),
        ("True", [0, 1, 2]),
    ],
)
def test_conditions(text, rows):
    if text.startswith("!"):
        with pytest.raises(ExpressionError, match="true or false cannot be compared with a number"):
            chosen(text)
        return
    assert [row for row, is_chosen in enumerate(chosen(text)) if is_chosen] == rows


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("scroe > 1", "unknown name 'scroe'; did you mean 'score'? at character 1 of"),
        ("1 < 2 and  scroe > 1", "at character 12 of the expression: 'scroe > 1'"),
        ("status == 'gome'", "unknown name 'gome'; did you mean 'gone'?"),
        ("lovver(url)", "unknown function 'lovver'; did you mean 'lower'?"),
        ("score >", "wrong syntax at character 8 of the expression: it ends there"),
        ("(score > 0", "the bracket ( is not closed at character 1 of the expression: '(score"),
        ("score > 0 && (lower(url) == '(' ", "the bracket ( is not closed at character 14 of"),
        ("metadata['a' > 0", "the bracket [ is not closed at character 9"),
        ("score > 0)", "the bracket ) closes no other at character 10 of the expression: ')'"),
        ("(score > 0]", "the bracket ] closes no other at character 11"),
        ("score = 1", "= is not an operator, == compares at character 7"),
        ("score > 'a'", "a number cannot be compared with a text"),
        ("url =~ '('", "bad regular expression (unclosed group)"),
        ("url =~ '(?=a)'", "look-around"),
        ("url =~ 'a{1000}{1000}'", "size limit"),
        ("url =~ url", "a text is matched by =~ with a pattern that is written out"),
        ("2 ** 100", "an exponent must be from -64 to 64"),
        ("2 ** score", "an exponent must be a number that is written out"),
        ("fetch_time > 'x'", "a time is written as '2026-01-31'"),
        ("response_ms > seconds(2)", "a duration cannot be compared with a number of ms"),
        ("score > 1 ? 1 : 0", "? is not an operator, write A if CONDITION else B"),
        ("url.__class__", "Attribute is not part of the language"),
        ("().__class__.__base__", "Attribute is not part of the language"),
        ("__import__('os')", "unknown function '__import__'"),
        ("[x for x in url]", "ListComp is not part of the language"),
        ("f'{url}'", "JoinedStr is not part of the language"),
        ("days(1, 2)", "days() takes 1 values, got 2"),
        ("", "the expression is empty"),
        ("'" + "a" * 5000 + "'", "an expression has at most 4096 characters, got 5002"),
        ("(" * 60 + "1" + ")" * 60, "more than 50 brackets are open"),
        ("1" + "+1" * 150, "more than 100 levels"),
        ("1 in (" + "1," * 1200 + ")", "at most 1000 names, values and operators"),
        ("(1 if (1 < " * 16 + "score" + " < 2) else 2)" * 16, "the expression is too complex"),
        ("'\\ud800' == url", "a half of a surrogate pair"),
    ],
)
def test_mistakes_are_named_with_their_place(text, message):
    with pytest.raises(ExpressionError) as error:
        condition(text, FIELDS)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)


def test_values_have_types():
    assert value_of("retries * 2 + 1", FIELDS).of(FRAME).to_list() == [1, None, 601]
    found = value_of("fetch_time + days(1)", FIELDS)
    assert (found.type, found.needs) == (Type.TIME, ("fetch_time",))
    assert found.of(FRAME).to_list() == [NOW + 2 * DAY, NOW, None]
    assert value_of("fetch_time - now()", FIELDS, NOW).type is Type.DURATION
    assert value_of("1 / 0", FIELDS).of(FRAME).to_list() == [None] * 3
    with pytest.raises(ExpressionError, match="must be a single value, got a map"):
        value_of("metadata", FIELDS)


def test_only_needed_columns_are_read():
    expression = condition("host == 'other.org' and retries", FIELDS)
    assert expression.needs == ("key", "retries")
    lazy = FRAME.lazy().select(expression.needs).filter(expression.expr)
    assert lazy.collect().rows() == [("org.other:http/x", 300)]


def test_an_empty_frame_has_values_too():
    assert condition("retries > 1 or True", FIELDS).of(FRAME.clear()).to_list() == []
    assert FRAME.filter(condition("1 < 2", FIELDS).expr).height == 3
    assert pl.DataFrame({"x": [1]}).filter(condition("2 < 1", {}).expr).height == 0
