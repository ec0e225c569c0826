import gzip

import pytest

from nutbeam.web.pages.page import NoParser, ParseFailed, Source
from nutbeam.web.pages.parse_options import ParseOptions
from nutbeam.web.parsers.dispatch import parse_document

TEXT = """
from nutbeam.web.parsers.parser_plugins import ParsedDocument

def parse(source):
    return ParsedDocument(" A  title ", "the\\n text", ["/a", ("b", " B ")], {"bytes": str(len(source.body))}, "de")

def none(source):
    return None

def odd(source):
    return {"number": 5, "link": ParsedDocument(links=[5]), "meta": ParsedDocument(metadata={"a": 1})}[source.body.decode()]
"""


@pytest.fixture
def parsed(tmp_path):
    (tmp_path / "p.py").write_text(TEXT)

    def parse(rule, source):
        mime, name = rule.split("=")
        return parse_document(source, ParseOptions(parsers=(f"{mime}={tmp_path}/p.py:{name}",)))

    return parse


def source(body=b"body", kind="text/x-mine", **more):
    return Source("http://a.example/x/y", body, kind, **more)


@pytest.mark.parametrize(
    ("mime", "kind"),
    [("text/x-mine", "Text/X-Mine; charset=x"), ("text/*", "text/x-other"), ("text/html", "text/html"),
     ("application/pdf", "application/pdf")],
)  # fmt: skip
def test_a_plug_in_parses_its_type_before_any_parser_of_nutbeam(parsed, mime, kind):
    page = parsed(f"{mime}=parse", source(kind=kind))
    assert (page.title, page.text, page.language) == ("A title", "the\n text", "de")
    assert (page.hrefs, page.anchors) == (["/a", "b"], ["", "B"])
    assert page.metas["bytes"] == "4"


def test_other_types_are_parsed_as_before(parsed):
    assert parsed("text/x-mine=parse", source(b"<title>T</title>", "text/html")).title == "T"
    with pytest.raises(NoParser):
        parsed("text/x-mine=parse", source(kind="image/png"))


def test_directives_of_headers_hold_for_documents_of_plug_ins(parsed):
    headers = [("x-robots-tag", "noindex, nofollow")]
    page = parsed("text/x-mine=parse", source(headers=headers))
    assert (page.title, page.text, page.hrefs) == ("", "", [])


def test_a_document_in_a_gzip_file_is_unpacked_first(parsed):
    packed = Source("http://a.example/y.zz.gz", gzip.compress(b"12345"), "application/gzip")
    assert parsed("text/plain=parse", packed).metas["bytes"] == "5"


def test_a_document_that_a_plug_in_cannot_read_has_no_parser(parsed):
    with pytest.raises(NoParser):
        parsed("text/x-mine=none", source())


@pytest.mark.parametrize("body", [b"number", b"link", b"meta", b"missing"])
def test_a_result_that_is_no_document_is_a_fault_of_the_plug_in(parsed, body):
    with pytest.raises(ParseFailed) as failed:
        parsed("text/x-mine=odd", source(body))
    assert failed.value.reason == "parser_p.odd"
    assert isinstance(failed.value.__cause__, TypeError | KeyError)
