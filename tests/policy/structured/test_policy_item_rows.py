from decimal import Decimal

import polars as pl
import pytest
from structured_sites import SITES, site_pages

from nutbeam.policy.components.item_views import ITEM_VIEWS
from nutbeam.policy.structured.item_rows import item_rows
from nutbeam.web.html.html import parse_html
from nutbeam.web.pages.page import Source
from nutbeam.web.pages.parse_options import ParseOptions

PAGES_OF_SITE = 8


def rows_of(view, *pages):
    """Returns the rows of a view, as stored, of pages with some markup."""
    items = [
        parse_html(Source("http://a.example/x/", each.encode()), ParseOptions()).items
        for each in pages
    ]
    stored = [[item._asdict() for item in each] for each in items]
    keys = [f"example.a:http/{number}/" for number in range(len(pages))]
    frame = pl.DataFrame({"key": keys, "structured_data": stored}, strict=False)
    return item_rows(view, frame).to_dicts()


def rows_of_json(view, text):
    return rows_of(view, f'<script type="application/ld+json">{text}</script>')


def test_the_views_have_the_values_of_the_sites():
    wrong, fields = [], 0
    for site in SITES:
        pages, records = zip(*site_pages(site, PAGES_OF_SITE), strict=True)
        rows = rows_of(site[0], *pages)
        assert [row["key"] for row in rows] == [
            f"example.a:http/{n}/" for n in range(PAGES_OF_SITE)
        ], site
        for row, record in zip(rows, records, strict=True):
            fields += len(record)
            wrong += [(site, n, row[n], value) for n, value in record.items() if row[n] != value]
    assert len(SITES) > 20
    assert len(wrong) <= 0.01 * fields, wrong[:10]


def plain(value):
    return float(value) if isinstance(value, Decimal) else value


# A view, JSON-LD, and values of its rows.
CASES = (
    (  # references, entities, several offers, and numbers as schema.org and as people write them
        "products",
        """[{"@type": "WebPage", "mainEntity": {"@id": "#p"}},
            {"@id": "#p", "@type": ["Car", "x:Thing"], "name": "Tea &amp; milk", "image": ["/i.png", "b"],
             "manufacturer": {"@id": "#m"}, "gtin13": 4006381333931,
             "offers": {"@type": "AggregateOffer", "lowPrice": "1.299", "highPrice": "1.299,50",
                        "priceCurrency": "EUR", "offers": [{"price": 20, "itemCondition": "NewCondition"}]}},
            {"@id": "#m", "@type": "Brand", "name": "Leaf"}]""",
        [{
            "name": "Tea & milk", "brand": "Leaf", "gtin": "4006381333931", "price": 1.299, "high_price": 1299.5,
            "price_text": "1.299", "currency": "EUR", "condition": "NewCondition",
            "image": "http://a.example/i.png", "type": "Car x:Thing",
        }],
    ),
    ("products", '{"@type": "Product", "offers": {"price": "from $9.99"}}', [{"price": 9.99, "currency": None}]),
    ("products", '{"@type": "Product", "offers": "ask"}', [{"price": None, "currency": None, "name": None}]),
    ("products", '{"@type": "Product", "offers": {"price": NaN, "priceCurrency": "HRK"}}', [{"price": None}]),
    ("products", '{"@type": "Thing", "name": "x"}', []),
    ("products", '{"@context": {"@vocab": "http://v.example"}, "@type": "Product"}', []),
    (  # those in a list, each once
        "products",
        """{"@type": "ItemList", "itemListElement": [{"item": {"@id": "#a"}}, {"item": {"@id": "#a"}},
            {"@type": "Product", "@id": "#a", "name": "A", "isRelatedTo": {"@type": "Product", "name": "B"}}]}""",
        [{"name": "A"}],
    ),
    (
        "articles",
        """{"@type": "BlogPosting", "name": "N", "datePublished": "3/5/2024", "dateModified": "40000-01-01",
            "keywords": "a, b,, a", "author": ["A", {"name": "B"}]}""",
        [{
            "headline": "N", "published": None, "published_text": "3/5/2024", "modified": None,
            "modified_text": "40000-01-01", "keywords": ["a", "b"], "authors": ["A", "B"],
        }],
    ),
    (
        "jobs",
        """{"@type": "JobPosting", "jobLocationType": "TELECOMMUTE", "baseSalary": "50,000 USD",
            "salaryCurrency": "USD"}""",
        [{"remote": True, "salary_min": 50000, "salary_max": 50000, "currency": "USD"}],
    ),
    (
        "recipes",
        """{"@type": "Recipe", "prepTime": "P0Y0M0DT0H30M", "cookTime": "an hour", "recipeInstructions":
            [{"@type": "HowToSection", "itemListElement": [{"text": "a"}, "b"]}, "c"]}""",
        [{"preparation_seconds": 1800, "cooking_seconds": None, "instructions": ["a", "b", "c"]}],
    ),
    (  # in order of positions; a list that stands there twice counts once
        "breadcrumbs",
        """[{"@type": "WebPage", "breadcrumb": {"@type": "BreadcrumbList", "itemListElement": [
              {"position": "2", "name": "Tea", "item": "/tea"}, {"position": 1, "item": {"@id": "/", "name": "Home"}}]}},
            {"@type": "BreadcrumbList", "itemListElement": [{"name": "Home"}, {"name": "Tea"}]}]""",
        [
            {"trail": 1, "position": 1, "name": "Home", "item_url": "http://a.example/"},
            {"trail": 1, "position": 2, "name": "Tea", "item_url": "http://a.example/tea"},
        ],
    ),
    # In a circle.
    ("events", '[{"@id": "a", "@type": "Event", "name": {"@id": "a"}, "location": {"@id": "a"}}]', [{}]),
    ("events", '[{"@id": "a"}, {"@id": "a", "@type": "Event", "subEvent": {"@id": "a"}}]', [{"name": None}]),
    ("organizations", '{"@type": "Store", "address": "Street 1", "name": {"@value": "S"}}',
     [{"address": "Street 1", "street": None, "name": "S"}]),
)  # fmt: skip


@pytest.mark.parametrize("view", ITEM_VIEWS)
def test_values_of_views_are_typed(view):
    for name, text, wanted in CASES:
        if name == view:
            rows = rows_of_json(view, text)
            assert len(rows) == len(wanted), text
            for row, values in zip(rows, wanted, strict=True):
                shown = {key: plain(row[key]) for key in values}
                assert shown == values, text


def test_an_item_in_two_syntaxes_is_one_row():
    markup = (
        '<div itemscope itemtype="http://schema.org/Product"><b itemprop=name>Tea</b><b itemprop=sku>7</b></div>'
        '<div itemscope itemtype="http://schema.org/Product"><b itemprop=name>Milk</b></div>'
        '<script type="application/ld+json">{"@type": "Product", "name": "Tea", "mpn": 5}</script>'
    )
    rows = rows_of("products", markup, "no items")
    assert [(row["name"], row["sku"], row["mpn"], row["syntax"]) for row in rows] == [
        ("Tea", "7", "5", "json-ld"),
        ("Milk", None, None, "microdata"),
    ]


def test_hostile_items_take_no_long_time():
    nodes = ",".join(
        f'{{"@id": "{n}", "@type": "Product", "mainEntity": [{{"@id": "{n + 1}"}}, {{"@id": "{n + 2}"}}],'
        f'"name": {{"@id": "{n + 1}"}}, "offers": [{{"@id": "{n + 1}"}}, {{"@id": "{n + 2}"}}]}}'
        for n in range(100)
    )
    assert len(rows_of_json("products", f"[{nodes}]")) == 100
