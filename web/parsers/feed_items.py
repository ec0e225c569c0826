"""What a feed says, whatever format it is written in."""

import dataclasses
from typing import NamedTuple

# Texts of feeds are kept in memory; no honest feed is that long.
MAX_FEED_CHARS = 16 << 20
MAX_TAGS = 50
MAX_PAGES = 100


class FeedText(NamedTuple):
    """A text of a feed.

    Attributes:
        value: The text, or HTML.
        is_markup: Whether it is HTML.
    """

    value: str = ""
    is_markup: bool = False


NO_TEXT = FeedText()


@dataclasses.dataclass(slots=True)
class FeedItem:
    """An item of a feed, or its channel.

    Attributes:
        title: Its title.
        summary: Its description.
        content: Its full text.
        link: URL of its page, absolute but not normalized; empty if there is none.
        base: URL that links in its texts are relative to; empty: the URL of its page.
        author: Name or address of its author.
        published: When it was published, as it stands there.
        updated: When it was changed, as it stands there.
        language: Its language, as it stands there.
        tags: Names of its categories, each once, at most 50.
    """

    title: FeedText = NO_TEXT
    summary: FeedText = NO_TEXT
    content: FeedText = NO_TEXT
    link: str = ""
    base: str = ""
    author: str = ""
    published: str = ""
    updated: str = ""
    language: str = ""
    tags: list[str] = dataclasses.field(default_factory=list)

    def add_tag(self, name: str) -> None:
        """Adds a category, unless it is there."""
        if name and len(self.tags) < MAX_TAGS and name not in self.tags:
            self.tags.append(name)


@dataclasses.dataclass(slots=True)
class Feed:
    """A feed.

    Attributes:
        form: ``rss``, ``rdf``, ``feed`` (Atom), or ``json``.
        channel: What it says about itself; ``summary`` is its subtitle.
        pages: (URL, rel) of its further pages (RFC 5005 3 and 4), at most 100.
        items: Its items, in its order.
        items_left_out: Number of items after the limit.
    """

    form: str
    channel: FeedItem = dataclasses.field(default_factory=FeedItem)
    pages: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    items: list[FeedItem] = dataclasses.field(default_factory=list)
    items_left_out: int = 0
