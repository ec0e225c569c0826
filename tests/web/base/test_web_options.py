import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nutbeam.web.base.option_checks import Launch, check_setup
from nutbeam.web.base.options import (
    Option,
    check_value,
    options_of,
    parse_value,
    shared_option,
    validate,
    value_text,
)
from nutbeam.web.base.options import option as declare


@dataclasses.dataclass(frozen=True)
class HttpOptions:
    timeout: float = declare(10.0, "wait", unit="s", nutch="http.timeout", minimum=0)
    content_limit: int = declare(1 << 20, "largest body", unit="bytes", minimum=-1)
    verify: bool = declare(True, "check certificates")

    def __post_init__(self):
        if self.verify and self.timeout == 0:
            raise ValueError("--timeout must not be 0 with --verify, got 0.0")


@dataclasses.dataclass(frozen=True)
class ScopeOptions:
    scope: str = declare("domain", "where to go", choices=("", "domain", "host", "any"), short="s")
    allow: tuple[str, ...] = declare((), "extra hosts", pattern=r"[a-z.,]*")
    ports: tuple[int, ...] = declare((80,), "ports", maximum=65535)
    seed: int | None = declare(None, "of randomness")
    interval: int = declare(30, "between fetches", unit="d")

    def __post_init__(self):
        if self.scope == "any" and self.allow:
            raise ValueError(f"--allow needs --scope host or domain, got {self.allow!r}")


@dataclasses.dataclass(frozen=True)
class Options(HttpOptions, ScopeOptions):
    top_n: int = declare(50_000, "how many", nutch="generate.topN", minimum=1)


BY_NAME = {known.name: known for known in options_of(Options)}


def test_options_come_from_all_bases_with_their_groups():
    assert {known.name: known.group for known in options_of(Options)} == {
        "scope": "scope",
        "allow": "scope",
        "ports": "scope",
        "seed": "scope",
        "interval": "scope",
        "timeout": "http",
        "content_limit": "http",
        "verify": "http",
        "top_n": "test_web_options",
    }
    assert BY_NAME["timeout"].nutch == "http.timeout"
    assert BY_NAME["seed"].optional
    assert BY_NAME["ports"].item is int


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("timeout", "3", 3.0),
        ("timeout", "250ms", 0.25),
        ("timeout", "1.5h", 5400.0),
        ("timeout", " 2 m ", 120.0),
        ("timeout", "1e-12", 1e-12),
        ("timeout", "3ms", 0.003),
        ("interval", "48h", 2),
        ("content_limit", "64k", 64_000),
        ("content_limit", "64Ki", 65_536),
        ("content_limit", "1.5MiB", 3 << 19),
        ("content_limit", "2GB", 2_000_000_000),
        ("content_limit", "-1", -1),
        ("verify", "False", False),
        ("verify", "on", True),
        ("allow", "", ()),
        ("allow", "a.b, c", ("a.b", "c")),
        ("allow", r"a\,b,c", ("a,b", "c")),
        ("ports", "80,8080", (80, 8080)),
        ("seed", "7", 7),
        ("seed", "none", None),
        ("top_n", "50_000", 50_000),
    ],
)
def test_parse_value(name, text, value):
    parsed = parse_value(BY_NAME[name], text)
    assert parsed == value
    assert type(parsed) is type(value)


def test_a_value_of_another_form_is_refused_in_words_where_the_option_has_some():
    @dataclasses.dataclass(frozen=True)
    class NamedOptions:
        name: str = declare("", "a name", pattern="[a-z]+", form="a word of small letters")

    (name,) = options_of(NamedOptions)
    with pytest.raises(ValueError, match=r"^--name must be a word of small letters, got 'A'$"):
        parse_value(name, "A")


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("timeout", "soon", "a number of s (suffixes ms, s, m, h, d are accepted), got 'soon'"),
        ("timeout", "nan", "a number of s (suffixes ms, s, m, h, d are accepted), got 'nan'"),
        ("timeout", "1e999", "a number of s (suffixes ms, s, m, h, d are accepted), got '1e999'"),
        ("timeout", "-1", "at least 0 s, got -1.0"),
        ("interval", "1h", "a whole number of d (suffixes ms, s, m, h, d are accepted), got '1h'"),
        ("top_n", "1.5", "a whole number, got '1.5'"),
        ("top_n", "10k", "a whole number, got '10k'"),
        ("top_n", "", "a whole number, got ''"),
        ("verify", "maybe", "true or false, got 'maybe'"),
        ("scope", "web", "one of domain, host, any, got 'web'"),
        ("allow", "UP\nDOWN", "a text that matches [a-z.,]*, got 'UP\\nDOWN'"),
        ("ports", "80,99999", "at most 65535, got 99999"),
        ("timeout", "50000d", "at most 2147483647 s, got 4320000000.0"),
        ("interval", "24856", "at most 24855.1348032 d, got 24856"),
    ],
)
def test_parse_value_refuses_in_one_line_that_quotes_the_value(name, text, expected):
    with pytest.raises(ValueError, match=r"^--") as caught:
        parse_value(BY_NAME[name], text)
    assert str(caught.value) == f"--{name} must be {expected}"


