"""filterdb, and inject with --filter_normalize_all: today's rules, applied to the rows that exist."""

import json

import polars as pl
import pytest
from crawling import manifest_of, nutbeam, reach, rows_of, state_of, statuses_of, tree
from simulated_web import served_web
from web_tables import Snapshot, copied_table, newest

from nutbeam.io.rows.seed_hosts import read_seed_hosts
from nutbeam.io.storage.table_sizes import replaced_sizes
from nutbeam.policy.components.blocklist import Blocklist
from nutbeam.policy.components.schema import empty
from nutbeam.policy.filtering import (
    REKEYED,
    FilterOptions,
    RowRules,
    arrivals,
    departures,
    filter_rows,
    kept_pages,
    leaving_pages,
    questioned_duplicates,
)
from nutbeam.policy.filtering import rekey_rows as rekeyed
from nutbeam.policy.scope import judge_known

web = served_web(hosts=3, pages=10, scope="module")


@pytest.fixture(scope="module")
def small_tablets():
    with replaced_sizes(tablet_rows=12):
        yield


@pytest.fixture(scope="module")
def original(web, backend, small_tablets):
    """A crawled table of several tablets, with runs on them."""
    table = backend.fresh()
    assert nutbeam("crawl", table, *web.seeds, "--rounds", "2", *reach(web)) == 0
    assert nutbeam("inject", table, "http://h2.example.com/") == 0
    return table


table = copied_table()


@pytest.fixture
def rules(tmp_path):
    """Options of rules by which the pages of one host are those of another."""
    folder = tmp_path / "rules"
    folder.mkdir()
    (folder / "host-urlnormalizer.txt").write_text("h2.example.com h1.example.com\n")
    return {"url_rules_dir": str(folder), "url_normalizers": ("basic", "host")}


def words_of(options):
    """Returns options as words of a command."""
    words = []
    for name, value in options.items():
        if name == "exclude":
            words += [word for one in value for word in ("--exclude", one)]
        else:
            words += [f"--{name}", ",".join(value) if isinstance(value, tuple) else str(value)]
    return words


def in_memory(table, options):
    """Returns the rows that must be left in the state, and the counts, from the whole table at once."""
    pinned = Snapshot(str(table))
    rows, now = pinned.rows(), manifest_of(table).time + 1
    seeds = read_seed_hosts(pinned)
    judged = judge_known(rows, FilterOptions(**options), seeds)
    leaving, counts = filter_rows(rows, judged, RowRules(Blocklist(), now))
    joined = kept_pages(rows).join(leaving_pages(leaving), on="kept", how="left")
    changes = [empty(REKEYED), departures(leaving), arrivals(rows, leaving)]
    changes.append(questioned_duplicates(joined))
    left, more = rekeyed(rows, pl.concat(changes, how="diagonal"), now)
    return left, counts | more


def steady(rows):
    """Returns rows without the time of those that are due at once."""
    return rows.drop("fetch_time")


def filterdb(capsys, table, *words):
    """Runs filterdb; returns its report."""
    capsys.readouterr()
    assert nutbeam("filterdb", table, *words, "--format", "json") == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.long
@pytest.mark.folder_first
def test_generate_refuses_urls_that_filterdb_would_drop_or_move(table, rules, capsys):
    words = words_of(rules | {"exclude": ("gone", "6")})
    dry = filterdb(capsys, table, *words, "--dry_run")["counts"]
    assert nutbeam("generate", table, *words, "--filter", "--normalize", "--add_days", "900") == 0
    refused = manifest_of(table).counts
    assert refused["due"] == manifest_of(table).components["state"].rows
    dropped = {n.partition("/")[2]: k for n, k in dry.items() if n.startswith("dropped/")}
    assert {n: refused.get(f"left_out/{n}", 0) for n in dropped} == dropped
    assert refused["left_out/normalized"] == dry["moved"] > 0


