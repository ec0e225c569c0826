import codecs
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nutbeam.web.content.charset import decode_body, is_text, to_utf8, unmarked_utf

SAMPLES = [
    ("Příliš žluťoučký kůň úpěl ďábelské ódy. ", "cp1250", "windows-1250"),
    ("Съешь же ещё этих мягких французских булок. ", "cp1251", "windows-1251"),
    ("Съешь же ещё этих мягких французских булок. ", "koi8-r", "koi8-u"),
    ("Der Fluß fließt über die Brücke, grüne Bäume. ", "latin-1", "windows-1252"),
    ("これは日本語の文章です。文字コードを判定します。", "cp932", "shift_jis"),
    ("これは日本語の文章です。文字コードを判定します。", "euc-jp", "euc-jp"),
    ("这是中文文本。用于检测编码。", "gb18030", "gb18030"),
]


@pytest.mark.parametrize(
    ("body", "header", "expected"),
    [
        (b"abc", None, ("abc", "utf-8")),
        (b"", None, ("", "utf-8")),
        ("é".encode(), None, ("é", "utf-8")),
        (b"\xe9", "text/html;charset=latin1", ("é", "windows-1252")),
        (b"\x80", "text/html; Charset = 'ISO-8859-1'", ("€", "windows-1252")),
        (b"\xe9", 'text/html; charset="utf-8"', ("\ufffd", "utf-8")),
        ("é".encode("utf-16-le"), "text/html; charset=utf-16", ("é", "utf-16le")),
        ("é".encode("utf-32-be"), "text/html; charset=utf-32be", ("é", "utf-32be")),
        # An unknown label, a codec that reads no text: as if nothing was said.
        ("é".encode(), "text/html; charset=unicode", ("é", "utf-8")),
        ("é".encode(), "text/html; charset=base64", ("é", "utf-8")),
        ("é".encode(), "text/html; charset=", ("é", "utf-8")),
        ("é".encode(), "text/html; charset=; charset=latin1", ("é", "utf-8")),
        # Other parameters.
        ("é".encode(), "text/html; xcharset=latin1", ("é", "utf-8")),
        ("é".encode(), 'text/html; x="charset=latin1"; charset=utf-8', ("é", "utf-8")),
        ("é".encode(), 'text/html; x="\\"; charset=latin1"', ("é", "utf-8")),
        # What servers write.
        (b"\xe9", "text/html charset=latin1", ("é", "windows-1252")),
        (b"\xe9", "text/html;charset=latin1, text/html", ("é", "windows-1252")),
        (b"\xe9", 'text/html; charset="latin1', ("é", "windows-1252")),
    ],
)
def test_header(body, header, expected):
    assert decode_body(body, header) == expected


@pytest.mark.parametrize(
    ("mark", "codec", "name"),
    [
        (codecs.BOM_UTF8, "utf-8", "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le", "utf-16le"),
        (codecs.BOM_UTF16_BE, "utf-16-be", "utf-16be"),
        (codecs.BOM_UTF32_LE, "utf-32-le", "utf-32le"),
        (codecs.BOM_UTF32_BE, "utf-32-be", "utf-32be"),
    ],
)
def test_a_byte_order_mark_beats_the_header_and_is_not_text(mark, codec, name):
    body = mark + "naïve".encode(codec)
    assert decode_body(body, "text/html; charset=latin1") == ("naïve", name)
    assert to_utf8(body, None) == ("naïve".encode(), name)


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        (b'<meta charset="koi8-r">', "koi8-r"),
        (b"<META http-equiv=content-type content='text/html; charset=Shift_JIS'>", "shift_jis"),
        (b'<?xml version="1.0" encoding="GB2312"?>', "gbk"),
        (b"<!-- <meta charset=koi8-r> --><meta charset=big5>", "big5"),
        (b"<meta charset=nonsense><meta charset=big5>", "big5"),
        (b"<meta charset=utf-16>", "utf-8"),
        (b"<meta charset=windows-1251", "utf-8"),  # browsers see no tag here either
        (b" " * 9000 + b"<meta charset=koi8-r>", "utf-8"),
        (b"<!doctype html><html lang='en'><head><meta charset = ' koi8-r ' />", "koi8-r"),
        (b"<META\nCHARSET\n=\nkoi8-r/>", "koi8-r"),
        (b"<meta/a='b'charset=koi8-r>", "koi8-r"),
        (b"<meta content='text/html; charset=\"koi8-r\"' http-equiv=Content-Type>", "koi8-r"),
        (b"<meta charset=koi8-r http-equiv=content-type content='charset=big5'>", "koi8-r"),
        (b"<meta name='a>b' charset=koi8-r>", "koi8-r"),
        (b"<meta charset=koi8-r charset=big5>", "koi8-r"),
        (b"<p don't><meta charset=koi8-r>", "koi8-r"),
        (b"<!--><meta charset=koi8-r>", "koi8-r"),
        (b"<?xml encoding='big5'?><meta charset=koi8-r>", "koi8-r"),
        # No declarations.
        (b"<meta name=description content='how to fix charset=koi8-r pages'>", "utf-8"),
        (b"<meta name=description content='charset=koi8-r'><meta charset=big5>", "big5"),
        (b"<meta content='text/html; charset=koi8-r'>", "utf-8"),
        (b"<meta data-charset=koi8-r>", "utf-8"),
        (b"<metal charset=koi8-r>", "utf-8"),
        (b"<div title='<meta charset=koi8-r>'>", "utf-8"),
        (b"<div title='<meta charset=koi8-r>'><meta charset=big5>", "big5"),
        (b'<div data-x = "a<meta charset=koi8-r>" y>', "utf-8"),
        (b"<!-- no end <meta charset=koi8-r>", "utf-8"),
        (b"<p title='no end><meta charset=koi8-r>", "utf-8"),
        (b"<meta name=a>b charset=koi8-r>", "utf-8"),
        (b"<!x <meta charset=koi8-r>", "utf-8"),
        (b"text <?xml encoding='koi8-r'?>", "utf-8"),
    ],
)
def test_markup(markup, expected):
    assert decode_body(markup, "text/html")[1] == expected


