# ruff: noqa: RUF001 - letters that look like others are the point here
"""Real sentences in each encoding, declared in each way, and the labels of the standard."""

import codecs

import pytest
import webencodings.labels

from nutbeam.web.content import whatwg_encodings
from nutbeam.web.content.charset import decode_body, to_utf8
from nutbeam.web.content.whatwg_encodings import encoding_name
from nutbeam.web.html.html import parse_html
from nutbeam.web.pages.page import Source
from nutbeam.web.pages.parse_options import ParseOptions

ENGLISH = "Pack my box with five dozen liquor jugs. "
GERMAN = "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich. "
FRENCH = "Portez ce vieux whisky au juge blond qui fume ; l'été dernier, il était là, à l'œuvre. "
FRENCH_LATIN_1 = "Dès Noël, où un zéphyr haï me vêt de glaçons würmiens, je dîne d'exquis rôtis. "
POLISH = "Pchnąć w tę łódź jeża lub ośm skrzyń fig. Zażółć gęślą jaźń. "
CZECH = "Příliš žluťoučký kůň úpěl ďábelské ódy. Nechť již hříšné saxofony zazvoní. "
RUSSIAN = "Съешь же ещё этих мягких французских булок, да выпей чаю. Широкая электрификация. "
UKRAINIAN = "Жебракують філософи при ґанку церкви в Гадячі, ще й шатро їхнє п'яне знаємо. "
SERBIAN = "Љубазни фењерџија чађавог лица хоће да ми покаже штос. Ђурђевдан је дошао. "
GREEK = "Ξεσκεπάζω την ψυχοφθόρα σας βδελυγμία. Ο καιρός σήμερα είναι καλός στην Αθήνα. "
TURKISH = "Pijamalı hasta yağız şoföre çabucak güvendi. Öküz ajan hapse düştü yavrum. "
TURKISH_RIGHTS = (
    "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. Akıl ve vicdana sahiptirler "
    "ve birbirlerine karşı kardeşlik zihniyeti ile hareket etmelidirler. "
)
POLISH_RIGHTS = (
    "Wszyscy ludzie rodzą się wolni i równi w swojej godności i prawach. Są oni obdarzeni rozumem "
    "i sumieniem i powinni postępować wobec innych w duchu braterstwa. "
)
HEBREW = "דג סקרן שט לו בים זך אך לפתע פגש חבורה נחמדה שצצה כך. "
ARABIC = "نص حكيم له سر قاطع وذو شأن عظيم مكتوب على ثوب أخضر ومغلف بجلد أزرق. "
LATVIAN = "Glāžšķūņa rūķīši dzērumā čiepj Baha koncertflīģeļu vākus. "
LITHUANIAN = "Įlinkdama fechtuotojo špaga sublykčiojusi pragręžė apvalų arbūzą. "
ESTONIAN = "Põdur Zagrebi tšellomängija-följetonist Ciqo külmetas kehvas garaažis. "
SAMI = "Čáhppes čeahci čuožžu guovdu geainnu ja ŋieskkas giđđa boahtá, muitala áhčči. "
MALTESE = "Il-ġurdien żgħir ħareġ mill-ħofra u mar jiġri lejn iċ-ċint tal-għalqa. "
ESPERANTO = "Eĥoŝanĝo ĉiuĵaŭde: laŭ Ludoviko Zamenhof bongustas freŝa ĉeĥa manĝaĵo. "
WELSH = "Parciais fy jac codi baw hud llawn dŵr ger tŷ Mabon, a'r gŵr ar ben y tŵr. "
ROMANIAN = (
    "Gheorghe, obezul, a reușit să obțină jucându-se un flux în Quebec de o mie kilowațioră. "
)
VIETNAMESE = "Do bạch kim rất quý nên sẽ dùng để lắp vô xương. "
THAI = "เป็นมนุษย์สุดประเสริฐเลิศคุณค่า กว่าบรรดาฝูงสัตว์เดรัจฉาน จงฝ่าฟันพัฒนาวิชาการ "
JAPANESE = "いろはにほへと ちりぬるを。これは日本語の文章です。文字コードを判定します。 "
KOREAN = (
    "키스의 고유조건은 입술끼리 만나야 하고 특별한 기술은 필요치 않다. 다람쥐 헌 쳇바퀴에 타고파. "
)
CHINESE = "我能吞下玻璃而不伤身体。天地玄黄，宇宙洪荒。这是用于检测编码的中文文本。 "
TAIWANESE = "我能吞下玻璃而不傷身體。天地玄黃，宇宙洪荒。這是用於檢測編碼的中文文本。 "
CANTONESE = "我哋嘅嘢喺呢度，佢哋唔知點解咁啱。 "
YIDDISH = "זאלסטו דאס ליד פון א שיינעם טאג זינגען. "