@pytest.mark.long
@pytest.mark.few(1)
def test_filterdb_gives_the_same_rows_as_in_memory_and_a_dry_run_predicts_its_counts(
    table, backend, rules, capsys, caplog
):
    options = rules | {"exclude": ("gone", "6"), "count_by_rule": True}
    right, counts = in_memory(table, options)
    assert counts["dropped/excluded"] > 5
    assert counts["moved"] > counts["merged"] > 0
    words, before = words_of(options), tree(table, ignore=())
    dry = filterdb(capsys, table, *words, "--dry_run")
    assert dry == {"job": "filterdb", "dry_run": True, "counts": counts, "changed": False}
    assert tree(table, ignore=()) == before
    assert any("would be dropped: http://" in record.getMessage() for record in caplog.records)
    assert any("would move to http://h1" in record.getMessage() for record in caplog.records)
    real = filterdb(capsys, table, *words)
    assert dict(real["counts"].items()) == counts
    assert steady(rows_of(table, "state")).equals(steady(right))
    assert manifest_of(table).components["state"].rows == len(right)
    assert all(nutbeam(command, table) == 0 for command in backend.commands)
    # What the rules have made fits them: a second run finds nothing to do.
    again = filterdb(capsys, table, *words)["counts"]
    assert again == {"rows": len(right)}


@pytest.mark.few(1)
def test_a_rollback_restores_dropped_rows(table, backend):
    was, snapshot = rows_of(table, "state"), newest(table)
    assert nutbeam("filterdb", table, "--exclude", "h0") == 0
    assert len(rows_of(table, "state")) < len(was)
    assert nutbeam("rollback", table, "--to", snapshot) == 0
    assert rows_of(table, "state").equals(was)
    assert all(nutbeam(command, table) == 0 for command in backend.commands)


@pytest.mark.long
@pytest.mark.folder_first
def test_all_rows_may_go_and_come_again(table, backend, web, capsys):
    rows = len(rows_of(table, "state"))
    counts = filterdb(capsys, table, "--exclude", ".")["counts"]
    assert counts == {"rows": rows, "dropped/excluded": rows}
    assert Snapshot(str(table)).rows() is None or len(Snapshot(str(table)).rows()) == 0
    assert all(nutbeam(command, table) == 0 for command in backend.commands)
    assert nutbeam("crawl", table, *web.seeds, "--rounds", "1", *reach(web)) == 0
    assert len(rows_of(table, "state")) > len(web.seeds)


@pytest.mark.folder_first
def test_the_scope_is_that_of_the_seeds_and_seeds_stay(table, web, capsys):
    seeds = {*web.seeds, "http://h2.example.com/"}
    counts = filterdb(capsys, table, "--include", "none")["counts"]
    # Redirects of seeds count as seeds.
    kept = state_of(table).filter(pl.col("distance") == 0)["url"].to_list()
    assert seeds <= set(kept)
    assert len(kept) == len(rows_of(table, "state"))
    assert counts["dropped/not_included"] == counts["rows"] - len(kept)


@pytest.mark.folder_first
def test_gone_pages_go_by_age(table, capsys):
    gone = {url for url, status in statuses_of(table).items() if status == "db_gone"}
    assert gone
    assert filterdb(capsys, table, "--drop_gone", "86400")["counts"].keys() == {"rows"}
    counts = filterdb(capsys, table, "--drop_gone", "0")["counts"]
    assert counts["dropped/gone"] == len(gone)
    assert gone.isdisjoint(statuses_of(table))