def test_the_xml_declaration_has_priority_over_meta_elements():
    body = b"<?xml version='1.0' encoding='big5'?><x><meta charset=koi8-r/></x>"
    assert [decode_body(body, kind)[1] for kind in ("text/xml", "application/xhtml+xml", None)] == [
        "big5", "big5", "koi8-r"
    ]  # fmt: skip


@pytest.mark.parametrize(
    "piece", [b"<!--", b"<a b='", b"<meta charset ", b"<a b = ", b"<meta a='", b"</", b"<a / "]
)
def test_broken_markup_is_gone_through_once(piece):
    body = (piece * 8192)[:8192]
    start = time.process_time()
    decode_body(b"<meta>charset" + body, None)
    assert time.process_time() - start < 0.1


def test_the_header_beats_the_markup():
    assert decode_body(b"<meta charset=koi8-r>", "text/html; charset=big5")[1] == "big5"


@pytest.mark.parametrize(("text", "codec", "name"), SAMPLES)
def test_the_charset_is_guessed_without_a_declaration(text, codec, name):
    assert decode_body((text * 20).encode(codec), "text/html") == (text * 20, name)


def test_undeclared_utf8_with_a_mistake_stays_utf8():
    assert decode_body("é".encode() * 9 + b"\xff.", None) == ("é" * 9 + "\ufffd.", "utf-8")
    cut = ("a" * 100 + "é").encode()[:-1]  # by a limit on the body
    assert decode_body(cut, None) == ("a" * 100 + "\ufffd", "utf-8")


def test_valid_utf8_is_not_copied():
    body = "<meta charset=utf-8>é".encode()
    assert to_utf8(body, None)[0] is body


@given(st.binary(max_size=60), st.sampled_from([None, "a/b; charset=utf-16", "a/b;charset=gbk"]))
def test_any_bytes_become_text_and_both_ways_agree(body, header):
    text, name = decode_body(body, header)
    assert to_utf8(body, header) == (text.encode("utf-8", "replace"), name)


@pytest.mark.parametrize("shift", range(4))
@pytest.mark.parametrize(
    ("text", "codec", "name"),
    [(text, codec, name) for text, codec, name in SAMPLES if name in ("shift_jis", "euc-jp")]
    + [
        ("这是中文文本。用于检测编码。", "gbk", "gb18030"),
        ("這是中文文本。用於檢測編碼。", "big5", "big5"),
        ("이것은 한국어 문장입니다. 문자 코드를 판정합니다. ", "cp949", "euc-kr"),
    ],
)
def test_a_long_page_is_recognised_wherever_the_sample_begins_and_ends(text, codec, name, shift):
    body = b"x" * shift + (text * 2000).encode(codec)
    assert decode_body(body, "text/html") == ("x" * shift + text * 2000, name)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"caf\xe9", "café"),
        (b"caf\xe9\n", "café\n"),
        (b"<p>caf\xe9.", "<p>café."),
        (b"A fine Spa\xdf", "A fine Spaß"),
        (b"Un caff\xe8", "Un caffè"),
        # A letter in UTF-8 that a limit has cut.
        ("an em dash —".encode()[:-1], "an em dash \ufffd"),
        ("an em dash —".encode()[:-2], "an em dash \ufffd"),
        ("é and ñ, ē".encode()[:-1], "é and ñ, \ufffd"),
        ("日本語".encode()[:-2], "日本\ufffd"),
    ],
)
def test_a_letter_only_at_the_end_counts(body, text):
    assert decode_body(body, None)[0] == text


