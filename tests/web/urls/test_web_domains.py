import socket

import pytest

from nutbeam.web.urls import domains
from nutbeam.web.urls.domains import registered_domain, suffix_and_domain


# As Nutch has it.
@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("lucene.apache.org", "apache.org"),
        ("lucene.apache.org.", "apache.org"),
        ("www.example.co.uk", "example.co.uk"),
        ("140.211.11.130", "140.211.11.130"),
        ("[2600:1f18::1]", "[2600:1f18::1]"),
        ("com", "com"),
        ("co.uk", "co.uk"),
        ("www.example.co.uk.com", "uk.com"),
        ("example.com.nn", "example.com.nn"),
        ("www.edu.tr.xyz", "tr.xyz"),
        ("www.example.2000.hu", "example.2000.hu"),
        ("www.example.fl\u00e5.no", "example.fl\u00e5.no"),
        ("www.example.xn--fl-zia.no", "example.xn--fl-zia.no"),
        ("subdomain.example.presse.fr", "presse.fr"),
        ("foo.github.io", "github.io"),
        ("localhost", "localhost"),
        ("", ""),
    ],
)
def test_registered_domain(host, domain):
    assert registered_domain(host) == domain


# As Nutch; a suffix of the list's private section is none.
@pytest.mark.parametrize(
    ("host", "suffix"),
    [
        ("lucene.apache.org", "org"),
        ("lucene.apache.org.", "org"),
        ("www.example.co.uk", "co.uk"),
        ("example.com", "com"),
        ("com", "com"),
        ("www.example.co.uk.com", "com"),
        ("foo.github.io", "io"),
        ("140.211.11.130", None),
        ("[2600:1f18::1]", None),
        ("example.com.nn", None),
        ("localhost", None),
        ("", None),
        ("subdomain.example.presse.fr", "fr"),
    ],
)
def test_suffix(host, suffix):
    assert suffix_and_domain(host)[0] == suffix


def test_registered_domains_need_no_network(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("asked the network")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    domains._extractor.cache_clear()
    registered_domain.cache_clear()
    assert registered_domain("a.b.example.com") == "example.com"
