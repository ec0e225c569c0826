"""Certificates of servers, made for a test: who they are for, and where they say so."""

import datetime

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


def make_certificate(
    folder, common_name, alternative=(), days=(-1, 1), key=None, extensions=(), issuer=None
):
    """Writes a key and a self-signed certificate; returns the file.

    Args:
        folder: Where to.
        common_name: Of its subject; None for none.
        alternative: Entries of subjectAltName; without any there is no such extension.
        days: When it is valid, from today.
        key: Its key; None makes one.
        extensions: Further ones, none of them critical.
        issuer: Who made it, as it says; None for itself.
    """
    key = key or ec.generate_private_key(ec.SECP256R1())
    names = [] if common_name is None else [common_name]
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name) for name in names])
    nobody = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "made for a test")])
    maker = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, issuer or "none")])
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject if names else nobody)
        .issuer_name(maker if issuer else subject if names else nobody)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + datetime.timedelta(days=days[0]))
        .not_valid_after(now + datetime.timedelta(days=days[1]))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    )
    if alternative:
        builder = builder.add_extension(x509.SubjectAlternativeName(alternative), critical=False)
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    certificate = builder.sign(key, hashes.SHA256())
    path = folder / "certificate.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    return str(path)


# Made for these tests: a key and a certificate of a.example.com that nobody trusts.
CERTIFICATE = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgAyIUit3GBZHk14L8
ayK5nk7EvUBMDG1ii/lRnpy2FCmhRANCAAQOFYJH2xoxvx+E7Oj5R7I3pTsXHP6C
BVbxfotB7qB5+srbcq1Wx4TU+rWt6HQWJbBeRieVkb4oLXkRl8IafDib
-----END PRIVATE KEY-----
-----BEGIN CERTIFICATE-----
MIIBoDCCAUegAwIBAgIUdSZkoqwq5lX5haZSomr3tjeH6BYwCgYIKoZIzj0EAwIw
GDEWMBQGA1UEAwwNYS5leGFtcGxlLmNvbTAgFw0yNjExMjEwNDA1MzBaGA8yMTI2
MTAyODA0MDUzMFowGDEWMBQGA1UEAwwNYS5leGFtcGxlLmNvbTBZMBMGByqGSM49
AgEGCCqGSM49AwEHA0IABA4VgkfbGjG/H4Ts6PlHsjelOxcc/oIFVvF+i0HuoHn6
yttyrVbHhNT6ta3odBYlsF5GJ5WRvigteRGXwhp8OJujbTBrMB0GA1UdDgQWBBS2
yC2vU/lbc2BHJCAIx7ho2wFQdDAfBgNVHSMEGDAWgBS2yC2vU/lbc2BHJCAIx7ho
2wFQdDAYBgNVHREEETAPgg1hLmV4YW1wbGUuY29tMA8GA1UdEwEB/wQFMAMBAf8w
CgYIKoZIzj0EAwIDRwAwRAIgf12YNQxSodMjwdjHtdJbX38a4pdNYx/xNckQOBIU
3nACIEobAfrIjmCQEkXJ7De0xEQmtI5nmnHlwhwm8OgZpH4y
-----END CERTIFICATE-----
"""
