import time

import pytest
from parsel import Selector

from nutbeam.web.extracting.css_paths import read_css, select_nodes
from nutbeam.web.extracting.extracted_page import ExtractedPage, PageTooSlow
from nutbeam.web.extracting.extraction import extract_records, find_items
from nutbeam.web.extracting.rule_reader import read_extraction_file, read_extraction_rules
from nutbeam.web.html.tree import parse_tree
from nutbeam.web.pages.page import Source
from nutbeam.web.rule_files.rule_files import RuleFile

GOOD = """\
[[rule]]
name = "product"
host = "shop.example"
url = "/product/"
[rule.fields]
title = {css = "h1", required = true}
price = {css = ".price", type = "decimal", first_of = ["json-ld:Product.offers.price", "css:.amount"]}
tags = {css = ".tag", type = "list"}
sku = {css = ".sku", regex = "SKU: (\\\\w+)"}
"""
# What is written instead of what, and the line and the words of the message.
MISTAKES = (
    ('type = "decimal"', 'type = "decimall"', 7, "did you mean 'decimal'?"),
    ('css = "h1"', 'css = "h1["', 6, "'h1[': a bracket is open"),
    ('css = "h1"', 'css = "h1:foo"', 6, "no CSS selector that nutbeam knows"),
    ("[[rule]]", "[[rules]]", 1, "did you mean 'rule'?"),
    ("host =", "hosst =", 3, "did you mean 'host'?"),
    ("required", "requird", 6, "did you mean 'required'?"),
    ('"json-ld:', '"jsonld:', 7, "a source begins with css:"),
    ('"css:.amount"', '".amount"', 7, "did you mean 'css:.amount'?"),
    ('"css:.amount"', '"//b"', 7, "did you mean 'xpath://b'?"),
    ("Product.offers.price", "price", 7, "a path is a type and properties"),
    ("SKU: (", "SKU: ((", 9, "no regular expression: missing )"),
    ('"/product/"', '"("', 4, "url '(': it is no regular expression"),
    ('name = "product"', "name = product", 2, "it is no toml"),
    ("title =", "url =", 6, "'url' is a column of the rows"),
    ('"shop.example"', '"http://shop.example/"', 3, "a host is shop.example, *.shop.example or *"),
    ('css = ".tag"', 'xpath = "//["', 8, "it is no XPath"),
    ('{css = ".tag", type = "list"}', "3", 8, 'a text such as "css:h1"'),
    ('css = ".tag", ', "", 8, "has no source"),
    ("title = ", "Title = ", 6, "lower-case letters"),
    ('required = true', 'required = "yes"', 6, "required must be true, false, got 'yes'"),
)  # fmt: skip


def rules_of(text, name="shop"):
    return read_extraction_rules(RuleFile("shop.toml", text), name)


def records(html, fields, each="", url="http://a.example/d/"):
    """Returns the records that one rule makes of a page."""
    text = "[[rule]]\n" + (f'each = "{each}"\n' if each else "") + f"[rule.fields]\n{fields}"
    (rule,) = rules_of(text).rules
    page = ExtractedPage(Source(url, html.encode(), "text/html; charset=utf-8"))
    return list(extract_records(page, rule, find_items(page, rule)[0]))


def only_record(html, fields):
    (record,) = records(html, fields)
    return record


def test_a_mistake_in_a_rule_is_named_with_its_line_and_the_nearest_name():
    assert rules_of(GOOD).types["tags"] == "list"
    assert rules_of("\ufeff" + GOOD.replace("\n", "\r\n")).types == rules_of(GOOD).types
    for before, after, line, words in MISTAKES:
        assert before in GOOD
        with pytest.raises(ValueError, match="shop") as error:
            rules_of(GOOD.replace(before, after, 1))
        assert str(error.value).startswith(f"shop.toml:{line}: "), (after, str(error.value))
        assert words in str(error.value), (after, str(error.value))
    second = GOOD.replace('"decimal"', '"text"').replace('"product"', '"other"')
    with pytest.raises(
        ValueError, match=r"shop\.toml:16: field 'price' is 'text' here and 'decimal'"
    ):
        rules_of(GOOD + second)


