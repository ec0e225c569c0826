"""``nutbeam replay``: a crawl of the archive is the crawl again; by path nothing leaves it."""

import contextlib
import gzip
import http.client
import io
import re
import shutil
import ssl
import subprocess
import zipfile

import polars as pl
import pytest
from archived_site import HOST, SECURE, archived_site, crawl_site, write_archive, write_certificate
from crawling import assert_same, contents, nutbeam, statuses_of
from replaying import served
from stores_here import in_stores

from nutbeam.io.storage.files import write_bytes
from nutbeam.io.storage.place_addresses import place_of
from nutbeam.pipelines.archives.replay_archive import ReplayArchive
from nutbeam.pipelines.views.reader import read
from nutbeam.web.archives.member_codecs import encode_gzip
from nutbeam.web.archives.warc_records import WarcRecord, encode_record, record_id
from nutbeam.web.replay.replay_answers import original_answer
from nutbeam.web.replay.replay_requests import time_of_digits


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return write_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture(scope="module")
def table(certificate, tmp_path_factory):
    """The site, crawled; no test changes it."""
    folder = tmp_path_factory.mktemp("replayed") / "table"
    with archived_site(certificate) as (plain, secure):
        assert crawl_site(folder, plain.port, secure.port, certificate, "--store_wire") == 0
    return folder


@pytest.fixture(scope="module")
def server(certificate, tmp_path_factory):
    """A replay of the site from a WARC file."""
    archive = write_archive(tmp_path_factory.mktemp("archived"))
    with served(archive, certificate=certificate) as running:
        yield running


