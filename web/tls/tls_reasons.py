"""Reasons of failures of TLS: one for each kind that an operator can act on."""

import ssl

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