def in_windows_1258(text):
    """Vietnamese: what the encoding lacks is a letter and its tone (Unicode 3.6)."""
    import unicodedata

    tones = "\u0300\u0301\u0303\u0309\u0323"
    letters = []
    for letter in unicodedata.normalize("NFD", text):
        composed = unicodedata.normalize("NFC", letters[-1] + letter) if letters else ""
        if unicodedata.combining(letter) and letter not in tones and len(composed) == 1:
            letters[-1] = composed
        else:
            letters.append(letter)
    return "".join(letters)


# (label, text, codec, the standard's name)
ENCODINGS = [
    ("us-ascii", ENGLISH, "ascii", "windows-1252"),
    ("utf-8", RUSSIAN + JAPANESE + ARABIC, "utf-8", "utf-8"),
    ("windows-1252", FRENCH, "cp1252", "windows-1252"),
    ("iso-8859-1", FRENCH_LATIN_1, "latin-1", "windows-1252"),
    ("windows-1250", CZECH, "cp1250", "windows-1250"),
    ("windows-1251", RUSSIAN, "cp1251", "windows-1251"),
    ("windows-1253", GREEK, "cp1253", "windows-1253"),
    ("windows-1254", TURKISH, "cp1254", "windows-1254"),
    ("cp1254", TURKISH_RIGHTS, "cp1254", "windows-1254"),
    ("iso-8859-9", TURKISH, "iso8859-9", "windows-1254"),
    ("windows-1255", HEBREW, "cp1255", "windows-1255"),
    ("windows-1256", ARABIC, "cp1256", "windows-1256"),
    ("windows-1257", LITHUANIAN, "cp1257", "windows-1257"),
    ("windows-1258", in_windows_1258(VIETNAMESE), "cp1258", "windows-1258"),
    ("windows-874", THAI, "cp874", "windows-874"),
    ("tis-620", THAI, "tis-620", "windows-874"),
    ("iso-8859-11", THAI, "iso8859-11", "windows-874"),
    ("iso-8859-2", POLISH, "iso8859-2", "iso-8859-2"),
    ("l2", POLISH_RIGHTS, "iso8859-2", "iso-8859-2"),
    ("iso-8859-3", ESPERANTO, "iso8859-3", "iso-8859-3"),
    ("latin3", MALTESE, "iso8859-3", "iso-8859-3"),
    ("iso-8859-4", SAMI, "iso8859-4", "iso-8859-4"),
    ("iso-8859-5", SERBIAN, "iso8859-5", "iso-8859-5"),
    ("iso-8859-6", ARABIC, "iso8859-6", "iso-8859-6"),
    ("iso-8859-7", GREEK, "iso8859-7", "iso-8859-7"),
    ("iso-8859-8", HEBREW, "iso8859-8", "iso-8859-8"),
    ("iso-8859-8-i", YIDDISH, "iso8859-8", "iso-8859-8-i"),
    ("iso-8859-10", SAMI, "iso8859-10", "iso-8859-10"),
    ("iso-8859-13", LATVIAN, "iso8859-13", "iso-8859-13"),
    ("iso-8859-14", WELSH, "iso8859-14", "iso-8859-14"),
    ("iso-8859-15", FRENCH + ESTONIAN, "iso8859-15", "iso-8859-15"),
    ("iso-8859-16", ROMANIAN, "iso8859-16", "iso-8859-16"),
    ("ibm866", RUSSIAN, "cp866", "ibm866"),
    ("koi8-r", RUSSIAN, "koi8-r", "koi8-r"),
    ("koi8-u", UKRAINIAN, "koi8-u", "koi8-u"),
    ("macintosh", FRENCH, "mac-roman", "macintosh"),
    ("x-mac-cyrillic", UKRAINIAN, "mac-cyrillic", "x-mac-cyrillic"),
    ("gb2312", CHINESE, "gb2312", "gbk"),
    ("gbk", CHINESE + TAIWANESE, "gbk", "gbk"),
    ("gb18030", CHINESE + KOREAN, "gb18030", "gb18030"),
    ("hz-gb-2312", CHINESE, "hz", "hz-gb-2312"),
    ("big5", TAIWANESE, "big5", "big5"),
    ("big5-hkscs", CANTONESE, "big5hkscs", "big5"),
    ("euc-jp", JAPANESE, "euc-jp", "euc-jp"),
    ("iso-2022-jp", JAPANESE, "iso2022-jp", "iso-2022-jp"),
    ("shift_jis", JAPANESE + "①Ⅱ㈱", "cp932", "shift_jis"),
    ("euc-kr", KOREAN, "euc-kr", "euc-kr"),
    ("windows-949", KOREAN + "똠방각하 펲시콜라", "cp949", "euc-kr"),
    ("iso-2022-kr", KOREAN, "iso2022-kr", "iso-2022-kr"),
    ("utf-16le", RUSSIAN + CHINESE, "utf-16-le", "utf-16le"),
    ("utf-16be", THAI + KOREAN, "utf-16-be", "utf-16be"),
    ("utf-32le", HEBREW + "🐟", "utf-32-le", "utf-32le"),
    ("utf-32be", GREEK + "🐟", "utf-32-be", "utf-32be"),
]
# Without a word of theirs, these are taken for windows-1252, -1250 or -1257, by browsers, too.
UNKNOWN = {
    "iso-8859-3", "latin3", "iso-8859-4", "iso-8859-10", "iso-8859-14", "iso-8859-15",
    "iso-8859-16", "macintosh", "x-mac-cyrillic", "hz-gb-2312", "iso-2022-kr",
}  # fmt: skip
DETECTED = [row for row in ENCODINGS if row[0] not in UNKNOWN]
IDS = [label for label, *_ in ENCODINGS]
# A meta element is read as ASCII, so it cannot name these: WHATWG HTML 13.2.3.2.
IN_META = [row for row in ENCODINGS if not row[0].startswith(("utf-16", "utf-32"))]


