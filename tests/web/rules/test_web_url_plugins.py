import contextlib
import functools
import logging
import subprocess
import sys
import time

import polars as pl
import pyarrow as pa
import pytest

from nutbeam.policy.components.blocklist import Blocklist
from nutbeam.policy.filtering import JUDGED, RowRules, filter_rows
from nutbeam.web.base.errors import UsageError
from nutbeam.web.plugins import call_limits
from nutbeam.web.rules import url_plugins
from nutbeam.web.rules.url_plugins import PluginFilter, PluginNormalizer
from nutbeam.web.rules.url_rules import UrlOptions, UrlRules

URLS = pl.Series([f"http://a.com/{n}" for n in range(9)])
BAD = "http://a.com/5"


@pytest.fixture(autouse=True)
def _nothing_logged_before():
    url_plugins._logged.clear()


def judged(function, urls=URLS):
    verdicts = PluginFilter("mine", function).decide_column(urls)
    return [
        "failed" if slow else accept
        for accept, slow in zip(verdicts.accept, verdicts.slow, strict=True)
    ]


def rules_with(tmp_path, text, **options):
    (tmp_path / "rules.py").write_text(text)
    named = {
        name: tuple(word.replace("@", f"{tmp_path}/rules.py:") for word in words)
        for name, words in options.items()
    }
    return UrlRules(UrlOptions(**named))


@pytest.mark.parametrize(
    "result",
    [
        lambda urls: urls != BAD,
        lambda urls: (urls != BAD).to_arrow(),
        lambda urls: (urls != BAD).to_numpy(),
        lambda urls: [url != BAD for url in urls],
        lambda urls: [None if url != BAD else False for url in urls],
        lambda urls: ["five" if url == BAD else True for url in urls],
        lambda urls: pa.array(["" if url == BAD else None for url in urls.to_list()]),
    ],
)
def test_a_filter_may_return_any_column_of_booleans_or_words(result):
    assert judged(result) == [url != BAD for url in URLS]


@pytest.mark.parametrize(
    "result",
    [
        lambda urls: [{}["no"] if url == BAD else True for url in urls],
        lambda urls: sys.exit(3) if BAD in urls else urls.is_not_null(),
        lambda urls: urls.is_not_null().filter(urls != BAD),
        lambda urls: [5 if url == BAD else None for url in urls],
        lambda urls: ["two words" if url == BAD else None for url in urls],
        lambda urls: True if BAD in urls else urls.is_not_null(),
        lambda urls: urls.str.len_bytes() if BAD in urls else urls.is_not_null(),
    ],
    ids=["raises", "exits", "length", "type", "word", "no column", "numbers"],
)
def test_a_fault_of_a_filter_costs_the_url_that_causes_it(result, caplog):
    assert judged(result) == [True] * 5 + ["failed"] + [True] * 3
    (record,) = caplog.records  # only the first fault of a process
    assert f"url filter 'mine' failed for '{BAD}': " in record.getMessage()


def test_a_filter_that_only_fails_on_many_urls_at_once_costs_none_and_is_logged(caplog):
    assert judged(lambda urls: urls.is_not_null() if len(urls) < 3 else None) == [True] * 9
    assert " URLs from 'http://a.com/0' on: TypeError: expected a column" in caplog.text


def loop(urls):
    while BAD in urls:
        with contextlib.suppress(Exception):  # does not keep it alive
            sum(range(100))
    return urls.is_not_null()


@pytest.fixture
def short_limits(monkeypatch):
    monkeypatch.setattr(url_plugins, "_LONGEST_S", 0.5)
    monkeypatch.setattr(url_plugins, "_LEAST_S", 0.3)
    monkeypatch.setattr(call_limits, "_LOOK_S", 0.01)


@pytest.mark.usefixtures("short_limits")
def test_a_filter_that_never_ends_costs_the_url_that_causes_it_and_is_named_meanwhile(caplog):
    assert judged(loop) == [True] * 5 + ["failed"] + [True] * 3
    first, *_, last = [record.getMessage() for record in caplog.records]
    assert first == (
        "url filter 'mine' at 9 URLs from 'http://a.com/0' on has not ended after 0.5 s"
    )
    assert last.startswith(
        f"url filter 'mine' failed for '{BAD}': CallTookTooLong: it took longer "
    )
    assert "(test_web_url_plugins.py:" in last