def test_a_file_of_rules_that_is_none_is_named(tmp_path):
    with pytest.raises(
        ValueError, match=r"^--extract must name a file that can be read, got '/no\.toml'"
    ):
        read_extraction_file("/no.toml")
    (tmp_path / "My Shop-1.toml").write_text("[[rule]]\n[rule.fields]\na = 'css:b'")
    assert read_extraction_file(str(tmp_path / "My Shop-1.toml")).name == "my_shop_1"


def test_the_first_source_with_a_value_of_the_type_counts():
    html = """<p class=price>on request</p><script type="application/ld+json">
        {"@type": "Product", "offers": [{"price": "12.50"}]}</script><b class=amount>99</b>"""
    (field,) = (line for line in GOOD.splitlines() if line.startswith("price"))
    record = only_record(html, field)
    assert (str(record.values["price"]), record.sources["price"]) == (
        "12.50",
        "json-ld:Product.offers.price",
    )
    assert [(one.source, one.reason, one.text) for one in record.failures] == [
        ("css:.price", "no_number", "on request")
    ]


def test_types_and_options_of_fields():
    html = """<base href="/b/"><p id=n>1.234,5</p><p id=f>1.234</p><p id=d>3/5/2024</p><a href="x y">l</a><p id=t> A <b>B</b><br>C
        <script>D</script></p><p id=e></p><ul><li>1<li>x<li>3</ul><p id=m>a <i>b</i></p><p id=c>$5 CAD</p>"""
    fields = """
    decimal = {css = "#f", type = "decimal", point = "."}
    number = {css = "#n", type = "number"}
    american = {css = "#d", type = "date", date_order = "mdy"}
    unclear = {css = "#d", type = "date"}
    link = {css = "a::attr(HREF)", type = "url"}
    text = "css:#t"
    own = {css = "#t::text", type = "list"}
    empty = "css:#e"
    standard = {css = "#e", default = "7", type = "number"}
    numbers = {css = "li", type = "list of number"}
    markdown = {css = "#m", type = "markdown"}
    currency = {css = "#c", type = "currency"}
    address = "url:"
    count = {xpath = "count(//li)", type = "number"}
    """
    record = only_record(html, fields)
    assert record.values == {
        "decimal": record.values["decimal"], "number": 1234.5, "american": 1709596800000,
        "link": "http://a.example/b/x%20y", "text": "A B C", "own": ["A", "C"], "standard": 7.0,
        "numbers": [1.0, 3.0], "markdown": "a *b*", "currency": "CAD", "address": "http://a.example/d/", "count": 3.0,
    }  # fmt: skip
    assert str(record.values["decimal"]) == "1.234"
    assert {(one.field, one.reason) for one in record.failures} == {
        ("unclear", "unclear_date"), ("numbers", "no_number"),
    }  # fmt: skip


def test_items_of_a_list_are_records_and_those_that_lack_a_required_field_say_so():
    html = "<h1>All</h1><ul><li><b>1</b><i>x</i><li><i>y</i><li><b>3</b></ul>"
    fields = 'n = {css = "b", required = true}\ni = "css:i"\nhead = {css = "h1", of = "page"}'
    for each, kind in (("li", "css"), ("xpath://li", "xpath")):
        own = (
            fields
            if kind == "css"
            else 'n = {xpath = "b", required = true}\ni = "xpath:i"\n' + fields.split("\n")[2]
        )
        made = records(html, own, each)
        assert [(r.position, dict(r.values), r.missing) for r in made] == [
            (0, {"n": "1", "i": "x", "head": "All"}, ()),
            (1, {"i": "y", "head": "All"}, ("n",)),
            (2, {"n": "3", "head": "All"}, ()),
        ]
    with pytest.raises(ValueError, match="the items are chosen by css, so 'xpath:b' finds nothing"):
        records(html, 'n = "xpath:b"', "li")


