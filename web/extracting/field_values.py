"""Makes values of the texts that were taken for a field."""

from typing import Any

from ..html.block_text import block_text
from ..pages.markdown import markdown_of
from ..urls.userinfo import parse_target
from ..values.text_numbers import read_currency, read_number, read_price
from ..values.text_times import read_time
from ..values.typed_value import NO_WORD, TypedValue, read_bool
from .extracted_page import MAX_TEXT_CHARS, ExtractedPage
from .extraction_rules import FieldRule

NOT_A_URL, NOT_A_CURRENCY = "no_url", "no_currency"


def field_value(text: str, field: FieldRule, page: ExtractedPage) -> TypedValue[Any]:
    """Returns a text as a value of the type of a field, or of the items of its list.

    Dates are ms since 1970, UTC. A decimal is the amount of a price if the text has one, else its first
    number.
    """
    if not text.strip():
        return TypedValue(None, NO_WORD)
    match field.item_type:
        case "number":
            return read_number(text, field.point)
        case "decimal":
            price = read_price(text, point=field.point)
            return TypedValue(None if price.value is None else price.value.amount, price.reason)
        case "currency":
            code = read_currency(text) or _currency_of_price(text)
            return TypedValue(code, "" if code else NOT_A_CURRENCY)
        case "date":
            return read_time(text, field.date_order)
        case "bool":
            return read_bool(text)
        case "url":
            url = parse_target(text.strip(), page.base)
            return TypedValue(url, "" if url else NOT_A_URL)
        case "markdown":
            content = block_text(text)
            markdown = markdown_of(content.text, content.spans, page.base)
            return TypedValue(markdown or None, "" if markdown else NO_WORD)
    return TypedValue(text[:MAX_TEXT_CHARS])


def _currency_of_price(text: str) -> str | None:
    price = read_price(text)
    return None if price.value is None else price.value.currency
