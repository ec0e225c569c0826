"""Makes the records of the views of structured data: the typed values of an item of schema.org."""

import itertools
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

from ...web.structured.item_collector import schema_name
from ...web.structured.schema_types import subtypes_of
from ...web.values.text_numbers import read_currency, read_decimal, read_price
from ...web.values.text_times import read_duration, read_time
from ..components.item_views import ITEM_VIEWS
from .item_graph import Item, ItemGraph, plain_text, type_names

Record = dict[str, Any]

# What schema.org's numbers look like; those of people have separators of thousands.
_POINT_NUMBER = re.compile(r"[+-]?\d+\.\d+")
_GTINS = ("gtin", "gtin13", "gtin14", "gtin12", "gtin8", "isbn")
_ADDRESS = ("streetAddress", "postalCode", "addressLocality", "addressRegion", "addressCountry")
_MOST_OFFERS = 100  # of a product


def records_of(view: str, graph: ItemGraph) -> list[Record]:
    """Returns the records of a view, with the columns that have values.

    An item that a page writes twice, in two syntaxes or under one address, is one record: what the
    first lacks is taken from the second.

    Args:
        view: A name in ``ITEM_VIEWS``.
        graph: The items of a page.
    """
    make_records = _MAKERS[view]
    records: list[Record] = []
    by_identity: dict[Any, Record] = {}
    for syntax, item in graph.items_of(subtypes_of(ITEM_VIEWS[view].type)):
        for record in make_records(graph, item):
            record |= {"syntax": syntax, "type": " ".join(type_names(item))}
            name = record.get("name") or record.get("headline") or record.get("title")
            same = by_identity.get(("name", name))
            if name and view != "breadcrumbs" and same is not None and same["syntax"] != syntax:
                same.update({key: value for key, value in record.items() if same.get(key) is None})
                continue
            by_identity.setdefault(("name", name), record)
            records.append(record)
    if view == "breadcrumbs":
        return _without_repeated_trails(records)
    return records


def _product(graph: ItemGraph, item: Item) -> Iterator[Record]:
    offers = graph.values(item, "offers")[:_MOST_OFFERS]
    inner = (offer for each in offers for offer in graph.values(each, "offers"))
    offers += itertools.islice(inner, _MOST_OFFERS - len(offers))
    yield {
        "name": graph.text(item, "name"),
        "brand": graph.text(item, "brand") or graph.text(item, "manufacturer"),
        "sku": graph.text(item, "sku") or _first_text(graph, offers, "sku"),
        "gtin": next(filter(None, (graph.text(item, name) for name in _GTINS)), None),
        "mpn": graph.text(item, "mpn"),
        **_prices(graph, offers or [item]),
        "availability": _name_of(_first_text(graph, offers, "availability")),
        "condition": _name_of(
            _first_text(graph, offers, "itemCondition") or graph.text(item, "itemCondition")
        ),
        "seller": _first_text(graph, offers, "seller"),
        "category": graph.text(item, "category"),
        **_rating(graph, item),
        **_about(graph, item),
    }


def _article(graph: ItemGraph, item: Item) -> Iterator[Record]:
    yield {
        "headline": graph.text(item, "headline") or graph.text(item, "name"),
        "authors": _unique(graph.texts(item, "author") or graph.texts(item, "creator")),
        "publisher": graph.text(item, "publisher"),
        **_moment(graph, item, "published", "datePublished"),
        **_moment(graph, item, "modified", "dateModified"),
        "section": graph.text(item, "articleSection"),
        "keywords": _listed(graph.texts(item, "keywords")),
        "item_language": graph.text(item, "inLanguage"),
        **_about(graph, item),
    }


def _event(graph: ItemGraph, item: Item) -> Iterator[Record]:
    places = graph.values(item, "location")
    addresses = [address for place in places for address in graph.values(place, "address")]
    virtual = (graph.text(place, "url") for place in places)
    yield {
        "name": graph.text(item, "name"),
        **_moment(graph, item, "start_time", "startDate"),
        **_moment(graph, item, "end_time", "endDate"),
        "location": graph.text(item, "location") or next(filter(None, virtual), None),
        "address": next(filter(None, (_address_line(graph, each) for each in addresses)), None),
        "organizer": graph.text(item, "organizer"),
        "performers": _unique(graph.texts(item, "performer")),
        "event_status": _name_of(graph.text(item, "eventStatus")),
        "attendance": _name_of(graph.text(item, "eventAttendanceMode")),
        **_prices(graph, graph.values(item, "offers")[:_MOST_OFFERS]),
        **_about(graph, item),
    }


