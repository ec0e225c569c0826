"""Documents of offices and printers, as small as they can be."""

import io
import zipfile

TYPES = {
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "odt": "application/vnd.oasis.opendocument.text",
    "ods": "application/vnd.oasis.opendocument.spreadsheet",
    "odp": "application/vnd.oasis.opendocument.presentation",
    "epub": "application/epub+zip",
    "pdf": "application/pdf",
}
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_OUTSIDE = ' TargetMode="External"'
_PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"


def packed(entries):
    """Returns a ZIP archive of contents by name."""
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in entries.items():
            file.writestr(name, content)
    return body.getvalue()


def relations(*rows):
    """Returns a part with relationships: (id, last word of the type, target, is it outside)."""
    inner = "".join(
        f'<Relationship Id="{id_}" Type="{_OFFICE}/{kind}" Target="{target}"'
        f"{_OUTSIDE if outside else ''}/>"
        for id_, kind, target, outside in rows
    )
    return f'<Relationships xmlns="{_PACKAGE}">{inner}</Relationships>'.encode()


def docx_entries(document):
    """Returns the entries of a text document whose main part is that."""
    return {
        "_rels/.rels": relations(("r1", "officeDocument", "word/document.xml", False)),
        "word/document.xml": document,
    }


def docx(text, title=""):
    """Returns a text document of one paragraph."""
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    body = f'<w:document xmlns:w="{space}"><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:document>'
    entries = docx_entries(body.encode())
    if title:
        core = ("r2", "metadata/core-properties", "docProps/core.xml", False)
        main = ("r1", "officeDocument", "word/document.xml", False)
        entries["_rels/.rels"] = relations(main, core)
        dublin = "http://purl.org/dc/elements/1.1/"
        entries["docProps/core.xml"] = f'<p xmlns:dc="{dublin}"><dc:title>{title}</dc:title></p>'
    return packed(entries)


def epub(chapters, metadata="", **others):
    """Returns a book of chapters in XHTML."""
    items = "".join(
        f'<item id="c{n}" href="t/{n}.xhtml" media-type="application/xhtml+xml"/>'
        for n in range(len(chapters))
    )
    spine = "".join(f'<itemref idref="c{n}"/>' for n in range(len(chapters)))
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<metadata>{metadata}</metadata><manifest>{items}</manifest><spine>{spine}</spine></package>"
    )
    container = (
        '<container><rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'
    )
    entries = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": container,
        "OEBPS/book.opf": package,
    }
    entries |= {f"OEBPS/t/{n}.xhtml": chapter for n, chapter in enumerate(chapters)}
    return packed(entries | others)


def pdf(objects, trailer=b""):
    """Returns a PDF of objects by number; the first is its catalog."""
    body, places = b"%PDF-1.4\n", {}
    for number, content in objects.items():
        places[number] = len(body)
        body += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    start = len(body)
    rows = b"".join(b"%010d 00000 n \n" % places[number] for number in sorted(places))
    size = len(objects) + 1
    head = b"xref\n0 %d\n0000000000 65535 f \n" % size
    end = b"trailer<</Size %d/Root 1 0 R%s>>\nstartxref\n%d\n%%%%EOF" % (size, trailer, start)
    return body + head + rows + end


def pdf_page(text, trailer=b"", page=b"", catalog=b"", more=None):
    """Returns a PDF of one page that says a text."""
    content = b"BT /F 12 Tf 10 100 Td (%s) Tj ET" % text.encode("latin-1")
    return pdf(
        {
            1: b"<</Type/Catalog/Pages 2 0 R%s>>" % catalog,
            2: b"<</Type/Pages/Count 1/Kids[3 0 R]>>",
            3: b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 300]/Contents 4 0 R"
            b"/Resources<</Font<</F 5 0 R>>>>%s>>" % page,
            4: b"<</Length %d>>stream\n%s\nendstream" % (len(content), content),
            5: b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
            **(more or {}),
        },
        trailer,
    )


def pdf_identity_h(words):
    """Returns a PDF as xdvipdfmx writes it: glyphs by number, and none for a space.

    What is between words is a move of 250 thousandths of the font's size; and glyph 32, which is
    no space here, is wider.
    """
    letters = sorted({*"".join(words)})
    numbers = {letter: number for number, letter in enumerate(letters, 36)}
    shown = [b"".join(b"%04x" % numbers[letter] for letter in word) for word in words]
    lines = [shown[n : n + 8] for n in range(0, len(shown), 8)]
    moves = (b"0 -14 Td[<%s>]TJ" % b">-250<".join(line) for line in lines)
    content = b"BT /F 9.9626 Tf 20 %d Td %s ET" % (14 * len(lines) + 20, b" ".join(moves))
    names = b"".join(
        b"<%04x> <%b>\n" % (numbers[x], x.encode("utf-16-be").hex().encode()) for x in letters
    )
    unicode_map = (
        b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapType 2 def\n"
        b"1 begincodespacerange <0000> <ffff> endcodespacerange\n"
        b"%d beginbfchar\n%sendbfchar endcmap end end" % (len(letters), names)
    )
    return pdf(
        {
            1: b"<</Type/Catalog/Pages 2 0 R>>",
            2: b"<</Type/Pages/Count 1/Kids[3 0 R]>>",
            3: b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 %d]/Contents 4 0 R"
            b"/Resources<</Font<</F 5 0 R>>>>>>" % (14 * len(lines) + 40),
            4: b"<</Length %d>>stream\n%s\nendstream" % (len(content), content),
            5: b"<</Type/Font/Subtype/Type0/BaseFont/A+Serif/Encoding/Identity-H"
            b"/DescendantFonts[6 0 R]/ToUnicode 8 0 R>>",
            6: b"<</Type/Font/Subtype/CIDFontType2/BaseFont/A+Serif/CIDSystemInfo<</Registry(Adobe)"
            b"/Ordering(Identity)/Supplement 0>>/FontDescriptor 7 0 R/DW 500/W[32[564]]>>",
            7: b"<</Type/FontDescriptor/FontName/A+Serif/Flags 4/FontBBox[0 -200 1000 900]/Ascent 700"
            b"/Descent -200/CapHeight 700/StemV 80/ItalicAngle 0>>",
            8: b"<</Length %d>>stream\n%s\nendstream" % (len(unicode_map), unicode_map),
        }
    )
