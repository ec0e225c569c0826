"""The types of schema.org that are kinds of another one: a news article is an article."""

import functools
import tomllib
from pathlib import Path


@functools.cache
def subtypes_of(name: str) -> frozenset[str]:
    """Returns a type of schema.org and all types below it.

    >>> sorted(subtypes_of("Article") & {"NewsArticle", "BlogPosting", "Recipe"})
    ['BlogPosting', 'NewsArticle']
    """
    below: set[str] = set()
    waiting = [name]
    while waiting:
        if (each := waiting.pop()) not in below:
            below.add(each)
            waiting += _direct_subtypes().get(each, "").split()
    return frozenset(below)


@functools.cache
def _direct_subtypes() -> dict[str, str]:
    return tomllib.loads(Path(__file__).with_name("schema_types.toml").read_text("utf-8"))
