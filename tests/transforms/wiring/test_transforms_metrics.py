"""Beam's metrics say what the manifest says, under names that hold nothing of the web."""

import re
from collections import Counter

import pytest
from crawling import manifest_of, manifests_of, reach
from running import BEAM_ARGS
from simulated_web import served_web
from web_servers import reply, serve

from nutbeam.pipelines import dedup, fetch, generate, inject, parse, update
from nutbeam.pipelines.launch.job import prepare
from nutbeam.pipelines.round import RoundOptions, stages_of_round
from nutbeam.pipelines.running.runner import run_pipeline
from nutbeam.transforms.tickets import Ticket
from nutbeam.transforms.wiring.metrics import NUTCH, drops_of_tasks, metrics_of

web = served_web(hosts=2, pages=12, scope="module")


def counters(table, operation, build, options):
    """Runs a job and returns its counters by (namespace, name)."""
    pipeline = prepare(Ticket(str(table), operation), build, options, BEAM_ARGS)
    found = run_pipeline(pipeline).metrics().query()["counters"]
    return Counter(
        {
            (metric.key.metric.namespace, metric.key.metric.name): metric.result
            for metric in found
            if metric.key.metric.namespace.startswith("nutbeam_")
        }
    )


def expected(*manifests):
    """Returns the counters that stand for the counts of snapshots."""
    return sum(
        (
            Counter(dict.fromkeys(metrics_of(manifest.job, name), number))
            for manifest in manifests
            for name, number in manifest.counts.items()
        ),
        Counter(),
    )


def options_for(kind, web, **more):
    connect_to = tuple(word for word in reach(web) if ":" in word)
    return kind(connect_to=connect_to, server_delay=0.0, **more)


@pytest.mark.long
def test_counters_of_each_job_agree_with_its_manifest(web, tmp_path):
    table = tmp_path / "table"
    rules = tmp_path / "seeds.txt"
    rules.write_text("\n".join([*web.seeds, *web.seeds, "no url", "ftp://h0.example.com/"]))
    seeds = [str(rules)]
    found = counters(
        table, "o", lambda tickets, options: inject.build(tickets, options, seeds), inject.Options()
    )
    assert found == expected(manifest_of(table))
    assert found["nutbeam_injector", "urls_injected_total"] == 2
    assert found["nutbeam_injector", "urls_injected_unique_total"] == 1
    assert found["nutbeam_injector", "urls_filtered_total"] == 2
    for number in range(2):
        for build, options in (
            (generate.build, generate.Options()),
            (fetch.build, options_for(fetch.Options, web)),
            (parse.build, parse.Options()),
            (update.build, update.Options()),
            (dedup.build, dedup.Options()),
        ):
            found = counters(table, f"o{number}", build, options)
            manifest = manifest_of(table)
            assert found == expected(manifest), manifest.job
    assert found["nutbeam_dedup", "documents_marked_duplicate_total"] == manifest.counts.get(
        "duplicates", 0
    )
    assert {manifest.job for manifest in manifests_of(table)} == {
        "inject", "generate", "fetch", "parse", "update", "dedup",
    }  # fmt: skip


def test_a_round_counts_for_all_its_jobs_and_again_for_none(web, tmp_path):
    table = tmp_path / "table"
    seeds = web.seeds
    counters(
        table, "s", lambda tickets, options: inject.build(tickets, options, seeds), inject.Options()
    )
    options = options_for(RoundOptions, web)

    def build(tickets, options):
        return stages_of_round(options, rounds=1)(tickets, options)

    found = counters(table, "r", build, options)
    done = manifests_of(table)[1:]
    assert [manifest.job for manifest in done] == ["generate", "fetch", "update", "dedup"]
    assert found == expected(*done)
    assert found["nutbeam_parser", "success"] == done[1].counts["parsed"] > 0
    assert found["nutbeam_fetcher", "success"] == done[1].counts["protocol/success"]
    assert found["nutbeam_crawldb", "db_fetched"] == done[2].counts["status/db_fetched"]
    # The same operation again changes nothing, and so counts nothing.
    assert sum(counters(table, "r", build, options).values()) == 0


def test_names_of_metrics_contain_no_text_of_servers(tmp_path):
    """Reason phrases, hosts and paths: a server chooses them, and they are many."""
    table = tmp_path / "table"
    answers = {
        "/": reply(b"", "500 www.evil.example.com"),
        "/a": reply(b"", "599 "),
        "/b": reply(b"x", "200 OK", "Content-Type: www.evil.example.com"),
    }
    with serve(lambda path, _: answers.get(path, reply(b"", "404 evil"))) as server:
        host = "www.example.com"
        seeds = [f"http://{host}{path}" for path in answers]
        counters(
            table, "o", lambda tickets, opts: inject.build(tickets, opts, seeds), inject.Options()
        )
        connect_to = (f"{host}:80:127.0.0.1:{server.port}",)
        options = RoundOptions(connect_to=connect_to, server_delay=0.0)
        found = counters(table, "r", stages_of_round(options, 1), options)
    assert sum(n for (space, _), n in found.items() if space == "nutbeam_fetcher")
    for namespace, name in found:
        assert re.fullmatch(r"nutbeam_[a-z]+", namespace)
        assert re.fullmatch(r"[a-z0-9_]{1,80}", name)
        assert "example" not in name
        assert "evil" not in name


@pytest.mark.parametrize(
    ("job", "name", "metrics"),
    [
        ("fetch", "skipped/www.example.com", [("nutbeam_parser", "notparsed")]),
        ("parse", "failed/filter_www.example.com", [("nutbeam_parser", "failed")]),
        ("fetch", "dropped/www.example.com", [("nutbeam_parser", "dropped_other")]),
        ("fetch", "not_fetched/http://a/", [("nutbeam_fetcher", "not_fetched_other")]),
        ("index", "http://a/b", [("nutbeam_index", "other")]),
        ("fetch", "dropped/time_limit", [("nutbeam_fetcher", "hit_by_timelimit_total")]),
        ("fetch", "dropped/filtered", [("nutbeam_parser", "dropped_filtered")]),
        ("update", "dropped/redirect_filtered", [("nutbeam_crawldb", "dropped_redirect_filtered")]),
        ("fetch", "protocol/robots_denied",
         [("nutbeam_fetcher", "robots_denied"), ("nutbeam_fetcher", "robots_denied_total")]),
    ],
)  # fmt: skip
def test_names(job, name, metrics):
    assert metrics_of(job, name) == tuple(metrics)


def test_pages_that_a_fetch_drops_are_no_links_that_parse_drops():
    named = {name.partition("/")[2] for job, name in NUTCH
             if job == "fetch" and name.startswith("dropped/")}  # fmt: skip
    assert named <= set(drops_of_tasks())
    assert metrics_of("fetch", "dropped/host_blocked") == (
        ("nutbeam_fetcher", "dropped_host_blocked"),
    )
