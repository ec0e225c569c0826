"""dedup from crawl to crawl: which page stays, and what comes back when it goes."""

import pytest
from crawling import nutbeam, rows_of
from web_servers import reply, serve

from nutbeam.policy.components.schema import Status
from nutbeam.web.urls.row_keys import from_key

HOST = "http://a.example.com"
SAME = b"<html><body>the same text</body></html>"


class Site:
    """Three pages with the same content, and a home page that links to them."""

    def __init__(self):
        self.gone, self.changed, self.failing = set(), set(), set()

    def __call__(self, path, _):
        if path in self.failing:
            return reply(b"", "503 Service Unavailable")
        if path in self.gone or path == "/robots.txt":
            return reply(b"", "404 Not Found")
        if path == "/":
            links = "".join(f'<a href="/{name}">x</a>' for name in ("a", "bb", "ccc"))
            return reply(links.encode(), "200 OK", "Content-Type: text/html")
        if path in self.changed or path == "/other":
            return reply(
                b"<html><body>quite different words</body></html>",
                "200 OK",
                "Content-Type: text/html",
            )
        return reply(SAME, "200 OK", "Content-Type: text/html")


def pages(table):
    """Status and kept page of each URL but the home page, by path."""
    rows = rows_of(table, "state").select("key", "status", "duplicate_of").iter_rows()
    short = {
        from_key(key).removeprefix(HOST): (
            status,
            winner and from_key(winner).removeprefix(HOST),
        )
        for key, status, winner in rows
    }
    return {path: row for path, row in short.items() if path != "/"}


def kept_page(table):
    """The page that stays of the three, after a check of what the other two say."""
    found = pages(table)
    (kept,) = (path for path, (status, _) in found.items() if status == Status.DB_FETCHED)
    others = [row for path, row in found.items() if path != kept]
    assert others == [(Status.DB_DUPLICATE, kept)] * 2
    return kept


@pytest.mark.long
def test_when_the_page_that_stays_goes_another_one_stays(tmp_path):
    table, site = tmp_path / "table", Site()
    with serve(site) as server:
        words = ["--connect_to", f"a.example.com:80:127.0.0.1:{server.port}", "--server_delay", "0"]
        assert nutbeam("crawl", table, f"{HOST}/", "--rounds", "2", *words) == 0
        lost = kept_page(table)
        site.gone.add(lost)
        assert nutbeam("crawl", table, "--rounds", "1", "--add_days", "31", *words) == 0
    found = pages(table)
    assert found.pop(lost) == (Status.DB_GONE, None)
    # Both others were fetched again, so they were compared again.
    (kept,) = (path for path, row in found.items() if row == (Status.DB_FETCHED, None))
    assert [row for path, row in found.items() if path != kept] == [(Status.DB_DUPLICATE, kept)]


@pytest.mark.long
@pytest.mark.folder_first
def test_duplicates_that_were_not_fetched_again_come_back_too(backend):
    table, site = backend.fresh(), Site()
    with serve(site) as server:
        words = ["--connect_to", f"a.example.com:80:127.0.0.1:{server.port}", "--server_delay", "0"]
        assert nutbeam("crawl", table, f"{HOST}/", "--rounds", "2", *words) == 0
        lost = kept_page(table)
        site.gone.add(lost)
        choose = ["--restrict_status", "fetched", "--add_days", "31"]
        assert nutbeam("crawl", table, "--rounds", "1", *choose, *words) == 0
        assert sorted(server.paths[-2:]) == ["/", lost]
    found = pages(table)
    assert found.pop(lost) == (Status.DB_GONE, None)
    kept = min(found, key=lambda path: found[path][0])
    assert found.pop(kept) == (Status.DB_FETCHED, None)
    assert list(found.values()) == [(Status.DB_DUPLICATE, kept)]


@pytest.mark.long
def test_duplicates_of_a_page_that_is_tried_again_wait_until_it_is_gone(tmp_path):
    table, site = tmp_path / "table", Site()
    with serve(site) as server:
        words = ["--connect_to", f"a.example.com:80:127.0.0.1:{server.port}", "--server_delay", "0"]
        assert nutbeam("crawl", table, f"{HOST}/", "--rounds", "2", *words) == 0
        found, lost = pages(table), kept_page(table)
        site.failing.add(lost)
        words += ["--rounds", "1", "--exceptions_delay", "0"]
        choose = ["--restrict_status", "fetched", "--add_days", "31"]
        assert nutbeam("crawl", table, *choose, *words) == 0
        assert pages(table) == found | {lost: (Status.DB_UNFETCHED, None)}
        site.failing.clear()
        site.gone.add(lost)
        choose = ["--restrict_status", "unfetched", "--add_days", "40"]
        assert nutbeam("crawl", table, *choose, *words) == 4  # no page was fetched
    found = pages(table)
    assert found.pop(lost) == (Status.DB_GONE, None)
    assert sorted(status for status, _ in found.values()) == [
        Status.DB_FETCHED, Status.DB_DUPLICATE
    ]  # fmt: skip


@pytest.mark.long
@pytest.mark.few(1)
@pytest.mark.parametrize("way", ["filterdb", "purge", "inject"])
def test_duplicates_of_a_page_that_an_operator_removes_come_back(tmp_path, way):
    table, site = tmp_path / "table", Site()
    with serve(site) as server:
        words = ["--connect_to", f"a.example.com:80:127.0.0.1:{server.port}", "--server_delay", "0"]
        assert nutbeam("crawl", table, f"{HOST}/", "--rounds", "2", *words) == 0
        lost = kept_page(table)
        exclude = ("--exclude", f"{lost}$")
        if way == "filterdb":
            assert nutbeam("filterdb", table, *exclude) == 0
            words += exclude
        elif way == "purge":
            assert nutbeam("purge", table, "--url", f"{HOST}{lost}") == 0
        else:
            assert nutbeam("inject", table, f"{HOST}{lost}", "--overwrite_known") == 0
            site.changed.add(lost)
        if way != "inject":
            assert nutbeam("inject", table, f"{HOST}/other") == 0
        assert nutbeam("crawl", table, "--rounds", "1", *words) == 0
    found = pages(table)
    assert found.pop(lost, None) == ((Status.DB_FETCHED, None) if way == "inject" else None)
    found.pop("/other", None)
    (kept,) = (path for path, row in found.items() if row == (Status.DB_FETCHED, None))
    assert [row for path, row in found.items() if path != kept] == [(Status.DB_DUPLICATE, kept)]
