"""Counts by rule of the URL filters: few of them, only where they are asked for, in what jobs print."""

import json

import polars as pl
import pytest
from crawling import crawl, nutbeam
from file_changes import changes_of
from frames import table_of
from simulated_web import SimWeb

from nutbeam.io.tablets.written import sum_counts
from nutbeam.policy.components.document_schema import DOCUMENTS
from nutbeam.policy.components.host_rows import seeds_of
from nutbeam.policy.components.page_facts import BatchOrigin
from nutbeam.policy.components.rule_counts import (
    MOST_RULES,
    OTHERS,
    by_rule,
    cap_rule_counts,
    is_of_rule,
)
from nutbeam.policy.components.schema import PAGES, empty, to_frame
from nutbeam.policy.links import LinkOptions
from nutbeam.policy.parsing.documents import DocumentOptions, ParseRules, documents_of
from nutbeam.transforms.wiring.metrics import metrics_of
from nutbeam.web.exchange.status import FETCH_REDIR_TEMP, FETCH_SUCCESS
from nutbeam.web.filters import verdicts
from nutbeam.web.rules.url_rules import UrlOptions, UrlRules
from nutbeam.web.urls.row_keys import to_key

SEEDS = seeds_of(pl.Series(["com.foo"]))
URL = "http://foo.com/"
PAGE = "".join(f"<a href={href}></a>" for href in ("/a.png", "/b.png", "/c.exe", "/d", "mailto:x"))


def page(**columns):
    return {"key": to_key(URL), "score": 1.0, "distance": 0, "fetch_status": FETCH_SUCCESS,
            "fetch_time": 7, "content_type": "text/html", "body": PAGE.encode(), **columns}  # fmt: skip


@pytest.mark.parametrize("asked", [True, False])
def test_links_of_documents(asked):
    options = DocumentOptions(count_by_rule=asked)
    _, counts = documents_of(table_of(PAGES, page()), ParseRules(options, SEEDS))
    assert counts["dropped/filtered"] == 3
    by = {"filtered/regex-urlfilter.txt:20": 2, "filtered/regex-urlfilter.txt:24": 1}
    assert {name: n for name, n in counts.items() if is_of_rule(name)} == (by if asked else {})


@pytest.mark.parametrize("asked", [True, False])
def test_targets_of_redirects(asked, tmp_path):
    rules = tmp_path / "my rules.txt"
    rules.write_text("# mine\n-secret\n")
    pages = to_frame(table_of(PAGES, page(fetch_status=FETCH_REDIR_TEMP, redirect=f"{URL}secret")))
    options = LinkOptions(count_by_rule=asked, url_filter_file=str(rules))
    origin = BatchOrigin(0, "b")
    _, counts = changes_of(pages, empty(DOCUMENTS), origin, SEEDS, options)
    by = {"filtered/my rules.txt:2": 1} if asked else {}
    assert counts == {"dropped/redirect_filtered": 1, **by}


def test_only_rules_that_refuse_most_are_counted_one_by_one(tmp_path):
    names = [f"h{n}.com" for n in range(1000)]
    (tmp_path / "domaindenylist-urlfilter.txt").write_text("\n".join(names))
    options = UrlOptions(url_filters=("domaindenylist",), url_rules_dir=str(tmp_path))
    urls = [f"http://{name}/{n}" for n, name in enumerate(names)]
    urls += [f"http://h7.com/more{n}" for n in range(9)]
    counts = by_rule(UrlRules(options).admit(pl.Series(urls), by=True))
    assert len(counts) == MOST_RULES + 1
    assert counts["filtered/domaindenylist-urlfilter.txt:8"] == 10
    assert counts[f"filtered/{OTHERS}"] == 1000 - MOST_RULES
    # So it is when what workers have counted is added up, though each has other rules.
    parts = [{f"filtered/a.txt:{10 * part + n}": n for n in range(1, 10)} for part in range(20)]
    total = cap_rule_counts(
        sum_counts([*parts, {"dropped/filtered": 900, f"filtered/{OTHERS}": 5}])
    )
    assert len(total) == MOST_RULES + 2
    assert sum(n for name, n in total.items() if is_of_rule(name)) == 905
    assert total["dropped/filtered"] == 900


def test_no_rule_is_named_where_none_refuses(monkeypatch):
    monkeypatch.setattr(verdicts, "_names", None)  # calling it fails
    rules = UrlRules()
    admitted = rules.admit(pl.Series([f"{URL}{n}" for n in range(300)]), by=True)
    assert admitted["by"].null_count() == 300
    refused = pl.Series([f"{URL}a.png"])
    assert rules.admit(refused)["reason"].to_list() == ["filtered"]
    with pytest.raises(TypeError):
        rules.admit(refused, by=True)


@pytest.mark.parametrize(
    ("job", "name", "metric"),
    [
        ("parse", "filtered/regex-urlfilter.txt:20",
         ("nutbeam_parser", "filtered_regex_urlfilter_txt_20")),
        ("fetch", "filter_timeout/a.txt:1", ("nutbeam_parser", "filter_timeout_a_txt_1")),
        ("inject", f"filtered/{'x' * 100}:12", ("nutbeam_injector", f"{'x' * 57}_12")),
    ],
)  # fmt: skip
def test_metrics(job, name, metric):
    assert metrics_of(job, name) == (metric,)


@pytest.mark.long
def test_jobs_and_a_crawl_print_counts_by_rule(tmp_path, capsys):
    urls = [f"{URL}{name}" for name in ("", "a.png", "b.png")]
    assert nutbeam("inject", tmp_path / "table", *urls, "--count_by_rule") == 0
    assert "dropped/filtered 2, filtered/regex-urlfilter.txt:20 2, " in capsys.readouterr().out
    with SimWeb(hosts=1, pages=1, seed=7, crawl_delay=0) as web:
        words = (*web.seeds, f"{web.seeds[0]}a.png", "--count_by_rule")
        assert crawl(tmp_path / "crawled", web, *words, "--format", "json") == 0
        record = json.loads(capsys.readouterr().out)
        assert record["refused_by"]["filtered/regex-urlfilter.txt:20"] >= 1
        assert sum(record["refused_by"].values()) >= record["dropped"]["filtered"]
        assert crawl(tmp_path / "again", web, *words) == 0
    printed = capsys.readouterr().out
    assert "URLs refused by rule" in printed
    assert "filtered/regex-urlfilter.txt:20" in printed
