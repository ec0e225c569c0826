"""Detects the encoding of a body, also where its mark-up declares one, and decodes it."""

import codecs
import functools
import re
import unicodedata

from chardetng_py import EncodingDetector

from ..urls.url_parts import host_of_url
from .legibility import is_hungarian, reads_as_one_language, reads_well
from .whatwg_encodings import decode_as, encoding_name

_EARLY = 1024
_SPACE = rb"[\t\n\f\r ]"
# Atomic groups and possessive repeats: one pass, however broken the mark-up is.
_VALUE = rb"\"([^\"]*)\"|'([^']*)'|(?=>)|([^\t\n\f\r \"'>][^\t\n\f\r >]*+)"
_ATTRIBUTE = (
    rb"(?>[\t\n\f\r /]*+([^\t\n\f\r />][^\t\n\f\r />=]*+)"
    rb"(?:" + _SPACE + rb"*+=" + _SPACE + rb"*+(?:" + _VALUE + rb")|(?!" + _SPACE + rb"*+=)))"
)
_ANY_ATTRIBUTES = re.sub(rb"\((?!\?)", rb"(?:", _ATTRIBUTE) + rb"*+[\t\n\f\r /]*+>"
# The short form that nearly all tags have: quotes stand only where values begin.
_PLAIN_VALUES = (
    rb"[^>\"'=]*+"
    rb"(?:(?<=[a-z])=(?>\"[^\"]*\"|'[^']*'|[^\t\n\f\r >\"'=]+(?=[\t\n\f\r >]))[^>\"'=]*+)*+>"
)
_TOKEN = re.compile(
    rb"<!(?=--)(?:.*?-->|.*)"
    rb"|<(?:(meta)(?=[\t\n\f\r /])|/?[a-z][^\t\n\f\r >]*+)"
    rb"(?>" + _PLAIN_VALUES + rb"|" + _ANY_ATTRIBUTES + rb")"
    rb"|<(?:[!?]|/(?![a-z]))[^>]*+>"
    # A tag without an end takes the rest.
    rb"|<[a-z!/?].*",
    re.IGNORECASE | re.DOTALL,
)
_ATTRIBUTES = re.compile(_ATTRIBUTE)
_IN_CONTENT = re.compile(
    rb"charset" + _SPACE + rb"*=" + _SPACE + rb"*"
    rb"(?:\"([^\"]*)\"|'([^']*)'|([^\t\n\f\r \"';][^\t\n\f\r ;]*))?",
    re.IGNORECASE,
)
_XML = re.compile(rb"<\?xml\b[^<>]*?\bencoding\s*=\s*[\"']?([^\"'<>?\s]*)")


def declared_encoding(start: bytes, xml_first: bool = False) -> str | None:
    """Returns the encoding that a meta element or an XML declaration names, if it is known.

    Args:
        start: The first bytes of a document; an incomplete element at the end does not count.
        xml_first: Whether the XML declaration has priority over meta elements, as in XML.

    >>> declared_encoding(b"<!-- <meta charset=big5> --><meta charset=koi8-r>")
    'koi8-r'
    """
    if xml_first:
        return encoding_in_xml(start) or _encoding_in_meta(start)
    # Most say it early, and a tag that is whole there is whole in more.
    return _encoding_in_meta(start[:_EARLY]) or _encoding_in_meta(start) or encoding_in_xml(start)


def _encoding_in_meta(start: bytes) -> str | None:
    small = start.lower()
    if (first := small.find(b"<meta")) < 0 or small.find(b"charset", first) < 0:
        return None
    for tag in _TOKEN.finditer(start):
        if tag[1] and b"charset" in small[tag.start() : tag.end()]:
            name = _encoding_in_attributes(tag[0][len(b"<meta") :])
            if name:
                return name
    return None


def _encoding_in_attributes(text: bytes) -> str | None:
    """Returns what the attributes of one meta element declare."""
    attributes: dict[bytes, bytes] = {}
    for name, *values in _ATTRIBUTES.findall(text):
        attributes.setdefault(name.lower(), b"".join(values))
    if b"charset" in attributes:
        return _encoding_of_label(attributes[b"charset"].rstrip(b"/"))  # <meta charset=koi8-r/>
    if attributes.get(b"http-equiv", b"").lower() != b"content-type":
        return None
    label = _IN_CONTENT.search(attributes.get(b"content", b""))
    return _encoding_of_label(label[1] or label[2] or label[3] or b"") if label else None


