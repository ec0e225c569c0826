"""generate counts each URL that is due and not chosen under the reason that a row-by-row reference has."""

import json
import random
import time

import polars as pl
import pytest
from crawling import manifest_of, nutbeam, rows_of
from frames import frame_of
from generate_reference import DAY, chosen_and_counts

from nutbeam.io.snapshots.commit import commit
from nutbeam.io.snapshots.operations import begin
from nutbeam.io.tablets.written import Written
from nutbeam.pipelines import generate
from nutbeam.pipelines.command_line.cli import main
from nutbeam.policy.components.schema import HOSTS, STATE
from nutbeam.web.urls.row_keys import host_key, to_key

NOW = int(time.time() * 1000)
RESTING = ("h1.example.com", "h7.example.com")


def made_up(seed, number=400):
    """Returns random rows of the state, with ``host``; half of them are on one host."""
    dice = random.Random(seed)
    scores = [n / number for n in range(-20, number - 20)]
    dice.shuffle(scores)
    rows = []
    for n, score in enumerate(scores):
        host = "big.example.com" if n % 2 else f"h{n % 19}.example.com"
        name = dice.choice(["", "", ".jpg", "/a//b"])
        rows.append({
            "key": to_key(f"http://{host}/{n:04d}{name}"), "host": host,
            "score": dice.choice([score, score, float("nan")]) if n % 9 == 0 else score,
            "status": dice.randrange(1, 8), "distance": dice.randrange(5),
            "fetch_time": NOW + dice.choice([-DAY, -DAY, DAY, 200 * DAY]),
            "fetch_interval": dice.choice([3600, 86_400, 2_592_000]), "retries": dice.randrange(3),
        })  # fmt: skip
    return sorted(rows, key=lambda row: row["key"])


def stored(table, rows, resize_tables, counted=()):
    """Makes a table of rows in small tablets, in which some hosts rest.

    Args:
        table: The table.
        rows: The rows.
        resize_tables: For small tablets.
        counted: Rows of the host table for other hosts.
    """
    resize_tables(tablet_rows=70)
    operation = begin(str(table), "inject", "made.inject")
    hosts = ({"key": host_key(host), "backoff_until": NOW + DAY, "seed": True} for host in RESTING)
    parts = {
        "state": frame_of(STATE, *({n: v for n, v in r.items() if n != "host"} for r in rows)),
        "hosts": frame_of(HOSTS, *hosts, *counted).sort("key"),
    }
    found = []
    for name, frame in parts.items():
        for part in operation.table.load(name, [frame]):
            found.append(Written(name, part.files))
    commit(operation, found)


CASES = [
    ((), {}),
    (("--top_n", 120, "--max_count", 9), {"top_n": 120, "max_count": 9}),
    (("--restrict_status", "db_gone", "--max_distance", 2, "--generate_min_interval", "1d"),
     {"status": 3, "max_distance": 2, "interval": 86_400}),
    (("--expr", "score > 0.3 && retries < 2 || status eq 'db_gone'", "--min_score", 0.1),
     {"wanted": lambda r: (r["score"] > 0.3 and r["retries"] < 2) or r["status"] == 3,
      "min_score": 0.1}),
    (("--filter", "--normalize", "--scope", "any"), {"filter": True, "normalize": True}),
]  # fmt: skip


@pytest.mark.few(2)
@pytest.mark.parametrize("number", range(len(CASES)))
def test_rows_that_are_left_out_are_counted_as_by_a_row_by_row_reference(
    number, tables, tmp_path, resize_tables
):
    rows, (words, options) = made_up(number), CASES[number]
    table = tables(tmp_path / "table")
    stored(table, rows, resize_tables)
    assert nutbeam("generate", table, "--expr", "status == 'redir_temp'") == 0
    claimed = chosen_and_counts(rows, NOW, resting=RESTING, wanted=lambda r: r["status"] == 4)[0]
    assert manifest_of(table).counts["chosen"] == len(claimed)
    if "top_n" in options:  # a row below the best so far counts as such, whatever its host does
        resting = ()
        nutbeam("purge", table, "--host", RESTING[0])
        nutbeam("purge", table, "--host", RESTING[1])
        rows = [row for row in rows if row["host"] not in RESTING]
        claimed = {key for key in claimed if key in {row["key"] for row in rows}}
    else:
        resting = RESTING
    assert nutbeam("generate", table, *words) == 0
    images = {row["key"] for row in rows if row["key"].endswith(".jpg")}
    doubled = {row["key"] for row in rows if "//" in row["key"]}
    expected = chosen_and_counts(
        rows, NOW, claimed, resting, refused=images, moved=doubled, **options
    )[1]
    assert manifest_of(table).counts == expected


