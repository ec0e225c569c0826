"""WAT records in the shape of ia-web-commons, and what they say of HTML pages."""

import json

import pytest

from nutbeam.web.archives.captures import Capture
from nutbeam.web.archives.html_metadata import html_metadata
from nutbeam.web.archives.page_records import (
    CapturedContent,
    PageContent,
    answer_of,
    capture_records,
    robots_record,
    warcinfo_record,
)
from nutbeam.web.archives.warc_records import encode_record
from nutbeam.web.archives.wat import RecordPlace, encode_derived, wat_records, wet_records

HTML = b"""<!doctype html><html lang=de><head><title> Pears\n and more </title>
<base href="/b/"><meta name=robots content=index><meta property="og:title" content=P>
<link rel=stylesheet type="text/css" href=a.css><script src=a.js type=module></script><script>x()</script>
</head><body background=bg.png><a href="c?x=1&amp;y=2" rel=nofollow title=T>A <b>pear</b></a><a name=here>none</a>
<img src=p.png alt=Pear longdesc=long.html><form action=/s method=post><input formaction=/t></form>
<iframe src=//x.example/></iframe><div data-href=/later></div></body></html>"""


PARSED = PageContent("", [], [])


def described(capture, version="1.1", page=PARSED):
    """Returns the descriptions of the records of a capture, and the records."""
    content = CapturedContent(capture, page)
    records = list(
        capture_records(
            capture, answer_of(capture), version, page=page, data=bool(page and page.links)
        )
    )
    places = [RecordPlace(each, b"", len(encode_record(each, version)), None) for each in records]
    return [json.loads(wat.block[0]) for wat in wat_records(9, version, content, places)], records


def page(**more):
    known = {"status": 200, "status_line": "HTTP/1.1 200 OK", "body": HTML,
             "request": "GET /a HTTP/1.1\r\nHost: a.com\r\n\r\n",
             "headers": (("Content-Type", "text/html"), ("Set-Cookie", "a"), ("set-cookie", "b")),
             "content_type": "Text/HTML; charset=utf-8", **more}  # fmt: skip
    return Capture("http://a.com/a", "1-a", 1_795_883_544_123, **known)


def test_the_head_and_the_links_of_a_page_are_as_they_stand_in_it():
    assert html_metadata(HTML, "text/html", "http://a.com/") == {
        "Head": {
            "Metas": [
                {"name": "HTML@/lang", "content": "de"},
                {"name": "robots", "content": "index"},
                {"content": "P", "property": "og:title"},
            ],
            "Title": "Pears and more",
            "Base": "/b/",
            "Link": [
                {"path": "LINK@/href", "url": "a.css", "rel": "stylesheet", "type": "text/css"}
            ],
            "Scripts": [{"path": "SCRIPT@/src", "url": "a.js", "type": "module"}],
        },
        "Links": [
            {"path": "BODY@/background", "url": "bg.png"},
            {"path": "A@/href", "url": "c?x=1&y=2", "title": "T", "rel": "nofollow", "text": "A pear"},
            {"path": "IMG@/src", "url": "p.png", "alt": "Pear"},
            {"path": "IMG@/longdesc", "url": "long.html"},
            {"path": "FORM@/action", "url": "/s", "method": "post"},
            {"path": "INPUT@/formaction", "url": "/t"},
            {"path": "IFRAME@/src", "url": "//x.example/"},
            {"path": "DIV@/data-href", "url": "/later"},
        ],
    }  # fmt: skip


@pytest.mark.parametrize("version", ["1.1", "1.0"])
def test_a_response_and_its_request_have_the_envelope_of_common_crawl(version):
    (request, response), records = described(page(), version)
    for description, record in zip((request, response), records, strict=True):
        envelope, plain = description["Envelope"], encode_record(record, version)
        assert envelope["Format"] == f"WARC/{version}"
        header, payload = int(envelope["WARC-Header-Length"]), envelope["Payload-Metadata"]
        block = plain[header:][: int(payload["Actual-Content-Length"])]
        assert (plain[header - 4 : header], block) == (b"\r\n\r\n", b"".join(record.block))
        fields = envelope["WARC-Header-Metadata"]
        assert fields["WARC-Record-ID"] == f"<{record.id}>"
        assert fields["WARC-Block-Digest"] == payload["Block-Digest"]
    payload = response["Envelope"]["Payload-Metadata"]
    assert payload["Actual-Content-Type"] == "application/http; msgtype=response"
    http = payload["HTTP-Response-Metadata"]
    assert http["Response-Message"] == {"Version": "HTTP/1.1", "Status": "200", "Reason": "OK"}
    assert http["Headers"]["Content-Type"] == "text/html"
    assert (http["Headers"]["Set-Cookie"], int(http["Entity-Length"])) == ("a", len(HTML))
    assert http["HTML-Metadata"]["Head"]["Title"] == "Pears and more"
    asked = request["Envelope"]["Payload-Metadata"]["HTTP-Request-Metadata"]
    assert asked["Request-Message"] == {"Method": "GET", "Path": "/a", "Version": "HTTP/1.1"}
    assert asked["Headers"] == {"Host": "a.com"}


