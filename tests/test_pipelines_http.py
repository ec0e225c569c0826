import base64
import json
import ssl

import pyarrow.parquet as pq
from crawling import nutbeam
from test_web_http import CERTIFICATE
from web_servers import reply, serve

PASSWORD = "s3cret-of-ours"


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
        door = f"a.example.com:443:127.0.0.1:{server.port}"
        http = ("--http_credentials", file, "--insecure_host", "a.example.com")
        assert nutbeam(*words, "--connect_to", door, *http) == 0
    assert "certificates are not checked of a.example.com" in caplog.text
    said = capsys.readouterr()
    assert nutbeam("readdb", table, "--url", "https://a.example.com/", "--format", "json") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["protocol_message"] == "certificate not checked"
    assert nutbeam("pages", table) == 0
    page = json.loads(capsys.readouterr().out)
    assert page["title"] == "inside"
    assert page["metadata"]["tls"] == "unchecked"
    assert nutbeam("export", table, "--what", "pages", "--format", "jsonl") == 0
    assert json.loads(capsys.readouterr().out)["tls"] == "unchecked"
    stored = said.out + said.err + caplog.text
    for path in table.rglob("*"):
        if path.is_file():
            stored += path.read_bytes().decode("latin-1")
            stored += str(pq.read_table(path).to_pylist()) if path.suffix == ".parquet" else ""
    assert "(withheld)" in stored
    assert PASSWORD not in stored
    assert pair not in stored
