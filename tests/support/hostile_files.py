"""Documents as nobody writes them who means well; each is a few megabytes at most."""

import struct
import zlib

from small_files import docx_entries, packed, pdf

STORED, DEFLATED = 0, 8


def endless(byte, size, start=b""):
    """Returns a deflated stream: a start, then one byte repeated, in multiples of 16 MiB."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    first = packer.compress(start) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(byte * (16 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return first + block * (size >> 24) + b"\x03\x00"


def archive(entries, places=None):
    """Returns a ZIP archive.

    Args:
        entries: (name, stored bytes, method, size, crc) of each.
        places: For each entry of the directory the number of the entry that it means; else its own.
    """
    body, starts = b"", []
    for name, data, method, size, crc in entries:
        starts.append(len(body))
        sizes = struct.pack("<III", crc, len(data), min(size, 0xFFFFFFFE))
        head = struct.pack("<HHHHH", 20, 0, method, 0, 0) + sizes
        body += b"PK\x03\x04" + head + struct.pack("<HH", len(name), 0) + name.encode() + data
    directory = b""
    for number, (name, data, method, size, crc) in enumerate(entries):
        start = starts[number if places is None else places[number]]
        sizes = struct.pack("<III", crc, len(data), min(size, 0xFFFFFFFE))
        head = struct.pack("<HHHHHH", 20, 20, 0, method, 0, 0) + sizes
        names = struct.pack("<HHHHHII", len(name), 0, 0, 0, 0, 0, start)
        directory += b"PK\x01\x02" + head + names + name.encode()
    counts = struct.pack("<HHHHIIH", 0, 0, *2 * [len(entries)], len(directory), len(body), 0)
    return body + directory + b"PK\x05\x06" + counts


def stored(name, data):
    return name, data, STORED, len(data), zlib.crc32(data)


def docx_with(document, **others):
    """Returns a document of Word whose main part is that."""
    return packed(docx_entries(document) | others)


def endless_docx(byte=b" ", start=b"<document>", size=10 << 30):
    """A document of ten gigabytes."""
    rest = [
        stored(*entry) for entry in docx_entries(b"").items() if entry[0] != "word/document.xml"
    ]
    data = endless(byte, size, start)
    return archive([*rest, ("word/document.xml", data, DEFLATED, size, 0)])


def overlapping():
    """Many entries of the same bytes, as in the bomb of David Fifield."""
    entries = [stored(*entry) for entry in docx_entries(b"<w/>").items()]
    entries += [(f"{n}.xml", b"", STORED, 0, 0) for n in range(3)]
    return archive(entries, [0, 1, 2, 0, 1, 2])


def nested_archives():
    """As 42.zip: archives in archives in archives."""
    inner = packed({"zeros": bytes(1 << 24)})
    for _ in range(5):
        inner = packed({f"{n:02}.zip": inner for n in range(4)})
    return docx_with(inner)


def many_entries(number=12_000):
    return archive([stored(f"{n}", b"") for n in range(number)])


LAUGHS = "".join(
    f'<!ENTITY l{n} "{f"&l{n - 1};" * 10 if n else "lol"}">' for n in range(10)
)  # fmt: skip
BILLION_LAUGHS = f"<!DOCTYPE x [{LAUGHS}]><x>&l9;</x>".encode()
BLOWUP = f'<!DOCTYPE x [<!ENTITY a "{"a" * 50_000}">]><x>{"&a;" * 50_000}</x>'.encode()
FEED_LAUGHS = (
    f"<?xml version='1.0'?><!DOCTYPE rss [{LAUGHS}]><rss version='2.0'><channel>"
    "<title>&l9;</title><item><title>&l9;</title><link>http://a.com/x</link></item></channel></rss>"
).encode()
DEEP_XML = b"<document>" + b"<a>" * 100_000


def pdf_page_tree_loop():
    return pdf({1: b"<</Type/Catalog/Pages 2 0 R>>", 2: b"<</Type/Pages/Count 1/Kids[2 0 R]>>"})


def pdf_previous_loop():
    """Each table of objects names itself as the one before, and none has the catalog."""
    body = b"%PDF-1.4\n"
    start = len(body)
    table = b"xref\n0 1\n0000000000 65535 f \n"
    trailer = f"trailer<</Size 9/Root 5 0 R/Prev {start}>>\nstartxref\n{start}\n%%EOF".encode()
    return body + table + trailer


def pdf_object_stream_in_itself():
    """The catalog is in an object stream that is said to be in that stream, too."""
    inner = b"3 0 <</Type/Catalog/Pages 4 0 R>>"
    stream = b"<</Type/ObjStm/N 1/First 4/Length %d>>stream\n%s\nendstream" % (len(inner), inner)
    body = b"%%PDF-1.5\n2 0 obj\n%s\nendobj\n" % stream
    start = len(body)
    rows = [(0, 0, 255), (1, start, 0), (2, 2, 0), (2, 2, 0)]
    data = b"".join(struct.pack(">BIB", *row) for row in rows)
    head = b"<</Type/XRef/Size 4/W[1 4 1]/Root 3 0 R/Length %d>>" % len(data)
    body += b"1 0 obj\n%s\nstream\n%s\nendstream\nendobj\n" % (head, data)
    return body + b"startxref\n%d\n%%%%EOF" % start


def pdf_with_content(content, head=b""):
    stream = b"<<%s/Length %d>>stream\n%s\nendstream" % (head, len(content), content)
    return pdf(
        {
            1: b"<</Type/Catalog/Pages 2 0 R>>",
            2: b"<</Type/Pages/Count 1/Kids[3 0 R]>>",
            3: b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R/Resources<</XObject"
            b"<</F 5 0 R>>/Font<</F 6 0 R>>>>>>",
            4: stream,
            5: b"<</Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</F 5 0 R>>>>"
            b"/Length 12>>stream\n/F Do /F Do \nendstream",
            6: b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        }
    )


def pdf_endless_content(size=2 << 30):
    return pdf_with_content(b"\x78\xda" + endless(b" ", size), b"/Filter/FlateDecode")


def pdf_many_operations(number=1_000_000):
    return pdf_with_content(zlib.compress(b"(a) Tj " * number), b"/Filter/FlateDecode")


def pdf_form_in_itself():
    return pdf_with_content(b"/F Do")


def pdf_huge_count():
    return pdf(
        {
            1: b"<</Type/Catalog/Pages 2 0 R>>",
            2: b"<</Type/Pages/Count 2000000000/Kids[%s]>>" % (b"3 0 R " * 25_000),
            3: b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>",
        }
    )


def pdf_deep_array():
    return pdf({1: b"<</Type/Catalog/Pages 2 0 R>>", 2: b"<</Kids" + b"[" * 100_000 + b">>"})


# Nests deep, but has as many end tags as elements: the parser takes seconds, for it looks for what each ends.
SLOW_HTML = b"<p>" + b"<div></h1>" * 49_000
NESTED_HTML = b"<title>nested</title>" + b"<div>" * 8_000 + b"x"
MANY_ATTRIBUTES = b"<p " + b" ".join(b"attribute%d=1" % n for n in range(300_000)) + b">"
HUGE_ATTRIBUTE = b"<title>huge</title><p title='" + b"x" * 3_000_000 + b"'>x"
