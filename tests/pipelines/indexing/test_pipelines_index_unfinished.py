"""What runs of ``index`` have sent that were killed or refused does not stay on a server."""

import random
import re

import pytest
from crawling import nutbeam
from index_servers import index_server
from indexed_tables import FETCHED, dies, index_command, page, put, wanted

from nutbeam.io.indexing import index_candidates, run_receipts
from nutbeam.pipelines.indexing import index as job
from nutbeam.policy.components.schema import Status
from nutbeam.policy.indexing import candidate_decisions
from nutbeam.web.urls.row_keys import from_key

KEYS = [f"com.{host}:http/{n}" for host in ("a", "b") for n in range(6)]


@pytest.fixture
def server(monkeypatch):
    # As if killed runs had been in a process of their own.
    monkeypatch.setattr(run_receipts, "has_ended", lambda _: True)
    with index_server() as found:
        yield found


@pytest.fixture
def killed(monkeypatch):
    def run(*words):
        with monkeypatch.context() as patch:
            patch.setattr(job, "commit", dies)
            assert nutbeam(*words) not in (0, 1)

    return run


def has_other(id_, document):
    return "refused" in document.get("content", "")


@pytest.mark.few(1)
@pytest.mark.parametrize("known", [False, True], ids=["first run", "later run"])
@pytest.mark.parametrize(
    ("after", "options"),
    [
        (page("hidden", directives=["noindex"]), ()),
        (page("dropped"), ("--index_filters", "basic,expr", "--index_expr", "title != 'dropped'")),
        ({"status": int(Status.DB_GONE)}, ()),
        (page("unused", usage="search=n"), ()),
        (None, ()),
    ],
    ids=["noindex", "filtered", "gone", "usage", "removed"],
)
def test_a_page_that_must_go_after_a_kill(server, killed, tmp_path, known, after, options):
    table, one, two = str(tmp_path / "table"), KEYS[0], KEYS[1]
    words = (*index_command(server, table), *options)
    if known:
        put(table, "17-0", {two: page("stays")})
        assert nutbeam(*words) == 0
    put(table, "17-1", {one: page("first"), two: page("second")})
    killed(*words)
    assert set(server.texts()) == {from_key(one), from_key(two)}
    put(table, "17-2", {one: after})
    assert nutbeam(*words) == 0
    assert server.texts() == {from_key(two): "second"}
    assert not list((tmp_path / "table" / "index").rglob("*.intent"))


def test_a_page_that_must_go_is_deleted_with_any_rules(server, killed, tmp_path):
    """No index has had it: ``--delete_skipped false`` keeps only pages that it had."""
    table, (one, two, *_) = str(tmp_path / "table"), KEYS
    filters = ("--index_filters", "basic,expr", "--index_expr", "title != 'dropped'")
    words = (*index_command(server, table), *filters, "--delete_skipped", "false")
    put(table, "17-0", {one: page("first")})
    assert nutbeam(*words) == 0
    put(table, "17-1", {two: page("second")})
    killed(*words)
    put(table, "17-2", {one: page("dropped"), two: page("dropped")})
    assert nutbeam(*words) == 0
    assert server.texts() == {from_key(one): "first"}


@pytest.mark.long
def test_a_url_that_stood_for_a_page_only_while_a_run_was_killed(server, killed, tmp_path):
    table, (one, *_) = str(tmp_path / "table"), KEYS
    words, first = index_command(server, table), page("text")
    put(table, "17-0", {one: first})
    assert nutbeam(*words) == 0
    row = {name: value for name, value in first.items() if name != "text"}
    put(table, "17-1", {one: {**row, "repr_url": "http://a.com/start"}})
    killed(*words)
    assert shown(server) == ["http://a.com/start"]
    put(table, "17-2", {one: row})
    assert nutbeam(*words) == 0
    assert shown(server) == [from_key(one)]


def shown(server):
    ((_, index),) = server.named("main").items()
    return [document["url"] for document in index["documents"].values()]


@pytest.mark.long
def test_a_page_that_goes_to_another_writer_after_a_kill(server, killed, tmp_path):
    table, (one, two, *_) = str(tmp_path / "table"), KEYS
    with index_server() as second:
        file = tmp_path / "routes.toml"
        file.write_text("".join(
            f"[[writer]]\nname = '{name}'\nkind = 'opensearch'\nurl = '{url}'\npatience = '5'\n"
            f'only = "{only}"\n'
            for name, url, only in (("most", server.url, "not startswith(title, 'other')"),
                                    ("others", second.url, "startswith(title, 'other')"))
        ))  # fmt: skip
        words = ("index", table, "--index_writers", str(file))
        put(table, "17-0", {one: page("stays here"), two: page("stays here")})
        assert nutbeam(*words) == 0
        put(table, "17-1", {one: page("other text"), two: page("other text")})
        killed(*words)
        assert set(second.texts()) == {from_key(one), from_key(two)}
        put(table, "17-2", {one: page("here again"), two: page("no", directives=["noindex"])})
        assert nutbeam(*words) == 0
        assert (server.texts(), second.texts()) == ({from_key(one): "here again"}, {})


