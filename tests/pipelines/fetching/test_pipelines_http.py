import base64
import json
import ssl
from collections import Counter

import polars as pl
import pyarrow.parquet as pq
import pytest
from crawling import VOLATILE as VOLATILE_COLUMNS
from crawling import asked, crawl, files_of, manifest_of, nutbeam, state_of
from made_certificates import CERTIFICATE
from simulated_web import SimWeb
from web_servers import reply, serve

PASSWORD = "s3cret-of-ours"
# What depends on when it came, or on what else was going on.
VOLATILE = ("Date", "Connection")


@pytest.mark.long
def test_a_crawl_with_credentials_of_a_host_that_is_not_checked(tmp_path, capsys, caplog):
    pem, file, table = tmp_path / "a.pem", tmp_path / "credentials", tmp_path / "table"
    pem.write_text(CERTIFICATE)
    file.write_text(f"https://a.example.com basic user {PASSWORD}\n")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    pair = base64.b64encode(f"user:{PASSWORD}".encode()).decode()

    def answer(path, connection):
        if pair not in server.requests[-1][1]:
            return reply(b"", "401 Who?", 'WWW-Authenticate: Basic realm="x"')
        return reply(b"<title>inside</title>", "200 OK", "Content-Type: text/html")

    with serve(answer, context=context) as server:
        words = ("crawl", table, "https://a.example.com/", "--rounds", "1", "--server_delay", "0")
        mapping = f"a.example.com:443:127.0.0.1:{server.port}"
        http = ("--http_credentials", file, "--insecure_host", "a.example.com")
        assert nutbeam(*words, "--connect_to", mapping, *http) == 0
    assert "certificates are not checked of a.example.com" in caplog.text
    said = capsys.readouterr()
    assert nutbeam("readdb", table, "--url", "https://a.example.com/", "--format", "json") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["protocol_message"] == "certificate not checked"
    assert nutbeam("pages", table) == 0
    page = json.loads(capsys.readouterr().out)
    assert page["title"] == "inside"
    assert page["metadata"]["tls"] == "unchecked"
    assert nutbeam("export", table, "--what", "batch_pages", "--format", "jsonl") == 0
    assert json.loads(capsys.readouterr().out)["tls"] == "unchecked"
    stored = said.out + said.err + caplog.text
    for path in table.rglob("*"):
        if path.is_file():
            stored += path.read_bytes().decode("latin-1")
            stored += str(pq.read_table(path).to_pylist()) if path.suffix == ".parquet" else ""
    assert "(withheld)" in stored
    assert PASSWORD not in stored
    assert pair not in stored


@pytest.mark.long
def test_a_crawl_finds_the_same_with_each_client(tmp_path):
    found = []
    for client in ("threads", "asyncio"):
        table = tmp_path / client
        with SimWeb(hosts=2, pages=8, seed=7, crawl_delay=0) as web:
            assert crawl(table, web, *web.seeds, "--http_client", client) == 0
            once = Counter(asked(web))
        names = list(manifest_of(table).batches)
        files = [path for name in names for path in files_of(table, f"batches/{name}/pages")]
        pages = pl.concat(pl.read_parquet(path) for path in files).sort("key").to_dicts()
        kept = ("key", "http_version", "status_line", "body", "truncated", "redirect", "etag")
        rows = [{name: page[name] for name in kept if name in page} for page in pages]
        heads = [
            [(h["name"], h["value"]) for h in page["headers"] or () if h["name"] not in VOLATILE]
            for page in pages
        ]
        state = state_of(table).drop(VOLATILE_COLUMNS, strict=False).sort("key")
        found.append((rows, heads, [page["request"] for page in pages], once, state.to_dicts()))
    assert found[0] == found[1]
    assert len(found[0][0]) > 15
