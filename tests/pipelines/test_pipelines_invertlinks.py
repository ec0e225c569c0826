"""invertlinks from crawl to crawl: the link table is that of the newest documents."""

import pytest
from clocks import DAY, clock_off
from crawling import files_of, nutbeam, rows_of
from linked_web import HOST, HOSTS, linked_web, stored_links, true_links, urls

from nutbeam.io.snapshots.manifest import newest_manifest
from nutbeam.policy.components.schema import Status
from nutbeam.web.urls.row_keys import from_key


@pytest.fixture
def web():
    with linked_web(0) as found:
        yield found


def crawl(table, web, *words, rounds=1):
    return nutbeam("crawl", table, "--rounds", str(rounds), *words, *web.words)


def again(table, web, *words):
    return crawl(table, web, "--add_days", "200", *words)


def start(table, web, *words):
    assert crawl(table, web, f"http://{HOST}/", "--links", *words, rounds=2) == 0
    return table


def states(table):
    return {from_key(row["key"]): row for row in rows_of(table, "state").to_dicts()}


def times(table, name="last_seen"):
    """Times of the links that count, by source."""
    rows = rows_of(table, "links").to_dicts()
    return {from_key(row["source"]): row[name] for row in rows if row["gone_since"] is None}


def random_history(table, web, steps):
    start(table, web)
    seen = set()
    for _ in range(steps):
        assert stored_links(table) == true_links(table) != {}
        page, dice = web.random.randrange(web.pages), web.random.random()
        if dice < 0.5:
            web.change(page)
        elif dice < 0.75:
            web.move(page)
        else:
            web.gone.symmetric_difference_update({str(page)})
        assert again(table, web, "--links") in (0, 4)
        seen.update(row["status"] for row in rows_of(table, "state").to_dicts())
    assert stored_links(table) == true_links(table)
    assert nutbeam("fsck", table) == 0
    return seen


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.long) for n in (1, 2))])
def test_random_histories_end_in_the_links_of_the_newest_documents(tmp_path, seed):
    with linked_web(seed) as web:
        assert Status.DB_NOTMODIFIED in random_history(tmp_path / "table", web, 4)


@pytest.mark.bigtable
@pytest.mark.long
def test_a_random_history_in_bigtable(tmp_path, bigtable, web):
    random_history(bigtable.make(tmp_path / "files"), web, 4)


@pytest.mark.long
@pytest.mark.usefixtures("all_stores")
def test_a_random_history_in_a_store(stores, web):
    random_history(stores.address("gs"), web, 4)


@pytest.mark.long
def test_a_304_keeps_links_and_says_when_they_were_seen(tmp_path, web):
    web.links |= {1: [(2, "one", "")], 3: [(1, "two", "")]}  # /3 has no ETag
    table = start(tmp_path / "table", web)
    before, first = times(table), times(table, "first_seen")
    assert again(table, web, "--links") == 0
    rows, after = states(table), times(table)
    assert rows[web.url(1)]["http_code"] == 304
    assert rows[web.url(3)]["http_code"] == 200
    for page in (1, 3):
        url = web.url(page)
        assert after[url] == rows[url]["last_fetch_time"] > before[url]
    assert times(table, "first_seen") == first
    assert stored_links(table) == true_links(table)


@pytest.mark.long
def test_a_page_that_redirects_takes_its_links_along(tmp_path, web):
    web.links[1] = [(2, "one", ""), (3, "", "")]
    table = start(tmp_path / "table", web)
    assert web.url(1) in times(table)
    web.move(1)
    again(table, web, "--links")
    assert states(table)[web.url(1)]["status"] == Status.DB_REDIR_TEMP
    assert web.url(1) not in times(table)
    assert stored_links(table) == true_links(table) != {}


@pytest.mark.long
@pytest.mark.few(1)
@pytest.mark.parametrize("words", [(), ("--ignore_internal_links",), ("--ignore_external_links",)])
def test_which_links_the_table_keeps(tmp_path, web, words):
    """The flags of the link table change nothing in which links are followed."""
    every = set(urls(stored_links(start(tmp_path / "every", web))))

    def same(pair):
        return pair[0].split("/")[2] == pair[1].split("/")[2]

    kept = {pair for pair in every if not words or same(pair) == ("external" in words[0])}
    assert {same(pair) for pair in every} == {True, False}
    table = start(tmp_path / "with", web, *words)
    assert set(urls(stored_links(table))) == kept
    assert states(table).keys() == states(tmp_path / "every").keys()
    web.change(0)
    assert again(table, web) == 0
    assert nutbeam("invertlinks", table, *words) == 0
    truth = urls(true_links(table))
    kept = {pair for pair in truth if not words or same(pair) == ("external" in words[0])}
    assert set(urls(stored_links(table))) == kept


@pytest.mark.long
def test_options_that_leave_no_link_are_refused_and_links_may_stay_in_the_table(
    tmp_path, web, capsys
):
    both = ("--ignore_internal_links", "--ignore_external_links")
    table = tmp_path / "table"
    for command in (("crawl", table, f"http://{HOST}/", "--links"), ("invertlinks", table)):
        assert nutbeam(*command, *both) == 2
        assert "together leave no link" in capsys.readouterr().err
    # No link within a host is followed, so a crawl sees the other host's pages only.
    start(table, web, "--scope", "host", "--skip_internal_links")
    assert {url.split("/")[2] for url in states(table)} == {HOST}
    start(tmp_path / "any", web, "--scope", "any", "--skip_internal_links")
    found = [url for url in states(tmp_path / "any") if url != f"http://{HOST}/"]
    assert {url.split("/")[2] for url in found if url.count("/") == 3} >= {HOSTS[1]}