def ask(server, target, host=None, method="GET", **headers):
    """Returns status, headers and body of a request; the target may be a whole URL."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    with contextlib.closing(connection):
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        named["Host"] = host or f"127.0.0.1:{server.port}"
        connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
        for name, value in named.items():
            for each in [value] if isinstance(value, str) else value:
                connection.putheader(name, each)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()


@pytest.mark.long
def test_a_crawl_of_the_archive_makes_the_same_table(table, certificate, tmp_path):
    again = tmp_path / "again"
    with served(table, certificate=certificate) as server:
        words = (server.port, server.port, certificate, "--store_wire")
        assert crawl_site(again, *words) == 0
    statuses = statuses_of(again)
    assert statuses == statuses_of(table)
    assert {"db_fetched", "db_gone", "db_redir_perm", "db_redir_temp"} <= set(statuses.values())
    assert f"http://{HOST}/private/x" in statuses  # as robots.txt says it was not requested
    for what in ("pages", "outlinks"):
        frames = [read(str(each), what) for each in (table, again)]
        same = [name for name in frames[0].columns if not name.endswith(("time", "batch_id"))]
        one, other = (frame.select(same).sort(pl.all()) for frame in frames)
        assert len(one) > 5
        assert one.equals(other), what
    assert_same(signatures(table), signatures(again))


def signatures(table):
    rows = contents(table)["state"]
    return {"state": rows.select("key", "signature", "score", "status", "content_type")}


def test_a_proxy_gets_answers_as_they_came(server):
    status, headers, body = ask(server, f"http://{HOST}/coded", HOST, Accept_Encoding="gzip")
    assert (status, headers["Server"], headers["Content-Encoding"]) == (200, "original", "gzip")
    assert body[:2] == b"\x1f\x8b"
    status, headers, body = ask(server, f"http://{HOST}/coded", HOST)
    assert (status, headers["Content-Encoding"], body[:7]) == (200, None, b"<title>")
    assert headers["X-Crawl-Content-Encoding"] == "gzip"
    status, headers, body = ask(server, f"http://{HOST}/gone", HOST)
    assert (status, body) == (404, b"<title>no</title>not here")
    assert "X-Nutbeam-Replay" not in headers
    status, headers, _ = ask(server, "/moved", HOST)  # in place of the site
    assert (status, headers["Location"]) == (301, "/copy")
    assert ask(server, "/twin", HOST)[2] == b"<title>Copy</title>the copy"  # a revisit record
    assert ask(server, "/robots.txt", HOST)[2] == b"User-agent: *\nDisallow: /private/\n"
    assert ask(server, f"http://{SECURE}/secure")[0] == 200  # it was https
    status, headers, body = ask(server, "/coded", HOST, "HEAD")
    assert (status, int(headers["Content-Length"]) > 100, body) == (200, True, b"")


@pytest.mark.parametrize("host", [HOST, "rebound.example:1234", "127.0.0.1:1", "127.0.0.1"])
def test_a_missing_capture_is_404_and_says_so(server, host):
    """Also for names that lead here by DNS rebinding: pages of the replay have only its own name."""
    for target in ("/nothing", f"/http://{HOST}/", "/*/http://x/"):
        status, headers, _ = ask(server, target, host)
        assert (status, headers["X-Nutbeam-Replay"]) == (404, "missing")


def test_pages_by_path_have_links_into_the_archive_and_no_power_over_it(server):
    status, headers, body = ask(server, f"/http://{HOST}/")
    time = body.decode().partition('href="/')[2][:14]
    assert f'href="/{time}/http://{HOST}/style.css?v=1"' in body.decode()
    assert f'src="/{time}/http://{HOST}/js/app.js"' in body.decode()
    assert headers["Content-Security-Policy"].startswith("sandbox allow-scripts allow-forms; ")
    assert "Memento-Datetime" in headers
    status, headers, body = ask(server, f"/{time}/http://{HOST}/odd")
    assert (status, body) == (200, b"<title>Odd</title>odd headers")
    for name in ("Set-Cookie", "Refresh", "Alt-Svc", "Access-Control-Allow-Origin"):
        assert headers[name] is None
    assert headers["X-Archive-Orig-Set-Cookie"] == "a=1"
    assert headers.get_all("Content-Security-Policy")[0].startswith("sandbox")
    assert len(headers.get_all("Content-Security-Policy")) == 1
    style = ask(server, f"/{time}/http://{HOST}/style.css?v=1")[2].decode()
    assert re.match(rf'@import "/[0-9]{{14}}/http://{re.escape(HOST)}/more.css"', style)
    raw = ask(server, f"/{time}id_/http://{HOST}/style.css?v=1")
    assert raw[2].startswith(b'@import "/more.css"')
    assert raw[1]["Content-Security-Policy"] == "sandbox"
    status, headers, _ = ask(server, f"/2026/http://{HOST}/moved")
    assert status == 301
    assert re.fullmatch(rf"/[0-9]{{14}}/http://{re.escape(HOST)}/copy", headers["Location"])
    assert ask(server, f"/http://{HOST}")[1]["Location"] == f"/http://{HOST}/"


def test_other_sites_cannot_read_it_through_a_browser(server):
    path, foreign = f"/http://{HOST}/", {"Sec_Fetch_Site": "cross-site"}
    assert ask(server, path, Sec_Fetch_Dest="empty", **foreign)[0] == 403
    assert ask(server, f"/id_/http://{HOST}/", Sec_Fetch_Dest="script", **foreign)[0] == 403
    status, headers, body = ask(server, path, Sec_Fetch_Dest="document", **foreign)  # a link
    assert (status, b"<iframe" in body, b"red.png" in body) == (200, True, False)
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert (
        f"frame-src http://127.0.0.1:{server.port}{server.secret}/"
        in headers["Content-Security-Policy"]
    )
    framed = ask(server, f"{server.secret}{path}", Sec_Fetch_Dest="iframe", **foreign)
    assert (framed[0], framed[1]["Access-Control-Allow-Origin"]) == (200, "*")
    assert f'src="{server.secret}/'.encode() in framed[2]
    assert ask(server, f"/~wrong{path}")[0] == 404
    assert ask(server, f"{server.secret}/")[0] == 400


def write_cut_archive(folder):
    """Writes a WARC file with a page whose body was cut at 20 bytes."""
    body = b"<title>Cut</title>ap"
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 90\r\n\r\n" + body
    fields = [("WARC-Target-URI", f"http://{HOST}/"), ("WARC-Truncated", "length"),
              ("Content-Type", "application/http; msgtype=response")]  # fmt: skip
    record = WarcRecord("response", record_id("cut"), 1_795_883_544_000, fields, (block,))
    folder.mkdir(exist_ok=True)
    (folder / "cut.warc.gz").write_bytes(encode_gzip(encode_record(record)))
    return folder


@pytest.mark.long
def test_a_page_that_was_cut_is_not_taken_for_the_whole(tmp_path):
    with served(write_cut_archive(tmp_path / "archive")) as server:
        with pytest.raises(http.client.IncompleteRead) as caught:
            ask(server, f"http://{HOST}/", HOST)
        assert (len(caught.value.partial), caught.value.expected) == (20, 70)
        status, headers, body = ask(server, f"/http://{HOST}/")
        assert (status, len(body)) == (200, 20)
        assert headers["X-Nutbeam-Replay"] == "incomplete; length"
        frame = ask(server, f"/http://{HOST}/", Sec_Fetch_Dest="document")[2]
        assert b"incomplete: length" in frame
        for limit, status, truncated in (
            (20, "db_fetched", "length"),
            (30, "db_unfetched", "disconnect"),
        ):
            reach = ("--connect_to", f"{HOST}::127.0.0.1:{server.port}", "--server_delay", "0")
            table = tmp_path / f"at{limit}"
            words = ("--rounds", "1", "--content_limit", str(limit))
            nutbeam("crawl", table, f"http://{HOST}/", *reach, *words)
            assert statuses_of(table) == {f"http://{HOST}/": status}
            assert read(str(table), "batch_pages").get_column("truncated").to_list() == [truncated]


def write_dated_archive(folder):
    """Writes a WARC file with a page as it was in three years: its body is the year."""
    records = []
    for year in (2020, 2022, 2026):
        block = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n%d" % year
        fields = [("WARC-Target-URI", f"http://{HOST}/"),
                  ("Content-Type", "application/http; msgtype=response")]  # fmt: skip
        time = time_of_digits(f"{year}0301120000")
        records.append(WarcRecord("response", record_id(year), time, fields, (block,)))
    folder.mkdir()
    data = b"".join(encode_gzip(encode_record(record)) for record in records)
    (folder / "dated.warc.gz").write_bytes(data)
    return folder


def test_the_capture_that_is_nearest_to_a_time_is_answered(tmp_path):
    archive = write_dated_archive(tmp_path / "archive")
    url, near_2020 = f"http://{HOST}/", {"Accept_Datetime": "Sun, 01 Nov 2020 00:00:00 GMT"}
    with served(archive) as server:
        assert ask(server, url, HOST)[2] == b"2026"
        assert ask(server, url, HOST, **near_2020)[2] == b"2020"  # Memento, RFC 7089
        for path, year in [
            ("/", b"2026"),
            ("/2021/", b"2022"),
            ("/20210101/", b"2020"),
            ("/2021id_/", b"2022"),
        ]:
            status, headers, body = ask(server, f"{path}{url}")
            assert (status, body) == (200, year), path
            assert headers["Memento-Datetime"].endswith(f" Mar {year.decode()} 12:00:00 GMT")
            gate = f"http://127.0.0.1:{server.port}/{url}"
            assert headers["Link"] == f'<{url}>; rel="original", <{gate}>; rel="timegate"'
        assert ask(server, f"/{url}", **near_2020)[2] == b"2020"
        assert ask(server, f"/{url}", **near_2020)[1]["Vary"] == "accept-datetime"
        assert ask(server, f"/2026/{url}", **near_2020)[2] == b"2026"
        assert ask(server, f"/{url}", Accept_Datetime="yesterday")[0] == 400
        # As in Wayback and pywb.
        status, headers, _ = ask(server, f"/2021/{HOST}/")
        assert (status, headers["Location"]) == (302, f"/2021/{url}")
        for kind in ("im", "js", "cs", "if", "mp", "oe", "wkrf"):
            assert ask(server, f"/2021{kind}_/{url}")[2] == b"2022"
    with served(archive, time_of_digits("2019")) as server:
        assert ask(server, url, HOST)[2] == b"2020"


def test_pages_of_the_replay_list_hosts_pages_and_captures(server):
    status, headers, body = ask(server, "/")
    assert (status, f">{HOST}</a>" in body.decode()) == (200, True)
    assert "script" not in headers["Content-Security-Policy"]
    assert f"http://{HOST}/coded" in ask(server, f"/?host={HOST}")[2].decode()
    captures = ask(server, f"/*/http://{HOST}/coded")[2].decode()
    assert (captures.count("<li>"), "200 text/html" in captures) == (1, True)
    evil = "%3Cscript%3Ealert(1)%3C/script%3E"
    for target in (f"/*/http://{HOST}/{evil}", f"/?host={evil}", f"/http://{HOST}/{evil}"):
        assert "<script" not in ask(server, target)[2].decode()
    assert ask(server, f"/?url={HOST}/coded")[1]["Location"] == f"/http://{HOST}/coded"
    assert ask(server, "/no")[0] == 404
    assert ask(server, f"/123/http://{HOST}/")[0] == 404
    assert ask(server, f"/20261399/http://{HOST}/")[0] == 400


@pytest.mark.parametrize("target", ["/file:///etc/passwd", "/id_/file:///etc/passwd",
                                    "file:///etc/passwd", "/../../etc/passwd", "/http:///etc/passwd"])  # fmt: skip
def test_no_path_leads_to_a_local_file(server, target):
    status, _, body = ask(server, target)
    assert status in (400, 404)
    assert b"root:" not in body


def test_only_get_head_and_connect_are_answered(server):
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        status, headers, _ = ask(server, f"http://{HOST}/", HOST, method)
        assert (status, headers["Connection"]) == (405, "close")
    for lengths in (["5"], ["0", "5"]):
        assert ask(server, f"http://{HOST}/", HOST, Content_Length=lengths)[0] == 400
    assert ask(server, "/", HOST, "NONSENSE")[0] == 501
    assert ask(server, "/", HOST, X=f"{'y' * 70_000}")[0] == 431
    assert ask(server, f"/{'y' * 70_000}", HOST)[0] == 414


def test_https_needs_a_certificate_and_is_answered_with_one(server, certificate, tmp_path):
    trusted = ssl.create_default_context(cafile=str(certificate))
    tunnel = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=30, context=trusted)
    with contextlib.closing(tunnel):
        tunnel.set_tunnel(SECURE, 443)
        for _ in range(2):  # on one connection
            tunnel.request("GET", "/secure")
            answer = tunnel.getresponse()
            assert (answer.status, answer.read()) == (200, b"<title>Secure</title>by https")
    with served(write_archive(tmp_path)) as plain:
        status, _, body = ask(plain, f"{SECURE}:443", SECURE, "CONNECT")
        assert status == 501
        assert b"--certificate" in body


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_curl_takes_it_as_its_proxy(server):
    command = ["curl", "-sS", "-k", "-x", f"http://127.0.0.1:{server.port}", "--compressed"]
    for url in (f"http://{HOST}/coded", f"https://{HOST}/coded"):
        done = subprocess.run([*command, url], capture_output=True, timeout=60, check=True)
        assert done.stdout == "<title>Codé</title>pear".encode() * 50


def test_many_connections_at_once_are_all_answered(server):
    idle = [http.client.HTTPConnection("127.0.0.1", server.port, timeout=30) for _ in range(100)]
    with contextlib.ExitStack() as stack:
        for connection in idle:
            stack.enter_context(contextlib.closing(connection))
            connection.request("GET", f"http://{HOST}/copy")
        assert {connection.getresponse().read() for connection in idle} == {
            b"<title>Copy</title>the copy"
        }


@pytest.mark.long
def test_warc_files_are_replayed_as_their_table_is(table, tmp_path):
    assert nutbeam("warc", table, tmp_path / "archive") == 0
    archives = [ReplayArchive([str(each)]) for each in (table, tmp_path / "archive")]
    urls = [*statuses_of(table), f"http://{HOST}/robots.txt"]
    answers = [[answer_of(archive, url) for url in urls] for archive in archives]
    assert answers[0] == answers[1]
    assert len([answer for answer in answers[0] if answer]) > 12
    twin = archives[1].index.captures_of(f"http://{HOST}/twin")  # one of the two is a revisit
    assert len(twin) == len(archives[1].index.captures_of(f"http://{HOST}/copy")) == 1


@pytest.mark.parametrize(
    ("name", "compress"), [("site.warc", bytes), ("site.warc.gz", gzip.compress)]
)
def test_records_that_share_a_member_are_each_found(tmp_path, name, compress):
    """An uncompressed file, and one that was compressed as a whole."""
    apart = ReplayArchive([str(write_archive(tmp_path / "apart"))])
    data = gzip.decompress((tmp_path / "apart" / "site.warc.gz").read_bytes())
    (tmp_path / name).write_bytes(compress(data))
    together = ReplayArchive([str(tmp_path / name)])
    urls = [f"http://{HOST}{path}" for path in ("/", "/copy", "/twin", "/coded", "/gone", "/up")]
    answers = [answer_of(together, url) for url in urls]
    assert answers == [answer_of(apart, url) for url in urls]
    assert None not in answers


def test_a_package_is_replayed_as_its_archives_are(tmp_path):
    apart = ReplayArchive([str(write_archive(tmp_path / "apart"))])
    with zipfile.ZipFile(tmp_path / "site.wacz", "w") as package:
        package.write(tmp_path / "apart" / "site.warc.gz", "archive/site.warc.gz")
    packaged = ReplayArchive([str(tmp_path / "site.wacz")])
    urls = [f"http://{HOST}{path}" for path in ("/", "/copy", "/twin", "/coded", "/gone")]
    answers = [answer_of(packaged, url) for url in urls]
    assert answers == [answer_of(apart, url) for url in urls]
    assert None not in answers


@in_stores
def test_a_package_in_a_store_is_read_by_ranges(address, tmp_path):
    write_archive(tmp_path)
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as package:
        package.write(tmp_path / "site.warc.gz", "archive/site.warc.gz")
    place = place_of(address).parent / "packages" / "site.wacz"
    write_bytes(place, data.getvalue())
    archive = ReplayArchive([str(place)])
    assert archive.find(f"http://{HOST}/twin").body == b"<title>Copy</title>the copy"
    assert len(ReplayArchive([str(place.parent)]).index) == len(archive.index) > 8


def test_damage_is_counted_by_reason_and_the_rest_is_replayed(tmp_path):
    folder = write_cut_archive(tmp_path / "archive")
    whole = gzip.decompress((folder / "cut.warc.gz").read_bytes())
    changed = whole.replace(b"example.com/", b"example.com/w").replace(b"<title>Cut", b"<title>Cat")
    undated = whole.replace(b"WARC-Date: ", b"WARC-Date: x")
    no_http = whole.replace(b"HTTP/1.1 200 OK", b"HTTP/1.1 x00 OK")
    (folder / "plain.warc").write_bytes(b"".join([whole, changed, undated, no_http]))
    (folder / "torn.warc.gz").write_bytes(encode_gzip(whole)[:-20])
    archive = ReplayArchive([str(folder)])
    assert archive.damages == {
        "damaged/truncated_file": 1, "skipped/bad_date": 1, "skipped/bad_http": 1,
        "wrong_digest/block": 2,
    }  # fmt: skip
    for path, title in (("", b"Cut"), ("w", b"Cat")):
        assert title in archive.find(f"http://{HOST}/{path}").body


def answer_of(archive, url):
    capture = archive.find(url)
    if capture is None:
        return None
    answer = original_answer(capture, "gzip")
    return url, capture.time, answer.status, answer.body


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--time", "yesterday"), "--time.*'yesterday'"),
        (("--certificate", "/nowhere.pem"), "--certificate must be a PEM file.*'/nowhere.pem'"),
        (("--port", "70000"), "--port must be"),
    ],
)
def test_wrong_options_fail_at_once(tmp_path, capsys, words, why):
    assert nutbeam("replay", write_archive(tmp_path), *words) == 2
    assert re.search(why, capsys.readouterr().err)


CDXJ = b'com,example)/ 20261128163224 {"url": "http://example.com/"}\n'


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("site.wacz", b"PK\x03\x04 and more", "is damaged: File is not a zip file"),
        ("site.cdxj", CDXJ, "is an index (CDX): give the WARC files that it names"),
        ("index.cdx.gz", gzip.compress(CDXJ), "is an index (CDX)"),
        ("site.cdx", b" CDX N b a m s k r M S V g\n", "is an index (CDX)"),
        ("index.idx", b'!meta 0 {"format": "cdxj-gzip-1.0"}\n', "is an index (CDX)"),
    ],
)
def test_a_file_of_another_kind_is_named_in_the_message(tmp_path, capsys, name, content, why):
    (tmp_path / name).write_bytes(content)
    assert nutbeam("replay", tmp_path / name) == 2
    assert f"{name}' {why}" in capsys.readouterr().err


def test_a_folder_with_neither_table_nor_archive_is_refused(tmp_path, capsys):
    (tmp_path / "collection" / "archive").mkdir(parents=True)  # as pywb has it
    assert nutbeam("replay", tmp_path / "collection") == 2
    assert capsys.readouterr().err.endswith(
        "it has 'archive'; and no WARC file or package (WACZ) is directly in it\n"
    )
    assert nutbeam("replay", tmp_path / "nowhere") == 2
    assert capsys.readouterr().err.endswith("nowhere': it does not exist\n")


def test_an_archive_without_a_page_is_not_served(tmp_path, capsys):
    fields = [("WARC-Target-URI", f"http://{HOST}/"), ("Content-Type", "text/plain")]
    text = WarcRecord("conversion", record_id("text"), 5, fields, (b"a text",))
    data = encode_gzip(encode_record(text))
    (tmp_path / "a.warc.wet.gz").write_bytes(data + data[:-9])
    assert nutbeam("replay", tmp_path / "a.warc.wet.gz") == 1
    assert capsys.readouterr().err == (
        f"nutbeam replay: nothing to replay: {tmp_path}/a.warc.wet.gz has no captures; "
        "damaged/truncated_file 1\n"
    )
