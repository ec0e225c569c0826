"""The interface of URL normalizers, which are steps of a chain."""

import abc
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, get_args

import polars as pl

from ..base.columns import falses
from ..urls.row_keys import BadUrl

# Where URLs come from: Nutch's scopes.
Scope = Literal[
    "default", "inject", "fetcher", "outlink", "crawldb", "linkdb", "indexer",
    "partition", "generate_host_count",
]  # fmt: skip
SCOPES: tuple[Scope, ...] = get_args(Scope)


class NormalizedColumn(NamedTuple):
    """The result of a step for a column of URLs.

    Attributes:
        urls: The new URLs; null for refused ones.
        reasons: Reasons of the refused ones; else null.
    """

    urls: pl.Series
    reasons: pl.Series


def apply_each(apply: Callable[[str], str], urls: pl.Series) -> NormalizedColumn:
    """Applies a function to each URL; nulls stay null, without a reason."""
    new: list[str | None] = []
    reasons: list[str | None] = []
    for url in urls:
        reason = None
        if url is not None:
            try:
                url = apply(url)
            except BadUrl as error:
                url, reason = None, error.reason
        new.append(url)
        reasons.append(reason)
    return NormalizedColumn(pl.Series(new, dtype=pl.String), pl.Series(reasons, dtype=pl.String))


class Step(abc.ABC):
    """A normalizer.

    Attributes:
        name: Its name in options and messages.
        in_columns: Whether a call costs so much that few URLs, too, are normalized as a column.
    """

    name = ""
    in_columns = False

    @abc.abstractmethod
    def apply(self, url: str) -> str:
        """Returns the normalized URL.

        Raises:
            BadUrl: The URL cannot be used.
        """

    def apply_column(self, urls: pl.Series) -> NormalizedColumn:
        """Returns the result of ``apply`` for each URL; there are no nulls."""
        return apply_each(self.apply, urls)

    @abc.abstractmethod
    def touches(self, urls: pl.Series) -> pl.Series:
        """Returns which URLs ``apply`` might change, or more of them; no nulls."""

    def functions(self) -> Sequence[tuple[str, Callable[[str], str]]]:
        """Returns its functions in order: (name in messages, function); by default its one."""
        return [(f"{self.name} normalizer", self.apply)]


class Pass(Step):
    """The normalizer urlnormalizer-pass: changes nothing."""

    name = "pass"

    def apply(self, url: str) -> str:
        """Returns the URL unchanged."""
        return url

    def touches(self, urls: pl.Series) -> pl.Series:
        """Returns False for each URL."""
        return falses(len(urls))
