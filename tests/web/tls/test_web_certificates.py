"""Which names a certificate is for, as both clients read it: subjectAltName alone (RFC 9525 2)."""

import ipaddress
import ssl

import pytest
from cryptography.x509 import DNSName, IPAddress, RFC822Name, UniformResourceIdentifier
from http_clients import Client, HttpOptions
from made_certificates import make_certificate
from proxy_servers import proxied, tunnel
from web_servers import reply, serve

pytestmark = pytest.mark.usefixtures("each_client")
NAME = "a.example.com"
LOOPBACK = IPAddress(ipaddress.ip_address("127.0.0.1"))


def serving(file):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return serve(lambda path, connection: reply(b"safe"), context=context)


@pytest.mark.long
@pytest.mark.parametrize(
    ("common_name", "alternative", "host", "error"),
    [
        (NAME, [], NAME, "tls_name"),
        ("*.example.com", [], NAME, "tls_name"),
        (NAME, [DNSName("b.example.com")], NAME, "tls_name"),
        (NAME, [RFC822Name("me@a.example.com")], NAME, "tls_name"),
        (NAME, [UniformResourceIdentifier("https://a.example.com/")], NAME, "tls_name"),
        (NAME, [LOOPBACK], NAME, "tls_name"),
        ("127.0.0.1", [], "127.0.0.1", "tls_name"),
        ("127.0.0.1", [DNSName("127.0.0.1")], "127.0.0.1", "tls_name"),
        (None, [DNSName(NAME)], NAME, None),
        ("b.example.com", [DNSName(NAME)], NAME, None),
        (NAME, [DNSName("*.example.com")], NAME, None),
        (NAME, [DNSName("*.example.com")], "x.a.example.com", "tls_name"),
        (NAME, [DNSName("*.example.com")], "my_site.example.com", None),
        (NAME, [DNSName("*.EXAMPLE.com")], "_a_.example.com", None),
        (NAME, [DNSName("my_site.example.com")], "my_site.example.com", None),
        (NAME, [DNSName("*.example.com")], "x.my_site.example.com", "tls_name"),
        (NAME, [DNSName("m*.example.com")], "my_site.example.com", "tls_name"),
        (NAME, [DNSName("my*.example.com"), DNSName("example.com")], "my_.example.com", "tls_name"),
        (NAME, [DNSName("*.com")], "my_site.com", "tls_name"),
        ("my_site.example.com", [], "my_site.example.com", "tls_name"),
        (NAME, [DNSName("*.com")], NAME, "tls_name"),
        ("x", [LOOPBACK], "127.0.0.1", None),
    ],
)
def test_the_common_name_of_a_certificate_is_ignored(
    tmp_path, common_name, alternative, host, error
):
    file = make_certificate(tmp_path, common_name, alternative)
    with serving(file) as server:
        to = (f"{host}:443:127.0.0.1:{server.port}",)
        response = Client(HttpOptions(connect_to=to, ca_file=file)).get(f"https://{host}/")
        unchecked = Client(HttpOptions(connect_to=to, insecure_host=(host,))).get(
            f"https://{host}/"
        )
    assert (response.error, response.body) == (error, b"" if error else b"safe")
    assert (unchecked.body, unchecked.tls) == (b"safe", "unchecked")


def test_the_common_name_of_a_certificate_is_ignored_through_a_proxy(tmp_path):
    file = make_certificate(tmp_path, NAME)
    with serving(file) as site, proxied(tunnel(site.port), ca_file=file) as (client, _):
        assert client.get(f"https://{NAME}/").error == "tls_name"
