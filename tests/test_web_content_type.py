import pytest

from nutbeam.web.content_type import sniff


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("text/html", "text/html"),
        (" Text/HTML ; charset=x", "text/html"),
        ("application/xhtml+xml;q=1", "application/xhtml+xml"),
        ("text/plain", "text/plain"),
    ],
)
def test_the_header_comes_first(header, expected):
    assert sniff(b"%PDF-1.4", header) == expected


@pytest.mark.parametrize(
    "header", [None, "", "html", "*/*", "application/octet-stream", ";", "a/b c"]
)
def test_a_useless_header_is_passed_over(header):
    assert sniff(b"%PDF-1.4", header) == "application/pdf"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"<!doctype HTML>", "text/html"),
        (b"\xef\xbb\xbf\n <HTML lang=en>", "text/html"),
        (b"<!-- one --> <!-- two --><title>x", "text/html"),
        (b"<p", "text/html"),
        (
            b"<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'>",
            "application/xhtml+xml",
        ),
        (b"<?xml version='1.0'?><rss>", "application/xml"),
        (b"<abbr>", "text/plain"),
        (b"GIF89a..", "image/gif"),
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"PK\x03\x04", "application/zip"),
        (b"\x1f\x8b\x08", "application/gzip"),
        (b"plain words\n", "text/plain"),
        (b"gr\xfc\xdfe", "text/plain"),
        (b"", "text/plain"),
        (b"\x00\x01\x02", "application/octet-stream"),
    ],
)
def test_known_beginnings(body, expected):
    assert sniff(body, None) == expected
