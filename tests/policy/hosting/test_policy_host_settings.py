"""Lines with settings of hosts: what is read, and what is refused in one line that quotes it."""

import random

import pytest

from nutbeam.policy.components.host_rows import HostSettings, settings_of
from nutbeam.policy.hosting.host_settings import host_lines


def lines(*texts):
    return host_lines(enumerate(texts, 1), "f")


def test_hosts_urls_tabs_and_spaces():
    assert lines(
        "http://www.Example.com/x\tdelay=2.5\tnote=two words",
        "b\u00fccher.de max_count=0 max_interval=60",
        "[::1]",
    ) == {
        "com.example.www": {"delay": "2.5", "note": "two words"},
        "de.xn--bcher-kva": {"max_count": "0", "max_interval": "60"},
        "[::1]": {},
    }


def test_all_settings():
    words = ["threads=4", "max_count=9", "min_interval=60", "max_interval=3600", "boost=1.5"]
    values = dict(word.split("=") for word in words)
    assert settings_of(values) == HostSettings(
        threads=4, max_count=9, min_interval=60, max_interval=3600, boost=1.5
    )
    assert settings_of({"blocked": "Yes", "owner": "me"}) == HostSettings(
        blocked=True, metadata={"owner": "me"}
    )


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["a.com delay=x"], "f:1: delay must be a number from 0 to 86400, got 'x' in 'a.com delay=x'"),
        (["a.com delay=nan"], "got 'nan'"),
        (["a.com threads=0"], "threads must be a whole number from 1 to 1000, got '0'"),
        (["a.com max_count=1e999"], "max_count must be a whole number"),
        (["a.com blocked=maybe"], "blocked must be true or false, got 'maybe'"),
        (["a.com dealy=1"], "unknown setting 'dealy', did you mean delay?"),
        (["a.com min_interval=9 max_interval=8"],
         "min_interval=9 and max_interval=8 contradict each other in 'a.com min_interval=9"),
        (["a.com blocked=true max_count=5"], "blocked=true and max_count=5 contradict each other"),
        (["a.com threads=2 delay=1"], "threads=2 and delay=1 contradict each other"),
        (["a.com delay=1 delay=2"], "'delay=1' and 'delay=2' contradict each other"),
        (["a.com delay=1", "a.com delay=2"], "f:2: 'a.com delay=2' contradicts line 1: 'a.com delay=1'"),
        (["a.com delay"], "f:1: expected NAME=VALUE, got 'delay'"),
        (["a/b delay=1"], "f:1: expected a host or a URL, got 'a/b'"),
        (["http://%zz/ delay=1"], "expected a host or a URL"),
    ],
)  # fmt: skip
def test_invalid_lines_are_refused_with_one_line(texts, message):
    with pytest.raises(ValueError, match=r".") as caught:
        lines(*texts)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_random_lines_are_read_or_refused_in_one_line():
    numbers = random.Random(1)
    words = ["a.com", "[::1]", "http://b.de/x", "delay=1", "delay=", "=2", "blocked=true", "x=y",
             "\u00fc.de", "%", "threads=99999999999999999999", "boost=inf", "\x00", "max_count=-1"]  # fmt: skip
    read, errors = 0, []
    for _ in range(500):
        line = numbers.choice("\t ").join(numbers.choices(words, k=numbers.randint(1, 4)))
        try:
            lines(line)
            read += 1
        except ValueError as error:
            errors.append(str(error))
    assert read > 20
    assert {len(error.splitlines()) for error in errors} == {1}