@pytest.mark.long
def test_a_refused_text_leaves_the_one_before_which_later_runs_delete(server, killed, tmp_path):
    table, (one, two, *_) = str(tmp_path / "table"), KEYS
    words = index_command(server, table)
    server.refuses = has_other
    put(table, "17-0", {one: page("first")})
    assert nutbeam(*words) == 0
    put(table, "17-1", {two: page("sent by a killed run")})
    killed(*words)
    put(table, "17-2", {one: page("refused"), two: page("refused"), KEYS[2]: page("taken")})
    assert nutbeam(*words) == 0
    taken = {from_key(KEYS[2]): "taken"}
    assert server.texts() == {
        from_key(one): "first", from_key(two): "sent by a killed run", **taken
    }  # fmt: skip
    put(table, "17-3", {one: {"status": int(Status.DB_GONE)},
                        two: page("x", directives=["noindex"])})  # fmt: skip
    assert nutbeam(*words) == 0
    assert server.texts() == taken


def test_pages_of_unfinished_runs_are_deleted_once(server, killed, tmp_path, monkeypatch):
    table = str(tmp_path / "table")
    monkeypatch.setattr(index_candidates, "_INTENTS_AT_ONCE", 500)  # several items
    put(table, "17-0", {key: page("text") for key in KEYS})
    killed(*index_command(server, table))
    killed(*index_command(server, table))
    put(table, "17-1", dict.fromkeys(KEYS))
    server.bulks.clear()
    assert nutbeam(*index_command(server, table)) == 0
    sent = [id_ for ids in server.bulks for id_ in ids]
    assert sorted(sent) == sorted(map(from_key, KEYS))
    assert server.texts() == {}


def test_deletes_are_cut_into_parts(server, tmp_path, monkeypatch):
    table, parts, plain = str(tmp_path / "table"), [], job.write_part
    words = index_command(server, table)
    put(table, "17-0", {key: page("text") for key in KEYS})
    assert nutbeam(*words) == 0
    put(table, "17-1", {key: {"status": int(Status.DB_GONE)} for key in KEYS[1:]})
    monkeypatch.setattr(candidate_decisions, "_DELETES_IN_PART", 4)

    def noted(task, name, rows, *making):
        parts.append((name, len(rows)))
        return plain(task, name, rows, *making)

    monkeypatch.setattr(job, "write_part", noted)
    assert nutbeam(*words) == 0
    assert len({name for name, _ in parts}) == len(parts)
    assert all(re.fullmatch(r"deletes/\d+-\d+", name) for name, _ in parts)
    assert max(rows for _, rows in parts) <= 4
    assert sum(rows for _, rows in parts) == 11
    assert list(server.texts()) == [from_key(KEYS[0])]


def changed(key, before, rng, number):
    draw = rng.random()
    if before is None or draw < 0.35:
        return page(f"text {number} {key}")
    if draw < 0.5:
        return {**before, "status": int(rng.choice([Status.DB_GONE, Status.DB_DUPLICATE]))}
    if draw < 0.6:
        return {**before, "status": FETCHED}
    if draw < 0.75:
        return page(f"x {number}", directives=["noindex"])
    return page(f"dropped {number}") if draw < 0.9 else None


def is_wanted(text):
    return not text.startswith("dropped")


@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.long) for n in (2, 3))])
def test_histories_with_killed_runs_end_as_a_fresh_index(server, killed, tmp_path, seed):
    table, rng, pages = str(tmp_path / "table"), random.Random(seed), {}
    filters = ("--index_filters", "basic,expr", "--index_expr", "not startswith(title, 'dropped')")
    words = (*index_command(server, table), *filters)
    for number in range(6):
        changes = {k: changed(k, pages.get(k), rng, number) for k in rng.sample(KEYS, 6)}
        put(table, f"17-{number}", changes)
        pages |= changes
        if number % 3 != 2:
            killed(*words, *rng.choice([(), (), ("--full", "true")]))
            continue
        assert nutbeam(*words) == 0
        shown = {url: text for url, text in wanted(pages).items() if is_wanted(text)}
        assert server.texts() == shown
    assert nutbeam(*words, "--index", "fresh") == 0
    assert server.texts("fresh") == server.texts()