SETTINGS = {
    "h2.example.com": {"max_count": 2, "delay": 1.5}, "h3.example.com": {"blocked": True},
    "h5.example.com": {"max_count": 0}, "big.example.com": {"boost": 1.7},
}  # fmt: skip
# In both expressions, h4 has no value, and h6 has one that is not usable.
COUNTED = [
    {"key": host_key("h4.example.com"), "seed": True},
    {"key": host_key("h6.example.com"), "seed": True, "fetched": 1, "gone": 3},
    {"key": host_key("h8.example.com"), "seed": True, "fetched": 3},
    {"key": host_key("big.example.com"), "seed": True, "fetched": 40},
]
OF_EXPR = {"h6.example.com": {"max_count": 1 << 31}, "h8.example.com": {"max_count": 3},
           "big.example.com": {"max_count": 40}}  # fmt: skip
CHOICES = [
    (("--max_count", 6), {"max_count": 6, "settings": SETTINGS}),
    (("--max_count", 30, "--count_mode", "domain", "--top_n", 20),
     {"max_count": 30, "count_mode": "domain", "top_n": 20, "settings": SETTINGS}),
    (("--max_count", 5, "--max_count_expr", "fetched - gone if fetched > 0 else null"),
     {"max_count": 5, "settings": OF_EXPR}),
    (("--add_days", 2, "--max_count", 4), {"add_days": 2, "max_count": 4}),
]  # fmt: skip


@pytest.mark.parametrize(("words", "options"), CHOICES)
def test_the_choice_is_that_of_a_row_by_row_reference(tmp_path, resize_tables, words, options):
    table, rows = tmp_path / "table", made_up(len(words))
    stored(table, rows, resize_tables, COUNTED)
    if options.get("settings") is SETTINGS:
        lines = (
            " ".join([host, *(f"{name}={value}".lower() for name, value in own.items())])
            for host, own in SETTINGS.items()
        )
        (tmp_path / "settings").write_text("\n".join(lines))
        assert nutbeam("hostinject", table, tmp_path / "settings") == 0
    assert nutbeam("generate", table, *words) == 0
    kept, counts = chosen_and_counts(rows, NOW, resting=RESTING, **options)
    found = listed(table)
    assert set(found) == kept
    assert {n: v for n, v in manifest_of(table).counts.items() if n in counts} == counts
    delays = {key: delay for key, delay in found.items() if delay is not None}
    assert delays == {
        key: 1.5 for key in kept if ".h2:" in key and options.get("settings") is SETTINGS
    }


def listed(table):
    """Returns the delay of each URL that the only generate has chosen, by key."""
    (name,) = (name for name in manifest_of(table).components if "fetchlist" in name)
    return dict(rows_of(table, name).select("key", "delay").iter_rows())


def test_pauses_by_expression_and_bad_ones(tmp_path, resize_tables):
    table, rows = tmp_path / "table", made_up(1, 120)
    said = ["soon", "2.5", "-1"]
    of_h8 = [row for row in rows if row["host"] == "h8.example.com"]
    for row, text in zip(of_h8[:3], said, strict=True):
        row.update(metadata=[("nutch.fetchDelay", text)], score=0.9, fetch_time=NOW - DAY)
    stored(table, rows, resize_tables, COUNTED)
    words = ("--fetch_delay_expr", "500 * (fetched - gone)", "--min_score", -9)
    assert nutbeam("generate", table, *words) == 0
    counts, found = manifest_of(table).counts, listed(table)
    assert counts["bad_values"] == 2
    # -1,000 ms; counted once for each tablet with URLs of the host.
    assert counts["bad_values/fetch_delay_expr"] >= 1
    by_host = {key.partition(":")[0].rpartition(".")[2]: set() for key in found}
    for key, delay in found.items():
        by_host[key.partition(":")[0].rpartition(".")[2]].add(delay)
    assert by_host["big"] == {20.0}
    assert by_host["h8"] == {1.5, 2.5}
    assert {d for host, some in by_host.items() if host not in ("big", "h8") for d in some} == {
        None
    }