def encoding_in_xml(start: bytes) -> str | None:
    """Returns the encoding that an XML declaration names, also without quotes, if it is known.

    >>> encoding_in_xml(b"<?xml version='1.0' encoding='latin1'?><a/>")
    'windows-1252'
    """
    declaration = _XML.match(start.lstrip())
    return _encoding_of_label(declaration[1]) if declaration else None


def _encoding_of_label(label: bytes) -> str | None:
    name = encoding_name(label.decode("ascii", "replace"))
    # The declaration was read as ASCII, so this cannot be.
    return "utf-8" if name and name.startswith(("utf-16", "utf-32")) else name


# The longer first: UTF-32's begins with UTF-16's.
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32le"),
    (codecs.BOM_UTF32_BE, "utf-32be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16le"),
    (codecs.BOM_UTF16_BE, "utf-16be"),
)
_DEFAULT = "windows-1252"
_TOP_LEVEL = re.compile(r"[a-z][a-z0-9-]{1,62}")
_PRESCAN_BYTES = 8192
_SAMPLE_BYTES = 20_000
_WIDE = ("utf-32le", "utf-32be", "utf-16le", "utf-16be")
_WIDE_BYTES = 1024
_MARKUP_START = re.compile(r"\s*<[?!/A-Za-z]")
_NOT_BETWEEN_LETTERS = bytes(range(0x30, 0x100))
# Of letters in UTF-8: those of Latin alphabets, and punctuation.
_COMMON_STARTS = (b"\xc2", b"\xc3", b"\xc4", b"\xc5", b"\xe2")
# Of Unicode's general categories: controls, surrogates, unassigned, private.
_NO_LETTERS = frozenset({"Cc", "Cs", "Cn", "Co"})
# RFC 1468: the escape sequences of ISO-2022-JP; browsers look for them, too.
_ESCAPES = re.compile(rb"\x1b(?:\$[@B]|\(J)")
# WHATWG MIME Sniffing 3: bytes that no text holds.
_BINARY_BYTES = bytes({*range(0x09), 0x0B, *range(0x0E, 0x1B), *range(0x1C, 0x20)})
_TEXT_BYTES = bytes(set(range(256)) - set(_BINARY_BYTES))
_ASCII_TEXT_BYTES = bytes({0, *b"\t\n\f\r", *range(0x20, 0x7F)})
# Random bytes have 10 %. 4,096 random bytes without a zero occur once in ten million cases.
_MAX_BINARY = 0.05
_ZERO_SEARCH_BYTES = 4096
# A parameter of a header (WHATWG MIME Sniffing 4.4), with the blanks, commas and single quotes
# that servers add: name, value in double or single quotes, other value.
_PARAMETER = re.compile(
    r"(?:^|[;,\s])\s*([^\s;,=\"']+)\s*=\s*"
    r"(?:\"((?:\\.|[^\"\\])*)\"?|'([^']*)'?|([^\s;,\"']*))"
)


def decode_body(body: bytes, content_type: str | None, url: str | None = None) -> tuple[str, str]:
    """Returns the text of a body and the name of its encoding.

    The first of these that names a known encoding wins: a byte-order mark; the charset of
    ``content_type``; a ``meta`` or XML declaration in the first 8192 bytes. Without one it is
    UTF-16 or UTF-32 if the zero bytes of mark-up show it, UTF-8 if nearly all letters are valid,
    ISO-2022-JP if its escapes are there, else the guess of chardetng, Firefox's detector, from
    20,000 bytes, which begin at a boundary between letters and may end within one. Where the text
    reads badly in that encoding, the top-level domain of the host counts. Hungarian, which
    the detector takes for windows-1252, is recognised by its letters.

    Labels mean what the WHATWG Encoding Standard says (``iso-8859-1`` is windows-1252). A wrong
    label is believed, as browsers do: bytes that are invalid in the encoding become U+FFFD. The
    byte-order mark is not part of the text.

    Args:
        body: The body.
        content_type: The value of the header, or None.
        url: Where it is from.

    >>> decode_body(b"caf\\xe9", "text/html; charset=ISO-8859-1")
    ('café', 'windows-1252')
    """
    name, start = _detect(body, content_type, url)
    return decode_as(name, body[start:]), name


def decode_as_declared(body: bytes, content_type: str | None) -> tuple[str, str]:
    """Returns the text of XML, or of a list of URLs, and the name of its encoding, without a guess.

    Bytes that are invalid in it become U+FFFD. The encoding is ``encoding_as_declared``.

    >>> decode_as_declared(b"caf\\xe9", None)
    ('caf\ufffd', 'utf-8')
    """
    name = encoding_as_declared(body, content_type)
    return decode_as(name, body[_byte_order_mark(body)[1] :]), name


