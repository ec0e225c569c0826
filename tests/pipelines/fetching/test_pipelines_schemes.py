"""Folders and FTP servers crawled by the command, from one end to the other; and what is not read."""

import json
import os

import polars as pl
import pytest
from crawling import manifest_of, manifests_of, nutbeam, rows_of, state_of, statuses_of
from ftp_servers import ftp_mapping, real_server, scripted_server
from listed_folders import url_of
from web_servers import connect_to, reply, serve

from nutbeam.pipelines.command_line.cli import main

SECRET = "nobody may read this"


@pytest.fixture
def tree(tmp_path):
    """A folder of pages, three levels deep, beside a secret."""
    root = tmp_path.resolve() / "tree"
    (root / "a" / "b").mkdir(parents=True)
    (root / "empty").mkdir()
    (root / "index.html").write_text(
        "<title>Start</title><a href='a/one.html'>one</a><a href='http://www.example.com/'>web</a>"
        "<a href='../secret.txt'>out</a><a href='missing.html'>missing</a>"
    )
    (root / "a" / "one.html").write_text("<title>One</title><a href='b/deep.txt'>deep</a>")
    (root / "a" / "b" / "deep.txt").write_text("deep down")
    (root / "a" / "b" / "copy.txt").write_text("deep down")
    (root / "a" / "logo.png").write_bytes(b"\x89PNG")
    (root / "a" / os.fsdecode("ä b\xff".encode("latin-1") + b"\xfe")).write_text("odd name")
    (root / "link.html").symlink_to("a/one.html")
    (root / "out.txt").symlink_to(root.parent / "secret.txt")
    (tmp_path / "secret.txt").write_text(SECRET)
    return root


def counts_of(table):
    counts = {}
    for manifest in manifests_of(table):
        for name, number in manifest.counts.items():
            counts[name] = counts.get(name, 0) + number
    return counts


def bodies_of(table):
    """Returns the body of each page that is stored."""
    manifest = manifest_of(table)
    names = [name for name in manifest.components if name.endswith("/pages")]
    return [body for name in names for body in rows_of(table, name)["body"].drop_nulls()]


def file_words(root, *more):
    return ("--schemes", "file", "--file_roots", root, *more)