def test_a_generate_that_finds_nothing_says_why_and_when_the_next_is_due(
    tmp_path, resize_tables, capsys
):
    table, rows = tmp_path / "table", made_up(9, 60)
    stored(table, rows, resize_tables)
    capsys.readouterr()
    assert nutbeam("generate", table, "--expr", "url == 'x'", "--format", "json") == 1
    record = json.loads(capsys.readouterr().out)
    due = record["counts"]["due"]
    assert record["counts"] == {"due": due, "left_out/expr": due}
    assert record["changed"] is False
    assert nutbeam("generate", table, "--min_score", 5) == 1
    line = capsys.readouterr().out.splitlines()[1]
    assert (
        line
        == f"{due} URLs are due, and none was chosen: {due} low_score (its score is below --min_score, or it has none)"
    )
    assert nutbeam("generate", table) == 0
    capsys.readouterr()
    assert nutbeam("generate", table) == 1
    line = capsys.readouterr().out.splitlines()[1]
    assert "in_batch (an open batch has it; " in line
    assert "; the next URL, http://" in line
    assert ": --add_days 1 fetches it now" in line


def test_explain_agrees_with_the_last_generate(tmp_path, resize_tables, capsys):
    table, rows = tmp_path / "table", made_up(3, 80)
    rows = [row for row in rows if "//" not in row["key"]]  # they would be normalized
    stored(table, rows, resize_tables)
    assert nutbeam("generate", table, "--expr", "score > 0.1", "--top_n", 5) == 0
    counts = manifest_of(table).counts
    capsys.readouterr()
    urls = [f"http://{row['host']}/{row['key'].partition('/')[2]}" for row in rows]
    assert nutbeam("explain", table, *urls, "http://new.example.com/", "--format", "json") == 0
    fates = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    *fates, new = [record["last_generate"]["reason"] for record in fates]
    assert new == "not_in_table"
    found = pl.Series(fates).value_counts().rows()
    told = {f"left_out/{name}": number for name, number in found} | {
        "chosen": fates.count("chosen"), "due": len(fates) - fates.count("not_due")
    }  # fmt: skip
    assert fates.count("chosen") == 5
    assert {n: told.get(n, 0) for n in ("chosen", "due", "left_out/expr")} == {
        n: counts.get(n, 0) for n in ("chosen", "due", "left_out/expr")
    }


@pytest.mark.parametrize("words", [("generate",), ("crawl", "http://a.example.com/")])
def test_a_wrong_expression_is_one_line(tmp_path, capsys, words):
    table = tmp_path / "table"
    assert nutbeam("inject", table, "http://a.example.com/") == 0
    capsys.readouterr()
    command, *rest = words
    assert nutbeam(command, table, *rest, "--expr", "scroe > 1") == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "--expr: unknown name 'scroe'; did you mean 'score'? at character 1" in error


def test_the_closing_line_is_that_of_this_generate_even_if_another_job_has_committed_since(
    tmp_path, monkeypatch, capsys
):
    table = tmp_path / "table"
    assert nutbeam("inject", table, "http://a.example.com/") == 0
    run_job = generate.run_job

    def overtaken(*words):
        code = run_job(*words)
        assert main(["inject", str(table), "http://b.example.com/", "--progress", "false"]) == 0
        return code

    monkeypatch.setattr(generate, "run_job", overtaken)
    capsys.readouterr()
    assert nutbeam("generate", table, "--expr", "score > 7") == 1
    assert capsys.readouterr().out.splitlines()[-1] == (
        "1 URL is due, and none was chosen: 1 expr (--expr is not true of it)"
    )
