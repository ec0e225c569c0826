"""Queries of links are escaped in the encoding of their page; the values are Chromium's."""

import pytest

from nutbeam.web.content.whatwg_encodings import encode_query
from nutbeam.web.pages.page import Source
from nutbeam.web.pages.parse_options import ParseOptions
from nutbeam.web.parsers.dispatch import parse_document

QUERIES = [
    ("windows-1251", "?q=тест", "?q=%F2%E5%F1%F2"),
    ("windows-1251", "?q=é日", "?q=%26%23233%3B%26%2326085%3B"),
    ("windows-1252", "?q=€ß&x=ę", "?q=%80%DF&x=%26%23281%3B"),
    ("koi8-r", "?q=тест", "?q=%D4%C5%D3%D4"),
    ("iso-8859-2", "?q=Łódź", "?q=%A3%F3d%BC"),
    # The second byte of a pair may be a letter of ASCII.
    ("shift_jis", "?q=テスト", "?q=%83e%83X%83g"),
    ("shift_jis", "?q=ｱ髙¥‾\u2212", "?q=%B1%FB%FC\\~%81|"),
    ("euc-jp", "?q=日本①ｱ", "?q=%C6%FC%CB%DC%AD%A1%8E%B1"),
    ("iso-2022-jp", "?q=日本a①", "?q=%1B$BF|K\\%1B(Ba%1B$B-!%1B(B"),
    ("iso-2022-jp", "?q=ｱﾞ한", "?q=%1B$B%%22!+%1B(B%26%2354620%3B"),
    ("gbk", "?q=中文€䶮", "?q=%D6%D0%CE%C4%80%FE%9F"),
    ("gb18030", "?q=中€한", "?q=%D6%D0%A2%E3%836%843"),
    ("big5", "?q=中文\uff5e十", "?q=%A4%A4%A4%E5%A1%E3%A4Q"),
    ("euc-kr", "?q=한글똠", "?q=%C7%D1%B1%DB%8Cc"),
    ("utf-8", "?q=é", "?q=é"),
    ("utf-16le", "?q=é", "?q=é"),
    ("windows-1251", "/т?a=т?т#т?т", "/т?a=%F2?%F2#т?т"),
    ("windows-1251", "/т#т?т", "/т#т?т"),
]


@pytest.mark.parametrize(("charset", "href", "expected"), QUERIES)
def test_a_query_is_escaped_in_the_encoding_of_its_page(charset, href, expected):
    assert encode_query(href, charset) == expected


LINKS = (
    "<base href='/b?й'><a href='/т?q=т'>a</a><a rel=nofollow href='?т'>b</a><form action='?т'></form>"
    "<link rel=canonical href='?т'><link rel=alternate hreflang=de href='?т'>"
    "<meta http-equiv=refresh content='9;url=?т'>"
)


def parsed(body, content_type, **options):
    source = Source("http://h0.example.com/d/", body.encode("cp1251"), content_type)
    return parse_document(source, ParseOptions(**options))


def test_all_links_of_a_page_have_its_encoding():
    page = parsed(LINKS, "text/html; charset=windows-1251", form_use_action=True)
    assert page.hrefs == ["/т?q=%F2", "?%F2", "?%F2", "?%F2"]
    assert page.unfollowed == [("?%F2", "b", "nofollow")]
    assert page.base == "http://h0.example.com/b?%E9"
    at = "http://h0.example.com/b?%F2"
    assert (page.canonical, page.alternates, page.refresh) == (at, {"de": at}, (at, 9))


XML = "<?xml version='1.0' encoding='windows-1251'?>"


@pytest.mark.parametrize(
    ("body", "mime"),
    [
        ("<html xmlns='http://www.w3.org/1999/xhtml'><body><a href='/x?т'/></body></html>", "application/xhtml+xml"),
        ("<svg xmlns='http://www.w3.org/2000/svg'><a href='/x?т'>т</a></svg>", "image/svg+xml"),
    ],
)  # fmt: skip
def test_links_in_xml_have_the_encoding_of_the_document(body, mime):
    assert parsed(XML + body, mime).hrefs == ["/x?%F2"]


def test_links_of_a_feed_and_of_its_items_have_its_encoding():
    body = (
        "<rss version='2.0'><channel><title>T</title><link>http://h0.example.com/c?т</link>"
        "<item><title>A</title><link>http://h0.example.com/i?т</link>"
        "<description>&lt;a href='?й'&gt;x&lt;/a&gt;</description></item></channel></rss>"
    )
    page = parsed(XML + body, "application/rss+xml", feed_documents=True)
    assert page.hrefs == ["http://h0.example.com/c?%F2", "http://h0.example.com/i?%F2"]
    ((url, item),) = page.parts
    assert (url, item.hrefs) == ("http://h0.example.com/i?%F2", ["?%E9"])
