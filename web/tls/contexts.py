"""Contexts of TLS connections: they take the servers that browsers take, with every Python.

Each difference from Python's default context has a reason:

- ``OP_LEGACY_SERVER_CONNECT``: OpenSSL 3 refuses servers that do not know secure renegotiation
  (RFC 5746). Browsers connect. A client that never renegotiates, as this one, is not at risk itself.
- No ``VERIFY_X509_STRICT``, with ``VERIFY_X509_PARTIAL_CHAIN``: Python 3.13 changed both. Strict
  refuses certificates of authorities that lack optional extensions.
- Ciphers with RSA key exchange come last: old servers have nothing else, and browsers offer them.
"""

import functools
import ssl

import certifi

# Python has no name for it before 3.12.
_OP_LEGACY_SERVER_CONNECT = 0x4
_CIPHERS = (
    "ECDHE+AESGCM:ECDHE+CHACHA20:ECDHE+AES:DHE+AESGCM:DHE+CHACHA20:DHE+AES:RSA+AESGCM:RSA+AES"
    ":!aNULL:!eNULL:!aDSS:!AESCCM:!PSK:!SRP"
)


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
