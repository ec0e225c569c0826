import builtins
import gzip
import pathlib
import re
import zlib

import hostile_files as hostile
import pytest
from here import TESTS
from small_files import TYPES, pdf, pdf_identity_h, pdf_page

from nutbeam.web.pages.page import NoParser, ParseFailed, Source
from nutbeam.web.pages.parse_options import ParseOptions
from nutbeam.web.parsers.dispatch import parse_document

URL = "http://a.com/d/file.pdf"
# What documents that Debian brings say on their first pages.
DEBIAN = {
    "/usr/share/doc/shared-mime-info/shared-mime-info-spec.pdf": "Shared MIME-info Database",
    "/usr/share/doc/bzip2/manual.pdf.gz": "bzip2",
    "/usr/share/debian-reference/debian-reference.en.pdf": "Debian Reference",
}


def parsed(body, *headers, **options):
    return parse_document(Source(URL, body, TYPES["pdf"], headers), ParseOptions(**options))


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
    assert (page.title, page.text, page.language) == ("A title", "Hello paper", "en")
    assert page.metas == {
        "author": "Me", "description": "in short", "keywords": "k1, k2", "language_declared": "en-GB",
    }  # fmt: skip
    assert (page.hrefs, page.base) == (["http://b.com/base/next.html", "http://c.com/"], URL)


def test_x_robots_tag_counts():
    page = parsed(LINKED, ("x-robots-tag", "none"))
    assert (page.title, page.text, page.hrefs) == ("", "", [])
    assert page.dropped == {"page_nofollow": 2}


def made(name):
    return (TESTS / "pdfs" / f"{name}.pdf").read_bytes()


def test_an_empty_password_is_none():
    assert parsed(made("no-password")).text == "secret"
    assert why(made("password")) == "encrypted"


# Which of them were made by what, is in their names; the texts are ours. Lines end where they do on paper.
FERRY = (
    "It was late in the afternoon when the ferry left the harbour of the small island. Most of the "
    "passengers, tired from a long day, had gone below to find a seat and some tea."
)


@pytest.mark.parametrize("producer", ["skia", "typst", "xdvipdfmx"])
def test_documents_of_several_producers(producer):
    page = parsed(made(producer))
    assert "\n" in page.text[: len(FERRY)]
    text = page.text.replace("\n", " ")
    assert text.startswith(FERRY)
    assert "A timetable and another." in text
    assert (page.title, page.language) == ("Ferries", "sv")
    assert page.hrefs == ["https://example.com/ferries.html", "https://example.com/a?b=c"]


def long_share(text):
    """Share of all letters that stand in words of over 22 characters."""
    lengths = [len(word) for word in re.findall(r"[^\W\d_]+", text)]
    return sum(n for n in lengths if n > 22) / sum(lengths)


def test_words_are_separate_where_no_glyph_is_a_space():
    words = FERRY.split()
    page = parsed(pdf_identity_h(words))
    assert page.text.splitlines() == [" ".join(words[n : n + 8]) for n in range(0, len(words), 8)]
    assert long_share(page.text) == 0


def test_letters_beyond_16_bits_are_whole():
    assert parsed(pdf_identity_h(["a\U0001f600b", "\U0001d400"])).text == "a\U0001f600b \U0001d400"


def test_a_word_that_a_line_divides_is_whole():
    body = pdf_page("condi-) Tj 0 -14 Td (tions of GNU-) Tj 0 -14 Td (Linux, it is well-known")
    assert parsed(body).text == "conditions of GNU-Linux, it is well-known"


XMP = b"""<?xpacket begin="" id="W5M0MpCehiHzreSzNTczkc9d"?><x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF
 xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about=""
 xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:pdf="http://ns.adobe.com/pdf/1.3/">
<dc:title><rdf:Alt><rdf:li xml:lang="x-default">A  title</rdf:li><rdf:li xml:lang="de">Ein Titel</rdf:li></rdf:Alt>
</dc:title><dc:creator><rdf:Seq><rdf:li>Me</rdf:li><rdf:li>You</rdf:li></rdf:Seq></dc:creator>
<dc:subject><rdf:Bag><rdf:li>k1</rdf:li></rdf:Bag></dc:subject><dc:language><rdf:Bag><rdf:li>en-GB</rdf:li>
</rdf:Bag></dc:language></rdf:Description></rdf:RDF></x:xmpmeta><?xpacket end="w"?>"""
OTHER_XMP = XMP.replace(b"A  title", b"A picture").replace(
    b"ns.adobe.com/pdf", b"ns.adobe.com/tiff"
)


def stream(data, more=b""):
    return b"<</Type/Metadata/Subtype/XML/Length %d%s>>stream\n%s\nendstream" % (
        len(data),
        more,
        data,
    )


