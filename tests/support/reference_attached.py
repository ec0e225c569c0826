"""Schedules and scorings of the product, attached to the tests of the reference.

The product computes on frames, the reference on dicts. Each function here takes the dicts of the
reference, calls the product, and returns what the reference returns; so that its tests need not
know how the product does it. What is not built is absent: its test waits.

SCHEDULES, by name (``adaptive``, ``mime_adaptive``):
    (cases, settings: ``Adaptive``, ``Limits``) -> for each case (interval in s, due time in ms).
    A case is a row with ``fetched`` (ms) and ``change`` (``modified``, ``notmodified``,
    ``unknown``). The interval is that of the row after update, a whole number.

SCORINGS, by name:
    ``opic_cash``: (pages, ``Factors``) -> for each page (its cash after, share by target).
    ``depth``: (pages, usual limit) -> for each page (what its links get, or None; sort value).
    ``urlboost``: (URLs, [(pattern, factor)]) -> factor of each URL.
    A page is a row with ``targets`` (row keys) and ``changed``.

RATES, of the schedule ``rate``:
    ``posterior``: (visits, (shape, days) of the prior) -> (shape, days) after the visits, in order.
    ``intervals``: (changes a day of pages, fetches a day) -> interval in days of each page.
"""

from collections.abc import Callable
from typing import Any

SCHEDULES: dict[str, Callable[..., list[tuple[int, int]]]] = {}
SCORINGS: dict[str, Callable[..., list[Any]]] = {}
RATES: dict[str, Callable[..., Any]] = {}
