"""Each hostile host of the simulated web, and what a real crawl makes of it."""

import polars as pl
import pytest
from crawling import files_of, manifest_of, manifests_of, nutbeam, reach, state_of
from simulated_web import SimWeb

from nutbeam.policy.components.schema import STATUS_NAMES
from nutbeam.web.simweb.hostile import HOSTILE, find_mode
from nutbeam.web.urls.row_keys import from_key

AGAIN, FETCHED, GONE = "db_unfetched", "db_fetched", "db_gone"
TEMPORARY, PERMANENT = "db_redir_temp", "db_redir_perm"
WHOLE = (FETCHED, None, None)

# Of each host: status of its first page, a part of the message, why the body is not whole.

EXPECTED = {
    "slow": (AGAIN, "too_slow", "time"),
    "slow-headers": (AGAIN, "too_slow", None),
    "hang": (AGAIN, "timeout", None),
    "garbage": (AGAIN, "protocol_error", None),
    "http09": WHOLE,
    "bad-status": (AGAIN, "protocol_error", None),
    "big-status": (AGAIN, "protocol_error", None),
    "endless": (FETCHED, None, "length"),
    "endless-headers": (AGAIN, "headers_too_large", None),
    "long-header": (AGAIN, "headers_too_large", None),
    "interim": (AGAIN, "protocol_error", None),
    "reset": (AGAIN, "reset", "disconnect"),
    "cut": (AGAIN, "incomplete", "disconnect"),
    "too-much": WHOLE,
    "bad-length": WHOLE,
    "two-lengths": (AGAIN, "protocol_error", None),
    "bad-chunks": (AGAIN, "incomplete", "disconnect"),
    "cut-chunks": (AGAIN, "incomplete", "disconnect"),
    "endless-chunks": (FETCHED, None, "length"),
    "injection": WHOLE,
    "mislabelled": WHOLE,
    "gzip-bomb": (FETCHED, None, "length"),
    "double-bomb": (FETCHED, None, "length"),
    "nested-codings": (AGAIN, "bad_encoding", "encoding"),
    "brotli-bomb": (None, None, None),  # see below: it depends on what is installed
    "bad-gzip": (AGAIN, "bad_encoding", "encoding"),
    "cut-gzip": (FETCHED, None, "encoding"),
    "no-gzip": WHOLE,
    "loop": (TEMPORARY, "loop.hostile.example.com/", None),
    "pair": (PERMANENT, "pair.hostile.example.com/a", None),
    "chain": (PERMANENT, "chain.hostile.example.com/1", None),
    "endless-chain": (TEMPORARY, "endless-chain.hostile.example.com/1", None),
    "to-private": (TEMPORARY, "http://127.0.0.1/", None),
    "to-metadata": (TEMPORARY, "http://169.254.169.254/", None),
    "to-file": (TEMPORARY, "file:///etc/passwd", None),
    "to-port": (TEMPORARY, "http://elsewhere.example.org:6379/", None),
    "to-nowhere": (TEMPORARY, "no location", None),
    "changing": WHOLE,
    "etag": WHOLE,
    "last-modified": WHOLE,
    "unasked-304": (AGAIN, "304", None),
    "too-many": (AGAIN, "429", None),
    "retry-never": (AGAIN, "503", None),
    "retry-before": (AGAIN, "503", None),
    "recovers": (AGAIN, "503", None),
    "cookies": WHOLE,
    "robots-200": WHOLE,
    "robots-200-big": WHOLE,
    "robots-html": WHOLE,
    "robots-nul": WHOLE,
    "robots-delay": (GONE, "crawl delay 86400 s", None),
    "robots-redirect": WHOLE,
    "robots-private": (AGAIN, "address_denied", None),
    "robots-hang": (AGAIN, "timeout", None),
    "robots-reset": (AGAIN, "reset", None),
    "robots-cut": WHOLE,  # twice the same answer is what the server has
    **{f"robots-{status}": WHOLE for status in (204, 400, 401, 403, 404, 410, 418)},
    # Deferred: not asked for at all, and due again.
    **{f"robots-{why}": (AGAIN, None, None) for why in (429, 500, 501, 503, "loop")},
    "calendar": WHOLE,
    "session-ids": WHOLE,
    "same-pages": WHOLE,
    "echo": WHOLE,
    "parameters": WHOLE,
    "infinite-hosts": WHOLE,
    "spam": WHOLE,
    "soft-404": WHOLE,
    "odd-titles": WHOLE,
    "million-links": (FETCHED, None, "length"),
    "nested": WHOLE,
}
# Those whose robots.txt forbids /private, so that it reads it.
FORBIDDEN = ("robots-200", "robots-200-big", "robots-redirect", "robots-cut")
LIMITS = ("--timeout", "2", "--http_time_limit", "4", "--threads", "100", "--content_limit", "1Mi")