@pytest.mark.usefixtures("short_limits")
def test_a_normalizer_that_never_ends_costs_the_url_that_causes_it():
    step = PluginNormalizer("mine", lambda urls, scope: urls.filter(loop(urls)), "inject")
    reasons = step.apply_column(URLS).reasons.to_list()
    assert reasons == [None] * 5 + ["url_normalizer_mine"] + [None] * 3


@pytest.mark.usefixtures("short_limits")
def test_the_exception_that_ends_a_late_call_meets_no_other_code():
    def work(seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            pass

    late = 0
    for step in range(60):  # calls that end about when they are late
        try:
            call_limits.call_within(functools.partial(work, 0.001 * step), 0.02, lambda: "it")
        except call_limits.CallTookTooLong:
            late += 1
        work(0.002)
    assert 0 < late < 60


LATE_THEN_PROFILED = """
import sys, time
from nutbeam.web.plugins import call_limits

def work(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass

call_limits._LOOK_S = 0.01
try:
    call_limits.call_within(lambda: work(60), 0.02, lambda: "it")
except call_limits.CallTookTooLong:
    sys.setprofile(lambda *_: None)
    work(0)
    print("worked")
"""


def test_after_a_late_call_code_runs_under_a_profiler():
    # Before Python 3.13 an exception that is only taken back lets each call wait for it forever.
    command = [sys.executable, "-c", LATE_THEN_PROFILED]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=100, check=True)
    assert done.stdout == "worked\n"


def test_the_fault_of_a_filter_that_returns_urls_as_in_nutch_names_the_results_it_may_have(caplog):
    assert judged(lambda urls: urls) == ["failed"] * 9
    assert "expected True, False, None, or a word of letters" in caplog.text


def test_an_interrupt_is_no_fault():
    def interrupted(urls):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        judged(interrupted)


def test_words_of_a_filter_are_named_and_faults_say_where(tmp_path):
    text = "def words(urls):\n    return ['odd' if u[-1] in '13' else u.index('a') and None for u in urls]\n"
    rules = rules_with(tmp_path, text, url_filters=("@words",), url_normalizers=("pass",))
    admitted = rules.admit(
        pl.Series(["http://a.com/1", "http://b.org/", "http://a.com/2"]), by=True
    )
    assert admitted.select("reason", "by").rows() == [
        ("filtered", "rules.words:odd"), ("url_filter_rules.words", "rules.words"), (None, None),
    ]  # fmt: skip
    reason, by, rule = rules.filters.judge("http://b.org/")
    assert (reason, by) == ("url_filter_rules.words", "rules.words")
    assert rule.startswith("ValueError: substring not found (rules.py:2: return [")


def test_filters_and_normalizers_work_in_the_order_of_the_options(tmp_path):
    text = (
        "def a(urls, scope): return urls.str.replace('/x$', f'/{scope}')\n"
        "def b(urls, scope): return urls.str.replace('/inject$', '/y')\n"
        "def no_y(urls): return ~urls.str.ends_with('/y')\n"
    )
    rules = rules_with(
        tmp_path, text, url_filters=("regex", "@no_y"), url_normalizers=("@b", "@a", "basic")
    )
    urls = pl.Series(["HTTP://a.com/x", "http://a.com/z"])
    assert rules.admit(urls, "inject")["reason"].to_list() == ["filtered", None]
    assert rules.admit(urls, "outlink")["url"].to_list() == [
        "http://a.com/outlink",
        "http://a.com/z",
    ]
    scoped = rules_with(
        tmp_path, text, url_normalizers_in=("inject=@a+basic",), url_normalizers=("basic",)
    )
    assert scoped.admit(urls, "inject")["url"].to_list() == [
        "http://a.com/inject",
        "http://a.com/z",
    ]
    assert scoped.admit(urls, "outlink")["url"].to_list() == ["http://a.com/x", "http://a.com/z"]


