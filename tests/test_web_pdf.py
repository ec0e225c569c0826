import builtins
import gzip
import io
import pathlib

import hostile_files as hostile
import pytest
from small_files import TYPES, pdf, pdf_page

from nutbeam.web.parsers import pdf as pdf_parser
from nutbeam.web.parsers.dispatch import parse
from nutbeam.web.parsers.options import ParseOptions
from nutbeam.web.parsers.page import NoParser, ParseFailed, Source

URL = "http://a.com/d/file.pdf"
# What documents that Debian brings say on their first pages.
DEBIAN = {
    "/usr/share/doc/shared-mime-info/shared-mime-info-spec.pdf": "Shared MIME-info Database",
    "/usr/share/doc/bzip2/manual.pdf.gz": "bzip2",
    "/usr/share/debian-reference/debian-reference.en.pdf": "Debian Reference",
}


def parsed(body, *headers, **options):
    return parse(Source(URL, body, TYPES["pdf"], headers), ParseOptions(**options))


def why(body):
    with pytest.raises(ParseFailed) as caught:
        parsed(body)
    return caught.value.reason


LINKED = pdf_page(
    "Hello  paper",
    b"/Info 7 0 R",
    b"/Annots[6 0 R 8 0 R<</Subtype/Link/A<</S/GoTo/D(x)>>>>]",
    b"/Lang(en-GB)/URI<</Base(http://b.com/base/)>>",
    {
        6: b"<</Subtype/Link/A<</S/URI/URI(next.html)>>>>",
        7: b"<</Title(A  title)/Author(Me)/Subject(in short)/Keywords(k1, k2)>>",
        8: b"<</Subtype/Link/A<</S/URI/URI 9 0 R>>>>",
        9: b"(http://c.com/)",
    },
)


def test_a_page():
    page = parsed(LINKED)
    assert (page.title, page.text, page.language) == ("A title", "Hello paper", "en-GB")
    assert page.metas == {"author": "Me", "description": "in short", "keywords": "k1, k2"}
    assert (page.hrefs, page.base) == (["next.html", "http://c.com/"], "http://b.com/base/")


def test_x_robots_tag_counts():
    page = parsed(LINKED, ("x-robots-tag", "none"))
    assert (page.title, page.text, page.hrefs) == ("", "", [])
    assert page.dropped == {"page_nofollow": 2}


def locked(password):
    pypdf = pytest.importorskip("pypdf")
    writer, body = pypdf.PdfWriter(clone_from=io.BytesIO(pdf_page("secret"))), io.BytesIO()
    writer.encrypt(user_password=password, owner_password="owner", algorithm="AES-256")
    writer.write(body)
    return body.getvalue()


def test_an_empty_password_is_none():
    assert parsed(locked("")).text == "secret"
    assert why(locked("password")) == "encrypted"


def test_of_many_pages_the_first_are_read():
    pages = dict.fromkeys(range(3, 13), b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>")
    kids = b" ".join(b"%d 0 R" % n for n in pages)
    tree = {2: b"<</Type/Pages/Count 10/Kids[%s]>>" % kids, **pages}
    body = pdf({1: b"<</Type/Catalog/Pages 2 0 R>>", **tree})
    assert parsed(body, pdf_max_pages=9).metas == {"text_cut": "pages"}
    assert parsed(body, pdf_max_pages=10).metas == {}
    assert parsed(body, pdf_max_pages=-1).metas == {}
    assert parsed(body, parser_timeout=0.0).metas == {"text_cut": "time"}


def test_a_page_that_is_broken_costs_no_other():
    body = pdf_page("good").replace(b"/Kids[3 0 R]", b"/Kids[6 0 R 3 0 R]")
    body = body.replace(b"xref\n0", b"6 0 obj\n<</Type/Page/Contents 7>>\nendobj\nxref\n0", 1)
    assert parsed(body).text == "good"


BAD = {
    "nothing": (b"", "malformed"),
    "no-pdf": (b"\0\0<html>", "malformed"),
    "cut": (LINKED[:300], "malformed"),
    "page-tree-loop": (hostile.pdf_page_tree_loop(), "malformed"),
    "previous-loop": (hostile.pdf_previous_loop(), "malformed"),
    "object-stream-in-itself": (hostile.pdf_object_stream_in_itself(), "malformed"),
    "huge-count": (hostile.pdf_huge_count(), "too_complex"),
    "endless-content": (hostile.pdf_endless_content(), "too_complex"),
    "many-operations": (hostile.pdf_many_operations(), "too_complex"),
    "deep-array": (hostile.pdf_deep_array(), "malformed"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_too_much_or_broken_has_a_reason(name):
    body, reason = BAD[name]
    assert why(body) == reason


def test_a_mistake_that_pypdf_does_not_foresee_is_said_in_words(monkeypatch):
    monkeypatch.setattr(pdf_parser, "_open", lambda body: body.nothing)
    with pytest.raises(ParseFailed) as caught:
        parsed(LINKED)
    said = "damaged in a way that pypdf does not foresee (AttributeError)"
    assert (caught.value.reason, str(caught.value.__cause__)) == ("malformed", said)


def test_a_form_in_itself_ends():
    assert parsed(hostile.pdf_form_in_itself()).text == ""


def test_without_pypdf_the_reason_names_the_extra(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.partition(".")[0] == "pypdf":
            raise ModuleNotFoundError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(NoParser, match=r"^no_pypdf$") as caught:
        parsed(LINKED)
    assert "pip install nutbeam[pdf]" in str(caught.value.__cause__)


@pytest.mark.parametrize("name", DEBIAN)
def test_documents_of_debian(name):
    path = pathlib.Path(name)
    if not path.exists():
        pytest.skip(f"no {path}: it comes with Debian's documentation")
    body = path.read_bytes()
    body = gzip.decompress(body) if path.suffix == ".gz" else body
    assert DEBIAN[name] in parsed(body, pdf_max_pages=3).text
