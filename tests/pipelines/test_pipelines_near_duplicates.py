"""dedup with near duplicates, against a reference that works row by row."""

import functools
import itertools
import random

import apache_beam as beam
import polars as pl
import pytest
from crawling import nutbeam, rows_of
from frames import frame_of
from reference_dedup import (
    ALIVE,
    DUPLICATE,
    bits,
    check_promises,
    full_dedup,
    random_row,
    random_rows,
)
from running import run
from web_servers import reply, serve

from nutbeam.io.batches.batches import batch_component, write_file
from nutbeam.io.snapshots.commit import CommitTerms, commit
from nutbeam.io.snapshots.entries import Batch
from nutbeam.io.snapshots.operations import begin
from nutbeam.io.tablets.tablet_writer import TabletWriter
from nutbeam.io.tablets.written import Written
from nutbeam.pipelines import dedup
from nutbeam.pipelines.dedup import Judge
from nutbeam.pipelines.launch.job import prepare
from nutbeam.policy.components.schema import OUTCOME, STATE, conform, to_frame
from nutbeam.policy.dedup.duplicates import (
    ORDERS,
    SCHEME,
    SIGNATURES,
    VERDICTS,
    DedupOptions,
    apply_verdicts,
    comparable_rows,
    follow_twins,
    order_by,
    signature_rows,
)
from nutbeam.transforms.dedup_by_hash import dedup_by_hash
from nutbeam.transforms.near_pages.lead_near_pages import lead_near_pages
from nutbeam.transforms.tickets import Ticket

NOW = 1_700_000_000_000
ORDERINGS = [words for size in (1, 2, 3, 4) for words in itertools.permutations(ORDERS, size)]


def judged_by_functions(rows, options):
    """Applies the pure functions of the steps of dedup one after the other."""
    pages = signature_rows(comparable_rows(rows, NOW), options, all_pages=True)
    if SCHEME in options.compare_order:
        pages = follow_twins(pages, options)
    order, descending = map(tuple, order_by(options, twins=False))
    kept, lost = dedup_by_hash(pages, "group", order, descending)
    named = lost.join(kept.select("group", duplicate_of="key"), on="group")
    verdicts = [named.select("key", "duplicate_of")]
    hashed = kept.filter(pl.col("hash").is_not_null())
    if options.near:
        led = lead_near_pages(hashed, options.dedup_distance, order, descending)
        near = led.filter(pl.col("winner") != pl.col("key"))
        verdicts.append(near.select("key", duplicate_of="winner"))
    return to_frame(conform(pl.concat(verdicts), VERDICTS))


def said(rows):
    return {key: (status, of) for key, status, of in rows.select("key", "status", "duplicate_of").rows()}  # fmt: skip


@pytest.mark.few(4)
@pytest.mark.parametrize("group", ["none", "host", "domain"])
@pytest.mark.parametrize("distance", [0, 1, 3, 8])
def test_all_orders_agree_with_a_reference_by_rows(group, distance):
    for at, words in enumerate(ORDERINGS):
        numbers = random.Random(f"{group} {distance} {at}")
        rows = random_rows(numbers, numbers.choice((3, 20, 60)))
        options = DedupOptions(dedup_group=group, compare_order=words, dedup_distance=distance)
        frame = frame_of(STATE, *rows)
        marked, _ = apply_verdicts(frame, judged_by_functions(frame, options))
        assert said(marked) == full_dedup(rows, group, words, distance), words


@pytest.mark.parametrize(
    ("group", "words"),
    [
        ("none", ("score", "fetchTime", "urlLength")),
        ("host", ("urlLength", "httpsOverHttp")),
        ("domain", ("httpsOverHttp", "score", "fetchTime", "urlLength")),
    ],
)
def test_the_transform_agrees_with_a_reference_by_rows(group, words):
    rows = random_rows(random.Random(group), 150)
    frame = frame_of(STATE, *rows)
    options = DedupOptions(dedup_group=group, compare_order=words)
    pages = signature_rows(comparable_rows(frame, NOW), options, all_pages=True)
    chunks = [conform(part, SIGNATURES) for part in pages.iter_slices(40)]

    def build(p):
        three = beam.pvalue.AsSingleton(p | "Three" >> beam.Create([3]))
        return p | beam.Create(chunks) | Judge(options, three)

    verdicts = pl.concat(to_frame(chunk) for _, chunk in run(build))
    marked, counts = apply_verdicts(frame, verdicts)
    expected = full_dedup(rows, group, words, 3)
    assert said(marked) == expected
    signatures = {row["key"]: row["signature"] for row in rows}
    others = {
        key: of for key, (_, of) in expected.items() if of and signatures[key] != signatures[of]
    }
    assert counts["near_duplicates"] == len(others)
    assert counts["near_clusters"] == len(set(others.values()))


def write_table(table, rows, outcome, number):
    """Commits rows as all of the state, and a batch that waits for dedup if there is an outcome."""
    operation = begin(str(table), "load", f"load-{number}", now=NOW)
    writer = TabletWriter(table, "state", STATE)
    writer.write(frame_of(STATE, *rows))
    written = [Written("state", tuple(writer.close()))]
    batches = {}
    if outcome:
        name = f"{number + 1_000_000_000}-00000000"
        file = write_file(table, name, "outcome", [conform(frame_of(OUTCOME, *outcome), OUTCOME)])
        written.append(Written(batch_component(name, "outcome"), (file,)))
        batches[name] = Batch("updated", NOW, 1, len(outcome), NOW)
    commit(operation, written, CommitTerms(others=batches))
    return next(iter(batches), None)