def _job(graph: ItemGraph, item: Item) -> Iterator[Record]:
    places = graph.values(item, "jobLocation")
    addresses = [
        address for place in places for address in graph.values(place, "address") or [place]
    ]
    salaries = graph.values(item, "baseSalary") or graph.values(item, "estimatedSalary")
    amounts = [value for each in salaries for value in graph.values(each, "value") or [each]]
    currency = _first_text(graph, [*salaries, *amounts], "currency") or graph.text(
        item, "salaryCurrency"
    )
    plain = next(filter(None, map(plain_text, amounts)), None)
    lowest, highest = (
        _first_text(graph, amounts, name) or _first_text(graph, amounts, "value") or plain
        for name in ("minValue", "maxValue")
    )
    remote = graph.text(item, "jobLocationType")
    yield {
        "title": graph.text(item, "title") or graph.text(item, "name"),
        "company": graph.text(item, "hiringOrganization"),
        "location": next(filter(None, (_address_line(graph, each) for each in addresses)), None),
        "remote": None if remote is None else remote.upper() == "TELECOMMUTE",
        "employment_types": _listed(graph.texts(item, "employmentType")),
        **_moment(graph, item, "posted", "datePosted"),
        **_moment(graph, item, "valid_until", "validThrough"),
        "salary_min": _decimal_of(lowest),
        "salary_max": _decimal_of(highest),
        "currency": _currency_of(currency),
        "salary_unit": _first_text(graph, [*amounts, *salaries], "unitText"),
        **_about(graph, item),
    }


def _recipe(graph: ItemGraph, item: Item) -> Iterator[Record]:
    steps = graph.values(item, "recipeInstructions")
    yield {
        "name": graph.text(item, "name"),
        "authors": _unique(graph.texts(item, "author")),
        **_moment(graph, item, "published", "datePublished"),
        "preparation_seconds": read_duration(graph.text(item, "prepTime") or "").value,
        "cooking_seconds": read_duration(graph.text(item, "cookTime") or "").value,
        "total_seconds": read_duration(graph.text(item, "totalTime") or "").value,
        "yield": graph.text(item, "recipeYield") or graph.text(item, "yield"),
        "ingredients": graph.texts(item, "recipeIngredient") or graph.texts(item, "ingredients"),
        "instructions": list(_steps(graph, steps, 0)),
        "category": graph.text(item, "recipeCategory"),
        "cuisine": graph.text(item, "recipeCuisine"),
        "calories": graph.text(item, "nutrition", "calories"),
        **_rating(graph, item),
        **_about(graph, item),
    }


def _organization(graph: ItemGraph, item: Item) -> Iterator[Record]:
    addresses = graph.values(item, "address")
    parts = [next(iter(addresses), None)]
    yield {
        "name": graph.text(item, "name"),
        "legal_name": graph.text(item, "legalName"),
        "website": graph.link(item, "url"),
        "logo": graph.link(item, "logo"),
        "telephone": graph.text(item, "telephone") or graph.text(item, "contactPoint", "telephone"),
        "email": graph.text(item, "email") or graph.text(item, "contactPoint", "email"),
        "address": next(filter(None, (_address_line(graph, each) for each in addresses)), None),
        "street": _first_text(graph, parts, "streetAddress"),
        "locality": _first_text(graph, parts, "addressLocality"),
        "region": _first_text(graph, parts, "addressRegion"),
        "postal_code": _first_text(graph, parts, "postalCode"),
        "country": _first_text(graph, parts, "addressCountry"),
        "latitude": _float_of(graph.text(item, "geo", "latitude")),
        "longitude": _float_of(graph.text(item, "geo", "longitude")),
        "opening_hours": graph.texts(item, "openingHours"),
        "price_range": graph.text(item, "priceRange"),
        **_rating(graph, item),
        "same_as": graph.texts(item, "sameAs"),
        "description": graph.text(item, "description"),
    }


def _breadcrumbs(graph: ItemGraph, item: Item) -> Iterator[Record]:
    entries = []
    for number, each in enumerate(graph.values(item, "itemListElement"), 1):
        position = _float_of(graph.text(each, "position"))
        is_number = position is not None and 0 <= position < 10_000
        entries.append((position if is_number else number, number, each))
    for place, (_, _, each) in enumerate(sorted(entries, key=lambda entry: entry[:2]), 1):
        yield {
            "trail": id(item),
            "position": place,
            "name": graph.text(each, "name") or graph.text(each, "item"),
            "item_url": graph.link(each, "item") or graph.link(each, "url"),
        }


def _without_repeated_trails(records: list[Record]) -> list[Record]:
    """Returns the entries of breadcrumbs, with numbers of their lists; one list of equal ones."""
    trails: dict[int, list[Record]] = {}
    for record in records:
        trails.setdefault(record["trail"], []).append(record)
    by_names: dict[tuple[Any, ...], list[Record]] = {}
    for trail in trails.values():
        by_names.setdefault(tuple(entry["name"] for entry in trail), trail)
    return [
        entry | {"trail": number}
        for number, trail in enumerate(by_names.values(), 1)
        for entry in trail
    ]