# The heads of Common Crawl's files of May 2024 (whirlwind-python); its WAT records have no block digest.
WET_FIELDS = """WARC/1.0 WARC-Type: WARC-Target-URI: WARC-Date: WARC-Record-ID: WARC-Refers-To: WARC-Block-Digest:
WARC-Identified-Content-Language: Content-Type: Content-Length:"""
WAT_FIELDS = WET_FIELDS.replace("WARC-Identified-Content-Language: ", "")


def test_programs_that_read_wet_and_wat_files_by_line_find_their_fields_and_a_line_for_each_block():
    capture = page()
    fields = [("title", "Pears and more"), ("language", "de")]
    parsed = PageContent("A  pear\n\na\tb\n\n  none", fields, [])
    (record,) = capture_records(capture, answer_of(capture), request=False)
    place, content = RecordPlace(record, b"", 999, None), CapturedContent(capture, parsed)
    (wet,), (wat,) = wet_records(content, [place]), wat_records(9, "1.1", content, [place])
    for derived, names in ((wet, WET_FIELDS), (wat, WAT_FIELDS)):
        head, block = encode_derived(derived).decode().split("\r\n\r\n", 1)
        lines = head.split("\r\n")
        assert [line.split(" ")[0] for line in lines] == names.split()
        assert "WARC-Date: 2026-11-28T16:32:24Z" in lines or derived is wat
        if derived is wet:
            assert block.split("\r\n")[0].split("\n") == ["Pears and more", "A pear", "a b", "none"]
        else:
            assert block.startswith('{"Container":{"Filename":')
            assert '"url":"c?x=1&y=2"' in block


def test_a_wet_record_has_the_text_that_parsing_has_taken():
    (record,) = capture_records(page(), answer_of(page()), request=False)
    for fields, text in [
        ([], "only the pear"),  # of a plug-in, or of the main part
        ([("title", "Pears")], "Pears"),  # the title alone
    ]:
        content = CapturedContent(page(), PageContent("" if fields else text, fields, []))
        (wet,) = wet_records(content, [RecordPlace(record, b"", 999, None)])
        assert b"".join(wet.block).decode() == text


def test_only_pages_have_html_metadata():
    others = (page(content_type="text/plain"), page(body=None), page(status=304, body=None))
    # One that was not parsed may be too much for the parser.
    for other, parsed in [*((other, PARSED) for other in others), (page(), None)]:
        (*_, response), _ = described(other, page=parsed)
        http = response["Envelope"]["Payload-Metadata"]["HTTP-Response-Metadata"]
        assert "HTML-Metadata" not in http


def test_records_of_other_kinds_are_described_too():
    info = warcinfo_record("a.warc.gz", 5, [("software", "x/1")])
    robots = robots_record("http://a.com/robots.txt", "User-agent: *", 5, "1-a")
    places = [RecordPlace(each, b"", len(encode_record(each)), None) for each in (info, robots)]
    first, second = wat_records(9, "1.1", None, places)
    assert (first.field("WARC-Target-URI"), first.field("WARC-Refers-To")) == (
        "a.warc.gz",
        f"<{info.id}>",
    )
    payload = json.loads(first.block[0])["Envelope"]["Payload-Metadata"]
    assert payload["WARC-Info-Metadata"] == {"software": "x/1"}
    payload = json.loads(second.block[0])["Envelope"]["Payload-Metadata"]
    assert payload["Actual-Content-Type"] == "text/plain"
    parsed = PageContent("", [("title", "T")], ["http://a.com/b"])
    (*_, data), _ = described(page(), page=parsed)
    metadata = data["Envelope"]["Payload-Metadata"]["WARC-Metadata-Metadata"]["Metadata-Records"]
    assert metadata == [
        {"Name": "title", "Value": "T"},
        {"Name": "outlink", "Value": "http://a.com/b L a/@href"},
    ]


def test_a_page_without_text_or_body_has_no_wet_record():
    capture = page()
    (record,) = capture_records(capture, answer_of(capture), request=False)
    place = RecordPlace(record, b"", 0, None)
    for parsed in (None, PageContent("", [], [])):
        assert list(wet_records(CapturedContent(capture, parsed), [place])) == []
    revisit = record._replace(kind="revisit")
    content = CapturedContent(capture, PageContent("text", [], []))
    assert list(wet_records(content, [place._replace(record=revisit)])) == []
    assert len(list(wet_records(content, [place]))) == 1
