"""Office documents and books as programs write them, and with damage to some of their parts."""

import datetime
import io
import zipfile

import pytest
from small_files import TYPES, docx_entries, epub, packed, relations

from nutbeam.web.office.office import date_text, read_date_styles
from nutbeam.web.pages.page import ParseFailed, Source
from nutbeam.web.pages.parse_options import ParseOptions
from nutbeam.web.pages.xml_events import text_events
from nutbeam.web.parsers.dispatch import parse_document

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def parsed(body, kind):
    return parse_document(Source("http://a.com/d/file", body, TYPES.get(kind)), ParseOptions())


def entries_of(document):
    """Returns the entries of a document that a library has made."""
    body = io.BytesIO()
    document.save(body)
    with zipfile.ZipFile(body) as file:
        return {name: file.read(name) for name in file.namelist()}


@pytest.fixture(scope="module")
def samples():
    """A document, a workbook and a show: their entries by kind; what they say is the same."""
    docx, openpyxl, pptx = map(pytest.importorskip, ("docx", "openpyxl", "pptx"))
    word = docx.Document()
    word.add_paragraph("First text")
    book = openpyxl.Workbook()
    book.active.title, book.active["A1"] = "Sheet", "First text"
    show = pptx.Presentation()
    slide = show.slides.add_slide(show.slide_layouts[5])
    slide.shapes.title.text = "First text"
    slide.notes_slide.notes_text_frame.text = "and notes"
    for document in (word.core_properties, book.properties, show.core_properties):
        document.title = "Title"
    return {"docx": entries_of(word), "xlsx": entries_of(book), "pptx": entries_of(show)}


@pytest.mark.parametrize("kind", ["docx", "xlsx", "pptx"])
@pytest.mark.parametrize(
    "rename",
    [str.upper, str.lower, lambda name: name.replace("/", "\\"), lambda name: f"/{name}",
     lambda name: name.replace("/", "\\").title()],
    ids=["upper", "lower", "backslashes", "slash", "both"],
)  # fmt: skip
def test_names_of_parts_may_be_spelt_otherwise(samples, kind, rename):
    body = packed({rename(name): content for name, content in samples[kind].items()})
    page = parsed(body, kind)
    assert (page.title, "First text" in page.text) == ("Title", True)
    assert parsed(body, None).title == "Title"  # without a header


@pytest.mark.few(5)
@pytest.mark.parametrize("kind", ["docx", "xlsx", "pptx"])
@pytest.mark.parametrize(
    "damage",
    [b"<broken", b"", b"\xff\xfe\x00", b"<?xml version='1.0' encoding='utf-812'?><a/>", None],
    ids=["xml", "empty", "bytes", "encoding", "crc"],
)
def test_a_damaged_part_costs_no_other(samples, kind, damage):
    main = {"docx": "word/document.xml", "xlsx": "xl/workbook.xml", "pptx": "ppt/presentation.xml"}
    needed = {
        main[kind],
        "xl/worksheets/sheet1.xml",
        "xl/sharedStrings.xml",
        "ppt/slides/slide1.xml",
    }
    for name in samples[kind].keys() - needed:
        if not name.endswith((".xml", ".rels")):
            continue
        page = parsed(damaged(samples[kind], name, damage), kind)
        assert "First text" in page.text, name
        is_lost = name == "docProps/core.xml" and damage is not None
        assert page.title == ("" if is_lost else "Title"), name


def damaged(entries, name, content):
    """Returns an archive in which an entry has other content; None: a wrong checksum."""
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as file:
        for each, value in entries.items():
            file.writestr(each, value if each != name or content is None else content)
        if content is None:
            file.getinfo(name).CRC ^= 1
    return body.getvalue()


def test_text_before_the_damage_is_kept_and_marked(samples):
    entries = samples["docx"]
    cut = entries["word/document.xml"].partition(b"<w:sectPr")[0]
    page = parsed(packed(entries | {"word/document.xml": cut}), "docx")
    assert (page.title, page.text, page.metas["text_cut"]) == ("Title", "First text", "damage")
    metadata = parsed(packed(entries | {"docProps/core.xml": b"<broken"}), "docx")
    assert (metadata.text, metadata.metas.get("text_cut")) == ("First text", None)
    with pytest.raises(ParseFailed, match="malformed"):
        parsed(packed(entries | {"word/document.xml": cut[:600]}), "docx")


def words_of(inner, **parts):
    """Returns the text of a document with this body."""
    document = f'<w:document xmlns:w="{W}" xmlns:mc="m" xmlns:wps="s">{inner}</w:document>'
    return parsed(packed(docx_entries(document) | parts), "docx").text


def run(text):
    return f"<w:r><w:t>{text}</w:t></w:r>"


