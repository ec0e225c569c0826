"""Items of 2,000 pages that are made by chance, beside those of extruct.

Where extruct departs from the standard of microdata, ``StandardMicrodata`` does as the standard says, and counts
it; the links are to the HTML standard.
"""

import json
from collections import Counter
from urllib.parse import urljoin

import pytest
from item_pages import ItemPages

from nutbeam.web.html.html import parse_html
from nutbeam.web.html.tree import parse_tree
from nutbeam.web.pages.page import Source
from nutbeam.web.pages.parse_options import ParseOptions
from nutbeam.web.structured.item_collector import schema_name

URL = "http://a.example/shop/tea.html"
LEAST_SHARE = 0.999
pytestmark = pytest.mark.long
pytest.importorskip("extruct", reason="needs extruct: pip install 'nutbeam[dev]'")


def our_items(markup, syntax):
    page = parse_html(Source(URL, markup.encode()), ParseOptions())
    return [json.loads(item.properties) for item in page.items if item.syntax == syntax]


def plain(value, is_graph=False):
    """Returns a value without what does not count: white space, single values in lists, the order.

    A graph of RDF is a set: the same value of a property counts once (RDF 1.1 Concepts, 3).
    """
    if isinstance(value, dict):
        return {name: plain(value[name], is_graph) for name in sorted(value) if name != "@context"}
    if isinstance(value, list):
        values = sorted((plain(each, is_graph) for each in value), key=repr)
        values = list({repr(each): each for each in values}.values()) if is_graph else values
        return values[0] if len(values) == 1 else values
    return "".join(value.split()) if isinstance(value, str) else value


def of_standard(counts):
    """Returns extruct's reader of microdata, which follows the standard where it does not."""
    from extruct.w3cmicrodata import LxmlMicrodataExtractor

    class StandardMicrodata(LxmlMicrodataExtractor):
        def _extract_property_value(self, node, items_seen, base_url, itemids, force=False):
            value = super()._extract_property_value(node, items_seen, base_url, itemids, force)
            if force or node.get("itemscope") is not None:
                return value
            # html.spec.whatwg.org/multipage/microdata.html#values: "… or the empty string if there is no such
            # attribute", for src, href and data; urljoin gives the URL of the page.
            addresses = {
                "object": "data",
                "a": "href",
                "area": "href",
                "link": "href",
            } | dict.fromkeys(
                ("audio", "embed", "iframe", "img", "source", "track", "video"), "src"
            )
            if node.tag in addresses and node.get(addresses[node.tag]) is None:
                counts["no address"] += 1
                return ""
            # The same: a time element without datetime has its text as its datetime value.
            if node.tag == "time" and node.get("datetime") is None:
                counts["time without datetime"] += 1
                return self._extract_textContent(node)
            return value

    return StandardMicrodata()


def of_microdata(item):
    if not isinstance(item, dict):
        return item
    types = [schema_name(name) for name in str(item.get("type", "")).split()]
    properties = {
        name: [of_microdata(v) for v in (value if isinstance(value, list) else [value])]
        for name, value in item.get("properties", {}).items()
    }
    return (
        ({"@type": types} if types else {})
        | ({"@id": item["id"]} if "id" in item else {})
        | ({"@value": item["value"]} if item.get("value") else {})
        | properties
    )


def of_rdfa(nodes):
    """Returns the subjects with a type, each with the subjects in it."""
    by_id = {node["@id"]: node for node in nodes}

    def item(node):
        made = {"@type": [schema_name(name) for name in node["@type"]]} if "@type" in node else {}
        made |= {} if node["@id"].startswith("_:") else {"@id": urljoin(URL, node["@id"])}
        for name, values in node.items():
            if not name.startswith("@"):
                made[schema_name(name)] = [
                    v["@value"] if "@value" in v else item(by_id[v["@id"]])
                    if "@type" in by_id.get(v["@id"], ()) else v["@id"] for v in values
                ]  # fmt: skip
        return made

    inner = {
        v.get("@id")
        for node in nodes
        for name, values in node.items()
        if not name.startswith("@")
        for v in values
    }
    return [item(node) for node in nodes if "@type" in node and node["@id"] not in inner]


def of_json_ld(data):
    for each in data:
        yield from each.get("@graph", [each])


def compared(syntax, pages, theirs):
    """Returns (items of extruct, those that are the same, the first pages that differ)."""
    total = same = 0
    different = []
    for markup in pages:
        ours = [repr(plain(item, syntax == "rdfa")) for item in our_items(markup, syntax)]
        wanted = [repr(plain(item, syntax == "rdfa")) for item in theirs(markup)]
        shared = sum((Counter(ours) & Counter(wanted)).values())
        total, same = total + len(wanted), same + shared
        if shared < max(len(wanted), len(ours)):
            different.append(
                (markup, sorted(set(wanted) - set(ours)), sorted(set(ours) - set(wanted)))
            )
    return total, same, different


def markup_of_tree(markup):
    """Returns a page as the HTML parser has read it: the parser of extruct nests some markup in another way."""
    return parse_tree(markup.encode()).html


def with_datetimes(markup, counts):
    """Returns a page in which the datetime of an element is its content.

    HTML+RDFa 1.1, 3.1: without content, datetime is the value. extruct knows it in none of its documents.
    """
    counts["datetime"] += markup.count(" datetime=")
    return markup.replace(" datetime=", " content=")


def test_json_ld_is_as_extruct_reads_it():
    from extruct.jsonld import JsonLdExtractor

    maker, reader = ItemPages(1), JsonLdExtractor()
    pages = [maker.page("json-ld") for _ in range(700)]
    total, same, different = compared("json-ld", pages, lambda m: of_json_ld(reader.extract(m)))
    assert total > 1_000
    assert same >= LEAST_SHARE * total, different[:3]


def test_microdata_is_as_extruct_and_the_standard_read_it():
    counts = Counter()
    maker, reader = ItemPages(2), of_standard(counts)
    pages = [maker.page("microdata") for _ in range(700)]

    def theirs(markup):
        return map(of_microdata, reader.extract(markup_of_tree(markup), base_url=URL))

    total, same, different = compared("microdata", pages, theirs)
    assert total > 1_000
    assert same >= LEAST_SHARE * total, different[:3]
    assert set(counts) == {"no address", "time without datetime"}  # each kind of exemption is there


def test_rdfa_lite_is_as_extruct_reads_it():
    from extruct.rdfa import RDFaExtractor

    counts = Counter()
    maker, reader = ItemPages(3), RDFaExtractor()
    pages = [maker.page("rdfa") for _ in range(600)]

    def theirs(markup):
        tree = with_datetimes(markup_of_tree(markup), counts)
        return of_rdfa(reader.extract(tree, base_url=URL))

    total, same, different = compared("rdfa", pages, theirs)
    assert total > 1_000
    assert same >= LEAST_SHARE * total, different[:3]
    assert counts["datetime"] > 0
