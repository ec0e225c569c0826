"""Items of small pages, with the values that the standards give. Larger pages were compared with extruct."""

import json
import time

import pytest

from nutbeam.web.html.html import parse_html
from nutbeam.web.pages.page import Source
from nutbeam.web.pages.parse_options import ParseOptions

URL = "http://a.example/shop/tea.html"


def page_of(markup, **options):
    return parse_html(Source(URL, markup.encode()), ParseOptions(**options))


def items_of(markup):
    return [(i.syntax, i.type, json.loads(i.properties)) for i in page_of(markup).items]


def json_ld(text):
    return f'<script type="application/ld+json">{text}</script>'


# What a script holds, and the (type, properties) of its items.
SCRIPTS = (
    ('{"@type": "Product", "name": "Tea"}', [("Product", {"@type": "Product", "name": "Tea"})]),
    ('[{"@type": ["A", "B"]}, 7, {}]', [("A B", {"@type": ["A", "B"]})]),
    (
        '{"@context": "https://schema.org", "@graph": [{"@type": "schema:A"}, {"@id": "#b", "c": 1}]}',
        [("A", {"@type": "schema:A"}), ("", {"@id": "#b", "c": 1})],
    ),
    (
        '{"@context": {"@vocab": "http://v.example"}, "@type": "Product"}',
        [
            (
                "http://v.example/Product",
                {"@context": {"@vocab": "http://v.example"}, "@type": "Product"},
            )
        ],
    ),
    # Mistakes that are repaired.
    ('{"a": "x\ty\nz"}', [("", {"a": "x\ty\nz"})]),
    ('{"a": [1, 2,], }', [("", {"a": [1, 2]})]),
    ('{"a": "//b", // c\n "d": 1 /* e */};', [("", {"a": "//b", "d": 1})]),
    ('<!-- {"a": 1} -->', [("", {"a": 1})]),
    ('//<![CDATA[\n{"a": 1}\n//]]>', [("", {"a": 1})]),
    ('{"a": 1} {"b": 2},\n{"c": 3}', [("", {"a": 1}), ("", {"b": 2}), ("", {"c": 3})]),
    (r'{"a": "it\'s 5\d \u00e9 \uZZ"}', [("", {"a": r"it's 5\d é \uZZ"})]),
    (r'{"a": "R\x26B C:\videos"}', [("", {"a": r"R&B C:\videos"})]),
    (
        '{"a": ["two "buttons".5", "<p style="x: y;">z</p>"], "b": "it\'s \\"c\\" "d""}',
        [("", {"a": ['two "buttons".5', '<p style="x: y;">z</p>'], "b": 'it\'s "c" "d"'})],
    ),
    ('{"a": 1}}', [("", {"a": 1})]),
    ("{&quot;a&quot;: &quot;b&quot;}", [("", {"a": "b"})]),
    (
        '{"a": "Tea &amp; milk"}',
        [("", {"a": "Tea &amp; milk"})],
    ),  # the text of a script is as it stands
    (
        '\ufeff{"a": NaN, "b": -Infinity, "c": 1e999}',
        [("", {"a": "NaN", "b": "-Infinity", "c": "inf"})],
    ),
    ('{"__proto__": {"x": 1}, "a": "\\ud800\\u0000"}', [("", {"__proto__": {"x": 1}, "a": "?"})]),
)

# A page, and its items.
PAGES = (
    (  # HTML 5.2.4: the value by element
        ('<base href="/b/"><div itemscope itemtype="http://schema.org/Product">'
        '<meta itemprop=a content="1"><img itemprop=b src="i.png"><a itemprop=c href="?q">x</a>'
        '<object itemprop=d data="o"></object><data itemprop=e value="5">five</data>'
        '<time itemprop=f datetime="2024">now</time><time itemprop=g>2025</time>'
        '<b itemprop="h i">x <i>y</i><br>z<script>no</script></b><span itemprop=j content="9">nine</span>'
        "<img itemprop=k></div>"),
        ("microdata", "Product", {
            "@type": "Product", "a": "1", "b": "http://a.example/b/i.png", "c": "http://a.example/b/?q",
            "d": "http://a.example/b/o", "e": "5", "f": "2024", "g": "2025", "h": "x y z", "i": "x y z",
            "j": "9", "k": "",
        }),
    ),
    (  # itemref, an item in an item, one that refers to itself, and one with a text alone
        ('<p id=r><b itemprop=color>red</b></p><div itemscope itemref="r self none" itemid="urn:x">'
        "<span itemprop=offers itemscope itemtype=https://schema.org/Offer><b itemprop=price>9</b></span>"
        "<span itemprop=maker itemscope>Leaf</span></div>"
        "<div id=self itemprop=more itemscope itemref=self></div>"),
        ("microdata", "", {
            "@id": "urn:x", "color": "red", "offers": {"@type": "Offer", "price": "9"},
            "maker": {"@value": "Leaf"}, "more": {},
        }),
    ),
    (  # RDFa Core 7.5
        ('<body vocab="http://schema.org/" prefix="x: http://x.example/#">'
        '<div typeof="Event x:Y" resource="#e"><a property="url" href="u">text</a>'
        '<span property="price" content="9">nine</span><time property="startDate" datetime="2024">now</time>'
        '<div property="location" typeof="Place"><b property="name">Hall</b></div>'
        '<a href="other"><b property="name">of the other</b></a><b property="x:z">z</b></div>'),
        ("rdfa", "Event http://x.example/#Y", {
            "@type": ["Event", "http://x.example/#Y"], "@id": "http://a.example/shop/tea.html#e",
            "url": "http://a.example/shop/u", "price": "9", "startDate": "2024",
            "location": {"@type": "Place", "name": "Hall"}, "http://x.example/#z": "z",
        }),
    ),
    (
        ('<meta property="og:type" content="product"><meta name="OG:Image" content=" /a ">'
        '<meta property="og:image" name="og:image" content="/b"><meta property="og:title" content="">'),
        ("opengraph", "product", {"og:type": "product", "og:image": ["/a", "/b"]}),
    ),
    ('<meta name="twitter:card" content="summary">', ("twitter", "summary", {"twitter:card": "summary"})),
    ('<meta name="DC.Title" content="T">', ("dublin-core", "", {"dc.title": "T"})),
    ('<meta name="citation_author" content="A">', ("highwire", "", {"citation_author": "A"})),
)  # fmt: skip


