"""TLS as browsers do it: which servers are taken, and what a failure is called."""

import contextlib
import socket
import ssl
import threading
import warnings

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509 import DNSName, ExtendedKeyUsage
from cryptography.x509.oid import ExtendedKeyUsageOID
from http_clients import Client, HttpOptions
from made_certificates import make_certificate
from old_tls_server import serving_as_of_2008
from web_servers import reply, serve

from nutbeam.web.tls.contexts import tls_context

pytestmark = pytest.mark.usefixtures("each_client")
NAME = "a.example.com"
DNS = [DNSName(NAME)]


def fetched(port, file="", host=NAME):
    options = HttpOptions(connect_to=(f"{host}:443:127.0.0.1:{port}",), ca_file=file, timeout=5)
    return Client(options).get(f"https://{host}/")


def serving(file, change=lambda context: None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.load_cert_chain(file)
    change(context)
    return serve(lambda path, connection: reply(b"safe"), context=context)


@contextlib.contextmanager
def answering(data, last=True):
    """Serves fixed bytes to each client; yields the port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer():
            connection, _ = listening.accept()
            with connection, contextlib.suppress(OSError):
                connection.recv(4096)
                connection.sendall(data)
                if not last:
                    connection.recv(4096)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        thread.join(10)


def test_a_server_without_secure_renegotiation_and_with_old_key_exchange_is_read(tmp_path):
    key = rsa.generate_private_key(65537, 2048)
    file = make_certificate(tmp_path, NAME, DNS, key=key)
    with serving_as_of_2008(key, file, reply(b"old", "200 OK", "Connection: close")) as port:
        response = fetched(port, file)
        other = fetched(port)
    assert (response.error, response.body, response.tls) == (None, b"old", "checked")
    assert other.error == "tls_authority"


def test_an_authority_without_optional_extensions_is_accepted_by_every_python(tmp_path):
    # It has no subjectKeyIdentifier: VERIFY_X509_STRICT, of Python 3.13, refuses it.
    file = make_certificate(tmp_path, NAME, DNS)
    context = tls_context(file)
    assert not context.verify_flags & ssl.VERIFY_X509_STRICT
    assert context.verify_flags & ssl.VERIFY_X509_PARTIAL_CHAIN
    with serving(file) as server:
        assert fetched(server.port, file).body == b"safe"


def expired(folder):
    return make_certificate(folder, NAME, DNS, days=(-9, -1))


def future(folder):
    return make_certificate(folder, NAME, DNS, days=(1, 9))


def valid(folder):
    return make_certificate(folder, NAME, DNS)


def for_clients(folder):
    usage = ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
    return make_certificate(folder, NAME, DNS, extensions=[usage])


def by_unknown(folder):
    return make_certificate(folder, NAME, DNS, issuer="an authority that is not sent")


def weak(folder):
    return make_certificate(folder, NAME, DNS, key=rsa.generate_private_key(65537, 1024))


def old_version(context):
    with warnings.catch_warnings(action="ignore"):
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1


def old_ciphers(context):
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("CAMELLIA:@SECLEVEL=0")


def wanting_certificates(context):
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.verify_mode = ssl.CERT_REQUIRED


def other_names(context):
    def refuse(connection, name, context):
        return ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME

    context.sni_callback = refuse


@pytest.mark.parametrize(
    ("make", "trusted", "change", "host", "reason"),
    [
        (valid, True, None, "b.example.com", "tls_name"),
        (valid, True, other_names, NAME, "tls_name"),
        (expired, True, None, NAME, "tls_date"),
        (future, True, None, NAME, "tls_date"),
        (valid, False, None, NAME, "tls_authority"),
        (by_unknown, False, None, NAME, "tls_chain"),
        (valid, True, wanting_certificates, NAME, "tls_client_certificate"),
        (for_clients, True, None, NAME, "tls_certificate"),
        (weak, True, None, NAME, "tls_certificate"),
        (valid, True, old_version, NAME, "tls_protocol"),
        (valid, True, old_ciphers, NAME, "tls_protocol"),
    ],
)
def test_each_tls_failure_has_its_own_reason(tmp_path, make, trusted, change, host, reason):
    file = make(tmp_path)
    with serving(file, change or (lambda context: None)) as server:
        assert fetched(server.port, file if trusted else "", host).error == reason


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n<h1>plain HTTP to an HTTPS port</h1>", "no_tls"),
        (b"<html><title>It works</title></html>" * 100, "no_tls"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "no_tls"),
        (b"220 mail.example.com ESMTP\r\n", "no_tls"),
        (b"\x00" * 400, "no_tls"),
        (b"\x15\x03\x01\x00\x02\x02\x46", "tls_protocol"),  # alert: protocol_version
        (b"\x15\x03\x03\x00\x02\x02\x28", "tls_protocol"),  # alert: handshake_failure
        (b"\x15\x03\x03\x00\x02\x02\x78", "tls_protocol"),  # alert: no_application_protocol
        (b"\x15\x03\x03\x00\x02\x02\x74", "tls_client_certificate"),  # alert: certificate_required
        (b"\x15\x03\x03\x00\x02\x02\x50", "tls"),  # alert: internal_error
        (b"", "reset"),
    ],
)
@pytest.mark.parametrize("last", [True, False])
def test_an_answer_that_is_no_handshake_is_named(data, reason, last):
    if not (data or last):
        return
    with answering(data, last) as port:
        assert fetched(port).error == reason
