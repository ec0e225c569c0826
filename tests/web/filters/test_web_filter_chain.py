"""Several filters together, and rules that run out of time."""

import polars as pl
from slow_patterns import SLOW, STALLS

from nutbeam.web.filters.list_filters import DomainFilter, FastFilter, PrefixFilter
from nutbeam.web.filters.regex_filter import RegexFilter, Validator
from nutbeam.web.filters.verdicts import FilterChain


def test_a_rule_that_runs_out_of_time_refuses_the_url_and_no_other():
    urls = ["http://foo.com/", SLOW, "http://foo.com/b"]
    rules = RegexFilter(f"-{STALLS}\n+.", "r.txt")
    said = rules.decide_column(pl.Series(urls))
    assert said.accept.to_list() == [True, False, True]
    assert said.slow.to_list() == [False, True, False]
    assert said.line.to_list() == [2, 1, 2]
    assert rules.decide(SLOW) == (False, 1, True)
    judged = FilterChain([rules]).judge_column(pl.Series(urls))
    assert judged.rows() == [(None, "r.txt:2"), ("filter_timeout", "r.txt:1"), (None, "r.txt:2")]
    fast = FastFilter(f"Domain .\nDenyPath {STALLS}", "f.txt")
    assert fast.decide(SLOW) == (False, 2, True)
    assert fast.decide_column(pl.Series(urls)).slow.to_list() == [False, True, False]


def test_a_chain_stops_at_the_first_filter_that_refuses_and_names_it():
    chain = FilterChain(
        [PrefixFilter("http://", "p.txt"), DomainFilter("foo.com", "d.txt"), Validator()]
    )
    urls = ["http://foo.com/", "ftp://foo.com/", "http://bar.com/", "http://foo.com/|", None]
    judged = chain.judge_column(pl.Series(urls))
    assert judged.rows() == [
        (None, "validator"),
        ("filtered", "p.txt"),
        ("filtered", "d.txt"),
        ("filtered", "validator"),
        (None, None),
    ]
    for url, row in zip(urls[:4], judged.rows(), strict=False):
        assert chain.judge(url)[:2] == row
    assert [f.name for f, _ in chain.list_verdicts("http://bar.com/")] == ["p.txt", "d.txt"]
    assert FilterChain([]).judge("http://foo.com/") == (None, "", "")
    assert FilterChain([]).judge_column(pl.Series(urls)).rows() == [(None, None)] * 5
