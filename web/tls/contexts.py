"""Contexts of TLS connections: they take the servers that browsers take, with every Python.

Each difference from Python's default context has a reason:

- ``OP_LEGACY_SERVER_CONNECT``: OpenSSL 3 refuses servers that do not know secure renegotiation
  (RFC 5746). Browsers connect. A client that never renegotiates, as this one, is not at risk itself.
- No ``VERIFY_X509_STRICT``, with ``VERIFY_X509_PARTIAL_CHAIN``: Python 3.13 changed both. Strict
  refuses certificates of authorities that lack optional extensions.
- Ciphers with RSA key exchange come last: old servers have nothing else, and browsers offer them.
- Names with an underscore are compared here: OpenSSL does not compare them as browsers do.
"""

import contextlib
import functools
import ssl
from collections.abc import Iterator, Mapping
from typing import Any

import certifi

from .tls_reasons import ClientCertificateWanted, WrongName

# Python has no name for it before 3.12.
_OP_LEGACY_SERVER_CONNECT = 0x4
_CIPHERS = (
    "ECDHE+AESGCM:ECDHE+CHACHA20:ECDHE+AES:DHE+AESGCM:DHE+CHACHA20:DHE+AES:RSA+AESGCM:RSA+AES"
    ":!aNULL:!eNULL:!aDSS:!AESCCM:!PSK:!SRP"
)


@contextlib.contextmanager
def _naming_refusals(connection: ssl.SSLSocket | ssl.SSLObject) -> Iterator[None]:
    """Raises an error of its own if a server refuses a handshake whose cipher it has chosen.

    TLS 1.2 has the same alert, handshake_failure, for a client without a certificate and for one
    without a common cipher (RFC 5246 7.4.6).
    """
    try:
        yield
    except ssl.SSLError as error:
        if "ALERT_HANDSHAKE_FAILURE" in (error.reason or "") and connection.cipher() is not None:
            raise ClientCertificateWanted("the server wants a certificate") from error
        raise


class _Socket(ssl.SSLSocket):
    def do_handshake(self, block: bool = False) -> None:
        with _naming_refusals(self):
            super().do_handshake(block)


class _Object(ssl.SSLObject):
    def do_handshake(self) -> None:
        with _naming_refusals(self):
            super().do_handshake()


@functools.lru_cache(maxsize=16)  # reading the certificates takes long
def tls_context(ca_file: str, check: bool = True, check_name: bool = True) -> ssl.SSLContext:
    """Returns the context of TLS connections.

    Args:
        ca_file: Certificates to trust; empty for the bundled ones.
        check: Whether certificates and names are checked; False only for hosts
            that the operator has named.
        check_name: Whether OpenSSL compares the name; else the caller does, with
            ``check_host_name``.
    """
    context = ssl.create_default_context(cafile=ca_file or certifi.where())
    context.sslsocket_class, context.sslobject_class = _Socket, _Object
    context.set_alpn_protocols(["http/1.1"])
    context.set_ciphers(_CIPHERS)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= _OP_LEGACY_SERVER_CONNECT
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.check_hostname = check and check_name
    if not check:
        context.verify_mode = ssl.CERT_NONE
    # RFC 9525 2: the common name of a certificate must not identify a server.
    context.hostname_checks_common_name = False
    return context


def needs_own_check(host: str) -> bool:
    """Returns whether ``check_host_name`` must compare the name of a host.

    OpenSSL lets ``*`` stand for letters, digits and hyphens only.

    >>> needs_own_check("my_site.example.com"), needs_own_check("my-site.example.com")
    (True, False)
    """
    return "_" in host


def check_host_name(certificate: Mapping[str, Any], host: str) -> None:
    """Checks that a certificate, which is valid otherwise, is for a host.

    RFC 9525 6.3: names of subjectAltName, in any case; ``*`` is the whole first label, and stands
    for one label. Like OpenSSL, it needs two labels after ``*``.

    Args:
        certificate: As ``SSLSocket.getpeercert`` returns it.
        host: A name, no IP address.

    Raises:
        WrongName: It is for other hosts.

    >>> check_host_name({"subjectAltName": (("DNS", "*.Example.com"),)}, "my_site.example.com")
    """
    host = host.lower()
    _, _, parent = host.partition(".")
    accepted = {host, f"*.{parent}"} if "." in parent else {host}
    names = [name for kind, name in certificate.get("subjectAltName", ()) if kind == "DNS"]
    if not any(name.lower() in accepted for name in names):
        raise WrongName(f"the certificate is not for {host!r}")
