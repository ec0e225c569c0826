"""Figures of a table agree with DuckDB, or a row-by-row reference, over the same rows."""

import json
import random
from collections import Counter

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from crawling import nutbeam
from frames import frame_of

from nutbeam.io.snapshots.commit import commit
from nutbeam.io.snapshots.operations import begin
from nutbeam.io.storage.table_sizes import replaced_sizes
from nutbeam.io.tablets.written import Written
from nutbeam.pipelines.views.readdb import best_of, better
from nutbeam.policy.components.schema import STATE, STATUS_NAMES
from nutbeam.policy.figures import QUANTILES, statistics_of
from nutbeam.web.urls.row_keys import from_key, to_key

HOSTS = (
    "a.example.com",
    "b.example.com",
    "www.foo.co.uk",
    "10.0.0.1",
    "[2001:db8::1]",
    "localhost",
)


def made_up(number=300):
    dice = random.Random(5)
    scores = [dice.choice([-1, 1]) * n / number for n in range(number)]
    rows = [
        {
            "key": to_key(f"http://{dice.choice(HOSTS)}/{n}"), "status": dice.randrange(1, 10),
            "score": float("nan") if n % 50 == 0 else dice.choice(scores[: n + 1]),
            "fetch_time": 1_700_000_000_000 + 60_000 * n, "fetch_interval": 3600 * (1 + n % 5),
            "retries": n % 4, "http_code": dice.choice([200, 301, 404, None]),
            "protocol_status": dice.choice([1, 16, None]),
            "last_fetch_time": dice.choice([1_600_000_000_000, None]),
            "metadata": [("color", dice.choice(["red", "blue"]))],
        }
        for n in range(number)
    ]  # fmt: skip
    return sorted(rows, key=lambda row: row["key"])


ROWS = made_up()


def store(table, rows):
    operation = begin(str(table), "inject", "made.inject")
    parts = operation.table.load("state", [frame_of(STATE, *rows)])
    commit(operation, [Written("state", part.files) for part in parts])
    return table


@pytest.fixture(scope="module")
def table(tables, tmp_path_factory):
    with replaced_sizes(tablet_rows=70):
        return store(tables(tmp_path_factory.mktemp("figures") / "table"), ROWS)


@pytest.fixture
def shown(capsys):
    """Runs a command; returns the objects that it prints as JSON lines."""

    def run(*words):
        capsys.readouterr()
        assert nutbeam(*words, "--format", "json") == 0
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return run


def asked(query):
    """Returns what DuckDB answers about the rows."""
    state = frame_of(STATE, *ROWS).drop("metadata").to_arrow()
    assert isinstance(state, pa.Table)
    return duckdb.sql(query).fetchall()


def test_statistics_agree_with_duckdb(table, shown):
    (record,) = shown("readdb", table, "--sort")
    names = {name: n for n, name in STATUS_NAMES.items()}
    by_status = dict(asked("SELECT status, count(*) FROM state GROUP BY ALL"))
    assert {names[n]: c for n, c in record["status"].items()} == by_status
    retries = dict(asked("SELECT retries::text, count(*) FROM state GROUP BY ALL"))
    assert record["retries"] == retries
    ((low, average, high),) = asked(
        "SELECT min(score), avg(score::double), max(score) FROM state WHERE NOT isnan(score)"
    )
    found = record["score"]
    assert (found["min"], found["max"]) == (low, high)
    assert found["avg"] == pytest.approx(average)
    ((quantiles,),) = asked(
        f"SELECT quantile_disc(score, {list(QUANTILES)}) FROM state WHERE NOT isnan(score)"
    )
    assert list(found["quantiles"].values()) == quantiles
    assert len(quantiles) == 15
    assert record["score_nan"] == sum(row["score"] != row["score"] for row in ROWS)
    hosts = Counter((STATUS_NAMES[r["status"]], host_of(r)) for r in ROWS)
    assert {(s, h): n for s, some in record["hosts"].items() for h, n in some.items()} == hosts
    for some in record["hosts"].values():
        assert list(some.values()) == sorted(some.values(), reverse=True)


