"""Contexts of TLS connections: they take the servers that browsers take, with every Python; reasons of failures.

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

_NAME, _DATE, _AUTHORITY, _CHAIN = "tls_name", "tls_date", "tls_authority", "tls_chain"
_CERTIFICATE, _CLIENT = "tls_certificate", "tls_client_certificate"
_PROTOCOL, _NO_TLS, _OTHER = "tls_protocol", "no_tls", "tls"
# None of them has sent a request.
TLS_REASONS = (
    *(_NAME, _DATE, _AUTHORITY, _CHAIN, _CERTIFICATE, _CLIENT, _PROTOCOL, _NO_TLS, _OTHER),
)

# Codes of X509_verify_cert_error_string(3); all others are another fault of the certificate.
_OF_CODES = {
    **dict.fromkeys((9, 10), _DATE),  # not yet valid, expired
    # Self-signed, an issuer that is no authority or that is not trusted.
    **dict.fromkeys((18, 19, 22, 24, 27, 28), _AUTHORITY),
    # The certificate of the issuer was neither sent, nor is it known here.
    **dict.fromkeys((2, 20, 21), _CHAIN),
    **dict.fromkeys((62, 64), _NAME),  # the name of the host, its IP address
}
# Parts of OpenSSL's reasons.
_PROTOCOL_PARTS = (
    *("PROTOCOL_VERSION", "UNSUPPORTED_PROTOCOL", "NO_PROTOCOLS", "HANDSHAKE_FAILURE", "CIPHER"),
    *("INSUFFICIENT_SECURITY", "KEY_TOO_SMALL", "RENEGOTIATION", "SIGNATURE", "BAD_KEY_SHARE"),
    *("APPLICATION_PROTOCOL", "ILLEGAL_PARAMETER", "NO_SUITABLE", "INAPPROPRIATE_FALLBACK"),
    *("DOWNGRADE", "DH_KEY"),
)
# Alerts about the certificate that a client has not sent.
_CLIENT_PARTS = (
    *("ALERT_CERTIFICATE", "ALERT_BAD_CERTIFICATE", "ALERT_NO_CERTIFICATE", "ALERT_UNKNOWN_CA"),
    *("ALERT_UNSUPPORTED_CERTIFICATE", "ALERT_ACCESS_DENIED"),
)
_NO_TLS_PARTS = (
    *("WRONG_VERSION_NUMBER", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE", "HTTP_REQUEST"),
    *("UNKNOWN_PROTOCOL", "RECORD_TOO_SMALL", "BAD_RECORD_TYPE"),
)
_OF_PARTS = ((_NO_TLS_PARTS, _NO_TLS), (_CLIENT_PARTS, _CLIENT), (_PROTOCOL_PARTS, _PROTOCOL))


class WrongName(ssl.SSLCertVerificationError):
    """A certificate is for other hosts."""


class ClientCertificateWanted(ssl.SSLError):
    """A server refuses a client that has no certificate."""


class NoTls(ssl.SSLError):
    """A server does not answer in TLS."""


def tls_reason(error: ssl.SSLError) -> str:
    """Returns the reason of a failure of TLS, one of ``TLS_REASONS``.

    >>> tls_reason(NoTls()), tls_reason(WrongName()), tls_reason(ssl.SSLError())
    ('no_tls', 'tls_name', 'tls')
    """
    if isinstance(error, WrongName):
        return _NAME
    if isinstance(error, NoTls):
        return _NO_TLS
    if isinstance(error, ClientCertificateWanted):
        return _CLIENT
    if isinstance(error, ssl.SSLCertVerificationError):
        return _OF_CODES.get(error.verify_code, _CERTIFICATE)
    # Python makes some without a reason, and has no name for some of OpenSSL's.
    text = getattr(error, "reason", None) or str(error).upper().replace(" ", "_")
    if "UNRECOGNIZED_NAME" in text:  # the server has no site of this name (RFC 6066 3)
        return _NAME
    for parts, reason in _OF_PARTS:
        if any(part in text for part in parts):
            return reason
    return _OTHER


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