@pytest.mark.parametrize(
    ("catalog", "objects"),
    [
        (b"/Metadata 6 0 R", {6: stream(XMP), 7: stream(OTHER_XMP)}),
        (b"/Metadata 6 0 R", {6: stream(zlib.compress(XMP), b"/Filter/FlateDecode"), 7: stream(OTHER_XMP)}),
        (b"", {6: stream(XMP), 7: stream(OTHER_XMP)}),
        (b"/Metadata 99 0 R", {6: stream(XMP)}),
    ],
    ids=["plain", "packed", "not-named", "wrong-number"],
)  # fmt: skip
def test_the_title_may_stand_in_the_xmp_alone(catalog, objects):
    page = parsed(pdf_page("text", catalog=catalog, more=objects))
    assert (page.title, page.language) == ("A title", "en")
    assert (page.metas["author"], page.metas["keywords"]) == ("Me, You", "k1")


def test_of_several_languages_in_the_xmp_the_default_counts():
    german, default = b'<rdf:li xml:lang="de">Ein Titel</rdf:li>', b"A  title</rdf:li>"
    xmp = XMP.replace(german, b"").replace(
        b'<rdf:li xml:lang="x-', german + b'<rdf:li xml:lang="x-'
    )
    xmp = xmp.replace(b"dc:subject", b"dc:description").replace(b"k1", b"k</rdf:li><rdf:li>l")
    assert default in xmp
    page = parsed(pdf_page("text", catalog=b"/Metadata 6 0 R", more={6: stream(xmp)}))
    assert (page.title, page.metas["description"]) == ("A title", "k")


def test_the_document_information_counts_before_the_xmp():
    more = {6: stream(XMP), 7: b"<</Title(Mine)/Author(I)>>"}
    page = parsed(pdf_page("text", b"/Info 7 0 R", catalog=b"/Metadata 6 0 R", more=more))
    assert (page.title, page.metas["author"], page.metas["keywords"]) == ("Mine", "I", "k1")


@pytest.mark.parametrize("xmp", [b"", b"<broken", XMP[:700], b"<x:xmpmeta>" * 1000, XMP.replace(b"<rdf:RDF", b"<!DOCTYPE a [<!ENTITY b 'c'>]><rdf:RDF")])  # fmt: skip
def test_damaged_xmp_costs_no_text(xmp):
    page = parsed(pdf_page("text", catalog=b"/Metadata 6 0 R", more={6: stream(xmp)}))
    assert page.text == "text"


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        (b"<FEFF0041D83D>", "A\ufffd"),
        (b"<FEFFDC000041>", "\ufffdA"),
        (b"<FEFFD83CDF750041>", "\U0001f375A"),
        (b"(A\\000B\\000)", "AB"),
        (b"<FEFF004100000042>", "AB"),
    ],
)
def test_odd_titles_cost_no_document(title, shown):
    page = parsed(pdf_page("text", b"/Info 6 0 R", more={6: b"<</Title%s>>" % title}))
    assert (page.title, page.text) == (shown, "text")


def test_values_of_a_form_are_text():
    fields = {
        6: b"<</Fields[7 0 R 8 0 R 9 0 R 10 0 R]/DA(/F 12 Tf)>>",
        7: b"<</Subtype/Widget/FT/Tx/T(name)/V(Ada)/Rect[0 0 99 20]/P 3 0 R>>",
        8: b"<</Subtype/Widget/FT/Tx/T(secret)/V(hidden)/Ff 8192/Rect[0 0 99 20]/P 3 0 R>>",
        9: b"<</Subtype/Widget/FT/Ch/T(town)/V(Rome)/Opt[(Rome)(Oslo)]/Ff 131072/Rect[0 0 99 20]/P 3 0 R>>",
        10: b"<</Subtype/Widget/FT/Btn/T(ok)/V/Yes/Rect[0 0 9 9]/P 3 0 R>>",
    }
    annotations = b"/Annots[7 0 R 8 0 R 9 0 R 10 0 R]"
    body = pdf_page("Name:", page=annotations, catalog=b"/AcroForm 6 0 R", more=fields)
    assert parsed(body).text == "Name:\nAda\nRome"


def test_bytes_of_a_link_are_escaped_as_they_are():
    link = b"<</Subtype/Link/A<</S/URI/URI(http://b.com/%s)>>>>"
    rows = b"".join(link % path for path in (b"caf\\351", b"caf\\303\\251", b"a b"))
    page = parsed(pdf_page("text", page=b"/Annots[%s]" % rows))
    assert page.hrefs == ["http://b.com/caf%E9", "http://b.com/caf\xe9", "http://b.com/a b"]


