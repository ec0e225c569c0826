"""Links of archived pages lead into the archive, and nothing else of a page changes."""

import time

import pytest

from nutbeam.web.replay.link_rewriting import LinkRewriter


def page(text, url="http://a.com/b/c"):
    return LinkRewriter(url, "/T/{}".format).page(text.encode()).decode()


@pytest.mark.parametrize(
    ("written", "rewritten"),
    [
        ("<a href=/x?a&amp;b>", '<a href="/T/http://a.com/x?a&amp;b">'),
        ("<A HREF='//b.com/y'>", "<A HREF='/T/http://b.com/y'>"),
        ('<img src="https://c.com/é.png">', '<img src="/T/https://c.com/é.png">'),
        ("<a href=d/e>", "<a href=d/e>"),
        ("<a href='#x'>", "<a href='#x'>"),
        ("<a href='javascript:x(\"/\")'>", "<a href='javascript:x(\"/\")'>"),
        ("<a href=../../../d>", '<a href="/T/http://a.com/d">'),
        ("<img srcset='/a 1x, b 2x,//c.com/d 3x'>",
         "<img srcset='/T/http://a.com/a 1x, b 2x,/T/http://c.com/d 3x'>"),
        ("<meta http-equiv=Refresh content='0; URL=/n'>",
         "<meta http-equiv=Refresh content='0; URL=/T/http://a.com/n'>"),
        ("<p style='background: url(/i)'>", "<p style='background: url(/T/http://a.com/i)'>"),
        ("<style>@import '/s'; b { background: url(\"/i\") }</style>",
         "<style>@import '/T/http://a.com/s'; b { background: url(\"/T/http://a.com/i\") }</style>"),
        ("<base href=//b.com/q/><a href=/z>", '<base href="/T/http://b.com/q/"><a href="/T/http://b.com/z">'),
        ("<script>x = '<a href=/>'</script><a href=/>",
         "<script>x = '<a href=/>'</script><a href=\"/T/http://a.com/\">"),
        ("<!-- <a href=/> --> 1 < 2 <3", "<!-- <a href=/> --> 1 < 2 <3"),
        ("<a href=/ target=_top>", '<a href="/T/http://a.com/" data-archived-target=_top>'),
        ("<script src=x integrity=sha256-y>", "<script src=x data-archived-integrity=sha256-y>"),
        ("<meta http-equiv=content-security-policy content=x>",
         "<meta data-archived-http-equiv=content-security-policy content=x>"),
    ],
)  # fmt: skip
def test_links_are_rewritten(written, rewritten):
    assert page(written) == rewritten


def test_other_encodings_keep_their_bytes():
    rewriter = LinkRewriter("http://a.com/", "/T/{}".format)
    body = "<title>Д</title><a href=/Д>".encode("cp1251")
    assert rewriter.page(body) == '<title>Д</title><a href="/T/http://a.com/Д">'.encode("cp1251")
    wide = "\ufeff<a href=/x>é".encode("utf-16-le")
    assert rewriter.page(wide).decode("utf-16-le") == '\ufeff<a href="/T/http://a.com/x">é'


@pytest.mark.parametrize(
    "piece",
    ['<a "', '<a href="', "<!--", "<a ", "<script>", "<style>url(", "<style>'", "<style>/*", "<a /",
     "<img srcset=', ", "<style>@import ", "<style>\\'", "<a b=c ", "<"],
)  # fmt: skip
def test_hostile_pages_take_time_in_proportion_to_their_size(piece):
    def seconds(repeats):
        began = time.process_time()
        page(piece * repeats)
        return time.process_time() - began

    # 25 times as much; in square time it would be 625 times as long.
    short, long = min(seconds(4_000) for _ in range(3)), seconds(100_000)
    assert long < 60 * short + 2
