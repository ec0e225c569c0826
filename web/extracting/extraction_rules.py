"""What rules of extraction say: which pages they are for, which records they make, and where fields come from."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from ..base.dataclass import dataclass
from ..patterns.patterns import Searcher, TimeLimit
from .field_sources import FieldSource

# Types of fields; "list" is a list of texts, "list of number" one of numbers.
SCALAR_TYPES = ("text", "number", "decimal", "currency", "date", "bool", "url", "markdown")
_LIST = "list"
LIST_TYPES = (_LIST, *(f"{_LIST} of {name}" for name in SCALAR_TYPES))
# Columns that rows have besides their fields; the first two if they are changes.
ROW_COLUMNS = (
    *("change", "snapshot"),
    *("url", "rule", "position", "rules_version", "last_fetch_time"),
)
ANY_HOST = "*"
_LIMIT = TimeLimit()


@dataclass(frozen=True)
class FieldRule:
    """Where a field comes from, and what it is.

    Attributes:
        name: The column.
        sources: Where it may come from; the first one with a value counts.
        type: One of ``SCALAR_TYPES`` or ``LIST_TYPES``.
        pattern: Regular expression on what was taken; its first group is taken, or the whole match.
        required: Whether a record without a value is left out.
        default: The value, as text, if no source has one; empty: none.
        of_page: Whether it is taken from the whole page and not from the item.
        point: What separates the fraction of a number: ``.``, ``,`` or, if the number shows it, nothing.
        date_order: ``dmy``, ``mdy`` or nothing, for dates such as 3/5/2024.
    """

    name: str
    sources: tuple[FieldSource, ...]
    type: str = "text"
    pattern: Searcher | None = None
    required: bool = False
    default: str = ""
    of_page: bool = False
    point: str = ""
    date_order: str = ""

    @functools.cached_property
    def is_list(self) -> bool:
        """Whether the value is a list."""
        return self.type.startswith(_LIST)

    @functools.cached_property
    def item_type(self) -> str:
        """The type of the value, or of each item of the list."""
        return (
            (self.type.removeprefix(_LIST).removeprefix(" of ") or "text")
            if self.is_list
            else self.type
        )

    def matched_text(self, text: str) -> str | None:
        """Returns what the regular expression takes of a text; None if it does not match in time."""
        if self.pattern is None:
            return text
        try:
            match = _LIMIT.run(self.pattern.search, text)
        except TimeoutError:
            return None
        return None if match is None else str(match[1 if match.re.groups else 0] or "")


@dataclass(frozen=True)
class PageRule:
    """A rule for some pages: each makes a record, or a record for each of its items.

    Attributes:
        name: Its name.
        hosts: Hosts of the pages, in lower case: ``shop.example``, ``*.shop.example`` or ``*``.
        url: Regular expression that is searched in the URL; None: all pages of the hosts.
        each: Where the items are; None: the page is the only item.
        fields: The fields of a record.
        line: Its line in the file.
    """

    name: str
    hosts: tuple[str, ...]
    url: Searcher | None
    each: FieldSource | None
    fields: tuple[FieldRule, ...]
    line: int = 0

    def is_for(self, url: str, netloc: str, host: str) -> bool:
        """Returns whether the rule is for a page."""
        if not any(_is_host(pattern, netloc, host) for pattern in self.hosts):
            return False
        if self.url is None:
            return True
        try:
            return _LIMIT.run(self.url.search, url) is not None
        except TimeoutError:
            return False


@dataclass(frozen=True)
class RuleSet:
    """The rules of a file; together they make the rows of one table.

    Attributes:
        name: Name of the set, and of the view in ``sql``.
        version: 12 hexadecimal digits that change with the text of the file.
        rules: The rules.
        text: Text of the file.
    """

    name: str
    version: str
    rules: tuple[PageRule, ...]
    text: str = dataclasses.field(default="", repr=False)

    @functools.cached_property
    def types(self) -> Mapping[str, str]:
        """The type of each field, in the order of the file."""
        return {field.name: field.type for rule in self.rules for field in rule.fields}

    def rules_for(self, url: str) -> list[PageRule]:
        """Returns the rules that are for a page."""
        try:
            parts = urlsplit(url)
            netloc, host = parts.netloc.rpartition("@")[2].lower(), parts.hostname or ""
        except ValueError:
            return []
        return [rule for rule in self.rules if rule.is_for(url, netloc, host)]


def _is_host(pattern: str, netloc: str, host: str) -> bool:
    if pattern.startswith("*."):
        return host.endswith(pattern[1:])
    return pattern in (ANY_HOST, host, netloc)


@dataclass(frozen=True)
class FieldFailure:
    """A value that was found, and did not become one of the field's type.

    Attributes:
        field: Name of the field.
        reason: Why, a word.
        text: The text that was found, cut where it is long.
        source: Where it was found.
    """

    field: str
    reason: str
    text: str
    source: str


@dataclass(frozen=True)
class ExtractedRecord:
    """A record that a rule has made of a page or of one of its items.

    Attributes:
        rule: Name of the rule.
        position: Number of the item on the page, from 0.
        values: The values that there are, by field.
        sources: Where each came from.
        failures: Values that did not convert.
        missing: Required fields without a value: the record is left out.
    """

    rule: str
    position: int
    values: Mapping[str, Any]
    sources: Mapping[str, str]
    failures: tuple[FieldFailure, ...] = ()
    missing: tuple[str, ...] = ()
