"""Names of hosts that OpenSSL does not compare with certificates as browsers do."""

import ssl
from collections.abc import Mapping
from typing import Any


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


class WrongName(ssl.SSLCertVerificationError):
    """A certificate is for other hosts."""
