"""generate chooses just the rows that a query over the whole table chooses."""

import json
import random
import shutil
import threading
import time
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from crawling import files_of, manifest_of, nutbeam, place_in, tree

from nutbeam.io.snapshots.commit import commit
from nutbeam.io.snapshots.operations import begin
from nutbeam.io.storage.table_sizes import replaced_sizes
from nutbeam.io.table.opening import open_table
from nutbeam.io.tablets.file_lists import load_files
from nutbeam.io.tablets.resolve import write_bases
from nutbeam.io.tablets.written import Written
from nutbeam.pipelines import generate
from nutbeam.pipelines.generating import survey
from nutbeam.policy.components.schema import STATE, Status, conform
from nutbeam.policy.generating import threshold
from nutbeam.web.urls.row_keys import to_key

ROWS = 6_000
DAY = 86_400_000
NOW = int(time.time() * 1000)


def host_of(number):
    """Half of all rows are on one host, a tenth on the hosts of one domain."""
    if number < ROWS // 2:
        return "www.big.com"
    if number < ROWS * 6 // 10:
        return f"w{number % 9}.wide.com"
    return f"h{number % 97}.d{number % 31}.org"


def make_state():
    dice = random.Random(11)
    numbers = list(range(ROWS))
    scores = [n / ROWS for n in numbers]  # no two alike, even as float32
    dice.shuffle(scores)
    pick = dice.random
    return (
        pl.DataFrame(
            {
                "key": [to_key(f"http://{host_of(n)}/{n:05d}") for n in numbers],
                "host": [host_of(n) for n in numbers],
                "score": scores,
                "status": [int(dice.choice(list(Status)[:7])) for _ in numbers],
                "distance": [dice.randrange(5) for _ in numbers],
                # Two thirds are due, some in the days to come, some in too many years.
                "fetch_time": [
                    NOW - DAY if pick() < 0.6 else NOW + int(30 * pick()) * DAY + DAY // 2
                    for _ in numbers
                ],
                "fetch_interval": [2_592_000] * ROWS,
                "retries": [0] * ROWS,
            }
        )
        .with_columns(
            pl.col("score").cast(pl.Float32),
            pl.when(pl.col("score") > 0.97)
            .then(NOW + 400 * DAY)
            .otherwise("fetch_time")
            .alias("fetch_time"),
            domain=pl.col("host").str.extract(r"([^.]+\.[^.]+)$"),
        )
        .sort("key")
    )


def store(table, state):
    """Makes a table of a state, by what updates write with; returns where it is."""
    operation = begin(str(table), "inject", "made.inject")
    parts = (
        pl.DataFrame(pl.from_arrow(conform(part.drop("host", "domain"), STATE)))
        for part in state.iter_slices(700)
    )
    if isinstance(table, Path):
        files = write_bases(table, "state", parts)
    else:
        files = [file for part in operation.table.load("state", parts) for file in part.files]
    commit(operation, [Written("state", tuple(files))])
    return table


@pytest.fixture(scope="module")
def state():
    return make_state()


@pytest.fixture(scope="module")
def original(state, tmp_path_factory):
    return cut_up(tmp_path_factory.mktemp("generate") / "table", state)


def cut_up(table, state):
    """Makes a table of a state in small tablets."""
    with replaced_sizes(tablet_rows=500):
        return store(table, state)


@pytest.fixture
def table(original, state, tables, tmp_path):
    made = tables(tmp_path / "table")
    return shutil.copytree(original, made) if isinstance(made, Path) else cut_up(made, state)


@pytest.fixture(params=[256, 2], ids=["fine", "coarse"])
def steps(request, monkeypatch):
    """Summaries of few ranks leave many rows to be settled by a count; some tablets share one."""
    monkeypatch.setattr(threshold, "GRID", request.param)
    monkeypatch.setattr(survey, "MOST_SUMMARIES", request.param)


def choose(table, *words, code=0):
    """Runs generate and returns the new batch's fetch list."""
    before = set(manifest_of(table).batches)
    assert nutbeam("generate", table, *words) == code
    (batch,) = set(manifest_of(table).batches) - before
    return fetchlist(table, batch)


def fetchlist(table, batch):
    component = manifest_of(table).components[f"batches/{batch}/fetchlist"]
    files = load_files(open_table(str(table)), component)
    frames = [
        pl.read_parquet(place_in(table, file.path)).with_columns(partition=pl.lit(file.partition))
        for file in files
    ]
    for file, frame in zip(files, frames, strict=True):
        assert frame["key"].is_sorted()
        assert (file.first, file.last, file.rows) == (frame["key"][0], frame["key"][-1], len(frame))
    return pl.concat(frames).sort("key")


def due(state, days=0.0):
    until = NOW + int(days * DAY)
    # What is further away than the longest interval is a mistake, and due.
    return state.filter((pl.col("fetch_time") <= until) | (pl.col("fetch_time") > NOW + 100 * DAY))


