import io
import zipfile

import pytest
from hostile_files import (
    BILLION_LAUGHS,
    BLOWUP,
    DEEP_XML,
    docx_with,
    endless_docx,
    many_entries,
    nested_archives,
    overlapping,
)
from small_files import TYPES, docx, docx_entries, epub, packed, relations

from nutbeam.web.office import archive, collector
from nutbeam.web.pages.markdown import markdown_of
from nutbeam.web.pages.page import ParseFailed, Source
from nutbeam.web.pages.parse_options import ParseOptions
from nutbeam.web.parsers.dispatch import has_parser, parse_document

URL = "http://a.com/d/file"


def parsed(body, kind, *headers):
    return parse_document(Source(URL, body, TYPES[kind], headers), ParseOptions())


def why(body, kind="docx"):
    with pytest.raises(ParseFailed) as caught:
        parsed(body, kind)
    return caught.value.reason


def links(page):
    return list(zip(page.hrefs, page.anchors, strict=True))


def saved(document):
    body = io.BytesIO()
    document.save(body)
    return body.getvalue()


@pytest.fixture(scope="module")
def word():
    library = pytest.importorskip("docx")
    from docx.opc.constants import RELATIONSHIP_TYPE
    from docx.oxml import OxmlElement
    from docx.oxml.ns import qn

    document = library.Document()
    properties = document.core_properties
    properties.title, properties.author, properties.language = " A  title ", "Me", "de-DE"
    properties.keywords, properties.comments = "k1, k2", "in short"
    document.add_heading("Head", 1)
    paragraph = document.add_paragraph("Some ")
    paragraph.add_run("bold").bold = True
    paragraph.add_run(" words, see ")
    link = OxmlElement("w:hyperlink")
    target = "http://b.com/target"
    link.set(qn("r:id"), document.part.relate_to(target, RELATIONSHIP_TYPE.HYPERLINK, True))
    for text in ("the ", "anchor"):
        link.append(library.oxml.parse_xml(f'<w:r xmlns:w="{_W}"><w:t>{text}</w:t></w:r>'))
    paragraph._p.append(link)
    table = document.add_table(1, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "left", "right"
    document.part.relate_to("mailto:me@b.com", RELATIONSHIP_TYPE.HYPERLINK, True)
    return saved(document)


_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def test_a_document_of_word(word):
    page = parsed(word, "docx")
    assert (page.title, page.language, page.base) == ("A title", "de", URL)
    assert page.metas == {
        "author": "Me", "keywords": "k1, k2", "description": "in short", "language_declared": "de-DE",
    }  # fmt: skip
    assert page.text == "Head\nSome bold words, see the anchor\nleft\nright"
    assert links(page) == [("http://b.com/target", "the anchor"), ("mailto:me@b.com", "")]


@pytest.mark.parametrize("kind", ["xlsx", "pptx"])
def test_the_kind_of_a_document_follows_from_its_content_and_not_its_type(word, kind):
    assert parsed(word, kind).title == "A title"


def test_x_robots_tag_counts(word):
    page = parsed(word, "docx", ("x-robots-tag", "noindex"))
    assert (page.title, page.text, len(page.hrefs)) == ("", "", 2)
    page = parsed(word, "docx", ("x-robots-tag", "nofollow"))
    assert (page.title, page.hrefs, page.dropped) == ("A title", [], {"page_nofollow": 2})
    said = [("x-robots-tag", "otherbot: noindex"), ("x-robots-tag", "bot: nofollow")]
    source = Source(URL, word, TYPES["docx"], said)
    assert parse_document(source, ParseOptions(agent_name="bot")).directives == {"nofollow"}
    late = [("x-robots-tag", "unavailable_after: 2020-01-01")]
    source = Source(URL, word, TYPES["docx"], late, 1_700_000_000_000)
    assert parse_document(source, ParseOptions()).directives == {"noindex"}


def text_of(inner):
    """Text and links of a document's body."""
    entries = docx_entries(
        f'<w:document xmlns:w="{_W}" xmlns:r="r/relationships">{inner}</w:document>'
    )
    page = parsed(packed(entries), "docx")
    return page.text, links(page)


def test_text_that_is_there_twice_or_was_deleted():
    assert text_of(
        "<w:p><w:r><w:t>a</w:t><w:tab/><w:t>b</w:t></w:r><w:del><w:delText>no</w:delText></w:del>"
        "<AlternateContent><Choice><w:t>c</w:t></Choice><Fallback><w:t>c</w:t></Fallback>"
        "</AlternateContent></w:p><w:p><w:t>d</w:t></w:p>"
    ) == ("a bc\nd", [])


def test_links_in_fields():
    field = '<w:fldChar w:fldCharType="{}"/>'.format
    assert text_of(
        f'<w:p>{field("begin")}<w:instrText> HYPERLINK "http://b.com/"</w:instrText>'
        f"{field('separate')}<w:t>it</w:t>{field('end')} {field('begin')}<w:instrText>PAGE"
        f"</w:instrText>{field('separate')}<w:t>7</w:t>{field('end')}</w:p>"
        "<w:fldSimple w:instr='HYPERLINK \"http://c.com/\"'><w:t>so</w:t></w:fldSimple>"
    ) == ("it7\nso", [("http://b.com/", "it"), ("http://c.com/", "so")])


def test_notes_and_the_language_of_the_styles():
    main = ("r1", "officeDocument", "/word/document.xml", False)
    body = packed(
        {
            "_rels/.rels": relations(main),
            "word/document.xml": f'<w:document xmlns:w="{_W}"><w:t>text </w:t></w:document>',
            "word/_rels/document.xml.rels": relations(
                ("r1", "footnotes", "footnotes.xml", False), ("r2", "styles", "styles.xml", False)
            ),
            "word/footnotes.xml": f'<w:footnotes xmlns:w="{_W}"><w:t>a note</w:t></w:footnotes>',
            "word/styles.xml": f'<w:styles xmlns:w="{_W}"><w:docDefaults><w:lang w:val="fr-FR"/>'
            "</w:docDefaults></w:styles>",
        }
    )
    page = parsed(body, "docx")
    assert (page.text, page.language) == ("text a note", "fr")


def test_a_workbook():
    library = pytest.importorskip("openpyxl")
    book = library.Workbook()
    sheet = book.active
    sheet.title, book.properties.title = "First", "Numbers"
    sheet["A1"], sheet["B1"], sheet["C1"] = "hello", 3.5, True
    sheet["A2"], sheet["A3"] = "look", '=HYPERLINK("http://b.com/formula", "f")'
    sheet["A2"].hyperlink = "http://b.com/cell"
    sheet["C4"] = "below\nTRUE"
    book.create_sheet("Second")["A1"] = "two"
    page = parsed(saved(book), "xlsx")
    rows = "hello\t3.5\tTRUE\nlook\n\t\tbelow TRUE"
    assert (page.title, page.text) == ("Numbers", f"First\n\n{rows}\n\nSecond\n\ntwo")
    assert markdown_of(page.text, page.spans).split("\n")[:8] == [
        "# First", "", "|  |  |  |", "| --- | --- | --- |", "| hello | 3.5 | TRUE |",
        "| look |  |  |", "|  |  | below TRUE |", "",
    ]  # fmt: skip
    assert links(page) == [("http://b.com/formula", ""), ("http://b.com/cell", "look")]


COMMENTS = {
    "comments": "<comments><authors><author>Me</author></authors><commentList><comment ref='A1'><text>"
                "<r><t>one </t></r><r><t>note</t></r></text></comment><comment><text><t>two</t></text>"
                "</comment></commentList></comments>",
    "threadedComment": "<ThreadedComments><threadedComment ref='A1'><text>why?</text></threadedComment>"
                       "<threadedComment><text>because</text></threadedComment></ThreadedComments>",
    "drawing": "<wsDr><sp><txBody><p><r><t>in a </t></r><r><t>box</t></r></p></txBody></sp></wsDr>",
}  # fmt: skip


@pytest.mark.parametrize(
    ("kinds", "text"),
    [
        (["drawing"], "in a box"),
        (["comments"], "one note\n\ntwo"),
        (["comments", "threadedComment"], "why?\n\nbecause"),
        (["drawing", "comments"], "in a box\n\none note\n\ntwo"),
    ],
)
def test_text_boxes_and_comments_of_a_workbook(kinds, text):
    around = [(kind, kind, f"../{kind}.xml", False) for kind in kinds]
    entries = {
        "_rels/.rels": relations(("r1", "officeDocument", "xl/workbook.xml", False)),
        "xl/workbook.xml": "<workbook xmlns:r='u'><sheets><sheet name='S' r:id='r1'/></sheets></workbook>",
        "xl/_rels/workbook.xml.rels": relations(("r1", "worksheet", "worksheets/s.xml", False)),
        "xl/worksheets/s.xml": "<worksheet><sheetData><row><c><v>7</v></c></row></sheetData></worksheet>",
        "xl/worksheets/_rels/s.xml.rels": relations(*around),
        **{f"xl/{kind}.xml": COMMENTS[kind] for kind in kinds},
    }
    assert parsed(packed(entries), "xlsx").text == f"S\n\n7\n\n{text}"
    del entries["xl/worksheets/s.xml"]
    page = parsed(packed(entries), "xlsx")
    assert (page.text, page.metas["text_cut"]) == ("S", "damage")


def test_sheets_of_one_name_and_numbers_with_blanks():
    entries = {
        "_rels/.rels": relations(("r1", "officeDocument", "xl/workbook.xml", False)),
        "xl/workbook.xml": "<workbook><sheets><sheet name='S'/><sheet name='S'/></sheets></workbook>",
        "xl/sharedStrings.xml": "<sst><si><t>one</t></si><si><t>two</t></si></sst>",
        **{f"xl/worksheets/sheet{n + 1}.xml": f"<worksheet><row><c t='s'><v> {n} </v></c></row></worksheet>"
           for n in range(2)},
    }  # fmt: skip
    assert parsed(packed(entries), "xlsx").text == "S\n\none\n\nS\n\ntwo"


def test_diagrams_and_fields_without_quotes():
    field = "<r><fldChar fldCharType='{}'/></r>"
    words = (
        f'<p>{field.format("begin")}<r><instrText>hyperlink http://b.com/ \\o "x"</instrText></r>'
        f"{field.format('separate')}<r><t>F</t></r>{field.format('end')}</p>"
    )
    entries = docx_entries(f"<document><body>{words}</body></document>") | {
        "word/_rels/document.xml.rels": relations(("d", "diagramData", "d.xml", False)),
        "word/d.xml": "<dataModel><pt><t><p><r><t>art</t></r></p></t></pt></dataModel>",
    }
    page = parsed(packed(entries), "docx")
    assert (page.text, links(page)) == ("F\nart", [("http://b.com/", "F")])


@pytest.mark.parametrize(
    "package", ["<dc:title>A & B</dc:title>", "<dc:title>A &amp; B</dc:title>"]
)
@pytest.mark.parametrize("blanks", ["", "\n \n<?xml version='1.0'?>"])
def test_common_mistakes_in_xml_of_a_book_lose_nothing(package, blanks):
    with zipfile.ZipFile(io.BytesIO(epub(["<p>one</p>"], package))) as book:
        entries = {name: book.read(name) for name in book.namelist()}
    entries["OEBPS/book.opf"] = blanks.encode() + entries["OEBPS/book.opf"]
    page = parsed(packed(entries), "epub")
    assert (page.title, page.text, page.metas) == ("A & B", "one", {})


@pytest.mark.parametrize("kind", ["image/svg+xml", "application/x-dtbook+xml"])
def test_chapters_of_a_book_may_be_drawings_and_dtbooks(kind):
    with zipfile.ZipFile(io.BytesIO(epub(["<text>one</text>"]))) as book:
        entries = {name: book.read(name) for name in book.namelist()}
    package = entries["OEBPS/book.opf"].replace(b"application/xhtml+xml", kind.encode())
    assert parsed(packed(entries | {"OEBPS/book.opf": package}), "epub").text == "one"


def test_a_chapter_that_is_missing_is_damage():
    with zipfile.ZipFile(io.BytesIO(epub(["<p>one</p>", "<p>two</p>"]))) as book:
        entries = {
            name: book.read(name) for name in book.namelist() if not name.endswith("/1.xhtml")
        }
    page = parsed(packed(entries), "epub")
    assert (page.text, page.metas["text_cut"]) == ("one", "damage")


def test_a_presentation():
    library = pytest.importorskip("pptx")
    show = library.Presentation()
    for number in (1, 2):
        slide = show.slides.add_slide(show.slide_layouts[1])
        slide.shapes.title.text = f"Slide {number}"
        frame = slide.placeholders[1].text_frame
        frame.text = "body "
        run = frame.paragraphs[0].add_run()
        run.text, run.hyperlink.address = "click me", f"http://b.com/{number}"
        slide.notes_slide.notes_text_frame.text = "my notes"
    show.core_properties.title = "Slides"
    page = parsed(saved(show), "pptx")
    assert page.title == "Slides"
    said = "Slide {}\nbody click me\nmy notes"
    assert page.text == f"{said.format(1)}\n{said.format(2)}"
    assert links(page) == [("http://b.com/1", "click me"), ("http://b.com/2", "click me")]


def test_a_text_of_opendocument():
    pytest.importorskip("odf")
    from odf import dc
    from odf.office import Annotation
    from odf.opendocument import OpenDocumentText
    from odf.text import A, H, P, S

    document = OpenDocumentText()
    document.meta.addElement(dc.Title(text="Title"))
    document.meta.addElement(dc.Language(text="fr"))
    document.text.addElement(H(outlinelevel=1, text="Head"))
    paragraph = P(text="see")
    for element in (S(c=2), A(href="http://b.com/", text="this"), A(href="../x.odt", text="x"),
                    A(href="#inside", text="y")):  # fmt: skip
        paragraph.addElement(element)
    remark = Annotation()
    remark.addElement(P(text="remark"))
    paragraph.addElement(remark)
    document.text.addElement(paragraph)
    page = parsed(saved_odf(document), "odt")
    assert (page.title, page.language, page.text) == ("Title", "fr", "Head\nsee thisxy")
    assert links(page) == [("http://b.com/", "this"), ("x.odt", "x")]


def saved_odf(document):
    body = io.BytesIO()
    document.write(body)
    return body.getvalue()


def test_rows_and_slides_of_opendocument_are_lines():
    def text(kind, inner):
        names = "xmlns:table='t' xmlns:draw='d' xmlns:office='o'"
        return parsed(packed({"content.xml": f"<x {names}>{inner}</x>"}), kind).text

    cells = "<table:table-cell><p>a</p></table:table-cell><table:table-cell><p>b</p><p>c</p></table:table-cell>"
    rows = f"<table:table>{f'<table:table-row>{cells}</table:table-row>' * 2}</table:table>"
    empty = "<table:table-cell table:number-columns-repeated='{}'/>"
    gaps = f"<table:table-row>{empty.format(2)}{cells}{empty.format(1020)}</table:table-row>"
    sheet = f"<office:spreadsheet>{rows}{gaps}</office:spreadsheet>"
    assert text("ods", sheet) == "a\tb c\na\tb c\n\t\ta\tb c"
    assert text("odt", f"<office:text>{rows}</office:text>") == "a\nb\nc\na\nb\nc"
    assert text("odp", "<draw:page><h>a</h><p>b</p></draw:page>") == "a\nb"


def test_a_book():
    body = epub(
        [
            '<html lang=de><title/><script src="x"/><body>One <a id="x"/><a href="1.xhtml">next</a> '
            + '<a href="http://b.com/">out</a></body></html>',
            "<html><body><h2>Two</h2><ul><li>in two lines</li></ul></body></html>",
        ],
        "<dc:title>A book</dc:title><dc:creator>Me</dc:creator><dc:creator>You</dc:creator>"
        "<dc:language>en</dc:language>",
    )
    page = parsed(body, "epub")
    assert (page.title, page.language, page.metas) == ("A book", "en", {"author": "Me, You"})
    assert page.text == "One next out\n\nTwo\n\nin two lines"
    markdown = markdown_of(page.text, page.spans, "http://a.com/b.epub")
    assert markdown == "One next [out](http://b.com/)\n\n## Two\n\n- in two lines"
    assert links(page) == [("http://b.com/", "out")]


def test_a_book_that_is_locked():
    xml = '<e><CipherReference URI="OEBPS/t/0.xhtml"/></e>'
    assert why(epub(["x"], **{"META-INF/encryption.xml": xml}), "epub") == "encrypted"
    fonts = '<e><CipherReference URI="OEBPS/font.otf"/></e>'
    page = parsed(epub(["<p>x"], **{"META-INF/encryption.xml": fonts}), "epub")
    assert page.text == "x"


BAD = {
    "nothing": (b"", "malformed"),
    "cut": (docx("x")[:-100], "malformed"),
    "no-main-part": (packed({"a": "b"}), "malformed"),
    "unknown-root": (docx_with(b"<x/>"), "malformed"),
    "broken-xml": (docx_with(b"<document><p></document>"), "malformed"),
    "protected": (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"), "encrypted",
    ),
    "zeros": (endless_docx(b"\0", b""), "malformed"),
    "endless": (endless_docx(), "archive_size"),
    "ratio": (endless_docx(size=64 << 20), "archive_ratio"),
    "overlapping": (overlapping(), "archive_overlap"),
    "nested": (nested_archives(), "archive_nested"),
    "entries": (many_entries(), "archive_entries"),
    "laughs": (docx_with(BILLION_LAUGHS), "xml_entities"),
    "blowup": (docx_with(BLOWUP), "xml_entities"),
    "deep": (docx_with(DEEP_XML), "too_complex"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_oversized_and_broken_documents_have_a_reason(name):
    body, reason = BAD[name]
    assert why(body) == reason


@pytest.mark.parametrize("kind", ["epub", "odt"])
def test_bombs_in_other_archives(kind):
    part = {"epub": "META-INF/container.xml", "odt": "content.xml"}[kind]
    assert why(packed({part: BILLION_LAUGHS}), kind) == "xml_entities"
    assert why(packed({part: bytes(8 << 20)}), kind) == "malformed"
    assert why(packed({part: b"<a>" + b" " * (8 << 20)}), kind) == "archive_ratio"
    assert why(packed({part: packed({"x": "y"})}), kind) == "archive_nested"


def test_an_encrypted_opendocument():
    manifest = "<m><file-entry><encryption-data/></file-entry></m>"
    body = packed({"META-INF/manifest.xml": manifest, "content.xml": b"\x01\x02"})
    assert why(body, "odt") == "encrypted"


def test_all_that_is_read_of_an_archive_counts(monkeypatch):
    chapters = [f"<p>{n}" + "words " * 200 for n in range(9)]
    body = epub(chapters)
    assert len(parsed(body, "epub").text) > 9_000
    monkeypatch.setattr(archive, "_MAX_BYTES", 8_000)
    assert why(body, "epub") == "archive_size"


def test_long_texts_are_cut(monkeypatch):
    monkeypatch.setattr(collector, "MAX_CHARS", 6)
    body = docx("0123456789", "title")
    page = parsed(body, "docx")
    assert (page.title, page.text, page.metas["text_cut"]) == ("title", "01234", "characters")


def test_names_of_entries_are_no_paths():
    names = ["../../etc/passwd", "/etc/passwd", "..\\x", "a/../../b"]
    found = [archive.entry_name("word/document.xml", name) for name in names]
    assert found == ["etc/passwd", "etc/passwd", "x", "b"]


def test_a_shared_text_that_many_cells_repeat_is_cut(monkeypatch):
    monkeypatch.setattr(collector, "MAX_CHARS", 10_000)
    main = ("r1", "officeDocument", "xl/workbook.xml", False)
    cells = '<c t="s"><v>0</v></c>' * 1_000
    body = packed(
        {
            "_rels/.rels": relations(main),
            "xl/workbook.xml": '<workbook xmlns:r="x/relationships"><sheet name="s" r:id="r1"/>'
            "</workbook>",
            "xl/_rels/workbook.xml.rels": relations(
                ("r1", "worksheet", "s.xml", False), ("r2", "sharedStrings", "t.xml", False)
            ),
            "xl/s.xml": f"<worksheet><row>{cells}</row></worksheet>",
            "xl/t.xml": f"<sst><si><t>{'x' * 5_000}</t></si></sst>",
        }
    )
    page = parsed(body, "xlsx")
    assert len(page.text) < 20_000
    assert page.metas["text_cut"] == "characters"


@pytest.mark.parametrize(
    ("mime", "is_read"),
    [
        *((mime, True) for mime in TYPES.values()),
        ("application/vnd.openxmlformats-officedocument.wordprocessingml.template", True),
        ("application/vnd.openxmlformats-officedocument.presentationml.slideshow", True),
        ("application/vnd.ms-word.template.macroenabled.12", True),
        ("application/vnd.ms-excel.sheet.macroenabled.12", True),
        ("application/vnd.oasis.opendocument.spreadsheet-template", True),
        ("application/vnd.oasis.opendocument.text-master", True),
        ("application/vnd.oasis.opendocument.graphics", True),
        ("application/vnd.oasis.opendocument.database", False),
        ("application/vnd.ms-excel", False),
        ("application/vnd.ms-excel.sheet.binary.macroenabled.12", False),
    ],
)
def test_types_of_macros_and_templates_have_parsers(mime, is_read):
    assert has_parser(mime) is is_read