def host_of(row):
    return from_key(row["key"]).split("/")[2]


@pytest.mark.few(1)
@pytest.mark.parametrize("by", ["host", "domain", "suffix", "tld"])
def test_domainstats(table, shown, by):
    names = {
        "a.example.com": ("example.com", "com", "com"),
        "b.example.com": ("example.com", "com", "com"),
        "www.foo.co.uk": ("foo.co.uk", "co.uk", "uk"),
        "10.0.0.1": ("10.0.0.1", None, None),
        "[2001:db8::1]": ("[2001:db8::1]", None, None),
        "localhost": ("localhost", None, "localhost"),
    }
    fetched = [host_of(row) for row in ROWS if row["status"] in (2, 6)]
    level = ("domain", "suffix", "tld").index(by) if by != "host" else None
    expected = Counter(host if level is None else names[host][level] for host in fetched)
    del expected[None]
    totals, found = shown("domainstats", table, "--mode", by), {}
    found = {record["key"]: record["number"] for record in totals}
    assert found.pop("FETCHED") == len(fetched)
    assert found.pop("NOT_FETCHED") == len(ROWS) - len(fetched)
    assert {name: found.get(name) for name in expected} == expected


def test_crawlcomplete_and_protocolstats(table, shown):
    expected = Counter(
        (host_of(row), "FETCHED" if row["status"] in (2, 6) else "UNFETCHED") for row in ROWS
    )
    found = shown("crawlcomplete", table)
    assert {(r["key"], r["which"]): r["number"] for r in found} == expected
    assert sum(r["number"] for r in shown("crawlcomplete", table, "--mode", "domain")) == len(ROWS)
    found = shown("protocolstats", table, "--expr", "status == 'gone'")
    gone = [row for row in ROWS if row["status"] == 3]
    assert sum(record["number"] for record in found) == len(gone)
    codes = Counter(str(row["http_code"]) for row in gone if row["http_code"])
    assert {r["key"]: r["number"] for r in found if r["key"].isdigit()} == codes


FILTERS = [
    (("--status", "gone"), lambda r: r["status"] == 3),
    (("--retry", 2), lambda r: r["retries"] >= 2),
    (("--regex", "http://a.*"), lambda r: host_of(r) == "a.example.com"),
    (("--expr", "metadata['color'] == 'red' and host =~ '[ab].*'"),
     lambda r: dict(r["metadata"])["color"] == "red" and host_of(r)[0] in "ab"),
    (("--status", "fetched", "--retry", 1, "--expr", "fetch_interval > hours(2)"),
     lambda r: r["status"] in (2, 6) and r["retries"] >= 1 and r["fetch_interval"] > 7200),
]  # fmt: skip


@pytest.mark.few(3)
@pytest.mark.parametrize(("words", "wanted"), FILTERS, ids=[w[0] for w, _ in FILTERS])
def test_filters_are_the_same_for_stats_dump_and_top(table, shown, words, wanted):
    expected = {from_key(row["key"]) for row in ROWS if wanted(row)}
    assert expected
    assert {r["url"] for r in shown("readdb", table, "--dump", "-", *words)} == expected
    if words[0] == "--expr":
        assert shown("readdb", table, *words)[0]["total_urls"] == len(expected)
        top = shown("readdb", table, "--top", 999, "--min_score", -9, *words)
        good = {from_key(r["key"]) for r in ROWS if wanted(r) and r["score"] == r["score"]}
        assert {record["url"] for record in top} == good


def test_a_sample_is_a_share_and_always_the_same(table, shown):
    first, again = (shown("readdb", table, "--dump", "-", "--sample", 0.3) for _ in range(2))
    assert first == again
    assert 0.2 * len(ROWS) < len(first) < 0.4 * len(ROWS)