@pytest.mark.parametrize(
    ("inner", "text"),
    [
        ((f"{run('wo')}<w:r><w:drawing><wps:txbx><w:txbxContent><w:p>{run('box')}</w:p></w:txbxContent>"
         f"</wps:txbx></w:drawing></w:r>{run('rd')}"), "wo\nbox\nrd"),
        (f"<w:moveFrom>{run('moved ')}</w:moveFrom>{run('stays')}<w:moveTo>{run(' moved')}</w:moveTo>",
         "stays moved"),
        (f"<w:del>{run('deleted')}</w:del><w:ins>{run('inserted')}</w:ins>", "inserted"),
        ("<w:r><w:t>e</w:t><w:noBreakHyphen/><w:t>mail</w:t></w:r>", "e-mail"),
        ("<w:r><w:t>hyphen</w:t><w:softHyphen/><w:t>ation</w:t></w:r>", "hyphenation"),
        (("<w:r><w:ruby><w:rt><w:r><w:t>kan</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>漢</w:t></w:r>"
         "</w:rubyBase></w:ruby></w:r>"), "漢"),
        (f"{run('a')}<w:r><w:ptab/></w:r>{run('b')}", "a b"),
    ],
    ids=["text-box", "moved", "deleted", "no-break-hyphen", "soft-hyphen", "ruby", "tab"],
)  # fmt: skip
def test_words_are_whole_and_there_once(inner, text):
    assert words_of(f"<w:p>{inner}</w:p>") == text


def odt(inner):
    body = f"<office:document-content xmlns:office='o' xmlns:text='t' xmlns:draw='d' xmlns:svg='s'>{inner}"
    return parsed(packed({"content.xml": body + "</office:document-content>"}), "odt").text


@pytest.mark.parametrize(
    ("inner", "text"),
    [
        (("one<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>A note</text:p>"
         "</text:note-body></text:note>, two"), "one\nA note\n, two"),
        ("one<draw:frame><draw:text-box><text:p>A box</text:p></draw:text-box></draw:frame>two",
         "one\nA box\ntwo"),
        ("one<draw:frame><svg:title>A</svg:title><svg:desc>picture</svg:desc></draw:frame>two",
         "one A picture two"),
        ("<text:ruby><text:ruby-base>漢</text:ruby-base><text:ruby-text>kan</text:ruby-text></text:ruby>", "漢"),
    ],
    ids=["note", "text-box", "picture", "ruby"],
)  # fmt: skip
def test_notes_and_frames_within_a_paragraph_of_opendocument_are_separate(inner, text):
    assert odt(f"<text:p>{inner}</text:p>") == text


def test_dates_of_a_workbook_are_dates():
    openpyxl = pytest.importorskip("openpyxl")
    day, moment = datetime.date(2026, 1, 2), datetime.datetime(2026, 1, 2, 10, 30)
    values = [day, moment, datetime.time(10, 30), datetime.timedelta(hours=37), 46024, 0.5]
    texts = ["2026-01-02", "2026-01-02 10:30:00", "10:30:00", "37:00:00", "46024", "0.5"]
    for epoch in (openpyxl.utils.datetime.WINDOWS_EPOCH, openpyxl.utils.datetime.MAC_EPOCH):
        book = openpyxl.Workbook()
        book.epoch = epoch
        book.active.append(values)
        body = io.BytesIO()
        book.save(body)
        assert parsed(body.getvalue(), "xlsx").text == "Sheet\n\n" + "\t".join(texts)


@pytest.mark.parametrize(
    ("code", "value", "text"),
    [
        ("d. mmm yyyy", "46024", "2026-01-02"),
        ("[$-409]mmmm\\ d;@", "46024.99", "2026-01-02"),
        ("mmm", "46024", "2026-01-02"),
        ("mm:ss", "0.5", "12:00:00"),
        ("[h]:mm:ss", "1.5", "36:00:00"),
        ("General", "46024", "46024"),
        ("0.00", "46024", "46024"),
        ('0 "days"', "46024", "46024"),
        ("[Red]0", "46024", "46024"),
        ("yyyy", "1", "1900-01-01"),
        ("yyyy", "59", "1900-02-28"),
        ("yyyy", "61", "1900-03-01"),
        ("yyyy", "-1", "-1"),
        ("yyyy", "1e300", "1e300"),
        ("yyyy", "nan", "nan"),
        ("yyyy", "2958465.9999999", "2958465.9999999"),
    ],
)
def test_formats_of_numbers(code, value, text):
    styles = (f"<styleSheet><numFmts><numFmt numFmtId='200' formatCode='{code}'/></numFmts>"
              "<cellStyleXfs><xf numFmtId='14'/></cellStyleXfs>"
              "<cellXfs><xf numFmtId='0'/><xf numFmtId='200'/></cellXfs></styleSheet>")  # fmt: skip
    shown = read_date_styles(text_events(styles), False).get("1")
    assert (date_text(value, shown) if shown else value) == text