def test_selectors_choose_the_same_elements_as_parsel():
    html = """<div id=o class="a b"><div id=i><p>x</p><p class=z>w</p></div><p id=q>y</p></div><div lang=de-x><p
        class="z k">k<a href=u title="a, b > c">l</a></p><ul><li>1<li>2<li>3</ul></div>"""
    tree, oracle = parse_tree(html.encode()), Selector(html)
    selectors = (
        "div p", "div div > p", "div > p", "#o p", "#o #o p", "div div p", "body > div p", "div + div p",
        "p.z, #q", "#q, p.z", "[lang|=de] p", "li:nth-child(2n + 1)", "div:not(.b) > p", "a[title='a, b > c']",
        "[class~=b] p", "p ~ p", "html div p a", "li:first-child, li:last-child", "div  >  ul li", "p:is(.z, #q)",
    )  # fmt: skip
    for selector in selectors:
        path = read_css(selector)
        page = ExtractedPage(Source("http://a/", html.encode()))
        found = [(node.tag, node.text(deep=True)) for node, _ in page.select(path)]
        right = [(one.root.tag, one.xpath("string()").get()) for one in oracle.css(selector)]
        assert found == right, selector
    outer, right = tree.css_first("#o"), oracle.css("#o")[0]
    for selector in ("div", "div p", "div > p", "body p", "p"):
        (alternative,) = read_css(selector).alternatives
        found = [node.attributes.get("id") for node in select_nodes(outer, alternative)]
        assert found == [one.attrib.get("id") for one in right.css(selector)], selector


def test_no_selector_takes_long_on_a_hostile_page():
    deep = "<div>" * 500 + "<p>x</p>" + "</div>" * 500
    wide = "<ul>" + "<li class=i><b>1</b>" * 11_000 + "</ul>"
    fields = """
    a = "css:x div div div div p"
    b = "css:div div div div div > p"
    c = {css = "li", type = "list"}
    """
    siblings = 'd = "css:li:nth-child(2)"\ne = "css:x ~ li"'
    start = time.process_time()
    assert only_record(deep, fields).values == {"b": "x"}
    assert len(only_record(wide, fields).values["c"]) == 1_000
    assert {one.reason for one in only_record(wide, siblings).failures} == {"too_many_elements"}
    assert len(records(wide, 'n = {css = "b", type = "number"}', "li")) == 10_000
    assert time.process_time() - start < 5
    for selector in ("a ~ b ~ c", "a:not(b c)", "a:has(b c)", "a:has(:has(b) > c)", "x" * 2_000):
        with pytest.raises(ValueError, match=r"it may have|longer than"):
            read_css(selector)


def test_regular_expressions_have_a_time_limit():
    html = f"<p>{'a' * 5_000}b</p>"
    start = time.process_time()
    record = only_record(html, 'a = {css = "p", regex = "(a|a)*(a|aa)*c"}')
    assert [one.reason for one in record.failures] == ["no_match"]
    assert time.process_time() - start < 2


def test_rules_end_when_a_page_takes_too_long():
    page = ExtractedPage(Source("http://a/", b"<p>x"), seconds=-1)
    with pytest.raises(PageTooSlow):
        page.select(read_css("p"))


def test_a_page_does_not_become_a_part_of_a_rule():
    """What a page says is text: it is neither a selector nor a path nor a pattern."""
    html = """<p class="x">') or //secret | css:.y ::attr(href) Product.__proto__</p><p class=y>no</p>
        <script type="application/ld+json">{"@type": "Product", "__proto__": {"name": "p"}, "name": "(a+)+$"}</script>"""
    record = only_record(
        html, 'a = "css:.x"\nb = "json-ld:Product.name"\nc = "json-ld:Product.constructor.name"'
    )
    assert record.values == {
        "a": "') or //secret | css:.y ::attr(href) Product.__proto__",
        "b": "(a+)+$",
    }


def test_a_rule_is_for_its_hosts_and_urls():
    text = '[[rule]]\nhosts = ["a.example", "*.b.example"]\nurl = "/p/\\\\d"\n[rule.fields]\nx = "css:b"'
    rules = rules_of(text)
    fitting = {
        url: bool(rules.rules_for(url))
        for url in (
            "http://a.example/p/1", "https://A.example:8080/p/1", "http://a.example/p/x", "http://www.a.example/p/1",
            "http://x.b.example/p/1", "http://b.example/p/1", "http://user@a.example/p/1", "http://[/p/1",
        )
    }  # fmt: skip
    assert list(fitting.values()) == [True, True, False, False, True, False, True, False]
    assert rules_of(text).version == rules.version != rules_of(text + " ").version
