"""TLS to search servers, and credentials: checked, sent, and in no message."""

import ipaddress
import logging
import ssl

import polars as pl
import pytest
from bulk_servers import bulk_server, writer
from crawling import nutbeam
from cryptography import x509
from indexed_tables import page, put
from made_certificates import make_certificate

from nutbeam.web.base.errors import UsageError, UserError

NONE = pl.Series([], dtype=pl.String)
ONE = pl.DataFrame({"id": ["a"], "title": ["x"]})
SECRET = "dG9wOnNlY3JldA=="


def certificate(folder, host="127.0.0.1"):
    folder.mkdir()
    return make_certificate(folder, None, [x509.IPAddress(ipaddress.ip_address(host))])


@pytest.fixture
def own(tmp_path):
    return certificate(tmp_path / "own")


@pytest.fixture
def server(own):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own)
    with bulk_server(context) as found:
        yield found


def test_a_server_with_a_certificate_of_the_given_authority_is_written(server, own):
    assert server.url.startswith("https://")
    assert writer(server, ca_file=own).write(ONE, NONE).counts == {"added": 1}
    assert list(server.documents) == ["a"]


@pytest.mark.parametrize("trusted", ["none", "another"])
@pytest.mark.parametrize("kind", ["opensearch", "solr"])
def test_a_certificate_of_an_unknown_authority_is_refused(server, tmp_path, kind, trusted):
    more = {} if trusted == "none" else {"ca_file": certificate(tmp_path / "another")}
    with pytest.raises(UserError, match=r"https://127.0.0.1:\d+: TLS failed: .*certificate"):
        writer(server, kind, **more).prepare()
    with pytest.raises(UserError, match="TLS failed"):
        writer(server, kind, **more).write(ONE, NONE)
    assert server.heads == []  # nothing was sent, and no credentials


def test_a_certificate_of_another_host_is_refused(tmp_path):
    other = certificate(tmp_path / "other", "127.0.0.2")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(other)
    with bulk_server(context) as server:
        with pytest.raises(UserError, match=r"TLS failed: .*127\.0\.0\.1"):
            writer(server, ca_file=other).write(ONE, NONE)
        assert server.heads == []


def test_a_file_without_certificates_is_named(server, tmp_path):
    junk = tmp_path / "junk.pem"
    junk.write_text("no certificate")
    with pytest.raises(UserError, match=r"ca_file must be a file with certificates, got '.*junk"):
        writer(server, ca_file=str(junk))


@pytest.mark.parametrize(
    ("line", "header"),
    [
        ("basic me topsecret", "Basic bWU6dG9wc2VjcmV0"),
        (f"bearer {SECRET}", f"Bearer {SECRET}"),
        (f"apikey {SECRET}", f"ApiKey {SECRET}"),
    ],
    ids=["basic", "bearer", "apikey"],
)
def test_credentials_of_a_file(server, own, tmp_path, line, header):
    file = tmp_path / "secrets"
    file.write_text(f"https://127.0.0.1:1 basic other other\n{server.url} {line}\n")
    opened = writer(server, ca_file=own, credentials=str(file))
    opened.prepare()
    opened.write(ONE, NONE)
    assert {heads["Authorization"] for _, _, heads in server.heads} == {header}


@pytest.mark.parametrize(
    ("variable", "value", "header"),
    [
        ("NUTBEAM_INDEX_API_KEY", f"{SECRET}\n", f"ApiKey {SECRET}"),
        ("NUTBEAM_INDEX_TOKEN", SECRET, f"Bearer {SECRET}"),
    ],
)
def test_tokens_of_the_environment(server, own, monkeypatch, variable, value, header):
    monkeypatch.setenv(variable, value)
    writer(server, ca_file=own).write(ONE, NONE)
    assert server.heads[-1][2]["Authorization"] == header
    monkeypatch.setenv(variable, "top secret\r\nHost: x")
    with pytest.raises(UsageError, match=f"{variable} must be one word") as raised:
        writer(server)
    assert "secret" not in str(raised.value)


def test_a_key_is_in_no_file_of_the_table_no_output_and_no_log(
    server, own, tmp_path, monkeypatch, capfd, caplog
):
    caplog.set_level(logging.DEBUG)
    table = tmp_path / "table"
    put(str(table), "17-1", {"com.a:http/1": page("one")})
    monkeypatch.setenv("NUTBEAM_INDEX_API_KEY", SECRET)
    parameters = f"url={server.url},ca_file={own},patience=1"
    words = ("index", table, "--writer", "opensearch", "--writer_parameters", parameters)
    server.script = [(401, SECRET.encode())]  # it repeats what it got
    assert nutbeam(*words, "--operation", "refused") == 3
    said = "".join(capfd.readouterr()) + caplog.text
    assert "refuses the credentials" in said
    assert list(table.rglob("*.intent"))  # of the run that failed: they are searched, too
    files = [path for path in table.rglob("*") if path.is_file()]
    assert not [path for path in files if SECRET.encode() in path.read_bytes()]
    assert nutbeam(*words) == 0
    assert server.heads[-1][2]["Authorization"] == f"ApiKey {SECRET}"
    files = [path for path in table.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if SECRET.encode() in path.read_bytes()]
    assert SECRET not in said + "".join(capfd.readouterr()) + caplog.text