@pytest.mark.few(1)
@pytest.mark.parametrize("phase", ["generated", "parsed"])
def test_an_open_batch_brings_back_no_url_that_was_dropped(table, web, phase, caplog):
    """Neither as a page that it has fetched, nor as a link that it has found before."""
    assert nutbeam("generate", table, "--top_n", "8") == 0
    jobs = [("fetch", *reach(web)), ("parse",), ("updatedb",)]
    done = 0 if phase == "generated" else 2
    for job, *more in jobs[:done]:
        assert nutbeam(job, table, *more) == 0
    (batch,) = [name for name, b in manifest_of(table).batches.items() if b.phase == phase]
    claimed = set(rows_of(table, f"batches/{batch}/fetchlist")["key"])
    dropped = set(rows_of(table, "state")["key"]) & claimed
    assert nutbeam("filterdb", table, "--exclude", "h0") == 0
    assert f"batch {batch} is not updated yet" in caplog.text
    dropped -= set(rows_of(table, "state")["key"])
    assert dropped
    everything = set(rows_of(table, f"batches/{batch}/removed")["key"])
    assert dropped < everything
    # One of them comes again in the meantime, on purpose.
    assert nutbeam("inject", table, "http://h0.example.com/") == 0
    for job, *more in jobs[done:]:
        assert nutbeam(job, table, *more) == 0
    left = set(rows_of(table, "state")["key"])
    assert left & everything == {"com.example.h0:http/"}
    assert manifest_of(table).counts["dropped/removed"] >= len(dropped - {"com.example.h0:http/"})
    # A later batch may find them again, by the rules of its time.
    (seed,) = state_of(table).filter(pl.col("key") == "com.example.h0:http/").to_dicts()
    assert seed["distance"] == 0


@pytest.mark.folder_first
def test_inject_filters_and_normalizes_known_rows(table, rules, capsys):
    before = rows_of(table, "state")
    options = words_of(rules | {"exclude": ("gone", "6")})
    seeds = ["http://new.example.com/", "http://h2.example.com/", "http://h0.example.com/6"]
    capsys.readouterr()
    assert (
        nutbeam("inject", table, *seeds, *options, "--filter_normalize_all", "--format", "json")
        == 0
    )
    counts = json.loads(capsys.readouterr().out)["counts"]
    after = state_of(table)
    excluded = before.filter(pl.col("key").str.contains("gone|6"))
    assert counts["known_dropped/excluded"] == len(excluded)
    assert counts["dropped/excluded"] == 1
    assert (counts["rows"], counts["moved"]) == (
        len(before),
        len(before.filter(pl.col("key").str.starts_with("com.example.h2:"))) - len(
            excluded.filter(pl.col("key").str.starts_with("com.example.h2:"))
        ),
    )  # fmt: skip
    assert not after["url"].str.contains("h2|gone|6").any()
    assert "http://new.example.com/" in after["url"]
    assert len(after) == len(before) - len(excluded) - counts["merged"] + 1
    assert counts["added"] == 1
    # Seeds are optional then.
    words = ("--exclude", "new.example", "--filter_normalize_all", "--format", "json")
    assert nutbeam("inject", table, *words) == 0
    counts = json.loads(capsys.readouterr().out)["counts"]
    assert (counts["rows"], counts["known_dropped/excluded"]) == (len(after), 1)
    assert "http://new.example.com/" not in state_of(table)["url"]


@pytest.mark.long
def test_links_of_a_page_that_becomes_a_seed_come_nearer(web, backend, small_tablets):
    """A crawled web; a deep page is injected, and its links have smaller distances afterwards."""
    table = backend.fresh()
    assert nutbeam("crawl", table, *web.seeds, "--rounds", "2", *reach(web)) == 0
    state = state_of(table)
    linking = {url: [link.url for link in web.site.links(url)] for url in state["url"]}
    distance = dict(state.select("url", "distance").iter_rows())
    unfetched = [url for url, status in statuses_of(table).items() if status == "db_unfetched"]
    deep, target = next(
        (url, target)
        for url in sorted(unfetched)
        for target in linking[url]
        if target != url and distance[url] > 1 and distance.get(target, 0) > 1
    )
    assert nutbeam("inject", table, f"{deep}\tnutch.score=5\tnutch.fetchInterval=60\tx=y") == 0
    columns = [name for name in state.columns if name != "distance"]
    now = state_of(table)
    assert now.select(columns).equals(state.select(columns))
    changed = now.filter(pl.col("distance") != state["distance"])
    assert changed.select("url", "distance").rows() == [(deep, 0)]
    assert nutbeam("crawl", table, "--rounds", "1", *reach(web)) == 0
    after = dict(state_of(table).select("url", "distance").iter_rows())
    assert (after[deep], after[target]) == (0, 1)
    backend.remove(table)