def test_there_are_at_least_40():
    assert len({name for *_, name in ENCODINGS}) >= 40


@pytest.mark.parametrize(("label", "text", "codec", "name"), ENCODINGS, ids=IDS)
def test_declared_by_the_header(label, text, codec, name):
    header = f'text/html; charset="{label.upper()}"'
    assert decode_body(text.encode(codec), header) == (text, name)
    assert to_utf8(text.encode(codec), header) == (text.encode(), name)


@pytest.mark.parametrize(
    ("label", "text", "codec", "name"), IN_META, ids=[label for label, *_ in IN_META]
)
def test_declared_by_a_meta_element(label, text, codec, name):
    body = f"<!doctype html><meta charset={label}><p>{text}</p>".encode(codec)
    page = parse_html(Source("http://example.com/", body, "text/html"), ParseOptions())
    assert (page.text, page.charset) == (" ".join(text.split()), name)


@pytest.mark.parametrize(
    ("label", "text", "codec", "name"), DETECTED, ids=[label for label, *_ in DETECTED]
)
@pytest.mark.parametrize("times", [1, 5, 20])
def test_detected_where_nothing_is_declared(label, text, codec, name, times):
    body = f"<!doctype html><title>x</title><p>{text * times}</p>"
    assert decode_body(body.encode(codec), "text/html")[0] == body