def test_a_folder_is_crawled(tables, tree, tmp_path, capsys):
    table = tables(tmp_path / "table")
    words = file_words(tree, "--rounds", "-1")
    # Neither a name nor a delay of 5 s: nobody is asked.
    assert nutbeam("crawl", table, url_of(tree) + "/", *words) == 0
    base = url_of(tree)
    found = statuses_of(table)
    copies = {found.pop(f"{base}/a/b/{name}.txt") for name in ("deep", "copy")}
    assert copies == {"db_fetched", "db_duplicate"}
    assert found == {
        f"{base}/": "db_fetched",
        f"{base}/index.html": "db_fetched",
        f"{base}/link.html": "db_redir_perm",
        f"{base}/missing.html": "db_gone",
        f"{base}/out.txt": "db_gone",
        f"{base}/empty/": "db_fetched",
        f"{base}/a/": "db_fetched",
        f"{base}/a/one.html": "db_fetched",
        f"{base}/a/b/": "db_fetched",
        f"{base}/a/%E4%20b%FF%FE": "db_fetched",
        f"{url_of(tree.parent)}/secret.txt": "db_gone",
    }
    assert not any(SECRET.encode() in body for body in bodies_of(table))
    hosts = manifest_of(table).components.get("hosts")
    assert hosts is None or len(rows_of(table, "hosts")) == 0
    capsys.readouterr()
    assert nutbeam("readdb", table, "--url", f"{base}/a/one.html", "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)["status"] == "db_fetched"
    assert nutbeam("readdb", table, "--stats") == 0
    out = tmp_path / "pages.jsonl"
    assert nutbeam("pages", table, "-o", out) == 0
    pages = {page["url"]: page for page in map(json.loads, out.read_text().splitlines())}
    assert pages[f"{base}/a/one.html"]["title"] == "One"
    assert pages[f"{base}/a/b/"]["title"] == f"Index of {tree}/a/b/"
    # Again: nothing has changed but one page.
    (tree / "a" / "one.html").write_text("<title>Two</title>")
    os.utime(tree / "a" / "one.html", (2_000_000_000, 2_000_000_000))
    before = counts_of(table).get("protocol/notmodified", 0)
    assert nutbeam("crawl", table, *words[:-1], "1", "--add_days", "31", "--max_count", "100") == 0
    assert counts_of(table)["protocol/notmodified"] - before >= 6
    titles = [title for manifest in [manifest_of(table)] for name in manifest.components
              if name.endswith("/documents") for title in rows_of(table, name)["title"]]  # fmt: skip
    assert "Two" in titles


@pytest.mark.long
def test_partitions_and_phases_of_their_own(tree, tmp_path):
    table, (_, _, _, root) = tmp_path / "table", file_words(tree)
    on = ("--schemes", "http,https,file")
    who = ("--agent_name", "bot", "--agent_email", "a@b")
    assert nutbeam("inject", table, f"file:{tree}/index.html", *on) == 0
    for _ in range(2):
        assert nutbeam("generate", table, *on, "--num_fetchers", "3", "--max_count", "3") == 0
        assert nutbeam("fetch", table, *on, *who, "--file_roots", root, "--redirect_max", "2") == 0
        assert nutbeam("parse", table, *on, "--scope", "host") == 0
        assert nutbeam("updatedb", table, *on, "--scope", "host") == 0
        assert nutbeam("dedup", table) == 0
    found = statuses_of(table)
    assert found[f"{url_of(tree)}/index.html"] == "db_fetched"
    assert "http://www.example.com/" not in found  # out of scope
    assert len(found) == 5
    assert nutbeam("purge", table, "--url", f"{url_of(tree)}/index.html") == 0
    assert f"{url_of(tree)}/index.html" not in statuses_of(table)


@pytest.mark.long
def test_an_ftp_server_is_crawled(tables, tree, tmp_path):
    table = tables(tmp_path / "table")
    (tree / os.fsdecode(b"a/\xe4 b\xff\xfe")).unlink()  # the server knows UTF-8 alone
    (tree / "out.txt").unlink()
    (tree / "index.html").write_text(
        f"<a href='file://{tree}/a/one.html'>x</a><a href='a/one.html'>one</a>"
    )
    with real_server(tree) as server:
        words = ("--schemes", "http,https,ftp", "--connect_to", ftp_mapping(server.port))
        more = ("--rounds", "-1", "--server_delay", "0")
        assert nutbeam("crawl", table, "ftp://ftp.example.com", *words, *more) == 0
        found = statuses_of(table)
        base = "ftp://ftp.example.com"
        assert {found.pop(f"{base}/a/b/{name}.txt") for name in ("deep", "copy")} == {
            "db_fetched", "db_duplicate"
        }  # fmt: skip
        assert found == dict.fromkeys(
            [f"{base}{path}" for path in ("/", "/index.html", "/link.html", "/a/", "/a/one.html",
                                          "/a/b/", "/empty/")], "db_fetched"
        ) | {
            f"{base}/link.html": "db_duplicate",  # the server shows what it leads to
            f"{base}/b/deep.txt": "db_gone",  # as it says there
        }  # fmt: skip
        assert rows_of(table, "hosts")["key"].to_list() == ["com.example", "com.example.ftp"]
        assert not [c for c in server.commands if "robots" in c]
        again = ("--add_days", "31", "--rounds", "1", "--server_delay", "0")
        assert nutbeam("crawl", table, *words, *again) == 0
    assert counts_of(table)["protocol/notmodified"] >= 4


@pytest.mark.long
def test_a_page_of_the_web_never_leads_to_the_disk(tables, tree, tmp_path):
    """Not by link, base, frame, refresh or canonical, by redirect, nor by robots.txt."""
    secret = url_of(tree / "a" / "one.html")  # which file: may well read
    ways = [secret, secret.upper().replace("FILE", "file"), f"FILE:{tree}/a/one.html",
            secret.replace("/one", "/%6fne"), secret.replace("file://", "file://localhost")]  # fmt: skip

    def answer(path, _):
        if path == "/robots.txt":
            return reply(b"", "302 Found", f"Location: {secret}")
        if path.startswith("/redirect"):
            return reply(b"", "302 Found", f"Location: {ways[int(path[-1])]}")
        links = "".join(f"<a href='{way}'>x</a><iframe src='{way}'></iframe>" for way in ways)
        moved = "".join(f"<a href='/redirect{at}'>x</a>" for at in range(len(ways)))
        body = (
            f"<base href='http://a.example.com/'><link rel=canonical href='{secret}'>"
            f"<meta http-equiv=refresh content='0; url={secret}'>{links}{moved}"
            f"<a href='ftp://ftp.example.com/'>ftp is the web, too</a>"
        )
        return reply(body.encode(), "200 OK", "Content-Type: text/html")

    listing = b"".join(b"type=file; " + way.encode() + b"\r\n" for way in ways)
    page = f"<a href='{secret}'>x</a>".encode()
    told = scripted_server(data=listing + b"type=file; x.html\r\n"), scripted_server(data=page)
    table = tables(tmp_path / "table")
    with serve(answer) as server, told[0] as ftp, told[1] as ftp_page:
        assert nutbeam(
            *("crawl", table, "http://a.example.com/", "ftp://page.example.com/x.html"),
            *("--schemes", "http,https,file,ftp", "--file_roots", tree, "--scope", "any"),
            *("--connect_to", connect_to(server.port)[0], "--connect_to", ftp_mapping(ftp.port)),
            *("--connect_to", ftp_mapping(ftp_page.port, "page.example.com")),
            *("--server_delay", "0", "--rounds", "4", "--redirect_max", "3"),
        ) == 0  # fmt: skip
    found = statuses_of(table)
    assert not [url for url in found if url.startswith("file:")]
    assert found["ftp://ftp.example.com/"] == "db_fetched"
    counts = counts_of(table)
    assert counts["dropped/file_from_elsewhere"] >= len(ways) + 1, counts
    assert counts["dropped/redirect_file_from_elsewhere"] >= 3, counts
    assert not [body for body in bodies_of(table) if b"<title>One" in body]


def test_schemes_are_off_by_default(tree, tmp_path, capsys):
    table = tmp_path / "table"
    assert nutbeam("inject", table, url_of(tree) + "/", "ftp://ftp.example.com/") == 0
    assert manifest_of(table).counts["dropped/scheme_not_allowed"] == 2
    # What came into the table while they were on is not chosen, and not asked for.
    assert nutbeam("inject", table, url_of(tree) + "/", "ftp://ftp.example.com/",
                   "http://a.example.com/", "--schemes", "http,ftp,file") == 0  # fmt: skip
    assert nutbeam("generate", table) == 0
    counts = manifest_of(table).counts
    assert (counts["chosen"], counts["left_out/scheme_not_allowed"]) == (1, 2)
    assert nutbeam("generate", table, "--schemes", "file,ftp") == 0
    batch = manifest_of(table).batch
    who = ("--agent_name", "bot", "--agent_email", "a@b")
    assert nutbeam("fetch", table, "--batch", batch, *who) == 0
    assert manifest_of(table).counts == {"dropped/scheme_not_allowed": 2}
    assert set(state_of(table)["url"]) == {
        url_of(tree) + "/", "ftp://ftp.example.com/", "http://a.example.com/"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--schemes", "file"), "file_roots must name the folders that may be read"),
        (
            ("--schemes", "http,gopher"),
            "got 'gopher': a plug-in for it is --protocols gopher:=NAME",
        ),
        (("--schemes", ""), "schemes must be some of http, https, file, ftp, got none"),
        (("--schemes", "file", "--file_roots", "x"), "file_roots must be absolute, got 'x'"),
    ],
)
def test_wrong_or_missing_options_of_schemes_are_reported_in_one_line(
    tmp_path, capsys, words, message
):
    assert main(["crawl", str(tmp_path / "table"), "file:///x/", *words]) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1, said
    assert message in said[0]
    assert not (tmp_path / "table").exists()


