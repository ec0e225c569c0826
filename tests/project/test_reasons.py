"""The catalogue of reasons and the code name the same reasons; texts name options that exist.

Reasons are words in the code: of exceptions, of columns, of counts. The tests read where code names
one; tests of jobs check what is counted (tests/pipelines/conftest.py).
"""

import ast
import re

import pytest
from package_files import FILES, nodes

from nutbeam.pipelines.checkers.reasons import advice_of
from nutbeam.pipelines.command_line.config import listed_options
from nutbeam.policy.components.reasons import counted_reasons, find_reason, reasons_by_section
from nutbeam.web.network.failures import _REASONS, NOT_SENT
from nutbeam.web.tls.contexts import TLS_REASONS

REASONS = [reason for reasons in reasons_by_section().values() for reason in reasons]
NAMES = {reason.name for reason in REASONS}
FAMILIES = {pair.partition(" ")[2] for reason in REASONS for pair in reason.counted}
COUNT = re.compile(rf"(?:{'|'.join(sorted(FAMILIES - {'-', 'protocol'}))})/(\w+)")
ACTION = re.compile(r"(?:deleted|skipped)_\w+")  # of index, whose reasons have no family
# Exceptions whose first argument is a reason; functions, and which argument is one; names of keywords,
# attributes, and of dictionaries whose keys are reasons.
EXCEPTIONS = {"BadUrl", "ParseFailed", "NoParser", "Denied"}
FUNCTIONS = {"reason_if": 1, "_refuse": 1, "_leave_out": 1, "_stop": 0, "stop": 0, "_drop": 0}
DROPPING = {"page", "_page", "remaining"}  # what has a method ``drop``; so have frames, for columns
KEYWORDS = {"reason", "error", "purge", "drop"}
COUNTERS = {"dropped", "_dropped", "drop_counts"}
# Counts that only look like reasons: the results that are no failures, files that compact drops.
NO_REASONS = {"followed", "inlinks", "sent_again"}
# Words that code puts together: http_404, ``filter_NAME``, ``crashed SIGSEGV``.
PUT_TOGETHER = re.compile(r"http_\w+|\w+_NAME|crashed")


def words(node):
    """Yields the texts that an expression may be."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp | ast.BoolOp):
        for child in ast.iter_child_nodes(node):
            yield from words(child)
    elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "lit":
        yield from words(node.args[0])


def name_of(node):
    return getattr(node, "attr", None) or getattr(node, "id", "")


def places(node):
    """Yields the expressions in a node that are reasons by their place."""
    if isinstance(node, ast.Call):
        name, receiver = name_of(node.func), name_of(getattr(node.func, "value", None))
        if name in EXCEPTIONS:
            yield from node.args[:1]
        if name in FUNCTIONS:
            yield from node.args[FUNCTIONS[name] : FUNCTIONS[name] + 1]
        if name == "drop" and receiver in DROPPING:
            yield from node.args[:2]
        yield from (word.value for word in node.keywords if word.arg in KEYWORDS)
    if isinstance(node, ast.Assign | ast.AugAssign):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Attribute) and target.attr in KEYWORDS:
                yield node.value
            if isinstance(target, ast.Subscript) and name_of(target.value) in COUNTERS:
                yield target.slice


def named_reasons(code):
    """Yields (line, name) of the reasons that the nodes of a syntax tree name."""
    for node in code:
        for place in places(node):
            yield from ((node.lineno, word) for word in words(place) if re.fullmatch(r"\w+", word))
        for word in words(node) if isinstance(node, ast.Constant) else ():
            if match := COUNT.fullmatch(word):
                yield node.lineno, match[1]
            elif ACTION.fullmatch(word):
                yield node.lineno, word


@pytest.mark.parametrize(
    "code",
    [
        'raise BadUrl("odd", url)',
        'reason_if(urls.is_null(), "odd")',
        'page.drop("odd")',
        'remaining.drop(rows, "odd")',
        'self._dropped["odd"] += 1',
        'rows.with_columns(reason=pl.lit("odd"))',
        'response.error = "odd" if early else error',
        'counts = {"dropped/odd": 1}',
    ],
)
def test_a_reason_is_read_wherever_code_names_one(code):
    assert [name for _, name in named_reasons(ast.walk(ast.parse(code)))] == ["odd"]


def test_every_reason_that_code_names_is_in_the_catalogue():
    missing = {
        f"{path.name}:{line}: {name}"
        for path in FILES
        for line, name in named_reasons(nodes(path))
        if name not in NAMES | NO_REASONS and name != "redirect_"
    }
    assert missing == set()


def test_every_reason_of_a_failed_request_is_one_of_fetch():
    names = {*(name for _, name in _REASONS), *NOT_SENT, *TLS_REASONS}
    assert names - counted_reasons("fetch not_fetched", "fetch dropped").keys() == set()


def test_every_reason_of_the_catalogue_is_named_by_code():
    texts = {
        word for path in FILES for node in nodes(path)
        if isinstance(node, ast.Constant) for word in words(node)
    }  # fmt: skip
    texts |= {text.partition("/")[2] for text in texts}
    unused = {name for name in NAMES if not PUT_TOGETHER.fullmatch(name)} - texts
    assert unused == set()


def test_a_count_has_one_reason():
    counts = [(pair, reason.name) for reason in REASONS for pair in reason.counted]
    assert sorted(set(counts)) == sorted(counts)


@pytest.mark.parametrize("reason", REASONS, ids=lambda reason: reason.name)
def test_the_texts_of_a_reason_are_a_clause_and_name_existing_options(reason):
    advice = advice_of(reason, None, "http://a.example.com/")
    for text in filter(None, (reason.meaning, advice)):
        assert not re.search(r"[{}]|\.$|^\s|\s$", text)
    named = re.findall(r"--(\w+)", reason.meaning + advice)
    assert [name for name in named if name not in listed_options()] == []


@pytest.mark.parametrize(
    ("name", "counted", "of"),
    [
        ("http_418", "fetch not_fetched", "http_4xx"),
        ("http_404", "sitemap not_read", "http_404"),
        ("http_304", "fetch not_fetched", "http_NNN"),
        ("http_999", "fetch not_fetched", "http_NNN"),
        ("redirect_own_url", "update dropped", "own_url"),
        ("part_filtered", "parse dropped", "filtered"),
        ("part_repeated", "fetch dropped", "part_repeated"),
        ("filter_mine", "parse failed", "filter_NAME"),
        ("parser_mine.parse", "parse failed", "parser_NAME"),
        ("parser_error", "parse failed", "parser_error"),
        ("url_filter_mine", "inject dropped", "url_filter_NAME"),
        ("redirect_url_normalizer_x", "update dropped", "url_normalizer_NAME"),
        ("protocol_gopher", "fetch not_fetched", "protocol_NAME"),
        ("protocol_error", "fetch not_fetched", "protocol_error"),
        ("purged", "rollback dropped", "purged"),
        ("address_denied", "updatehostdb lookup", "address_denied"),
    ],
)
def test_a_name_that_jobs_put_together_has_its_reason(name, counted, of):
    assert find_reason(name, counted).name == of


def test_a_late_look_up_names_the_limit_of_look_ups():
    look_up, request = (
        find_reason("timeout", by) for by in ("updatehostdb lookup", "fetch not_fetched")
    )
    assert advice_of(look_up, None) == "--lookup_timeout allows more"
    assert advice_of(request, None) == "--timeout allows more"


def test_a_reason_of_another_job_or_of_a_plugin_is_none():
    assert find_reason("self_link", "fetch dropped") is None
    assert find_reason("boring", "parse skipped") is None