def best(rows, n):
    return rows.sort("score", descending=True).head(n)


def limited(rows, group, n):
    return rows.sort("score", descending=True).group_by(group, maintain_order=True).head(n)


def same(chosen, expected):
    assert chosen["key"].is_unique().all()
    assert set(chosen["key"]) == set(expected["key"])


def test_the_state_lies_in_several_tablets_and_hosts_span_them(original, state):
    hosts = [
        set(pl.read_parquet(path)["key"].str.extract(r"^([^:]+):"))
        for path in files_of(original, "state")
    ]
    assert len(hosts) >= 10
    spread = [name for name in set().union(*hosts) if sum(name in some for some in hosts) > 1]
    assert "com.big.www" in spread
    domains = [{name.rpartition(".")[0] for name in some} for some in hosts]
    assert sum("com.wide" in some for some in domains) > 1


@pytest.mark.few(3)
@pytest.mark.parametrize("n", [1, 37, 1_000, 5_000])
def test_top_n_is_exact(table, state, steps, n):
    rows = choose(table, "--top_n", n)
    same(rows, best(due(state), n))
    joined = rows.join(state, on="key")
    assert joined["score"].to_list() == joined["score_right"].to_list()
    assert joined["distance"].to_list() == joined["distance_right"].to_list()


def test_everything_due_without_a_limit_that_matters(table, state):
    rows = choose(table)
    same(rows, due(state))
    manifest = manifest_of(table)
    (batch,) = manifest.batches.values()
    assert (batch.phase, batch.urls, batch.partitions) == ("generated", len(rows), 1)
    assert manifest.counts == {"chosen": len(rows), "due": len(rows)}


@pytest.mark.long
@pytest.mark.few(3)
@pytest.mark.parametrize(("mode", "most"), [("host", 5), ("host", 400), ("domain", 7)])
def test_max_count_is_exact(table, state, steps, mode, most):
    words = ["--max_count", most, "--count_mode", mode]
    same(choose(table, *words), limited(due(state), mode, most))


@pytest.mark.few(2)
def test_max_count_and_top_n_together_are_exact(table, state, steps):
    rows = choose(table, "--max_count", 50, "--count_mode", "domain", "--top_n", 600)
    same(rows, best(limited(due(state), "domain", 50), 600))


def test_max_count_0_is_no_limit(table, state):
    same(choose(table, "--max_count", 0), due(state))  # as in Nutch: maxCount > 0 is a limit


@pytest.mark.parametrize(
    ("words", "condition"),
    [
        (["--min_score", "0.5"], pl.col("score") >= 0.5),
        (["--max_distance", "0"], pl.col("distance") == 0),
        (["--max_distance", "2"], pl.col("distance") <= 2),
        (["--restrict_status", "db_gone"], pl.col("status") == 3),
    ],
)
def test_options_of_generate_restrict_the_chosen_rows(table, state, words, condition):
    same(choose(table, *words), due(state).filter(condition))


def test_add_days(table, state):
    later = due(state, days=10)
    assert len(later) > len(due(state)) + 100
    same(choose(table, "--add_days", 10), later)


@pytest.mark.few(1)
def test_a_tie_is_settled_and_the_number_is_exact(state, tables, tmp_path, steps, resize_tables):
    resize_tables(tablet_rows=1_000)
    tied = state.with_columns(
        score=pl.when(pl.col("score") > 0.9).then(2.0).otherwise(1.0).cast(pl.Float32),
        fetch_time=pl.lit(NOW),
    )
    table = tables(tmp_path / "table")
    store(table, tied)
    rows = choose(table, "--top_n", 2_000)
    assert len(rows) == 2_000
    above = set(tied.filter(pl.col("score") == 2)["key"])
    assert above < set(rows["key"])
    # Ties are settled by a hash, not by the alphabet: no host is favoured.
    share = rows.filter(pl.col("score") == 1)["key"].str.starts_with("com.big.www").mean()
    assert 0.4 < share < 0.6
    same(choose(table), tied.filter(~pl.col("key").is_in(rows["key"].implode())))


def test_an_open_batch_keeps_its_urls(table, state):
    first = choose(table, "--top_n", 1_000)
    second = choose(table, "--top_n", 1_000)
    same(pl.concat([first, second]), best(due(state), 2_000))
    rest = choose(table)
    same(pl.concat([first, second, rest]), due(state))
    assert nutbeam("generate", table) == 1


def test_a_mark_expires(table, state):
    first = choose(table, "--top_n", 1_000, "--generate_mark_ttl", "1s")
    time.sleep(1.1)
    same(choose(table, "--top_n", 1_000), first)  # as if the first had never been