def test_sql_knows_urls_without_a_host(tree, tmp_path, capsys):
    pytest.importorskip("duckdb")
    table = tmp_path / "table"
    url = url_of(tree) + "/index.html"
    assert nutbeam("inject", table, url, "--schemes", "file") == 0
    capsys.readouterr()
    query = "select url, host_of(key) as host from state"
    assert nutbeam("sql", table, query, "--format", "json") == 0
    assert json.loads(capsys.readouterr().out) == {"url": url, "host": ""}


def test_a_folder_and_a_server_in_a_pipeline_of_ones_own(tree):
    import apache_beam as beam
    from running import run

    from nutbeam.transforms.fetch_pages import FetchPages
    from nutbeam.transforms.parse_pages import ParsePages

    urls = [url_of(tree) + "/index.html", "ftp://ftp.example.com/index.html", "http://a b/",
            url_of(tree) + "/link.html", "http://a.example.com/"]  # fmt: skip
    taken = ("http", "https", "file", "ftp")
    leads = reply(b"", "302 Found", f"Location: {urls[0]}")
    with real_server(tree) as server, serve(lambda *_: leads) as web:

        def build(pipeline):
            given = pipeline | beam.Create([beam.Row(url=url) for url in urls])
            fetched = given | FetchPages(
                schemes=taken, file_roots=(str(tree),), server_delay=0,
                connect_to=(ftp_mapping(server.port), *connect_to(web.port)),
            )  # fmt: skip
            parsed = fetched["pages"] | ParsePages(schemes=taken, parse_processes=1)
            return {"pages": fetched["pages"], "documents": parsed["documents"],
                    "dead": fetched["dead_letters"]}  # fmt: skip

        found = run(build)
    assert {(p.url, p.host, p.http_code, p.redirect) for p in found["pages"]} == {
        (urls[0], "", 200, None), (urls[1], "ftp.example.com", 200, None),
        (urls[3], "", 301, url_of(tree) + "/a/one.html"), (urls[4], "a.example.com", 302, None),
    }  # fmt: skip
    links = {page.url: {link.url for link in page.links} for page in found["documents"]}
    assert url_of(tree / "a" / "one.html") in links[urls[0]]
    assert all(not link.startswith("file:") for link in links[urls[1]])
    assert [letter.reason for letter in found["dead"]] == ["malformed"]


def test_state_keys_without_a_host():
    from nutbeam.policy.base.key_columns import host_keys
    from nutbeam.policy.generating.selection import groups, queue_names, spans_tablets
    from nutbeam.policy.scope import in_scope

    keys = pl.Series("key", [":file/a", "com.foo:http/", None])
    assert host_keys(keys).to_list() == ["", "com.foo", None]
    assert groups(keys[:2], "domain").to_list() == ["", "com.foo"]
    assert queue_names("b", keys[:1], "domain").to_list() == ["b/"]
    assert spans_tablets(pl.Series([""]), "host", None, ":file/b").to_list() == [True]
    assert in_scope(keys[:1], keys[:1], "domain").to_list() == [True]
    assert in_scope(keys[:1], keys[1:2], "host").to_list() == [False]