@pytest.mark.long
def test_links_that_other_options_have_kept_end_with_their_document(tmp_path, web):
    web.links[1] = [(3, "within the host", "")]
    table = start(tmp_path / "table", web)
    assert (web.url(3), web.url(1)) in urls(stored_links(table))
    web.links[1], web.versions[1] = [], 9
    assert again(table, web, "--links", "--ignore_internal_links") == 0
    assert (web.url(3), web.url(1)) not in urls(stored_links(table))


@pytest.mark.long
def test_a_page_that_was_not_parsed_keeps_the_links_of_the_text_that_its_row_names(tmp_path, web):
    web.links[1] = [(2, "old", "")]
    table = start(tmp_path / "table", web)
    before = stored_links(table)
    for page in range(web.pages):
        web.change(page)
    assert nutbeam("generate", table, "--add_days", "200") == 0
    assert nutbeam("fetch", table, "--parse_while_fetching", "false", *web.words) == 0
    (batch,) = newest_manifest(str(table)).open_batches(0)
    assert nutbeam("updatedb", table, "--batch", batch) == 0
    assert nutbeam("invertlinks", table) == 0
    assert stored_links(table) == true_links(table) == before


@pytest.mark.long
def test_links_of_a_page_that_is_not_due_stay_however_old_they_are(tmp_path, monkeypatch, web):
    """Another batch is inverted on day 181; twice the longest interval are 180 days."""
    web.links[1] = [(2, "old", "")]
    table = start(tmp_path / "table", web)
    with clock_off(monkeypatch, 181 * DAY):
        words = ("--expr", f"url == '{web.url(0)}'")
        web.change(0)
        assert crawl(table, web, "--links", *words) == 0
        fetched = [url for url, row in states(table).items() if row["last_fetch_time"] > 0]
        rows = states(table)
        newest = max(rows[url]["last_fetch_time"] for url in fetched)
        assert rows[web.url(1)]["last_fetch_time"] < newest - 180 * DAY * 1000
    assert stored_links(table) == true_links(table)
    assert (web.url(2), web.url(1)) in urls(stored_links(table))


@pytest.mark.long
def test_a_batch_is_added_and_nothing_that_exists_is_rewritten(tmp_path):
    with linked_web(5, pages=60) as web:
        table = start(tmp_path / "table", web)
        assert nutbeam("compact", table, "--full") == 0
        before = {path: path.read_bytes() for path in files_of(table, "links")}
        web.links[1], web.versions[1] = [(2, "new", "")], 99
        assert again(table, web, "--expr", f"url == '{web.url(1)}'") == 0
        assert nutbeam("invertlinks", table) == 0
        after = files_of(table, "links")
        assert {path: path.read_bytes() for path in after if path in before} == before
        added = [path for path in after if path not in before]
        assert len(added) == 1
        assert added[0].stat().st_size < sum(map(len, before.values()))
        assert stored_links(table) == true_links(table)
        written = newest_manifest(str(table)).counts
        assert sum(written.get(name, 0) for name in ("links_seen", "links_added")) == 1


@pytest.mark.parametrize(
    "kind",
    ["folder", pytest.param("bigtable", marks=[pytest.mark.bigtable, pytest.mark.long])],
)
def test_an_older_copy_brings_back_no_link_that_has_ended(tmp_path, request, web, kind):
    web.links |= {1: [(2, "old", "")], 3: [(2, "gone", "")]}
    table = str(tmp_path / "table")
    if kind == "bigtable":
        table = request.getfixturevalue("bigtable").make(tmp_path / "files")
    start(table, web)
    assert nutbeam("copy", table, tmp_path / "older") == 0
    web.links[1], web.versions[1] = [], 9
    web.gone.add("3")
    assert again(table, web, "--links") == 0
    # No row says any more that the links have ended.
    assert nutbeam("compact", table, "--full") == 0
    assert nutbeam("mergelinkdb", table, tmp_path / "older") in (0, 1)
    assert stored_links(table) == true_links(table) != {}


@pytest.mark.long
def test_pages_with_very_long_urls_have_links(tmp_path, web):
    long = web.url(1) + "/" + "x" * 2_500
    web.links |= {0: [(long, "long", "")], 1: [(2, "two", "")]}
    table = start(tmp_path / "table", web, "--max_url_length", "4000")
    web.links[0], web.versions[0] = [(long, "longer", ""), (1, "", "")], 9
    for _ in range(2):
        assert again(table, web, "--links", "--max_url_length", "4000") == 0
        found = urls(stored_links(table))
        assert found[long, web.url(0)] == ("longer", None)
        assert found[web.url(2), long] == found[web.url(2), web.url(1)] == ("two", None)
        assert stored_links(table) == true_links(table)
    assert nutbeam("readlinkdb", table, long) == 0
