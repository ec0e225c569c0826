"""Metrics are those of the catalogue, and no label has a text of strangers."""

import re

import pytest

from nutbeam.policy.components.table_figures import TableFigures
from nutbeam.policy.metrics.catalogue import TABLE_LABEL, catalogue
from nutbeam.policy.metrics.count_labels import count_labels
from nutbeam.policy.metrics.samples import CommandFacts, samples_of
from nutbeam.web.base.progress import HostActivity, Phase, Phases, WaitingHost
from nutbeam.web.engine.request_times import TimesSoFar

HOST = "www.evil.example"
SLOW = HostActivity(active=1, waiting=2, slowest=(WaitingHost(HOST, 3, 9.0),))
FETCH = Phase("fetch", "pages", 9, 4, {"bytes": 7, "success": 3}, 2.0, finished=False, hosts=SLOW)
RUNNING = CommandFacts(
    "crawl", "1.0", 100.0, 200.0, Phases(FETCH, ()), TimesSoFar((1,) * 11, 5.0), {"table": (1, 2)}
)
ENDED = CommandFacts(
    "crawl", "1.0", 100.0, 200.0, Phases(None, (FETCH,)), TimesSoFar((0,) * 11, 0.0),
    ended=150.0, exit_code=0,
)  # fmt: skip
FIGURES = TableFigures(
    snapshot=3, committed=90.0, counts={("fetch", "pages"): 4, ("parse", f"no_parser/{HOST}"): 2},
    commits={"fetch": 1, HOST: 1, f"x.{HOST}": 1}, last_commits={"fetch": 80_000, HOST: 70_000},
    last_pages=85.0, urls={"db_fetched": 4}, hosts=1, batches={"fetched": (1, 4)},
    sizes={"state": (1, 4, 900)},
)  # fmt: skip


def test_samples_are_those_of_the_catalogue_each_once():
    names = set()
    for facts in (RUNNING, ENDED):
        samples = list(samples_of(facts, FIGURES))
        names |= {sample.name for sample in samples}
        series = [(sample.name, sample.labels) for sample in samples]
        assert len(series) == len(set(series))
        for sample in samples:
            assert len(sample.labels) == len(catalogue()[sample.name].labels) - 1, sample
    assert names == set(catalogue())


def test_names_follow_the_rules_of_prometheus():
    for metric in catalogue().values():
        assert re.fullmatch(r"nutbeam(_[a-z]+)+", metric.name)
        assert metric.name.endswith("_total") == (metric.type == "counter")
        # Prometheus sets these itself, and would rename ours.
        assert {"job", "instance", "le"}.isdisjoint(metric.labels)
        assert metric.labels[0] == TABLE_LABEL
        assert not metric.help.endswith(".")


def test_no_label_has_a_text_of_strangers():
    for sample in samples_of(RUNNING, FIGURES):
        assert "evil" not in " ".join(sample.labels)


@pytest.mark.parametrize(
    ("job", "name", "labels"),
    [
        ("fetch", "pages", ("fetch", "pages", "")),
        ("fetch", "protocol/notfound", ("fetch", "protocol", "notfound")),
        ("fetch", "not_fetched/http_502", ("fetch", "not_fetched", "http_5xx")),
        ("fetch", "not_fetched/localhost", ("fetch", "not_fetched", "other")),
        ("parse", "no_parser/application", ("parse", "no_parser", "other")),
        ("parse", "skipped/word_of_a_plugin", ("parse", "skipped", "other")),
        ("parse", "failed/filter_price", ("parse", "failed", "filter_NAME")),
        ("update", "dropped/redirect_filtered", ("update", "dropped", "filtered")),
        ("generate", "left_out/in_batch", ("generate", "left_out", "in_batch")),
        ("inject", "filtered/My rules.txt:12", ("inject", "filtered", "my_rules_txt_12")),
        ("index", "http://a/b", ("index", "other", "other")),
        (HOST, HOST, ("other", "other", "")),
    ],
)
def test_labels_of_counts(job, name, labels):
    assert count_labels(job, name) == labels


def test_a_last_page_of_the_command_is_newer_than_that_of_the_table():
    def last_page(seconds):
        facts = CommandFacts("crawl", "1.0", 0.0, 0.0, Phases(None, ()), TimesSoFar((0,) * 11, 0.0),
                             last_page=seconds)  # fmt: skip
        samples = {s.name: s.value for s in samples_of(facts, FIGURES)}
        return samples["nutbeam_last_page_timestamp_seconds"]

    assert (last_page(0.0), last_page(99.0)) == (85.0, 99.0)