def encoding_as_declared(start: bytes, content_type: str | None) -> str:
    """Returns the name of the encoding of XML, or of a list of URLs, without a guess.

    The first of these that names a known encoding wins: a byte-order mark; the zero bytes of
    UTF-16 or UTF-32; the XML declaration; the charset of ``content_type``. Otherwise it is UTF-8
    (XML 1.0, 4.3.3; sitemaps.org). The declaration is the author's; that of the server is often a
    default for all files.

    Args:
        start: The first bytes of the document.
        content_type: The value of the header, or None.

    >>> encoding_as_declared(b"<?xml version='1.0' encoding='latin1'?>", "text/xml; charset=utf-8")
    'windows-1252'
    """
    mark = _byte_order_mark(start)[0] or unmarked_utf(start[:_WIDE_BYTES])
    return mark or encoding_in_xml(start[:_PRESCAN_BYTES]) or _from_header(content_type) or "utf-8"


def to_utf8(body: bytes, content_type: str | None, url: str | None = None) -> tuple[bytes, str]:
    """Returns a body as valid UTF-8, and the name of the encoding it was in.

    The result is that of ``decode_body`` and a new encoding. A body that is already UTF-8, as most
    are, is returned unchanged, which saves both conversions.
    """
    name, start = _detect(body, content_type, url)
    if name == "utf-8" and not start and _first_mistake(body) is None:
        return body, name
    text = decode_as(name, body[start:])
    return text.encode("utf-8", "replace"), name


def markup_of(body: bytes) -> bytes:
    """Returns a body without its byte-order mark, and UTF-16 and UTF-32 as UTF-8.

    So signs of ASCII, such as those of mark-up, are bytes of ASCII.

    >>> markup_of("<p>é".encode("utf-16")), markup_of(b"<p>\\xe9")
    (b'<p>\\xc3\\xa9', b'<p>\\xe9')
    """
    name, start = _byte_order_mark(body)
    if name is None and b"\0" in body[:4]:
        name = unmarked_utf(body)
    if name in _WIDE:
        return decode_as(name, body[start:]).encode("utf-8", "replace")
    return body[start:]