def fetched_again(numbers, rows):
    """Changes some rows as an update would; returns (rows, outcome)."""
    after, outcome = [], []
    for row in rows:
        if row["status"] not in (*ALIVE, DUPLICATE, 1) or numbers.random() > 0.25:
            after.append(row)
            continue
        new = random_row(numbers, row["key"])
        if row["signature"] and numbers.random() < 0.4:
            new["signature"], new["status"] = row["signature"], 6
        elif new["status"] == 1:
            new["status"] = 3
        outcome.append(
            {
                "key": row["key"],
                "status": new["status"],
                "signature": new["signature"],
                "old_status": row["status"],
                "old_signature": row["signature"],
            }
        )
        after.append(new)
    return after, outcome


def state_of(table):
    names = ["key", "status", "signature", "score", "last_fetch_time", "duplicate_of"]
    return rows_of(table, "state").select(names).rows(named=True)


def test_the_rounds_of_a_job_follow_the_size_of_its_table_and_change_nothing(tmp_path, monkeypatch):
    rows, pages = random_rows(random.Random(5), 150), []
    monkeypatch.setattr(dedup, "rounds_for", lambda number: pages.append(number) or 2)
    write_table(tmp_path / "table", rows, [], 0)
    assert nutbeam("dedup", tmp_path / "table") == 0
    assert pages == [len(rows)]
    expected = full_dedup(rows, "none", ("score", "fetchTime", "urlLength"), 3)
    found = state_of(tmp_path / "table")
    assert {row["key"]: (row["status"], row["duplicate_of"]) for row in found} == expected


def test_a_small_table_has_no_further_shuffles_and_a_large_one_three_for_each_round():
    def shuffles(pages):
        build = functools.partial(dedup.build, pages=pages)
        pipeline = prepare(Ticket("table", "operation"), build, dedup.Options(), [], "dedup")
        return str(pipeline.to_runner_api()).count("beam:transform:group_by_key:v1")

    assert shuffles(0) == shuffles(2_000_000)
    assert shuffles(8 << 20) - shuffles(0) == 3 * 2


@pytest.mark.long
@pytest.mark.parametrize("group", ["host", "none"])
def test_batch_by_batch_no_pages_that_stay_are_near_each_other(tmp_path, group):
    numbers = random.Random(group)
    words = ["--dedup_group", group, "--compare_order", "score,urlLength"]
    rows, outcome, folder = random_rows(numbers, 150), [], None
    for number in range(6):
        folder = tmp_path / f"t{number}"
        batch = write_table(folder, rows, outcome, number)
        assert nutbeam("dedup", folder, *words, *(("--batch", batch) if batch else ())) == 0
        rows = state_of(folder)
        check_promises(rows, group, 3)
        if number == 0:
            assert sum(row["status"] == DUPLICATE for row in rows) > 20
        rows, outcome = fetched_again(numbers, rows)
    last = tmp_path / "last"
    write_table(last, rows, [], 9)
    assert nutbeam("dedup", last, *words) == 0
    expected = full_dedup(rows, group, ("score", "urlLength"), 3)
    assert {row["key"]: (row["status"], row["duplicate_of"]) for row in state_of(last)} == expected


def pages_with_few_other_words(path, _):
    """``/1`` to ``/6`` have 600 words, of which two are not those of the next one; ``/7`` has others."""
    if path == "/":
        text = "".join(f'<a href="/{number}">{number}</a>' for number in range(1, 8))
    elif path.strip("/") in set("1234567"):
        number = int(path.strip("/"))
        words = random.Random(number == 7).choices([f"word{n}" for n in range(500)], k=600)
        text = " ".join([*words, f"only{number}", f"here{number}"])
    else:
        return reply(b"", "404 Not Found")
    html = f"<html><body>{text}</body></html>"
    return reply(html.encode(), "200 OK", "Content-Type: text/html")


def test_near_pages_of_a_crawl_are_found(tmp_path):
    table, host = tmp_path / "table", "a.example.com"
    with serve(pages_with_few_other_words) as server:
        words = ["--connect_to", f"{host}:80:127.0.0.1:{server.port}", "--server_delay", "0"]
        words += ["--rounds", "2", "--signature", "simhash"]
        assert nutbeam("crawl", table, f"http://{host}/", *words) in (0, 4)
    rows = {row["key"].rpartition("/")[2]: row for row in state_of(table)}
    lost = {path: row for path, row in rows.items() if row["status"] == DUPLICATE}
    winners = {row["duplicate_of"].rpartition("/")[2] for row in lost.values()}
    apart = [
        bits(row["signature"], rows[row["duplicate_of"].rpartition("/")[2]]["signature"])
        for row in lost.values()
    ]
    assert 0 < max(apart) <= 3
    assert set(lost) | winners <= set("123456")
    check_promises(list(rows.values()), "none", 3)