@pytest.mark.parametrize("number", [3, 500])
def test_a_fault_of_a_normalizer_costs_one_url_in_small_and_large_batches(tmp_path, number):
    text = (
        "def norm(urls, scope):\n"
        "    if urls.str.ends_with('/bad').any():\n        raise ValueError('bad')\n"
        "    return urls.set(urls.str.ends_with('/no'), None)\n"
    )
    rules = rules_with(tmp_path, text, url_normalizers=("basic", "@norm"))
    urls = [*(f"http://a.com/{n}" for n in range(number)), "http://a.com/bad", "http://a.com/no"]
    reasons = rules.admit(pl.Series(urls))["reason"].to_list()
    assert reasons == [*[None] * number, "url_normalizer_rules.norm", "normalizer_refused"]


def test_urls_that_a_normalizer_leaves_alone_are_not_normalized_again():
    seen = []

    def norm(urls, scope):
        seen.append(len(urls))
        return urls

    assert not PluginNormalizer("n", norm, "outlink").touches(URLS).any()
    assert seen == [9]


def test_a_normalizer_that_never_ends_is_a_loop(tmp_path):
    text = "def longer(urls, scope): return urls + 'x'\n"
    rules = rules_with(tmp_path, text, url_normalizers=("@longer",))
    assert rules.admit(pl.Series(["http://a.com/"]))["reason"].to_list() == ["normalizer_loop"]


def test_a_class_is_made_once(tmp_path):
    text = (
        "class Mine:\n    made = 0\n    def __init__(self):\n        Mine.made += 1\n"
        "    def __call__(self, urls):\n        return [self.made == 1 for _ in urls]\n"
    )
    rules = rules_with(tmp_path, text, url_filters=("@Mine",))
    for _ in range(3):
        assert rules.admit(URLS)["reason"].null_count() == len(URLS)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "class a:\n    def __init__(self): self.x\n",
            "cannot be made: AttributeError: 'a' object",
        ),
        ("class a: pass\n", "is a class without a method __call__: 'a'"),
        ("a = 5\n", "is no function"),
        ("b = 5\n", "defines no 'a'"),
        ("import x.y.z\n", "rules.py:1: ModuleNotFoundError: No module named 'x'"),
        ("\n\ndef a(:\n", "rules.py:3: SyntaxError: invalid syntax"),
        ("from . import b\n", "rules.py:1: ImportError: attempted relative import"),
        ("def b():\n    raise SystemExit(5)\nb()\n", "rules.py:2: SystemExit: 5"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_its_line(tmp_path, text, said):
    with pytest.raises(UsageError) as failed:
        rules_with(tmp_path, text, url_filters=("@a",))
    assert said in str(failed.value)
    assert "\n" not in str(failed.value)


def test_names_that_are_no_rules_are_quoted():
    with pytest.raises(UsageError, match="no url filter 'gif' is installed: there are regex, auto"):
        UrlRules(UrlOptions(url_filters=("gif",)))
    with pytest.raises(UsageError, match="no url normalizer 'fast' is installed: there are basic"):
        UrlRules(UrlOptions(url_normalizers_in=("inject=fast",)))
    with pytest.raises(UsageError, match=r"a plug-in in a file is PATH\.py:NAME"):
        UrlRules(UrlOptions(url_filters=("./gif.py",)))


def test_a_stored_url_for_which_a_plug_in_fails_stays(caplog):
    caplog.set_level(logging.ERROR)
    rows = pl.DataFrame({"key": ["com.a:http/1", "com.a:http/2", "com.a:http/3"]}).with_columns(
        *(pl.lit(None).alias(name) for name in JUDGED if name != "key")
    )
    verdicts = {
        "key": [None, None, "com.a:http/3"],
        "reason": ["url_filter_mine", "filtered", None],
    }
    leaving, counts = filter_rows(rows, pl.DataFrame(verdicts), RowRules(Blocklist(), 0))
    assert leaving["key"].to_list() == ["com.a:http/2"]
    assert counts == {"rows": 3, "dropped/filtered": 1, "kept/url_filter_mine": 1}