# (codec, the language's text)
LATIN = [
    ("cp1252", GERMAN),
    ("cp1252", "Größere Änderungen gab es in Zürich, Köln und Façonville. "),
    ("cp1252", FRENCH),
    ("cp1252", "El niño comió piña en la montaña. ¿Qué pasó después? ¡Adiós! "),
    ("cp1252", "A ação não terá efeito até amanhã, disse a irmã de João. É só isso. "),
    ("cp1252", "Perché la città è così? Però può darsi che lunedì sarà più bello. "),
    ("cp1252", "Smörgåsbord på ön, men inget kött på ålänningens båt. "),
    ("cp1252", "Blåbærgrød på Ærø og Læsø; søster så få får på fjeldet. "),
    ("cp1252", "Törkylempijävongahdus. Hän söi pöydässä äitinsä keittiössä. "),
    ("cp1252", "Setzejutges d'un jutjat mengen fetge d'un penjat; això és cançó. "),
    ("cp1252", "Është e vërtetë që nëna më tha një fjalë për të. "),
    ("cp1252", "Naïve cafés and a résumé, all on the façade of one hotel. "),
    ("cp1254", TURKISH),
    ("cp1254", "Başbakan bugün Ankara'da yaptığı açıklamada ekonominin büyüdüğünü söyledi. "),
    ("cp1257", LITHUANIAN),
    ("cp1250", "Vláda dnes oznámila novou hospodářskou politiku. Rozpočet je příliš malý. "),
    ("cp1250", "Árvíztűrő tükörfúrógép. A kormány ma bejelentette az új gazdaságpolitikát. "),
    ("cp1250", "Rząd ogłosił dziś nową politykę. Opozycja skrytykowała ją, bo budżet jest mały. "),
    (
        "iso8859-2",
        "Rząd ogłosił dziś nową politykę. Opozycja skrytykowała ją, bo budżet jest mały. ",
    ),
    ("iso8859-2", CZECH),
    ("cp1258", in_windows_1258(VIETNAMESE)),
]


# Of these one sentence is not enough.
SHORT = [
    ("cp1252", "Kæmi ný öxi hér ykist þjófum nú bæði víl og ádrepa. "),
    ("cp1257", LATVIAN),
]


@pytest.mark.parametrize("times", [1, 3, 15, 100])
@pytest.mark.parametrize(("codec", "text"), LATIN + SHORT)
def test_latin_alphabets_are_distinguished(codec, text, times):
    times *= 3 if (codec, text) in SHORT else 1
    body = f"<html><head><title>{text[:30]}</title><body><p>{text * times}</p>"
    assert decode_body(body.encode(codec), None)[0] == body


def test_a_text_with_few_letters_beyond_ascii_may_be_mistaken_as_in_browsers():
    text = "Vyriausybė šiandien paskelbė naują ekonomikos planą. Orai savaitgalį bus šilti. "
    assert decode_body(text.encode("cp1257") * 9, None)[1] == "windows-1252"


def test_detection_looks_at_20_kb():
    body = b"<p>" + RUSSIAN.encode("cp1251") * 50_000  # 4 MB
    assert decode_body(body, None)[1] == "windows-1251"
    # What comes later is not looked at.
    later = RUSSIAN.encode("cp1251") * 400 + HEBREW.encode("cp1255") * 4000
    assert decode_body(later, None)[1] == "windows-1251"


@pytest.mark.parametrize("label", sorted(webencodings.labels.LABELS))
def test_labels_of_the_standard(label):
    otherwise = {
        "unicode": None,  # as in Nutch: pages that say so are not in UTF-16
        "x-user-defined": "windows-1252",  # what a meta element means by it; a header might, too
        # Browsers give one U+FFFD, lest scripts hide in them. We run none, and Python reads two.
        "replacement": None,
        "iso-2022-cn": None,
        "iso-2022-cn-ext": None,
        "hz-gb-2312": "hz-gb-2312",
        "iso-2022-kr": "iso-2022-kr",
        "csiso2022kr": "iso-2022-kr",
    }
    expected = otherwise.get(label, webencodings.labels.LABELS[label])
    assert encoding_name(f" {label.upper()}\t") == expected


def test_labels_that_the_standard_does_not_have():
    ours = set(whatwg_encodings._LABELS) - set(webencodings.labels.LABELS)
    utf32 = {"utf-32", "ucs-4", "utf-32le", "utf-32be"}  # no browser reads it, some pages are
    assert ours == utf32 | {"latin-1", "latin9", "iso8859-16", "iso885916", "eucjp", "cp874"}


def test_every_codec_exists():
    for codec in whatwg_encodings.CODECS.values():
        assert codecs.lookup(codec)


