"""The views of structured data by type of schema.org: what a row of each has.

They are made of the column ``structured_data`` of documents when they are read; nothing of them is stored.
"""

from typing import NamedTuple

import pyarrow as pa

from .columns import Column, Columns, join_columns, time_column
from .index_schema import TEXTS
from .schema import TEXT

PRICE = pa.decimal128(28, 8)


class ItemView(NamedTuple):
    """Rows made of items.

    Attributes:
        meaning: What a row is.
        type: Type of schema.org whose items count, with those of the types below it.
        columns: Its own columns.
    """

    meaning: str
    type: str
    columns: Columns


def _text(name: str, meaning: str) -> Column:
    return Column(name, TEXT, meaning)


def _moment(name: str, meaning: str) -> tuple[Column, Column]:
    """Declares a time and the text that it was read from."""
    return (
        time_column(name, meaning),
        _text(f"{name}_text", f"The text of `{name}`, as it stands in the page."),
    )


_NAME = _text("name", "Its name.")
_DESCRIPTION = _text("description", "Its description.")
_IMAGE = _text("image", "URL of its first image.")
_RATING = (
    Column("rating", pa.float64(), "Its average rating."),
    Column("ratings", pa.int64(), "Number of ratings, else of reviews."),
)
_PRICE = (
    Column("price", PRICE, "Its price; of several offers or of a range the lowest."),
    _text("currency", "ISO 4217 code of the currency; null: not known."),
    _text(
        "price_text",
        "The text of `price`, as it stands in the page, even if no price could be read from it.",
    ),
)
_ITEM = (
    _text("syntax", "How the page writes it: `json-ld`, `microdata` or `rdfa`."),
    _text("type", "Its types, as in `structured_data`."),
)

ITEM_VIEWS = {
    "products": ItemView("a product on a page", "Product", join_columns(
        [_NAME, _text("brand", "Its brand."), _text("sku", "The seller's number of it."),
         _text("gtin", "Its global trade item number."), _text("mpn", "The manufacturer's number of it.")],
        _PRICE,
        [Column("high_price", PRICE, "The highest price of several offers or of a range."),
         _text("availability", "Whether it can be had: `InStock`, `OutOfStock` and so on."),
         _text("condition", "`NewCondition`, `UsedCondition` and so on."),
         _text("seller", "Who sells it."), _text("category", "Its category.")],
        _RATING,
        [_DESCRIPTION, _IMAGE, _text("item_url", "Its URL, as the item says."), *_ITEM],
    )),
    "articles": ItemView("an article on a page", "Article", join_columns(
        [_text("headline", "Its headline, else its name."),
         Column("authors", TEXTS, "Names of its authors."), _text("publisher", "Who publishes it.")],
        _moment("published", "When it was published."),
        _moment("modified", "When it was last changed."),
        [_text("section", "Its section."), Column("keywords", TEXTS, "Its keywords."),
         _text("item_language", "Its language, as the item says."), _DESCRIPTION, _IMAGE,
         _text("item_url", "Its URL, as the item says."), *_ITEM],
    )),
    "events": ItemView("an event on a page", "Event", join_columns(
        [_NAME],
        _moment("start_time", "When it starts."),
        _moment("end_time", "When it ends."),
        [_text("location", "Name of the place."), _text("address", "Address of the place, in one line."),
         _text("organizer", "Who organizes it."), Column("performers", TEXTS, "Who performs."),
         _text("event_status", "`EventScheduled`, `EventCancelled` and so on."),
         _text("attendance", "`OfflineEventAttendanceMode` and so on.")],
        _PRICE,
        [_DESCRIPTION, _IMAGE, _text("item_url", "Its URL, as the item says."), *_ITEM],
    )),
    "jobs": ItemView("a job posting on a page", "JobPosting", join_columns(
        [_text("title", "Its title."), _text("company", "Who hires."),
         _text("location", "Address of the place of work, in one line."),
         Column("remote", pa.bool_(), "Whether it is done from home; null: the page does not say."),
         Column("employment_types", TEXTS, "`FULL_TIME` and so on.")],
        _moment("posted", "When it was posted."),
        _moment("valid_until", "Until when it can be applied for."),
        [Column("salary_min", PRICE, "Lowest salary."), Column("salary_max", PRICE, "Highest salary."),
         _text("currency", "ISO 4217 code of the salary's currency."),
         _text("salary_unit", "What the salary is for: `HOUR`, `MONTH`, `YEAR` and so on."),
         _DESCRIPTION, _text("item_url", "Its URL, as the item says."), *_ITEM],
    )),
    "recipes": ItemView("a recipe on a page", "Recipe", join_columns(
        [_NAME, Column("authors", TEXTS, "Names of its authors.")],
        _moment("published", "When it was published."),
        [Column("preparation_seconds", pa.float64(), "Time to prepare it.", "s"),
         Column("cooking_seconds", pa.float64(), "Time to cook it.", "s"),
         Column("total_seconds", pa.float64(), "Time in all.", "s"),
         _text("yield", "How much it makes."), Column("ingredients", TEXTS, "Its ingredients."),
         Column("instructions", TEXTS, "Its steps."), _text("category", "Its category."),
         _text("cuisine", "Its cuisine."), _text("calories", "Calories of a serving, as it stands in the page.")],
        _RATING,
        [_DESCRIPTION, _IMAGE, _text("item_url", "Its URL, as the item says."), *_ITEM],
    )),
    "organizations": ItemView("an organization or a local business on a page", "Organization", join_columns(
        [_NAME, _text("legal_name", "Its legal name."), _text("website", "Its URL, as the item says."),
         _text("logo", "URL of its logo."), _text("telephone", "Its telephone number."),
         _text("email", "Its e-mail address."), _text("address", "Its address, in one line."),
         _text("street", "Street of its address."), _text("locality", "City of its address."),
         _text("region", "Region of its address."), _text("postal_code", "Postal code of its address."),
         _text("country", "Country of its address."),
         Column("latitude", pa.float64(), "Its latitude.", "°"),
         Column("longitude", pa.float64(), "Its longitude.", "°"),
         Column("opening_hours", TEXTS, "When it is open, as it stands in the page."),
         _text("price_range", "Its range of prices, as it stands in the page.")],
        _RATING,
        [Column("same_as", TEXTS, "URLs of other pages about it."), _DESCRIPTION, *_ITEM],
    )),
    "breadcrumbs": ItemView("an entry of a list of breadcrumbs on a page", "BreadcrumbList", join_columns(
        [Column("trail", pa.int32(), "Number of the list on its page, from 1."),
         Column("position", pa.int32(), "Number of the entry in its list, from 1."),
         _NAME, _text("item_url", "URL that the entry leads to."), *_ITEM],
    )),
}  # fmt: skip