def test_escapes_of_a_workbook_are_decoded():
    main = ("r1", "officeDocument", "xl/workbook.xml", False)
    core = ("r2", "metadata/core-properties", "core.xml", False)
    body = packed({
        "_rels/.rels": relations(main, core),
        "core.xml": "<c><title>A_x000d_ title</title></c>",
        "xl/workbook.xml": "<workbook xmlns:r='r'><sheet name='S_x0026_T' r:id='r1'/></workbook>",
        "xl/_rels/workbook.xml.rels": relations(
            ("r1", "worksheet", "s.xml", False), ("r2", "sharedStrings", "t.xml", False)),
        "xl/s.xml": "<worksheet><row><c t='s'><v>0</v></c><c t='inlineStr'><is><t>b_x005F_x0041_</t>"
                    "<rPh><t>no</t></rPh></is></c><c t='str'><v>c_x000A_d</v></c></row></worksheet>",
        "xl/t.xml": "<sst><si><t>a_x000D_\nline</t></si></sst>",
    })  # fmt: skip
    page = parsed(body, "xlsx")
    assert (page.title, page.text) == ("A title", "S&T\n\na line\tb_x0041_\tc d")


@pytest.mark.parametrize(
    "mime",
    ["application/xhtml+xml; charset=utf-8", "Application/XHTML+XML", "text/html", "text/x-oeb1-document",
     "", "text/xml", "application/octet-stream"],
)  # fmt: skip
def test_chapters_of_a_book_are_read_with_any_declared_type(mime):
    body = epub(["<p>One</p>", "<p>Two</p>"])
    with zipfile.ZipFile(io.BytesIO(body)) as file:
        entries = {name: file.read(name) for name in file.namelist()}
    package = entries["OEBPS/book.opf"].replace(b"application/xhtml+xml", mime.encode())
    assert parsed(packed(entries | {"OEBPS/book.opf": package}), "epub").text == "One\n\nTwo"


def test_a_book_with_damage_is_read():
    body = epub(["<p>One</p>", "<p>Two</p>"])
    with zipfile.ZipFile(io.BytesIO(body)) as file:
        entries = {name: file.read(name) for name in file.namelist()}
    for name, content in {
        "META-INF/container.xml": b"<broken",
        "META-INF/encryption.xml": b"<broken",
        "OEBPS/book.opf": entries["OEBPS/book.opf"].partition(b"<spine")[0],
    }.items():
        assert parsed(packed(entries | {name: content}), "epub").text == "One\n\nTwo", name
    assert parsed(damaged(entries, "OEBPS/t/0.xhtml", None), "epub").text == "One\n\nTwo"


@pytest.mark.parametrize(
    "mistake", ["<dc:description>1 < 2 <b</dc:description>", "<dc:x>A<i></dc:x>"]
)
def test_a_mistake_in_the_list_of_chapters_costs_none(mistake):
    body = epub(["<p>One</p>", "<p>Two</p>"])
    with zipfile.ZipFile(io.BytesIO(body)) as file:
        entries = {name: file.read(name) for name in file.namelist()}
    package = entries["OEBPS/book.opf"].decode()
    assert "<metadata" in package
    package = package.replace("</metadata>", f"{mistake}</metadata>")
    page = parsed(packed(entries | {"OEBPS/book.opf": package}), "epub")
    assert (page.text, page.metas["text_cut"]) == ("One\n\nTwo", "damage")


@pytest.mark.parametrize(
    ("kind", "name", "end"),
    [("xlsx", "xl/workbook.xml", b"<sheets>"), ("pptx", "ppt/presentation.xml", b"<p:sldIdLst>"),
     ("xlsx", "xl/workbook.xml", b"<workbookPr"), ("pptx", "ppt/presentation.xml", b"<p:sldId ")],
)  # fmt: skip
def test_parts_that_a_cut_list_does_not_name_are_read(samples, kind, name, end):
    start, _, rest = samples[kind][name].partition(end)
    assert rest
    page = parsed(packed(samples[kind] | {name: start}), kind)
    assert "text" in page.text
    assert page.metas["text_cut"] == "damage"


def test_a_picture_in_the_spine_may_name_a_chapter():
    body = epub(["<p>One</p>"])
    with zipfile.ZipFile(io.BytesIO(body)) as file:
        entries = {name: file.read(name) for name in file.namelist()}
    package = entries["OEBPS/book.opf"].replace(
        b"<manifest>", b"<manifest><item id='p' href='p.svg' media-type='image/svg+xml' fallback='c0'/>"
    ).replace(b'idref="c0"', b'idref="p"')  # fmt: skip
    assert parsed(packed(entries | {"OEBPS/book.opf": package}), "epub").text == "One"
