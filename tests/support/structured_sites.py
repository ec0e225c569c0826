"""Pages of invented sites with structured data, and the values that the views should have for them."""

import datetime
import html
import json
import random
from decimal import Decimal

# Kind of site, how it writes items, how it writes prices and dates.
SITES = (
    *(("products", form, style) for form in ("json", "graph", "microdata", "itemref", "rdfa") for style in (0, 1)),
    *(("articles", form, style) for form, style in (("json", 0), ("graph", 1), ("microdata", 2), ("rdfa", 3))),
    *(("jobs", form, style) for form, style in (("json", 1), ("graph", 2), ("microdata", 3))),
    *(("recipes", form, 0) for form in ("json", "microdata")),
    *(("events", form, style) for form, style in (("graph", 0), ("rdfa", 1))),
    ("organizations", "graph", 0),
    # With mistakes in the mark-up.
    *(("products", form, 2) for form in ("commas", "entities", "controls", "beside", "unclosed")),
)  # fmt: skip
WORDS = [
    "Green",
    "Black",
    "Oolong",
    "Tea",
    "&",
    "Milk",
    "'Special'",
    "Größe",
    "茶",
    "<b>",
    '"XL"',
    "No.",
    "5",
]


def site_pages(site, pages):
    """Yields (markup, record) of pages of a site: fields of the row that its view should have."""
    kind, form, style = site
    chance = random.Random(repr(site))
    for _ in range(pages):
        item, record = _MAKERS[kind](chance, style)
        yield _FORMS[form](item), record


def _name(chance):
    return " ".join(chance.choice(WORDS) for _ in range(3))


def _price(chance, style):
    """Returns (amount, how the site writes it)."""
    amount = Decimal(chance.randrange(1, 10_000_000)) / 100
    english = f"{amount:,.2f}"
    german = english.translate(str.maketrans(",.", ".,"))
    return amount, (f"{amount:.2f}", english, f"{german} €", float(amount))[style]


def _moment(chance, style):
    """Returns (UTC ms, how the site writes it)."""
    moment = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(
        minutes=chance.randrange(10**6)
    )
    day = moment.replace(hour=0, minute=0)
    zone = datetime.timezone(datetime.timedelta(hours=-5))
    value, text = (
        (moment, moment.isoformat()),
        (moment, moment.astimezone(zone).isoformat(timespec="minutes")),
        (day, day.strftime("%B %d, %Y")),
        (day, day.strftime("%Y-%m-%d")),
    )[style]
    return int(value.timestamp() * 1000), text


def _product(chance, style):
    amount, price = _price(chance, style)
    name, brand = _name(chance), _name(chance)
    item = {
        "@type": "Product", "name": name, "sku": str(chance.randrange(10**6)),
        "brand": {"@type": "Brand", "name": brand},
        "offers": {
            "@type": "Offer", "price": price, "priceCurrency": "EUR",
            "availability": "https://schema.org/InStock", "seller": {"@type": "Organization", "name": "Shop"},
        },
        "aggregateRating": {"@type": "AggregateRating", "ratingValue": "4.5", "reviewCount": 12},
    }  # fmt: skip
    return item, {
        "name": name, "sku": item["sku"], "brand": brand, "price": amount, "currency": "EUR",
        "price_text": str(price), "availability": "InStock", "seller": "Shop", "rating": 4.5, "ratings": 12,
        "type": "Product",
    }  # fmt: skip


def _article(chance, style):
    (published, text), (modified, changed) = _moment(chance, style), _moment(chance, style)
    headline, author = _name(chance), _name(chance)
    item = {
        "@type": "NewsArticle", "headline": headline, "datePublished": text, "dateModified": changed,
        "author": [{"@type": "Person", "name": author}, {"@type": "Person", "name": "Second"}],
        "publisher": {"@type": "Organization", "name": "Paper"}, "articleSection": "Ferries",
    }  # fmt: skip
    return item, {
        "headline": headline, "published": published, "published_text": text, "modified": modified,
        "authors": list(dict.fromkeys([author, "Second"])), "publisher": "Paper", "section": "Ferries",
        "type": "NewsArticle",
    }  # fmt: skip


def _job(chance, style):
    posted, text = _moment(chance, style)
    lowest, minimum = _price(chance, style % 2)
    title = _name(chance)
    address = {"@type": "PostalAddress", "addressLocality": "Berlin", "addressCountry": "DE"}
    item = {
        "@type": "JobPosting", "title": title, "datePosted": text, "employmentType": "FULL_TIME",
        "hiringOrganization": {"@type": "Organization", "name": "Leaf & Co"},
        "jobLocation": {"@type": "Place", "address": address},
        "baseSalary": {
            "@type": "MonetaryAmount", "currency": "EUR",
            "value": {"@type": "QuantitativeValue", "minValue": minimum, "maxValue": 10**6, "unitText": "YEAR"},
        },
    }  # fmt: skip
    return item, {
        "title": title, "posted": posted, "company": "Leaf & Co", "location": "Berlin, DE",
        "employment_types": ["FULL_TIME"], "salary_min": lowest, "salary_max": Decimal(10**6),
        "currency": "EUR", "salary_unit": "YEAR", "remote": None,
    }  # fmt: skip


