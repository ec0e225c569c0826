"""generate counts each URL that is due and not chosen under the reason that a row-by-row reference has."""

import json
import random
import time

import polars as pl
import pytest
from crawling import manifest_of, nutbeam
from frames import frame_of
from generate_reference import DAY, chosen_and_counts

from nutbeam.io.snapshots.commit import commit
from nutbeam.io.snapshots.operations import begin
from nutbeam.io.tablets import tablet_writer
from nutbeam.io.tablets.written import Written
from nutbeam.pipelines import generate
from nutbeam.pipelines.command_line.cli import main
from nutbeam.policy.schema import HOSTS, STATE
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


def stored(table, rows, monkeypatch):
    """Makes a table of rows in small tablets, in which some hosts rest."""
    monkeypatch.setattr(tablet_writer, "TABLET_ROWS", 70)
    operation = begin(str(table), "inject", "made.inject")
    hosts = ({"key": host_key(host), "backoff_until": NOW + DAY, "seed": True} for host in RESTING)
    parts = {
        "state": frame_of(STATE, *({n: v for n, v in r.items() if n != "host"} for r in rows)),
        "hosts": frame_of(HOSTS, *hosts),
    }
    found = []
    for name, frame in parts.items():
        for part in operation.root.load(name, [frame]):
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
def test_what_is_left_out_is_counted_as_by_a_row_by_row_reference(
    number, tables, tmp_path, monkeypatch
):
    rows, (words, options) = made_up(number), CASES[number]
    table = tables(tmp_path / "table")
    stored(table, rows, monkeypatch)
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


def test_a_generate_that_finds_nothing_says_why_and_when_the_next_is_due(
    tmp_path, monkeypatch, capsys
):
    table, rows = tmp_path / "table", made_up(9, 60)
    stored(table, rows, monkeypatch)
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
        == f"{due} URLs are due, and none was chosen: {due} low_score (a score below --min_score, or none)"
    )
    assert nutbeam("generate", table) == 0
    capsys.readouterr()
    assert nutbeam("generate", table) == 1
    line = capsys.readouterr().out.splitlines()[1]
    assert "in_batch (an open batch has them)" in line
    assert "; the next URL, http://" in line
    assert ": --add_days 1 fetches it now" in line


def test_explain_says_what_the_last_generate_did(tmp_path, monkeypatch, capsys):
    table, rows = tmp_path / "table", made_up(3, 80)
    rows = [row for row in rows if "//" not in row["key"]]  # they would be normalized
    stored(table, rows, monkeypatch)
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
        "1 URL is due, and none was chosen: 1 expr (--expr is not true of them)"
    )