def test_dumps_in_each_format(table, tmp_path):
    where = ("--expr", "retries == 3")
    urls = [from_key(row["key"]) for row in ROWS if row["retries"] == 3]
    for ending in ("jsonl", "csv", "parquet", "txt"):
        path = tmp_path / f"dump.{ending}"
        assert nutbeam("readdb", table, "--dump", path, *where) == 0
        if ending == "parquet":
            assert pq.read_table(path).column("url").to_pylist() == urls
        elif ending == "txt":
            records = path.read_text().split("\n\n")[:-1]
            assert [record.partition("\t")[0] for record in records] == urls
            assert "Retries since fetch: 3\n" in records[0]
            assert records[0].splitlines()[-1].startswith(" \tcolor=")
        else:
            assert len(path.read_text().splitlines()) == len(urls) + (ending == "csv")


@pytest.mark.parametrize("scores", [[0.5], [-3.0, -1.0, -2.0], [float("nan")], []])
def test_small_tables(tmp_path, shown, scores):
    rows = [ROWS[n] | {"score": score} for n, score in enumerate(scores)]
    table = store(tmp_path / "table", rows)
    (record,) = shown("readdb", table)
    assert record["total_urls"] == len(scores)
    good = [score for score in scores if score == score]  # noqa: PLR0124
    if good:
        assert (record["score"]["min"], record["score"]["max"]) == (min(good), max(good))
        assert set(record["score"]["quantiles"].values()) <= set(good)
    else:
        assert "score" not in record
    assert shown("domainstats", table)[0]["key"] == "FETCHED"


@pytest.mark.parametrize("command", ["readdb", "export", "domainstats", "protocolstats"])
def test_a_wrong_expression_names_the_nearest_column(tmp_path, capsys, command):
    table = store(tmp_path / "table", ROWS[:1])
    capsys.readouterr()
    assert nutbeam(command, table, "--expr", "1 < fetch_intervall") == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "--expr: unknown name 'fetch_intervall'; did you mean 'fetch_interval'?" in error
    assert "at character 5 of the expression" in error


@pytest.mark.long
def test_the_lowest_keys_are_shown_first_among_equal_scores(tmp_path, shown, resize_tables):
    dice = random.Random(3)
    keys = sorted(to_key(f"http://{dice.choice(HOSTS)}/{n}") for n in range(400))
    rows = [
        {"key": key, "score": float(dice.randrange(3)), "status": 1, "retries": 0} for key in keys
    ]
    resize_tables(tablet_rows=90)
    table = store(tmp_path / "table", rows)
    for number in (1, 5, 100, 300, 1000):
        best = sorted(rows, key=lambda row: (-row["score"], row["key"]))[:number]
        found = [row["url"] for row in shown("readdb", table, "--top", number)]
        assert found == [from_key(row["key"]) for row in best]


def test_the_best_rows_do_not_depend_on_the_pieces():
    dice = random.Random(4)
    rows = [(f"k{n:03d}", float(dice.randrange(4))) for n in range(300)]
    dice.shuffle(rows)
    frame = pl.DataFrame(rows, ["key", "score"], orient="row")
    for size in (1, 7, 300):
        best = []
        for start in range(0, 300, size):
            piece = better(frame.slice(start, size), best, 20)
            best = [best_of(pl.concat([*best, piece]), 20)]
        assert best[0].equals(best_of(frame, 20))


def test_rows_are_counted_by_when_they_are_due(table, shown):
    (record,) = shown("readdb", table)
    assert record["due"] == {"now": len(ROWS), "within_a_day": 0, "later": 0}
    now = ROWS[0]["fetch_time"]
    frame = pl.DataFrame({name: [row.get(name) for row in ROWS]
                          for name in ("status", "retries", "fetch_interval", "fetch_time", "score")})  # fmt: skip
    counts = statistics_of(frame, now).due
    times = [row["fetch_time"] - now for row in ROWS]
    assert counts["now"] == sum(time <= 0 for time in times)
    assert counts["within_a_day"] == sum(0 < time <= 86_400_000 for time in times)
    assert counts.total() == len(ROWS)
