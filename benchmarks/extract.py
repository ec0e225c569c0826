"""How fast fields are taken from pages by rules, beside parsel and extruct doing the same work.

``python benchmarks/extract.py [--small]`` makes product pages of about 50 kB: navigation, reviews, a list of similar
products, JSON-LD. Eight fields of each are taken, and its 24 similar products as records of three fields: by CSS with
parsel, and of JSON-LD with extruct. The values must be equal. Both sides decode and parse each page once;
nutbeam also finds its charset, looks for ``noindex``, checks types and counts. CPU time of one core, fresh processes,
alternately.
"""

import functools
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import measure

RULES = """
name = "bench"
[[rule]]
name = "product"
url = "/p/"
[rule.fields]
name = "css:h1"
price = {css = ".buy .price", type = "decimal"}
sku = {css = ".sku", regex = "SKU: (\\\\w+)"}
image = {css = ".gallery img::attr(src)", type = "url"}
tags = {css = "ul.tags > li", type = "list"}
stock = {css = "p.stock::text"}
"""
LISTED = """
[[rule]]
name = "similar"
url = "/p/"
each = "div.similar > div.item"
[rule.fields]
label = "css:a"
link = {css = "a::attr(href)", type = "url"}
cost = {css = "b", type = "decimal"}
"""
STRUCTURED = """
[[rule]]
name = "structured"
url = "/p/"
[rule.fields]
brand = "json-ld:Product.brand.name"
amount = {first_of = ["json-ld:Product.offers.price"], type = "decimal"}
"""
RULES_OF = {
    "CSS": RULES + LISTED,
    "JSON-LD": 'name = "bench"' + STRUCTURED,
    "both": RULES + LISTED + STRUCTURED,
}
NAV, REVIEWS, SIMILAR = 120, 60, 24


def product_page(n: int) -> str:
    """Returns a page."""
    nav = "".join(
        f'<li class="n{i % 7}"><a href="/c/{i}" title="Category {i}">Category {i}</a></li>'
        for i in range(NAV)
    )
    reviews = "".join(
        f'<div class="review"><span class="stars" data-n="{i % 5}"></span><p>Review {i} of product {n}: '
        f"{'it does <b>what</b> it should, and looks well. ' * 5}</p></div>"
        for i in range(REVIEWS)
    )
    similar = "".join(
        f'<div class="item"><a href="/p/{n + i}"><img src="/i/{n + i}.jpg" alt="">Product {n + i}</a> <b>{i}.49 €</b></div>'
        for i in range(SIMILAR)
    )
    data = {
        "@context": "https://schema.org", "@type": "Product", "name": f"Product {n}",
        "brand": {"@type": "Brand", "name": f"Brand {n % 9}"},
        "offers": {"@type": "Offer", "price": f"{n}.95", "priceCurrency": "EUR"},
    }  # fmt: skip
    return f"""<!doctype html><html><head><meta charset="utf-8"><title>Product {n}</title>
<script type="application/ld+json">{json.dumps(data)}</script></head><body><nav><ul>{nav}</ul></nav><main>
<h1>Product {n}</h1><div class="gallery"><img src="/i/{n}.jpg"></div><div class="buy"><p class="price">{n}.95 €</p>
<p class="stock">In stock</p><p class="sku">SKU: X{n}</p></div><ul class="tags"><li>new</li><li>tag{n}</li></ul>
<section>{reviews}</section><div class="similar">{similar}</div></main></body></html>"""


def url_of(n: int) -> str:
    """Returns the URL of a page."""
    return f"http://shop.example/p/{n}"


def take_with_nutbeam(fields: str) -> Callable[[str, bytes], list[dict[str, Any]]]:
    """Returns nutbeam's way."""
    from nutbeam.policy.extracting.extracted_rows import records_of_page
    from nutbeam.web.extracting.rule_reader import read_extraction_rules
    from nutbeam.web.pages.page import Source
    from nutbeam.web.rule_files.rule_files import RuleFile

    rules = read_extraction_rules(RuleFile("bench.toml", RULES_OF[fields]))

    def take(url: str, body: bytes) -> list[dict[str, Any]]:
        done = records_of_page(Source(url, body, "text/html; charset=utf-8"), rules)
        return [dict(record.values) for record in done.records]

    return take


def take_with_others(fields: str) -> Callable[[str, bytes], list[dict[str, Any]]]:
    """Returns the way of parsel and extruct, with one tree of lxml for both."""
    from urllib.parse import urljoin

    import lxml.html
    import parsel
    from extruct.jsonld import JsonLdExtractor

    extractor, parser = JsonLdExtractor(), lxml.html.HTMLParser(encoding="utf-8")

    def amount(text: str) -> Decimal:
        return Decimal(text.removesuffix(" €"))

    def take(url: str, body: bytes) -> list[dict[str, Any]]:
        root = lxml.html.document_fromstring(body, parser=parser)
        rows = list(_by_parsel(parsel.Selector(root=root), url)) if fields != "JSON-LD" else []
        for item in extractor.extract_items(root) if fields != "CSS" else ():
            rows.append(
                {"brand": item["brand"]["name"], "amount": Decimal(item["offers"]["price"])}
            )
        return rows

    def _by_parsel(page: Any, url: str) -> Any:
        yield {
            "name": page.css("h1").xpath("string()").get().strip(),
            "price": amount(page.css(".buy .price").xpath("string()").get()),
            "sku": page.css(".sku").xpath("string()").re_first(r"SKU: (\w+)"),
            "image": urljoin(url, page.css(".gallery img::attr(src)").get()),
            "tags": [tag.xpath("string()").get() for tag in page.css("ul.tags > li")],
            "stock": page.css("p.stock::text").get(),
        }
        for item in page.css("div.similar > div.item"):
            yield {
                "label": item.css("a").xpath("string()").get(),
                "link": urljoin(url, item.css("a::attr(href)").get()),
                "cost": amount(item.css("b").xpath("string()").get()),
            }

    return take


WAYS = {"nutbeam": take_with_nutbeam, "parsel, extruct": take_with_others}


def run(way: str, fields: str, pages: int) -> str:
    """Takes the fields of all pages, and returns a digest of the values."""
    import hashlib

    take = WAYS[way](fields)
    bodies = [(url_of(n), product_page(n).encode()) for n in range(1, pages + 1)]
    take(*bodies[0])  # what is imported and compiled once
    with measure.measured():
        rows = [take(url, body) for url, body in bodies]
    return hashlib.sha256(repr(rows).encode()).hexdigest()


def main() -> None:
    """Prints the table."""
    measure.need("parsel", "extruct")
    repeats, pages = measure.sized((1, 50), (3, 500), (5, 500))
    runs = {
        (fields, way): functools.partial(measure.fresh, "extract", "run", way, fields, pages)
        for fields in RULES_OF
        for way in WAYS
    }
    figures = measure.interleaved(runs, repeats)
    rows = []
    for fields in RULES_OF:
        digests = {figures[fields, way][0].result for way in WAYS}
        if len(digests) > 1:
            raise SystemExit(f"the values of {fields} differ")
        speeds = {way: pages / measure.median(figures[fields, way], "cpu") for way in WAYS}
        rows.append((fields, *speeds.values(), speeds["nutbeam"] / speeds["parsel, extruct"]))
    size = len(product_page(1).encode())
    title = f"{pages:,} pages of {size:,} bytes, pages per CPU second, median of {repeats}"
    measure.table(title, ("fields", *WAYS, "ratio"), rows)


if __name__ == "__main__":
    main()