def test_long_values_are_cut():
    with pytest.raises(ValueError, match=r"got 'x+\.\.\.'$") as caught:
        parse_value(BY_NAME["top_n"], "x" * 10_000)
    assert len(str(caught.value)) < 300


def test_check_value_takes_lists_and_whole_numbers_for_floats():
    assert check_value(BY_NAME["allow"], ["a", "b"]) == ("a", "b")
    assert type(check_value(BY_NAME["timeout"], 3)) is float


@pytest.mark.parametrize(
    ("name", "value"),
    [("top_n", True), ("top_n", "5"), ("timeout", float("nan")), ("allow", "a"), ("top_n", None)],
)
def test_check_value_refuses_other_types(name, value):
    with pytest.raises(ValueError, match=f"--{name} must be .*, got {value!r}"):
        check_value(BY_NAME[name], value)


def test_validate_checks_values_and_the_post_init_of_every_base():
    validate(Options())
    # Options inherits the __post_init__ of HttpOptions only: validate runs both.
    with pytest.raises(ValueError, match=r"--top_n must be at least 1, got 0"):
        validate(Options(top_n=0))
    with pytest.raises(ValueError, match=r"--allow needs --scope host or domain, got \('a',\)"):
        validate(Options(scope="any", allow=("a",)))
    with pytest.raises(ValueError, match=r"--timeout must not be 0"):
        Options(timeout=0.0)


def test_the_setup_of_every_base_is_checked_once_and_knows_the_launch():
    class Rules:
        def check_setup(self, launch):
            checked.append(("rules", launch.address))

    class Client(Rules):
        def check_setup(self, launch):
            checked.append(("client", launch.local))

    class Job(Client, Rules):
        check = "an option of that name"

    checked = []
    check_setup(Job(), Launch("table", local=True))
    assert checked == [("client", True), ("rules", "table")]


def test_the_group_is_that_of_the_class_that_declares():
    @dataclasses.dataclass(frozen=True)
    class AgentOptions:
        agent_name: str = declare("", "Name.")

    @dataclasses.dataclass(frozen=True)
    class ParseOptions:
        agent_name: str = shared_option(AgentOptions, "agent_name")

    @dataclasses.dataclass(frozen=True)
    class Both(AgentOptions, ParseOptions):
        """The first base counts."""

    @dataclasses.dataclass(frozen=True)
    class Child(AgentOptions):
        agent_name: str = declare("bot", "Name.")

    for cls in (AgentOptions, ParseOptions, Both, Child):
        assert [known.group for known in options_of(cls)] == ["agent"]


def test_a_type_that_no_flag_can_hold_is_a_type_error():
    @dataclasses.dataclass(frozen=True)
    class Wrong:
        table: bytes = declare(b"", "")

    with pytest.raises(TypeError, match=r"Wrong.table has a type no flag can hold"):
        options_of(Wrong)


@given(st.lists(st.text(st.characters(exclude_characters="\\ \t\n"), min_size=1)))
def test_the_text_of_a_list_parses_back(values):
    texts = Option("texts", tuple, (), "")
    values = tuple(value.strip() or "x" for value in values)
    assert parse_value(texts, value_text(texts, values)) == values


@given(st.lists(st.text(st.characters(exclude_categories=["Z", "Cc"]), min_size=1)))
def test_the_text_of_patterns_parses_back_with_its_commas(values):
    patterns = Option("patterns", tuple, (), "", separator=" ")
    values = tuple("".join(value.split()) or "a{2,3}" for value in values)
    assert parse_value(patterns, value_text(patterns, values)) == values


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e9, max_value=1e9))
def test_the_text_of_a_number_parses_back(value):
    number = Option("number", float, 0.0, "", item=float)
    assert parse_value(number, value_text(number, value)) == value