_MAKERS: dict[str, Callable[[ItemGraph, Item], Iterator[Record]]] = {
    "products": _product,
    "articles": _article,
    "events": _event,
    "jobs": _job,
    "recipes": _recipe,
    "organizations": _organization,
    "breadcrumbs": _breadcrumbs,
}


def _about(graph: ItemGraph, item: Item) -> Record:
    """Returns the values that most views have."""
    return {
        "description": graph.text(item, "description"),
        "image": graph.link(item, "image"),
        "item_url": graph.link(item, "url") or graph.link(item, "mainEntityOfPage"),
    }


def _moment(graph: ItemGraph, item: Item, column: str, name: str) -> Record:
    text = graph.text(item, name)
    return {column: read_time(text or "").value, f"{column}_text": text}


def _rating(graph: ItemGraph, item: Item) -> Record:
    number = graph.text(item, "aggregateRating", "ratingCount") or graph.text(
        item, "aggregateRating", "reviewCount"
    )
    count = read_decimal(number or "").value
    return {
        "rating": _float_of(graph.text(item, "aggregateRating", "ratingValue")),
        "ratings": None if count is None else min(int(count), 2**63 - 1),
    }


def _prices(graph: ItemGraph, offers: list[Any]) -> Record:
    """Returns the lowest and the highest price of offers; if none can be read, the first text of one."""
    prices: list[tuple[Decimal, str | None, str]] = []
    texts_without_price: list[str] = []
    for offer in offers:
        owners = [offer, *graph.values(offer, "priceSpecification")]
        currency = _first_text(graph, owners, "priceCurrency") or ""
        for name in ("lowPrice", "price", "minPrice", "highPrice", "maxPrice"):
            for text in (text for owner in owners[:2] for text in graph.texts(owner, name)[:1]):
                point = "." if _POINT_NUMBER.fullmatch(text) else ""
                if (price := read_price(text, currency, point).value) is not None:
                    code = price.currency or _currency_of(currency)
                    prices.append((price.amount, code, text))
                else:
                    texts_without_price.append(text)
    if not prices:
        return {"price_text": next(iter(texts_without_price), None)}
    lowest = min(prices, key=lambda price: price[0])
    highest = max(price[0] for price in prices if price[1] == lowest[1])
    return {
        "price": lowest[0],
        "currency": lowest[1],
        "price_text": lowest[2],
        "high_price": highest,
    }


def _first_text(graph: ItemGraph, owners: list[Any], name: str) -> str | None:
    return next(filter(None, (graph.text(owner, name) for owner in owners)), None)


def _name_of(text: str | None) -> str | None:
    return None if text is None else schema_name(text)


def _currency_of(text: str | None) -> str | None:
    """Returns the code of a currency; one that is not in use any more stays as it is."""
    if not text:
        return None
    is_code = len(text) == 3 and text.isascii() and text.isalpha()
    return read_currency(text) or (text.upper() if is_code else None)


def _decimal_of(text: str | None) -> Decimal | None:
    text = text or ""
    return read_decimal(text, "." if _POINT_NUMBER.fullmatch(text) else "").value


def _float_of(text: str | None) -> float | None:
    number = _decimal_of(text)
    return None if number is None else float(number)


def _address_line(graph: ItemGraph, address: Any) -> str | None:
    """Returns an address in one line; of one without parts its text."""
    if not isinstance(address, dict):
        return plain_text(address) or None
    parts = _unique([text for name in _ADDRESS for text in graph.texts(address, name)[:1]])
    return ", ".join(parts) or graph.text(address, "name") or graph.text(address, "@value")


def _steps(graph: ItemGraph, values: list[Any], depth: int) -> Iterator[str]:
    """Yields the steps of instructions, also those of sections."""
    for value in values:
        if isinstance(value, dict):
            inner = graph.values(value, "itemListElement") if depth < 3 else []
            if inner:
                yield from _steps(graph, inner, depth + 1)
            elif (text := graph.text(value, "text") or graph.text(value, "name")) or (
                text := graph.text(value, "@value")
            ):
                yield text
        elif text := plain_text(value):
            yield text


def _listed(texts: list[str]) -> list[str]:
    """Returns texts of which a single one lists several with commas between them."""
    parts = texts[0].split(",") if len(texts) == 1 else texts
    return _unique([part.strip() for part in parts if part.strip()])


def _unique(texts: list[str]) -> list[str]:
    return list(dict.fromkeys(texts))
