"""Certificates, with both HTTP clients."""

import contextlib
import socket
import ssl
import threading

import pytest
from http_clients import Client, HttpOptions
from made_certificates import CERTIFICATE
from web_servers import reply, serve

from nutbeam.io.batches.page_writer import page_row
from nutbeam.web.engine.tasks import Result, Task

pytestmark = pytest.mark.usefixtures("each_client")


@pytest.fixture
def pem(tmp_path):
    path = tmp_path / "a.pem"
    path.write_text(CERTIFICATE)
    return str(path)


@pytest.mark.parametrize(
    ("host", "trusted", "error"),
    [("a", True, None), ("a", False, "tls_authority"), ("b", True, "tls_name")],
)
def test_certificates_and_names_are_checked(pem, host, trusted, error):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    with serve(lambda path, connection: reply(b"safe"), context=context) as server:
        mapping = f"*.example.com:443:127.0.0.1:{server.port}"
        client = Client(HttpOptions(connect_to=(mapping,), ca_file=pem if trusted else ""))
        response = client.get(f"https://{host}.example.com/")
        again = client.get(f"https://{host}.example.com/")
    assert (response.error, response.body) == (error, b"" if error else b"safe")
    assert again.error == error
    assert server.connections == (2 if error else 1)


@pytest.mark.slow
def test_tls_to_a_server_without_it():
    with serve(lambda path, connection: reply(b"x")) as server:
        mapping = f"a.example.com:443:127.0.0.1:{server.port}"
        client = Client(HttpOptions(connect_to=(mapping,), timeout=1))
        assert client.get("https://a.example.com/").error in ("no_tls", "timeout", "reset")


@pytest.mark.parametrize(
    ("host", "insecure", "tls", "error"),
    [
        ("a", (), None, "tls_authority"),
        ("a", ("A.example.com",), "unchecked", None),
        ("b", ("b.example.com",), "unchecked", None),  # the name is not that of the certificate
        ("b", ("a.example.com", "example.com"), None, "tls_authority"),
    ],
)
def test_certificates_are_unchecked_only_where_the_operator_says_so(
    pem, host, insecure, tls, error
):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    with serve(lambda path, connection: reply(b"x"), context=context) as server:
        mapping = f"*.example.com:443:127.0.0.1:{server.port}"
        client = Client(HttpOptions(connect_to=(mapping,), insecure_host=insecure))
        response = client.get(f"https://{host}.example.com/")
        row = page_row(Result(Task(response.url), response, 33 if error is None else 34, 1))
    assert (response.error, response.tls) == (error, tls)
    assert row["tls"] == tls
    assert row["protocol_message"] == ("certificate not checked" if tls else None)


def test_an_answer_from_before_tls_does_not_count():
    def greet(listening):
        connection, _ = listening.accept()
        with connection, contextlib.suppress(ConnectionResetError):
            connection.sendall(reply(b"in plain text"))
            while connection.recv(4096):
                pass

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=greet, args=(listening,))
        thread.start()
        mapping = f"a.example.com:443:127.0.0.1:{listening.getsockname()[1]}"
        client = Client(
            HttpOptions(connect_to=(mapping,), insecure_host=("a.example.com",), timeout=2.0)
        )
        response = client.get("https://a.example.com/")
        client.close()
        thread.join()
    assert (response.error, response.status, response.body) == ("no_tls", 0, b"")