def _recipe(chance, style):
    name, minutes = _name(chance), chance.randrange(1, 90)
    item = {
        "@type": "Recipe", "name": name, "totalTime": f"PT{minutes}M", "recipeYield": "4",
        "recipeIngredient": ["1 cup of tea", "2 l water"], "recipeCuisine": "Tea",
        "recipeInstructions": [{"@type": "HowToStep", "text": "Boil."}, {"@type": "HowToStep", "text": "Pour."}],
    }  # fmt: skip
    return item, {
        "name": name, "total_seconds": 60.0 * minutes, "yield": "4", "cuisine": "Tea",
        "ingredients": ["1 cup of tea", "2 l water"], "instructions": ["Boil.", "Pour."],
    }  # fmt: skip


def _event(chance, style):
    (start, text), (amount, price) = _moment(chance, style), _price(chance, style)
    name = _name(chance)
    place = {"@type": "Place", "name": "Hall", "address": "Street 1"}
    item = {
        "@type": "MusicEvent", "name": name, "startDate": text, "location": place,
        "eventStatus": "https://schema.org/EventScheduled", "performer": {"@type": "Person", "name": "A"},
        "offers": {"@type": "Offer", "price": price, "priceCurrency": "CHF"},
    }  # fmt: skip
    return item, {
        "name": name, "start_time": start, "start_time_text": text, "location": "Hall", "address": "Street 1",
        "event_status": "EventScheduled", "performers": ["A"], "price": amount, "currency": "CHF",
    }  # fmt: skip


def _organization(chance, style):
    name = _name(chance)
    item = {
        "@type": "Restaurant", "name": name, "telephone": "+1 2", "geo": {"latitude": "52.5", "longitude": 13},
        "address": {"@type": "PostalAddress", "streetAddress": "Street 1", "postalCode": "12345"},
    }  # fmt: skip
    return item, {
        "name": name, "telephone": "+1 2", "street": "Street 1", "postal_code": "12345",
        "address": "Street 1, 12345", "latitude": 52.5, "longitude": 13.0,
    }  # fmt: skip


_MAKERS = {
    "products": _product, "articles": _article, "jobs": _job, "recipes": _recipe, "events": _event,
    "organizations": _organization,
}  # fmt: skip


def _script(text):
    escaped = text.replace("</", r"<\/")
    return f'<script type="application/ld+json">{escaped}</script>'


def _json(item):
    return _script(json.dumps({"@context": "https://schema.org", **item}))


def _graph(item):
    nodes = []

    def node(value):
        if isinstance(value, list):
            return [node(each) for each in value]
        if not isinstance(value, dict):
            return value
        name = f"#{len(nodes)}"
        nodes.append({"@id": name})
        nodes[int(name[1:])] |= {key: node(each) for key, each in value.items()}
        return {"@id": name}

    page = {"@type": "WebPage", "@id": "#page", "mainEntity": node(item)}
    return _script(
        json.dumps({"@context": "http://schema.org/", "@graph": [page, *reversed(nodes)]})
    )


def _microdata(value, name=""):
    prop = f' itemprop="{name}"' if name else ""
    if isinstance(value, list):
        return "".join(_microdata(each, name) for each in value)
    if isinstance(value, dict):
        inner = "".join(_microdata(each, key) for key, each in value.items() if key != "@type")
        of_type = f' itemtype="http://schema.org/{value["@type"]}"' if "@type" in value else ""
        return f"<div{prop} itemscope{of_type}>{inner}</div>"
    text = html.escape(str(value))
    if text.startswith("https://schema.org/"):
        return f'<link{prop} href="{text}">'
    head, space, tail = text.partition(" ")
    return (
        f"<p{prop}>\n<b>{head}</b>{space}{tail}</p>" if "&" not in head else f"<p{prop}>{text}</p>"
    )


def _itemref(item):
    inner = {key: value for key, value in item.items() if isinstance(value, dict)}
    plain = {key: value for key, value in item.items() if key not in inner}
    parts = "".join(
        _microdata(value, key).replace("<div", f'<div id="{key}"', 1)
        for key, value in inner.items()
    )
    return parts + _microdata(plain).replace(
        "itemscope", f'itemscope itemref="{" ".join(inner)}"', 1
    )


def _rdfa(value, name=""):
    prop = f' property="{name}"' if name else ' vocab="https://schema.org/"'
    if isinstance(value, list):
        return "".join(_rdfa(each, name) for each in value)
    if isinstance(value, dict):
        inner = "".join(_rdfa(each, key) for key, each in value.items() if key != "@type")
        return f'<div{prop} typeof="{value["@type"]}">{inner}</div>'
    text = html.escape(str(value))
    return f'<link{prop} href="{text}">' if text.startswith("https://") else f"<p{prop}>{text}</p>"


_FORMS = {
    "json": _json,
    "graph": _graph,
    "microdata": _microdata,
    "itemref": _itemref,
    "rdfa": _rdfa,
    "commas": lambda item: _script(json.dumps(item).replace("}", ",}") + "; // made by hand"),
    "entities": lambda item: _script(html.escape(json.dumps(item), quote=True)),
    "controls": lambda item: _script(
        json.dumps(item | {"description": "a|b"}).replace("|", "\t\n")
    ),
    "beside": lambda item: _script('{"@type": "Product", "name": "bro') + _json(item),
    "unclosed": lambda item: f"<table><tr><td>{_microdata(item).replace('</p>', '')}</table><p>",
}