def test_scripts_are_read_and_repaired():
    for text, items in SCRIPTS:
        wanted = [("json-ld", types, properties) for types, properties in items]
        assert items_of(json_ld(text)) == wanted, text


def test_items_have_the_values_that_the_standards_give():
    for markup, item in PAGES:
        assert items_of(markup) == [item], markup


def test_a_bad_script_does_not_cost_the_others():
    page = page_of(
        json_ld('{"a": 1}') + json_ld('{"b": ') + json_ld('{"c": 2} oops') + json_ld("\n")
    )
    assert [item.properties for item in page.items] == ['{"a":1}', '{"c":2}']
    assert page.counts == {"json_ld_malformed": 2}


def test_nothing_is_read_where_it_is_not_wanted():
    markup = (
        json_ld('{"a": 1}')
        + '<meta property="og:title" content="T"><p itemscope typeof=A vocab=x:>'
    )
    assert len(page_of(markup).items) == 4
    assert page_of(markup, structured_data=False).items == []
    assert page_of(f"<meta name=robots content=noindex>{markup}").items == []


def test_items_of_rdfa_in_a_circle_are_kept():
    page = page_of(
        '<body vocab="http://schema.org/"><p typeof=Person resource="#p"><b property=name>P</b>'
        '<p typeof=Article resource="#a"><a property=page href="#w"></a>'
        '<p typeof=WebPage resource="#w"><a property=entity href="#a"></a>'
    )
    assert [item.type for item in page.items] == ["Person", "Article"]
    inner = json.loads(page.items[1].properties)["page"]
    assert (inner["@type"], inner["entity"]) == ("WebPage", "http://a.example/shop/tea.html#a")


def test_passwords_in_urls_are_removed():
    secret = "http://me:secret@b.example/x"
    page = page_of(
        json_ld(f'{{"@type": "{secret}", "text": "see {secret}", "{secret}": [["{secret}"]]}}')
        + f'<p itemscope itemid="{secret}" itemtype="{secret}"><a itemprop=u href="{secret}">{secret}</a><b itemprop="t {secret}">{secret}</b>'
        f'<p vocab="{secret}" typeof=A resource="{secret}"><b property=t>{secret}</b>'
        f'<meta property="og:url" content="{secret}">'
    )
    assert len(page.items) == 4
    for item in page.items:
        assert "b.example/x" in item.properties
        assert "secret" not in item.type + item.properties


NUMBERS = ",".join(["1"] * 100_000)
HOSTILE = {
    "structured_data_too_large": (
        json_ld("[" + '{"a": 1},' * 500_000 + "1]"),
        "<div itemscope>" + "<b itemprop=a>x</b>" * 20_000,
        "<div itemscope>" + "<b itemprop=a>x</b>" * 9_000,
        "<div itemscope>" + "<div itemprop=a>" * 400 + "<i>x</i>" * 2_000,
        "<div vocab=x: typeof=A>" + "<b property=a>x</b>" * 20_000,
        "<p id=r>" + "<b itemprop=a>x</b>" * 500 + "</p>" + "<p itemscope itemref=r></p>" * 1_000,
        '<meta property="og:image" content=x>' * 1_000,
    ),
    "json_ld_too_deep": (json_ld('{"a":' * 10_000 + "1" + "}" * 10_000), json_ld("[" * 100_000)),
    "json_ld_malformed": (
        json_ld('"' * 200_000),
        json_ld("/*" * 70_000),
        json_ld("[" + ", " * 70_000),
    ),
    "item_too_deep": (json_ld('{"a":' * 500 + "1" + "}" * 500), "<div itemscope itemprop=a>" * 200),
    "too_many_item_values": (json_ld(f'{{"a": [{NUMBERS}]}}'),),
    "too_many_items": (json_ld("[" + '{"a":1},' * 1_001 + "]"),),
    "item_value_too_long": (json_ld(f'{{"a": "{"x" * 100_001}"}}'),),
    "item_cycle": (
        "".join(
            f'<div vocab="x:" typeof=A resource=r{n}><a property=x href=r{n + 1}></a>'
            f"<a property=y href=r{n + 1}></a></div>"
            for n in range(60)
        ),
        "".join(
            f'<p id=r{n} itemprop=a itemscope itemref="{" ".join(f"r{(n + k) % 40}" for k in range(1, 9))}"></p>'
            for n in range(40)
        )
        + "<p itemscope itemref=r0></p>",
    ),
}


@pytest.mark.parametrize("reason", HOSTILE)
def test_a_hostile_page_stays_within_its_limits(reason):
    for markup in HOSTILE[reason]:
        start = time.process_time()
        with_items = page_of(markup)
        middle = time.process_time()
        page_of(markup, structured_data=False)
        seconds = middle - start - (time.process_time() - middle)
        assert reason in with_items.counts
        assert len(with_items.items) <= 1_000
        assert sum(len(item.properties.encode()) for item in with_items.items) <= 1_000_000
        assert seconds < 0.5  # 0.05, on a machine that does nothing else