def url_of(name, path="/"):
    return f"http://{name}.hostile.example.com{path}"


@pytest.fixture(scope="module", params=["threads", pytest.param("asyncio", marks=pytest.mark.long)])
def crawled(tmp_path_factory, request):
    """A crawl of all of them at once: the server, what was asked, the rows, the pages, counts."""
    table = tmp_path_factory.mktemp("hostile") / "table"
    private = [url_of(name, "/private") for name in EXPECTED if name.startswith("robots")]
    with SimWeb(hosts=1, pages=1) as web:
        words = [*map(url_of, EXPECTED), *private, *reach(web), *LIMITS, "--rounds", "1"]
        assert nutbeam("crawl", table, *words, "--http_client", request.param) == 0
        asked = {f"http://{request.host}{request.path}" for request in web.requests()}
        names = list(manifest_of(table).batches)
        files = [path for name in names for path in files_of(table, f"batches/{name}/pages")]
        pages = pl.concat(pl.read_parquet(path) for path in files).to_dicts()
        rows = {row["url"]: row for row in state_of(table).to_dicts()}
        counts = next(m.counts for m in manifests_of(table) if m.job == "fetch")
        yield asked, rows, {from_key(page["key"]): page for page in pages}, counts


def test_all_are_here():
    assert {f"{name}.hostile.example.com" for name in EXPECTED} == set(HOSTILE)
    assert all(mode.about.endswith(".") and len(mode.about) < 100 for mode in HOSTILE.values())
    assert (
        find_mode("x.y.infinite-hosts.hostile.example.com").host
        == "infinite-hosts.hostile.example.com"
    )
    assert find_mode("hostile.example.com") is None
    assert find_mode("nobody.hostile.example.com") is None


@pytest.mark.long
@pytest.mark.few(60)
@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_crawl_records_hostile_answers_as_expected(crawled, name):
    _, rows, pages, _ = crawled
    status, message, truncated = EXPECTED[name]
    row, page = rows[url_of(name)], pages.get(url_of(name), {})
    found = (STATUS_NAMES[row["status"]], row["protocol_message"], page.get("truncated"))
    if name == "brotli-bomb":  # where Brotli cannot be undone, it is an error
        assert found in ((FETCHED, None, "length"), (FETCHED, None, "ratio"),
                         (AGAIN, "bad_encoding", "encoding"))  # fmt: skip
        return
    assert found[0] == status, found
    assert (message or "") in (found[1] or ""), found
    assert (message is None) == (found[1] is None), found
    assert found[2] == truncated, found
    assert len(page.get("body") or b"") <= 1 << 20


@pytest.mark.parametrize("name", [name for name in EXPECTED if name.startswith("robots")])
def test_pages_forbidden_by_robots_txt_are_not_requested(crawled, name):
    asked, rows, _, counts = crawled
    url = url_of(name, "/private")
    assert (url in asked) == (EXPECTED[name] == WHOLE and name not in FORBIDDEN)
    if name in FORBIDDEN:
        assert rows[url]["protocol_message"] == "robots.txt"
    assert counts["dropped/robots_deferred"] == 10


def test_values_of_servers_do_not_enter_requests_or_other_headers(crawled):
    asked, _, pages, _ = crawled
    injected = pages[url_of("injection")]
    assert injected["redirect"] is None
    names = {header["name"].lower() for header in injected["headers"]}
    assert "set-cookie" not in names
    text = "".join(header["name"] + header["value"] for header in injected["headers"])
    assert not set(text) & set("\r\n\0"), injected["headers"]
    assert b"came: none" in pages[url_of("cookies")]["body"]
    assert not [url for url in asked if "hostile" not in url]


@pytest.mark.long
def test_later_rounds_keep_the_page_on_304_and_recover_from_503(tmp_path):
    table = tmp_path / "table"
    seeds = [url_of(name) for name in ("etag", "last-modified", "changing", "recovers")]
    with SimWeb(hosts=1, pages=1) as web:
        # The host that recovers asks to be left alone for a second: until then it is left out.
        for days in ("0", "90", *(str(180 + 90 * more) for more in range(20))):
            words = [*seeds, *reach(web), "--rounds", "1", "--add_days", days]
            assert nutbeam("crawl", table, *words) == 0
            rows = {row["url"]: row for row in state_of(table).to_dicts()}
            found = {
                url.split(".")[0][7:]: STATUS_NAMES[row["status"]] for url, row in rows.items()
            }
            if days != "0" and found["recovers"] == "db_fetched":
                break
    assert found == {
        "etag": "db_notmodified",
        "last-modified": "db_notmodified",
        "changing": "db_fetched",
        "recovers": "db_fetched",
    }
    assert rows[url_of("etag")]["http_code"] == 304


def test_the_list_names_each_with_a_line(capsys):
    assert nutbeam("simweb", "--list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0].rstrip() for line in lines] == list(HOSTILE)