def is_text(body: bytes, content_type: str | None) -> bool:
    """Returns whether a body can be text, as declared.

    A body is binary if more than 5 % of its first 20,000 bytes are control
    characters that no text holds, and one of them is a zero in the first 4,096.
    Stray ones, which real pages have, do no harm.

    >>> is_text(b"<p>one\\x00two, and so on", None), is_text(bytes(range(256)), None)
    (True, False)
    """
    if b"\0" not in body[:_ZERO_SEARCH_BYTES]:
        return True
    sample = body[:_SAMPLE_BYTES]
    name, start = _detect(sample, content_type)
    if name not in _WIDE:
        return len(sample.translate(None, _TEXT_BYTES)) <= _MAX_BINARY * len(sample)
    text = decode_as(name, sample[start : len(sample) // 4 * 4])
    return _count_wrong(text) <= _MAX_BINARY * len(text)


def unmarked_utf(start: bytes) -> str | None:
    """Returns the name of the UTF-16 or UTF-32 that a text without mark is in, if it is.

    Every second byte of ASCII, or three of four, is zero; so it is found by trying: the first bytes
    must decode to characters that texts have. Besides, they must begin as mark-up, or be ASCII to a
    tenth, or be common characters of one language.

    >>> unmarked_utf("<p>é".encode("utf-16-be")), unmarked_utf(b"<p>")
    ('utf-16be', None)
    >>> unmarked_utf("これは日本語です。\\nこれは日本語です。".encode("utf-16-le"))
    'utf-16le'
    """
    start = start[: min(_WIDE_BYTES, len(start) // 4 * 4 if len(start) > 6 else len(start))]
    zeros = start.count(0)
    if not zeros or (4 * zeros < len(start) and not start.translate(None, _ASCII_TEXT_BYTES)):
        return None  # or ASCII with stray zeros
    for name in _WIDE:
        text = decode_as(name, start)
        if not _count_wrong(text[:-1]) and _is_likely(text):
            return name
    return None


def _is_likely(text: str) -> bool:
    """Returns whether the start of a text shows that it is decoded as it was encoded."""
    letters = text.encode("ascii", "ignore")
    if letters.translate(None, _TEXT_BYTES):
        return False
    if len(letters) >= len(text) / 10:
        return True
    is_valid = "\ufffd" not in text[:-1]
    return is_valid and (_MARKUP_START.match(text) is not None or reads_as_one_language(text))


def _count_wrong(text: str) -> int:
    """Returns the number of characters that cannot occur in text."""
    spaces = sum(map(text.count, "\t\n\f\r"))
    return sum(unicodedata.category(letter) in _NO_LETTERS for letter in text) - spaces


def _detect(body: bytes, content_type: str | None, url: str | None = None) -> tuple[str, int]:
    """Returns the encoding's name and where the text starts."""
    mark_encoding, start = _byte_order_mark(body)
    if mark_encoding:
        return mark_encoding, start
    declared = _from_header(content_type)
    if declared is None:
        xml = content_type is not None and "xml" in content_type.lower()
        declared = declared_encoding(body[:_PRESCAN_BYTES], xml_first=xml)
    return declared or _guess(body, url), 0


def _byte_order_mark(body: bytes) -> tuple[str | None, int]:
    """Returns the encoding that a byte-order mark names, and the length of the mark."""
    if body[:1] in b"\xef\xff\xfe\x00":
        for mark, name in _BYTE_ORDER_MARKS:
            if body.startswith(mark):
                return name, len(mark)
    return None, 0


@functools.lru_cache(maxsize=1024)
def _from_header(content_type: str | None) -> str | None:
    for name, *values in _PARAMETER.findall((content_type or "")[:1000]):
        if name.lower() == "charset":
            return encoding_name("".join(values))
    return None


def _guess(body: bytes, url: str | None) -> str:
    wide = unmarked_utf(body[:_WIDE_BYTES])
    if wide is not None:
        return wide
    mistake = _first_mistake(body)
    if mistake is None:
        return "iso-2022-jp" if _ESCAPES.search(body) else "utf-8"
    if _is_cut(body, mistake):
        return "utf-8"
    start = _boundary(body, mistake.start - 1000)
    sample = body[start : start + _SAMPLE_BYTES]
    if _is_mostly_utf8(sample):
        return "utf-8"
    detector = EncodingDetector()
    # The sample may end within a letter, which is a mistake only at the end of the body.
    detector.feed(sample, last=start + len(sample) == len(body))
    guess, domain = _guess_of(detector, None), _top_level_domain(url)
    if guess == _DEFAULT and is_hungarian(sample, domain):
        return "windows-1250"
    if domain is None or (tld_guess := _guess_of(detector, domain)) == guess:
        return guess
    # With a domain the detector nearly excludes other languages, which some pages are in.
    return guess if reads_well(sample, guess) or not reads_well(sample, tld_guess) else tld_guess


def _guess_of(detector: EncodingDetector, domain: bytes | None) -> str:
    return encoding_name(detector.guess(tld=domain, allow_utf8=False)) or _DEFAULT


def _top_level_domain(url: str | None) -> bytes | None:
    """Returns the top-level domain of a URL's host in ASCII, if it has one."""
    label = (host_of_url(url) or "").rstrip(".").rpartition(".")[2].lower() if url else ""
    return label.encode() if _TOP_LEVEL.fullmatch(label) else None


def _boundary(body: bytes, most: int) -> int:
    """Returns the last position, at most ``most``, where no letter of several bytes goes on.

    No such letter of any encoding has a byte below "0" after its first; white space is one.
    """
    start = body[: max(0, most)]
    return len(start.rstrip(_NOT_BETWEEN_LETTERS))


def _is_mostly_utf8(sample: bytes) -> bool:
    """Returns whether a sample is UTF-8 with errors; other encodings rarely look like UTF-8."""
    text = sample.decode("utf-8", "replace")
    wrong_chars = text.count("\ufffd")
    return len(text) - len(text.encode("ascii", "ignore")) >= 2 * wrong_chars


def _first_mistake(body: bytes) -> UnicodeDecodeError | None:
    """Returns the first mistake of a body as UTF-8."""
    if body.isascii():
        return None
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as mistake:
        return mistake
    return None


def _is_cut(body: bytes, mistake: UnicodeDecodeError) -> bool:
    """Returns whether a body is UTF-8 that ends within a letter.

    One byte at the end is a letter of another encoding (``caf\\xe9``), unless there are letters in
    UTF-8 before it, or common ones begin with it.
    """
    if mistake.reason != "unexpected end of data":
        return False
    tail = body[mistake.start :]
    return len(tail) > 1 or tail in _COMMON_STARTS or not body[: mistake.start].isascii()