@pytest.mark.parametrize(
    ("text", "codec", "domain"),
    [
        ("だけが読み書きできる", "cp932", "jp"),
        ("せん。 とはいえ大抵", "cp932", "JP:80"),
        ("Lockfile将", "gb18030", "cn"),
        ("供。 .br 中文 ", "big5", "tw"),
        ("считываемы", "koi8-r", "ru"),
        ("считываемы", "koi8-r", "xn--p1ai"),
        ("λληλογραφί", "cp1253", "gr."),
    ],
)
def test_the_top_level_domain_counts_where_the_guess_reads_badly(text, codec, domain):
    body = text.encode(codec)
    assert decode_body(body, None)[0] != text
    assert decode_body(body, None, f"http://www.example.{domain}/x")[0] == text
    assert to_utf8(body, None, f"http://www.example.{domain}/x")[0] == text.encode()


@pytest.mark.parametrize(
    "host",
    ["a.jp", "a.cn", "a.kr", "a.ru", "a.gr", "a.tr", "a.il", "10.0.0.1", "[::1]", "a.b_c", ""],
)
@pytest.mark.parametrize(
    ("text", "codec"),
    [
        ("Der Fluß fließt über die Brücke.", "cp1252"),
        ("Le garçon a déjà mangé à l'hôtel.", "cp1252"),
        ("Příliš žluťoučký kůň úpěl ďábelské ódy.", "cp1250"),
        ("Съешь же ещё этих мягких французских булок.", "cp1251"),
        ("Ξεσκεπάζω την ψυχοφθόρα σας βδελυγμία.", "cp1253"),
        ("これは日本語の文章です。文字コードを判定します。", "euc-jp"),
        ("Çabucak güvendi, öküz ajan hapse düştü yavrum, yağız şoföre.", "cp1254"),  # noqa: RUF001
    ],
)
def test_the_top_level_domain_does_not_count_where_the_guess_reads_well(text, codec, host):
    assert decode_body(text.encode(codec), None, f"http://{host}/x")[0] == text


@pytest.mark.parametrize(
    ("text", "codec", "host"),
    [
        ("Az erdő szélén őzek futnak a sűrű fű között, ők a legszebbek.", "cp1250", "a.com"),
        ("Az erdő szélén őzek futnak a sűrű fű között, ők a legszebbek.", "iso8859-2", "a.com"),
        ("A HÉTFŐI ELŐADÁS ELMARAD. " * 99, "cp1250", "a.hu"),
        ("Kérjük, töltse ki az űrlapot.", "cp1250", "a.hu"),
        # Those of other languages stay in windows-1252, also in Hungary.
        ("Õhtul sõideti jõe äärde.", "cp1252", "a.ee"),
        ("Os aviões põem-se no chão à noite, e dão voltas.", "cp1252", "a.hu"),
        ("Le goût sûr du fruit mûr, à l'été.", "cp1252", "a.hu"),
        ("Über die Brücke, größer, schöner: 5 €.", "cp1252", "a.hu"),
    ],
)
def test_hungarian_is_not_mistaken_for_windows_1252(text, codec, host):
    assert decode_body(text.encode(codec), "text/html", f"http://{host}/x")[0] == text


CHINESE = (
    "中华人民共和国位于亚洲东部、太平洋西岸。\n我们今天去学校上课、老师给我们讲了很多有趣的故事。"
    * 9
)
JAPANESE = "これは日本語の文章です。東京は日本の首都であり、世界でも有数の大都市です。\n" * 9
KOREAN = "대한민국은동아시아의한반도남부에위치한민주공화국이다.\n서울은수도이며" * 9


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("text", [CHINESE, JAPANESE, KOREAN], ids=["zh", "ja", "ko"])
@pytest.mark.parametrize(
    "start", ["<?xml version='1.0'?><a>", "<html>", "<!DOCTYPE html>", "\r\n<p>", ""]
)
def test_wide_text_of_few_ascii_letters_without_a_mark(start, text, encoding):
    body = (start + text).encode(encoding)
    assert is_text(body, "text/plain")
    assert decode_body(body, None)[0] == start + text


@pytest.mark.parametrize("encoding", ["ascii", "koi8-r", "gbk"])
def test_a_stray_zero_makes_no_wide_text(encoding):
    text = {"ascii": "One text of some words. ", "koi8-r": "Это русский текст. ", "gbk": CHINESE}
    body = text[encoding].encode(encoding) * 9
    for at in range(40):
        assert unmarked_utf(b"<p>" + body[:at] + b"\0" + body[at:]) is None
        assert unmarked_utf(body[:at] + b"\0" + body[at:]) is None