def manual(pages, lines=40):
    """Returns (a manual of many pages, its lines, its links)."""
    objects = {
        1: b"<</Type/Catalog/Pages 2 0 R>>",
        3: b"<</Type/Font/Subtype/Type1/BaseFont/Times-Roman>>",
    }
    said, links, kids = [], [], []
    for n in range(pages):
        texts = [
            f"page {n} line {m} has words such as w{n * m} and more of them" for m in range(lines)
        ]
        urls = [f"http://example.com/p{n}/{m}.html" for m in range(3)]
        shown = "".join(f"({text}) Tj 0 -14 Td " for text in texts).encode()
        content = zlib.compress(b"BT /F 10 Tf 30 800 Td %s ET" % shown)
        annotations = "".join(
            f"<</Subtype/Link/Rect[0 0 9 9]/A<</S/URI/URI({url})>>>>" for url in urls
        )
        kids.append(4 + 2 * n)
        objects[4 + 2 * n] = (
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 850]/Contents %d 0 R/Resources<</Font<</F 3 0 R>>>>"
            b"/Annots[%s]>>" % (5 + 2 * n, annotations.encode())
        )
        objects[5 + 2 * n] = b"<</Filter/FlateDecode/Length %d>>stream\n%s\nendstream" % (
            len(content), content,
        )  # fmt: skip
        said += texts
        links += urls
    kids = b" ".join(b"%d 0 R" % kid for kid in kids)
    objects[2] = b"<</Type/Pages/Count %d/Kids[%s]>>" % (pages, kids)
    return pdf(dict(sorted(objects.items()))), "\n".join(said), links


def test_a_manual_of_200_pages_is_read_whole():
    body, text, links = manual(200)
    assert len(body) < 1 << 20
    page = parsed(body)
    assert page.text == text
    assert page.hrefs == links
    assert page.metas == {}


def test_the_text_that_is_read_does_not_depend_on_the_time_limit():
    body, text, _ = manual(3)
    assert parsed(body, parser_timeout=0.1**9).text == text


def test_text_is_marked_as_cut_beyond_pdf_max_pages():
    pages = dict.fromkeys(range(3, 13), b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>")
    kids = b" ".join(b"%d 0 R" % n for n in pages)
    tree = {2: b"<</Type/Pages/Count 10/Kids[%s]>>" % kids, **pages}
    body = pdf({1: b"<</Type/Catalog/Pages 2 0 R>>", **tree})
    assert parsed(body, pdf_max_pages=9).metas == {"text_cut": "pages"}
    assert parsed(body, pdf_max_pages=10).metas == {}
    assert parsed(body, pdf_max_pages=-1).metas == {}


def test_a_page_that_is_broken_costs_no_other():
    body = pdf_page("good").replace(b"/Count 1/Kids[3 0 R]", b"/Count 2/Kids[6 0 R 3 0 R]")
    body = body.replace(b"xref\n0", b"6 0 obj\n<</Type/Page/Contents 7>>\nendobj\nxref\n0", 1)
    assert parsed(body).text == "good"


BAD = {
    "nothing": b"",
    "no-pdf": b"\0\0<html>",
    "cut": LINKED[:300],
    "page-tree-loop": hostile.pdf_page_tree_loop(),
    "previous-loop": hostile.pdf_previous_loop(),
    "object-stream-in-itself": hostile.pdf_object_stream_in_itself(),
    "deep-array": hostile.pdf_deep_array(),
    "no-page-is-there": pdf(
        {1: b"<</Type/Catalog/Pages 2 0 R>>", 2: b"<</Type/Pages/Count 500/Kids[7 0 R]>>"}
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_broken_files_are_malformed(name):
    assert why(BAD[name]) == "malformed"


# What costs a process its time or its life is in test_pipelines_isolation.
READ = {
    "huge-count": hostile.pdf_huge_count(),
    "many-operations": hostile.pdf_many_operations(),
    "script": pdf_page("good", catalog=b"/OpenAction<</S/JavaScript/JS(while(1);)>>"),
    "no-cross-reference": pdf_page("good").replace(b"xref", b"xxxx"),
    "gigantic-font": pdf_page("good").replace(b"/F 12 Tf", b"/F 99999999 Tf"),
    "embedded-file": pdf_page(
        "good", catalog=b"/Names<</EmbeddedFiles<</Names[(a)<</Type/Filespec/F(a)/EF<</F 7 0 R>>>>]>>>>",
        more={7: b"<</Type/EmbeddedFile/Length 9>>stream\nembedded!\nendstream"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_odd_files_are_read(name):
    page = parsed(READ[name], pdf_max_pages=20)
    assert "embedded" not in page.text
    if b"(good)" in READ[name]:
        assert page.text == "good"


def test_without_pypdfium2_the_reason_names_the_extra(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.partition(".")[0] == "pypdfium2":
            raise ModuleNotFoundError(name, name=name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(NoParser, match=r"^no_pypdfium2$") as caught:
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