@pytest.mark.parametrize(
    ("label", "body", "expected"),
    [
        ("utf-8", "Größe".encode("cp1252"), "Gr\ufffd\ufffde"),
        ("utf-8", b"caf\xe9 \xc3\xa9", "caf\ufffd é"),
        ("ascii", "é".encode(), "Ã©"),
        ("iso-8859-1", "é".encode(), "Ã©"),
        ("windows-1251", "Б".encode("koi8-r"), "в"),
        ("euc-jp", b"\xff\xff", "\ufffd\ufffd"),
    ],
)
def test_a_wrong_label_is_believed_as_in_browsers(label, body, expected):
    assert decode_body(body, f"text/html; charset={label}")[0] == expected
    assert decode_body(f"<meta charset={label}>".encode() + body, None)[0].endswith(expected)


@pytest.mark.parametrize(
    ("name", "body", "expected"),
    [
        ("euc-jp", bytes.fromhex("ada1 adb5 adea a1c1 a1dd"), "①Ⅰ㈱～－"),
        ("iso-2022-jp", b"\x1b$B\x2d\x21\x1b(B and \x1b(I\x31\x1b(B", "① and ｱ"),
        ("gb18030", b"\x80 1", "€ 1"),
        ("big5", bytes.fromhex("a145 a14e a1e3 a1fe f9fe"), "‧﹑～／▓"),
        ("koi8-u", b"\xae\xbe", "ўЎ"),
        ("windows-1255", b"\xca", "\u05ba"),
        ("shift_jis", bytes.fromhex("8740 8160"), "①～"),
    ],
)
def test_letters_that_browsers_read_and_python_does_not(name, body, expected):
    assert decode_body(body, f"text/html; charset={name}") == (expected, name)


# The index files of the standard: bytes that Python has no character for and they have.
CONTROLS = {
    "windows-1252": "81 8d 8f 90 9d",
    "windows-1250": "81 83 88 90 98",
    "windows-1251": "98",
    "windows-1253": "81 88 8a 8c 8d 8e 8f 90 98 9a 9c 9d 9e 9f",
    "windows-1254": "81 8d 8e 8f 90 9d 9e",
    "windows-1255": "81 8a 8c 8d 8e 8f 90 9a 9c 9d 9e 9f",
    "windows-1256": "",
    "windows-1257": "81 83 88 8a 8c 90 98 9a 9c 9f",
    "windows-1258": "81 8a 8d 8e 8f 90 9a 9d 9e",
    "windows-874": "81 82 83 84 86 87 88 89 8a 8b 8c 8d 8e 8f 90 98 99 9a 9b 9c 9d 9e 9f",
}
# Those that neither has.
NOTHING = {
    "windows-1253": "aa d2 ff",
    "windows-1255": "d9 da db dc dd de df fb fc ff",
    "windows-1257": "a1 a5",
    "windows-874": "db dc dd de fc fd fe ff",
    "shift_jis": "a0 fd fe ff",
    "gbk": "ff",
    "iso-8859-7": "ae d2 ff",
}


@pytest.mark.parametrize("name", CONTROLS)
def test_undefined_bytes_are_the_controls_of_the_standard(name):
    body = bytes.fromhex(CONTROLS[name])
    assert decode_body(body, f"a/b;charset={name}") == (body.decode("latin-1"), name)
    last = bytes(byte for byte in range(0x80, 0xA0) if byte not in body)
    assert decode_body(last, f"a/b;charset={name}")[0] == last.decode(
        name.replace("windows-", "cp")
    )


@pytest.mark.parametrize("name", NOTHING)
def test_bytes_that_the_standard_has_no_character_for(name):
    body = b" ".join(bytes([byte]) for byte in bytes.fromhex(NOTHING[name]))
    text = " ".join("\ufffd" * (len(body) // 2 + 1))
    assert decode_body(body, f"a/b;charset={name}") == (text, name)


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize(
    "text", ["<!doctype html><title>日本語</title>" + JAPANESE * 20, "\n <p>é", "abcd"]
)
def test_wide_text_without_a_mark(codec, text):
    body = text.encode(codec)
    assert decode_body(body, "text/html") == (text, codec.replace("-le", "le").replace("-be", "be"))