@pytest.mark.few(2)
@pytest.mark.parametrize("number", [1, 3, 16])
def test_a_host_is_in_one_partition(table, state, number):
    rows = choose(table, "--num_fetchers", number)
    same(rows, due(state))
    hosts = rows.join(state.select("key", "host"), on="key")
    assert hosts.group_by("host").agg(pl.col("partition").n_unique())["partition"].max() == 1
    assert hosts.group_by("host").agg(pl.col("slot").n_unique())["slot"].max() == 1
    # A slot is dealt to one partition, too.
    assert hosts.group_by("slot").agg(pl.col("partition").n_unique())["partition"].max() == 1
    assert set(rows["partition"]) <= set(range(number))
    assert rows["partition"].n_unique() > number // 2  # some hundred hosts
    (batch,) = manifest_of(table).batches.values()
    assert batch.partitions == number


def test_a_domain_is_in_one_partition_where_it_is_one_queue(table, state):
    rows = choose(table, "--num_fetchers", 16, "--queue_mode", "domain")
    same(rows, due(state))
    domains = rows.join(state.select("key", "host", "domain"), on="key")
    assert domains["domain"].n_unique() < domains["host"].n_unique()
    assert domains.group_by("domain").agg(pl.col("slot").n_unique())["slot"].max() == 1
    assert domains.group_by("domain").agg(pl.col("partition").n_unique())["partition"].max() == 1


def test_a_host_of_any_size_is_in_files_of_bounded_size(table, state, monkeypatch):
    monkeypatch.setattr(generate, "FILE_BYTES", 20_000)
    rows = choose(table, "--num_fetchers", 3)
    same(rows, due(state))
    (batch,) = manifest_of(table).batches
    component = manifest_of(table).components[f"batches/{batch}/fetchlist"]
    files = load_files(open_table(str(table)), component)
    keys = [pl.read_parquet(place_in(table, file.path))["key"] for file in files]
    assert max(key.str.len_bytes().sum() + 100 * len(key) for key in keys) <= 20_000
    big = to_key("http://www.big.com/")
    holding = {f.partition for f, key in zip(files, keys, strict=True)
               if key.str.starts_with(big).any()}  # fmt: skip
    assert len(holding) == 1  # half of all rows, and still one partition


def test_two_at_once_cannot_choose_the_same_url(table, state, capsys):
    codes, barrier = [], threading.Barrier(2)

    def generate():
        barrier.wait()
        codes.append(nutbeam("generate", table, "--top_n", 500))

    threads = [threading.Thread(target=generate) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lists = [fetchlist(table, batch) for batch in manifest_of(table).batches]
    assert len(lists) == codes.count(0) >= 1
    together = pl.concat(lists)
    same(together, best(due(state), 500 * len(lists)))
    if sorted(codes) == [0, 3]:
        error = capsys.readouterr().err
        assert "changed by generate" in error
        assert error.count("\n") == 1
    else:
        assert codes == [0, 0]


@pytest.mark.few(1)
def test_second_generate_changes_nothing(table, state, capsys):
    # As if this one had begun before the other, and is not yet done when that commits.
    begin(str(table), "generate", "late.generate", "the-late-batch")
    first = choose(table, "--top_n", 10)
    before = tree(table)
    capsys.readouterr()
    assert nutbeam("generate", table, "--top_n", 10, "--operation", "late") == 3
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "batches was changed by generate" in captured.err
    after = tree(table)
    assert {name: after[name] for name in before} == before
    assert len(manifest_of(table).batches) == 1
    second = choose(table, "--top_n", 10)
    same(pl.concat([first, second]), best(due(state), 20))


def test_a_table_without_rows_gives_no_batch(tables, tmp_path, capsys):
    table = tables(tmp_path / "table")
    (tmp_path / "seeds.txt").write_text("# none\n")
    assert nutbeam("inject", table, tmp_path / "seeds.txt") == 0
    capsys.readouterr()
    assert nutbeam("generate", table, "--format", "json") == 1
    assert json.loads(capsys.readouterr().out)["counts"] == {}
    assert manifest_of(table).batches == {}
    # People are told why.
    assert nutbeam("generate", table) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["generate: nothing to do", "the table has no URL: give seeds"]


def test_a_score_that_is_no_number_is_never_chosen(state, tables, tmp_path):
    table = tables(tmp_path / "table")
    rows = state.head(50).with_columns(
        score=pl.when(pl.arange(0, 50) % 2 == 0).then(float("nan")).otherwise("score"),
        fetch_time=pl.lit(NOW),
    )
    store(table, rows)
    assert len(choose(table)) == 25


def test_the_fetch_list_has_its_declared_schema(table):
    (batch,) = [choose(table, "--top_n", 3)]
    assert batch.columns == ["key", "slot", "score", "distance", "etag", "last_modified",
                             "modified_time", "signature", "delay", "address", "page",
                             "document", "fetch_interval", "fixed_interval", "metadata", "repr_url",
                             "partition"]  # fmt: skip
    path = files_of(table, next(n for n in manifest_of(table).components if "fetchlist" in n))[0]
    assert pq.read_schema(path).field("slot").type == pa.uint16()
